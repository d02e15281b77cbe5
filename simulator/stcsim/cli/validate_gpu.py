"""``stcsim validate a100-gemm``, ``a100-sxm80-gemm-bf16`` and ``h200-mma-sync``: whole GEMMs against measurements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stcsim.cli.validate_output import csv_option, jobs_option, json_option, plot_option, show

if TYPE_CHECKING:
    from stcsim.result.validation import Validation


def _command(name: str, machine: str, text: str, run: str) -> click.Command:
    @click.command(name, help=text)
    @csv_option
    @click.option("--machine", default=machine, show_default=True, help="Machine, by name or file.")
    @jobs_option
    @json_option
    @plot_option
    def command(table: Path | None, machine: str, jobs: int, as_json: bool, folder: Path | None) -> None:
        from stcsim import gpu_validation  # imported where used: --help stays quick
        from stcsim.cli.progress import Bar

        function: Callable[..., Validation] = getattr(gpu_validation, run)
        with Bar() as bar:
            found = function(table, machine, jobs, bar.update)
        show(name, found, folder, as_json=as_json)

    return command


a100_gemm = _command(
    "a100-gemm", "a100-pcie-80gb",
    "Predict dense, 2:4 and K-expanded GEMMs (columns dtype, m, n, k, dense_us, ...) by the fastest kernel.",
    "a100_gemm",
)  # fmt: skip
a100_sxm_bf16 = _command(
    "a100-sxm80-gemm-bf16", "a100-sxm4-80gb",
    "Predict host times of bf16 GEMMs (columns m, n, k, host_ms_incl_21us), 21 us of host time included.",
    "a100_sxm_bf16",
)  # fmt: skip
h200_mma_sync = _command(
    "h200-mma-sync", "h200-mma-sync",
    "Predict cycles of hand-written mma.sync kernels (columns M, N, K, config) on an H200.",
    "h200_mma_sync",
)  # fmt: skip
