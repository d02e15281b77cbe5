"""``stcsim validate a100-gemm``, ``a100-sxm80-gemm-bf16`` and ``h200-mma-sync``: whole GEMMs against measurements."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from stcsim.dstc_validation import Validation

_JOBS = click.option("--jobs", type=click.IntRange(1, 64), default=2, show_default=True, help="Processes.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print rows and summary as JSON.")


def _command(name: str, machine: str, text: str, run: str, *, needs_csv: bool) -> click.Command:
    @click.command(name, help=text)
    @click.option(
        "--csv", "table", type=click.Path(path_type=Path), required=needs_csv,
        help="Rows to predict; measured columns may be empty." + ("" if needs_csv else "  Default: what ships."),
    )  # fmt: skip
    @click.option("--machine", default=machine, show_default=True, help="Machine, by name or file.")
    @_JOBS
    @_JSON
    def command(table: Path | None, machine: str, jobs: int, as_json: bool) -> None:
        from stcsim import gpu_validation  # imported where used: --help stays quick
        from stcsim.cli.progress import Bar

        function: Callable[..., Validation] = getattr(gpu_validation, run)
        with Bar() as bar:
            found = function(table, machine, jobs, bar.update)
        show(found.rows, found.summary, as_json=as_json)

    return command


def show(rows: list[dict[str, Any]], summary: dict[str, Any], *, as_json: bool) -> None:
    """Print rows and errors: as JSON, or as a table with a line for each measured column."""
    if as_json:
        click.echo(json.dumps({"rows": rows, "summary": summary}, indent=2))
        return
    columns = [name for name in (rows[0] if rows else {}) if not name.startswith("bottleneck_")]
    click.echo("\t".join(columns))
    for row in rows:
        cells = (row[name] for name in columns)
        click.echo("\t".join("" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else str(cell)
                             for cell in cells))  # fmt: skip
    for column, figures in summary.items():
        click.echo(
            f"{column}: {figures['n_measured']} measured, mean absolute error "
            f"{figures['mean_absolute_error_fraction']:.1%}, p90 {figures['p90_absolute_error_fraction']:.1%}, "
            f"largest {figures['largest_absolute_error_fraction']:.1%}"
        )


a100_gemm = _command(
    "a100-gemm", "a100-pcie-80gb",
    "Predict dense, 2:4 and K-expanded GEMMs (columns dtype, m, n, k, dense_us, ...) by the fastest kernel.",
    "a100_gemm", needs_csv=True,
)  # fmt: skip
a100_sxm_bf16 = _command(
    "a100-sxm80-gemm-bf16", "a100-sxm4-80gb",
    "Predict host times of bf16 GEMMs (columns m, n, k, host_ms_incl_21us), 21 us of host time included.",
    "a100_sxm_bf16", needs_csv=False,
)  # fmt: skip
h200_mma_sync = _command(
    "h200-mma-sync", "h200-mma-sync",
    "Predict cycles of hand-written mma.sync kernels (columns M, N, K, config) on an H200.",
    "h200_mma_sync", needs_csv=True,
)  # fmt: skip
