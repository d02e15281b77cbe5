"""What the fast outer-product engine looks up instead of counting it: ones of groups, slabs and classes of banks.

Place in the data flow: made once a run by `stcsim.machine.kernels.outer`, from the bitmap words of the operands.
"""

from __future__ import annotations

import numpy as np

from stcsim.machine.kernels._jit import jit
from stcsim.machine.kernels.outer_state import FAR
from stcsim.machine.outer_record import MILLI, IntArray, OuterModel


def bank_classes(bank_of: IntArray) -> tuple[IntArray, IntArray] | None:
    """Return the class of each row and of each column if banks are a grid of them, None if they are not.

    Then the sums of a row class and a column class share a bank, and no others do.
    """
    _, rows = np.unique(bank_of[:, 0], return_inverse=True)
    _, columns = np.unique(bank_of[0], return_inverse=True)
    named = rows[:, None] * (columns.max() + 1) + columns[None, :]
    pairs = np.unique(np.stack([bank_of.ravel(), named.ravel()]), axis=1)
    one_to_one = pairs.shape[1] == len(np.unique(pairs[0])) == len(np.unique(pairs[1]))
    return (rows.astype(np.int64), columns.astype(np.int64)) if one_to_one else None


def fits_32_bits(model: OuterModel) -> bool:
    """Say whether all that happens to the banks in one slab, and before it to those in use, is near enough."""
    products = model.m_inst * model.n_inst
    outer_products = model.grid_a * model.grid_b
    front_milli = model.step_milli + outer_products * model.skipped_milli
    step_cycles = outer_products * (products + 1) + -(-front_milli // MILLI)
    return model.k_slab * step_cycles + model.window * products < int(FAR)


@jit
def _count_classes(bits, classes, quantum, out):
    """For each word and each group of `quantum` of its ones, count the ones of each class."""
    one = np.uint64(1)
    for t in range(bits.shape[0]):
        for k in range(bits.shape[1]):
            n = 0
            for i in range(classes.shape[0]):
                if (bits[t, k] >> np.uint64(i)) & one:
                    out[t, k, n // quantum, classes[i]] += 1
                    n += 1


def class_counts(
    bits: np.ndarray, classes: IntArray, quantum: int, groups: int, n_classes: int
) -> np.ndarray:
    """Return, for each word and each group of `quantum` of its ones, the ones of each class."""
    out = np.zeros((*bits.shape, groups, n_classes), np.uint8)
    _count_classes(bits, classes, quantum, out)
    return out


def quanta(ones: np.ndarray, quantum: int) -> np.ndarray:
    """Return the groups of `quantum` ones that each word makes, the last one filled up."""
    return ((ones.astype(np.uint16) + (quantum - 1)) // quantum).astype(np.uint8)


def ones_per_slab(ones: np.ndarray, k_slab: int) -> IntArray:
    """Return the ones of all words of each slab."""
    starts = np.arange(0, ones.shape[1], k_slab)
    if not len(starts) or not len(ones):
        return np.zeros((ones.shape[0], 0), np.int64)
    return np.add.reduceat(ones.astype(np.int64), starts, axis=1)
