"""Which sub-core works on which warp tiles.

Place in the data flow: between a lowered problem and the engines.  There is no
GPU level yet: CTAs go to SMs in raster order, round robin, the warps of a CTA
to the sub-cores of its SM, and every sub-core works through its warp tiles
without waiting for memory or for another sub-core.  Results say so.
"""

from __future__ import annotations

import numpy as np

from stcsim.lowering.lowered import Grid
from stcsim.machine.record import Work

LABEL = "warp tiles spread over all sub-cores; no shared memory, L2 or DRAM time"
"""How results name this model of the chip."""


def spread(grid: Grid, sms: int, sub_cores_per_sm: int) -> Work:
    """Give every warp tile of `grid` to a sub-core.

    Parameters
    ----------
    grid : Grid
    sms, sub_cores_per_sm : int

    Returns
    -------
    work : Work
        Warp w of the i-th CTA of an SM goes to sub-core (i * warps + w) mod sub_cores_per_sm.
        Warp tiles that hold no element of C are left out.
    """
    tile = grid.tile
    tile_m, tile_n = (
        index.ravel()
        for index in np.meshgrid(
            np.arange(grid.tiles_m, dtype=np.int64), np.arange(grid.tiles_n, dtype=np.int64), indexing="ij"
        )
    )
    cta = (tile_m // tile.warps_m) * grid.ctas_n + tile_n // tile.warps_n
    warp = (tile_m % tile.warps_m) * tile.warps_n + tile_n % tile.warps_n
    nth_of_sm = cta // max(sms, 1)
    sub_core = (cta % sms) * sub_cores_per_sm + (nth_of_sm * tile.warps + warp) % sub_cores_per_sm
    order = np.lexsort((warp, cta, sub_core))
    counts = np.bincount(sub_core, minlength=sms * sub_cores_per_sm)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    return Work(offsets, tile_m[order], tile_n[order])


def distinct(work: Work) -> tuple[Work, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Keep one sub-core of each number of tiles: enough where all tiles take the same time.

    Returns
    -------
    work : Work
        One sub-core for each distinct number of tiles.
    which : ndarray of int64, shape (n_sub_cores,)
        The sub-core of the returned work that stands for each original one.
    """
    counts, first, which = np.unique(np.diff(work.offsets), return_index=True, return_inverse=True)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    tiles = (
        np.concatenate([np.arange(work.offsets[s], work.offsets[s + 1]) for s in first])
        if len(first)
        else np.zeros(0, np.int64)
    )
    return Work(offsets, work.tile_m[tiles], work.tile_n[tiles]), which.astype(np.int64)
