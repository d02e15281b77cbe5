"""The table of im2col: how long lowering a feature map would keep the integer pipes; reads results only."""

from __future__ import annotations

from collections.abc import Sequence

from stcsim.result.result import Result

METHODS = ("bitmap", "dense_implicit", "dense_explicit", "csr")
COLUMNS = (
    "convolution", "on", "density", "tensor cycles", *(f"im2col {name}" for name in METHODS),
    "csr / dense", "bitmap / tensor",
)  # fmt: skip


def rows(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """Return the cells, in the order of `COLUMNS`: one row for each convolution that can run on bitmaps.

    Layers of networks are left out: their cycles are in the written results.
    """
    return [_row(result) for result in results if "bitmap" in result.im2col_cycles and not result.network]


def _row(result: Result) -> tuple[str, ...]:
    cycles = result.im2col_cycles
    dense = cycles["dense_implicit"]
    return (
        result.workload,
        result.machine,
        f"{result.density_a:.3f}",
        f"{result.cycles:,}",
        *(f"{cycles[name]:,}" for name in METHODS),
        f"{cycles['csr'] / dense:.1f}x" if dense else "-",
        f"{cycles['bitmap'] / result.cycles:.1%}" if result.cycles else "-",
    )
