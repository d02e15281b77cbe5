"""(2N-2):2N sparsity along K, stored as N-1 overlapping 2:4 windows: K-expanded.

Window w of a group of 2N elements covers places 2w to 2w + 3.  A group keeps 2N - 2 places (its non-zeros, and
the lowest spare ones); from the left, every window takes the next two of them.  Place p of the j-th one kept is
j, j + 1 or j + 2, since two are left out, so it lies in window j // 2, at p - 2 (j // 2), whatever the pattern.
Each kept element is stored once, and the windows one behind the other are 2:4 over a K of
(N - 1) 4 for every 2N: K' = K (2 - 2/N).  2:2 stands for dense operands: a window of its own for every two
elements, half of it empty; K' = 2 K.

>>> import numpy as np
>>> form = KExpandedFormat()  # 6:8
>>> encoded = form.encode(np.array([[1, 2, 0, 4, 5, 0, 7, 8]]))
>>> encoded.values[0].tolist(), encoded.indices[0].tolist(), encoded.k_padded
([[1, 2], [4, 5], [7, 8]], [[0, 1], [1, 2], [2, 3]], 12)
>>> form.sources(8).tolist()
[0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7]

Source: SlideSparse (arXiv 2603.05232): overlapping windows of stride 2, greedy allocation from the left, the
activation rearranged alike.  Deviation: spare places are chosen so that no element stands twice; that a dense
operand's windows are filled up with empty places is ASSUMED (its measured K factor is 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stcsim.errors import FormatError, must
from stcsim.formats.format import as_operand, whole_bytes
from stcsim.formats.group import GroupFormat
from stcsim.formats.nm import CODE_BITS, NmEncoded, pack_codes
from stcsim.workload.pattern import Pattern

WINDOW = 4
"""Places of a window, of which two are stored."""
LARGEST_GROUP = 16
"""14:16 is the largest that has been measured."""


@dataclass(frozen=True)
class KExpandedFormat(GroupFormat[NmEncoded]):
    """At most 2N-2 of every 2N consecutive elements along K, stored as 2:4 windows.

    Parameters
    ----------
    side : {"a", "b"}
    n, m : int
        4:6, 6:8, ... 14:16; or 2:2 for dense operands.
    """

    name: ClassVar[str] = "k_expanded"
    summary: ClassVar[str] = "(2N-2):2N along K (6:8) as overlapping 2:4 windows: kept values and codes"
    n: int = 6
    m: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        sliding = self.m % 2 == 0 and 6 <= self.m <= LARGEST_GROUP and self.n == self.m - 2
        if not sliding and (self.n, self.m) != (2, 2):
            what = "K-expanded sparsity must be 4:6, 6:8, 8:10, 10:12, 12:14, 14:16, or 2:2 for dense"
            raise FormatError(must(what, f"{self.n}:{self.m}"))

    @property
    def windows(self) -> int:
        """Windows of a group: N - 1."""
        return self.n // 2

    def expanded_k(self, k: int) -> int:
        """Return K': the K of the windows, one behind the other."""
        return self.groups(k) * self.windows * WINDOW

    def sources(self, k: int) -> NDArray[np.intp]:
        """Return which element of K each element of K' is: the lift of the other operand.

        Returns
        -------
        sources : ndarray of intp, shape (expanded_k(k),)
            -1 where it is empty: beyond K, and in the empty half of 2:2 windows.
        """
        places = 2 * np.arange(self.windows)[:, None] + np.arange(WINDOW)
        sources = self.m * np.arange(self.groups(k))[:, None, None] + places
        empty = (places >= self.m) | (sources >= k)
        return np.where(empty, -1, sources).reshape(-1)

    def encode(self, values: ArrayLike) -> NmEncoded:
        """Keep n values of each group, two of them in each window; see `Format.encode`."""
        operand = as_operand(values)
        grouped = self.grouped(operand)
        places = self.places(grouped)
        outer, groups, _ = grouped.shape
        in_window = places - 2 * (np.arange(self.n) // 2)
        codes = (in_window[:, :, ::2] | in_window[:, :, 1::2] << 2).astype(np.uint8)
        return NmEncoded(
            shape=(operand.shape[0], operand.shape[1]),
            values=np.take_along_axis(grouped, places, axis=2).reshape(outer, groups * self.windows, 2),
            m=WINDOW,
            metadata=pack_codes(codes),
        )

    def decode(self, encoded: NmEncoded) -> NDArray[Any]:
        """Put the kept values back to their places; see `Format.decode`."""
        outer = len(encoded.values)
        groups = self.groups(encoded.shape[self.k_axis])
        first = 2 * np.arange(self.windows)[:, None]
        places = encoded.indices.reshape(outer, groups, self.windows, 2) + first
        grouped = np.zeros((outer, groups, self.m), dtype=encoded.values.dtype)
        values = encoded.values.reshape(outer, groups, self.n)
        np.put_along_axis(grouped, places.reshape(outer, groups, self.n), values, axis=2)
        return self.ungrouped(grouped, encoded.shape)

    def stored_bits(self, pattern: Pattern, element_bits: int) -> dict[str, int]:
        """Return values (stored zeros and padding included) and metadata; see `Format.stored_bits`."""
        outer, k = pattern.shape[1 - self.k_axis], pattern.shape[self.k_axis]
        windows = outer * self.groups(k) * self.windows
        return {"values": windows * 2 * element_bits, "metadata": whole_bytes(windows * CODE_BITS)}
