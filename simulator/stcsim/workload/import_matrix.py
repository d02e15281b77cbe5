"""Imports one sparse matrix (.smtx, .mtx, .npy) as the weight of a product.

The matrix stands on the left, as in the DLMC collection: C[m,n] = A[m,k] B[k,n] with A the file's matrix and B
dense.  How many columns B has is not in the file.
"""

from __future__ import annotations

import os
from pathlib import Path

from stcsim.config.workload import GemmShape
from stcsim.workload.imported import Imported, ImportedLayer
from stcsim.workload.pattern_file import load_pattern

COLUMNS = 128
"""Columns of B unless the user gives them."""


def read_matrix(path: str | os.PathLike[str], columns: int | None) -> Imported:
    """Read a matrix.

    Parameters
    ----------
    path : str or path-like
    columns : int or None
        Columns of the dense operand.

    Returns
    -------
    imported : Imported
        One layer, whose file is named by its absolute path.

    Raises
    ------
    WorkloadError
        As `stcsim.workload.pattern_file.load_pattern`.
    """
    pattern = load_pattern(path)
    m, k = pattern.shape
    n = COLUMNS if columns is None else columns
    notes = [
        f"the matrix is A, the weight: {m} x {k}, {pattern.nnz} non-zeros, density {pattern.density:.4g}"
    ]
    if columns is None:
        notes.append(f"the file says nothing of B: {n} dense columns are assumed, --columns gives others")
    layer = ImportedLayer(
        Path(path).stem,
        GemmShape(m=m, n=n, k=k),
        {"file": str(Path(path).absolute())},
        role_a="weight",
        role_b="activation",
    )
    return Imported("sparse matrix", (layer,), tuple(notes))
