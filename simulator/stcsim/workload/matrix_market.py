"""Patterns from Matrix Market files (.mtx): read by scipy, once their sizes have been checked.

Called by `stcsim.workload.pattern_file`.  Of a symmetric, skew-symmetric or Hermitian file both halves
are there; an entry whose value is zero is a zero; entries at the same place count once, by their sum.

Source: NIST, "Text File Formats", https://math.nist.gov/MatrixMarket/formats.html.
"""

from __future__ import annotations

from typing import IO, Any

import numpy as np

from stcsim.errors import must
from stcsim.workload.pattern import MaskPattern
from stcsim.workload.untrusted_file import Fault, check_size, length_of, printable

_FEWEST_BYTES = {"coordinate": 4, "array": 2}
"""Shortest line of an entry: "1 1" or "0", with its end."""


def read_mtx(stream: IO[bytes]) -> MaskPattern:
    """Read a Matrix Market file.

    Parameters
    ----------
    stream : binary file
        Of the file system: scipy is given its name, since faults on the way to a Python stream end the process.

    Returns
    -------
    pattern : MaskPattern

    Raises
    ------
    Fault
        If it is not one, is too large, or does not hold what its header says.
    """
    from scipy.io import mminfo, mmread  # imported where used: it takes its time

    if not stream.read(14).startswith(b"%%MatrixMarket"):
        message = "must start with %%MatrixMarket (is this a Matrix Market file?)"
        raise Fault(message, line=1)
    try:
        rows, cols, entries, layout, field, _ = mminfo(stream.name)
        check_size((rows, cols))
        least = entries * _FEWEST_BYTES[layout] - 1
        if least > length_of(stream):
            what = f"must be at least {least} bytes long for the {entries} entries that its header declares"
            raise Fault(must(what, length_of(stream)))
        found: Any = mmread(stream.name)
    except (ValueError, OverflowError, KeyError, TypeError) as error:
        message = f"must be a Matrix Market file: {printable(str(error))}"
        raise Fault(message) from None
    if layout == "array":
        values = np.asarray(found)
    else:
        coordinates = found.tocsr().tocoo()  # sums what stands at the same place
        values = coordinates.data
    if field != "pattern" and not np.all(np.isfinite(values)):
        message = "must hold finite numbers only"
        raise Fault(message)
    if layout == "array":
        return MaskPattern.adopt(np.ascontiguousarray(values != 0))
    mask = np.zeros((rows, cols), np.bool_)
    ones = values != 0
    mask[coordinates.row[ones], coordinates.col[ones]] = True
    return MaskPattern.adopt(mask)
