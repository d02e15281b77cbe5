"""What ragged edges and what zeros save on a core that skips outer products, in words; reads results only."""

from __future__ import annotations

from collections.abc import Mapping


def skipped_text(outer_products: Mapping[str, int]) -> str:
    """Return how many times fewer outer products ran, for edges of C inside a tile and for zeros.

    Parameters
    ----------
    outer_products : mapping of str to int
        As in `stcsim.result.result.Result`.

    Examples
    --------
    >>> skipped_text({"whole_tiles": 128, "inside": 32, "executed": 30})
    '4.00x, 1.07x'
    >>> skipped_text({})
    '-'
    """
    if not outer_products.get("executed"):
        return "-"
    whole, inside, executed = (outer_products[name] for name in ("whole_tiles", "inside", "executed"))
    return f"{whole / inside:.2f}x, {inside / executed:.2f}x"
