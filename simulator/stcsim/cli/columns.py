"""Rows of texts as columns, for tables whose cells may be long and must not be cut."""

from __future__ import annotations

from collections.abc import Sequence


def columns(rows: Sequence[Sequence[str]], right: Sequence[int]) -> list[str]:
    """Return a line for each row, its cells as wide as the widest of their column.

    Parameters
    ----------
    rows : sequence of sequence of str
        Of one length; the first one holds the titles.
    right : sequence of int
        Columns whose cells stand to the right.
    """
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
