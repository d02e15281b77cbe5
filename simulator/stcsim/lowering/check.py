"""The value check: whether the lowered program computes A @ B.

Place in the data flow: beside the machine, on the same `Lowered`.  It executes a
seeded sample of warp tiles through the ISA's functional semantics and compares
them with the product of the operands' own values, which never went through an
encoder.  Values are small integers, so sums are exact and equality is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stcsim.lowering.lowered import Lowered
from stcsim.workload.gemm import Gemm

_SLAB = 4096
"""K that the expected product sums at a time: bounds temporary memory."""


@dataclass(frozen=True)
class Verdict:
    """What the check found.

    Parameters
    ----------
    share : float
        Fraction of the elements of C that were compared.
    fault : str or None
        The first wrong element, in words; None where all are right.
    """

    share: float
    fault: str | None


def sample_tiles(tiles_m: int, tiles_n: int, count: int, seed: int) -> list[tuple[int, int]]:
    """Return up to `count` distinct warp tiles, the last one (the ragged corner) always among them."""
    total = tiles_m * tiles_n
    if count >= total:
        return [divmod(i, tiles_n) for i in range(total)]
    if count == 0:
        return []
    drawn = np.random.Generator(np.random.PCG64(seed)).choice(total - 1, size=count - 1, replace=False)
    return [divmod(int(i), tiles_n) for i in [*sorted(drawn), total - 1]]


def expected_tile(gemm: Gemm, r0: int, rows: int, c0: int, columns: int) -> npt.NDArray[np.float64]:
    """Return rows r0.. and columns c0.. of A @ B, from the operands' own values."""
    rows, columns = min(rows, gemm.m - r0), min(columns, gemm.n - c0)
    total = np.zeros((rows, columns))
    for k0 in range(0, gemm.k, _SLAB):
        k1 = min(k0 + _SLAB, gemm.k)
        a = gemm.a.values(r0, r0 + rows, k0, k1).astype(np.float64)
        b = gemm.b.values(k0, k1, c0, c0 + columns).astype(np.float64)
        total += a @ b
    return total


def check_values(lowered: Lowered, count: int, seed: int) -> Verdict:
    """Execute `count` warp tiles of the program and compare them with A @ B.

    Parameters
    ----------
    lowered : Lowered
    count : int
        Warp tiles; all of them where there are no more.
    seed : int
        Of the sample.

    Returns
    -------
    verdict : Verdict
        A C without elements is right as a whole.
    """
    parts = lowered.products
    gemm, grid = parts[0].gemm, parts[0].grid
    total = len(parts) * gemm.m * gemm.n
    if total == 0:
        return Verdict(1.0, None)
    compared = 0
    for i, i_n in sample_tiles(len(parts) * grid.tiles_m, grid.tiles_n, count, seed):
        product, i_m = divmod(i, grid.tiles_m)
        fault, size = _compare(parts[product], i_m, i_n)
        compared += size
        if fault is not None:
            where = f"product {product}: " if lowered.parts else ""
            return Verdict(compared / total, where + fault)
    return Verdict(compared / total, None)


def _compare(lowered: Lowered, i_m: int, i_n: int) -> tuple[str | None, int]:
    tile = lowered.grid.tile
    r0, c0 = i_m * tile.m_warp, i_n * tile.n_warp
    want = expected_tile(lowered.gemm, r0, tile.m_warp, c0, tile.n_warp)
    got = lowered.execute(i_m, i_n)
    if got.shape != (tile.m_warp, tile.n_warp):
        return f"warp tile ({i_m}, {i_n}) is {got.shape}, not ({tile.m_warp}, {tile.n_warp})", want.size
    inside = np.zeros(got.shape, bool)
    inside[: want.shape[0], : want.shape[1]] = True
    padded = np.zeros(got.shape)
    padded[: want.shape[0], : want.shape[1]] = want
    # Written so that NaN is wrong; beyond the edges of C every sum must have stayed zero.
    wrong = ~(got == padded)
    for row, column in _first(wrong & inside):
        return f"C[{r0 + row}, {c0 + column}] is {got[row, column]:g}, not {padded[row, column]:g}", want.size
    for row, column in _first(wrong):
        return f"padding at C[{r0 + row}, {c0 + column}] is {got[row, column]:g}, not 0", want.size
    return None, want.size


def _first(wrong: npt.NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    yield from np.argwhere(wrong)[:1].tolist()
