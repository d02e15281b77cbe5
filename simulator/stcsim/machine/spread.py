"""Which sub-core works on which warp tiles.

Place in the data flow: between a lowered problem and closed forms
(`stcsim.machine.analytic`).  CTAs go to SMs in raster order, round robin, the
warps of a CTA to the sub-cores of its SM.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stcsim.lowering.lowered import Grid


@dataclass(frozen=True)
class Work:
    """The warp tiles of every sub-core.

    Parameters
    ----------
    offsets : ndarray of int64, shape (n_sub_cores + 1,)
        Tiles of sub-core s are ``offsets[s]:offsets[s + 1]``.
    tile_m, tile_n : ndarray of int64, shape (n_tiles,)
        Position of each warp tile in the grid of warp tiles.
    """

    offsets: npt.NDArray[np.int64]
    tile_m: npt.NDArray[np.int64]
    tile_n: npt.NDArray[np.int64]


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
