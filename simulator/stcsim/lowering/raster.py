"""In which order the CTAs of a kernel start.

Place in the data flow: a kernel's grid in, tile numbers out, which `stcsim.machine.gpu_simulator` gives to SMs.
Knows no machine.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def raster(ctas_m: int, ctas_n: int, group: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return row and column of every CTA tile in order.

    Parameters
    ----------
    ctas_m, ctas_n : int
    group : int, at least 1
        Rows that are gone through together, column by column, so that CTAs in flight share both operands
        (CUTLASS calls it threadblock swizzle; the kernels of data/h200/src take 8).

    Returns
    -------
    rows, columns : ndarray of int64, shape (ctas_m * ctas_n,)
    """
    number = np.arange(ctas_m * ctas_n, dtype=np.int64)
    in_group = group * max(ctas_n, 1)
    first = number // in_group * group
    height = np.maximum(1, np.minimum(group, ctas_m - first))
    within = number % in_group
    return first + within % height, within // height
