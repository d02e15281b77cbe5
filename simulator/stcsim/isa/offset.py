"""Offsets of the vector-wise sparse tensor core: which row of B each stored element of A meets.

Between the offsets of a 16 x 4 tile of stored elements and the register that the gathering HMMA.884 reads.
A lane holds four elements of one row of A (`stcsim.isa.fragment.octet_layout`) and, in the same lane, their
four offsets: 4 bits each, the first element's in the lowest bits; selector 0 names the low half of the
register, selector 1 the high half, so that a register serves two sets.

ASSUMED, all of it: that offsets come in a register beside A's is what Zhu et al. (MICRO 2019) is cited for; its
layout is ours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stcsim.errors import IsaError, must
from stcsim.isa.state import LANES

BITS = 4
"""Bits of an offset: a vector of 16."""
_KEPT = 4
_ROWS, _OCTETS, _OCTET_ROWS = 16, 4, 8

_octet, _row = np.indices((_OCTETS, _OCTET_ROWS))
_LANES = 4 * _octet + _row % 4 + 16 * (_row // 4)
"""Lane that holds a row of an octet."""
_SHIFTS = np.arange(_KEPT, dtype=np.uint32) * np.uint32(BITS)


def pack(offsets: NDArray[np.integer], selector: int = 0) -> NDArray[np.uint32]:
    """Return the register of a tile's offsets in the half that `selector` names, zeros in the other.

    Parameters
    ----------
    offsets : ndarray of integers 0 to 15, shape (16, 4)
    selector : 0 or 1

    Returns
    -------
    word : ndarray of uint32, shape (32,)

    Raises
    ------
    IsaError
        If the shape differs, or an offset does not fit 4 bits.
    """
    if offsets.shape != (_ROWS, _KEPT):
        want = f"offsets must be those of {_ROWS} x {_KEPT} elements"
        raise IsaError(must(want, " x ".join(map(str, offsets.shape))))
    wrong = (offsets < 0) | (offsets >= 1 << BITS)
    if wrong.any():
        raise IsaError(must(f"an offset must be from 0 to {(1 << BITS) - 1}", int(offsets[wrong][0])))
    fields = np.bitwise_or.reduce(offsets.astype(np.uint32) << _SHIFTS, axis=1) << np.uint32(16 * selector)
    word = np.zeros(LANES, dtype=np.uint32)
    # Octets x and x + 2 hold the same rows.
    word[_LANES] = fields[_OCTET_ROWS * (_octet % 2) + _row]
    return word


def unpack(word: NDArray[np.uint32], selector: int = 0) -> NDArray[np.intp]:
    """Return the offsets that a register holds for `selector`; undoes `pack`, octet by octet.

    Returns
    -------
    offsets : ndarray of intp, shape (4 octets, 8 rows, 4)
    """
    fields = word.take(_LANES)[..., None] >> (_SHIFTS + np.uint32(16 * selector))
    return (fields & np.uint32((1 << BITS) - 1)).astype(np.intp)
