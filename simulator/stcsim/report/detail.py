"""One result in full, for people: every number with its unit; reads the result only."""

from __future__ import annotations

from rich.console import Console

from stcsim.report.table import check_text
from stcsim.result.result import Result


def print_result(console: Console, result: Result) -> None:
    """Print one result, one quantity a line."""
    total = result.cycles * result.sub_cores

    def share(count: int) -> str:
        return f"{count / total:.1%}" if total else "-"

    lines = [
        ("machine", f"{result.machine}, {result.sub_cores} sub-cores at {result.clock_hz / 1e9:g} GHz"),
        ("kernel", f"{result.kernel} ({result.dtype}), {result.resident_warps} resident warps a sub-core"),
        ("problem", f"{result.m} x {result.n} x {result.k}, densities {result.density_a:.4f} x {result.density_b:.4f}"),
        ("cycles", f"{result.cycles:,}"),
        ("time", f"{result.time_us:,.3f} us"),
        ("MACs", f"{result.macs_total:,} in all; {result.macs_executed:,} executed, {result.macs_skipped:,} skipped"),
        ("useful MACs", f"{result.macs_useful:,} of {result.mac_slots:,} issued slots"),
        *((f"utilisation, {name}", f"{value:.2%}") for name, value in result.utilization.items()),
        *((f"outer products {name.replace('_', ' ')}", f"{count:,}") for name, count in result.outer_products.items()),
        *((f"issued {name}", f"{count:,}") for name, count in result.instructions.items()),
        *(
            (f"cycles: {cause}", f"{count:,} sub-core cycles ({share(count)})")
            for cause, count in result.stalls.items()
        ),
        *((f"bytes: {name}", f"{count:,} B") for name, count in result.traffic_bytes.items()),
        ("values", check_text(result)),
        ("cycles cover", result.model),
        ("engine", result.engine),
        *(("note", note) for note in result.notes),
        ("assumed", f"{len(result.assumed)} parameters (stcsim explain lists them; --json has them)"),
    ]  # fmt: skip
    width = max(len(name) for name, _ in lines)
    for name, text in lines:
        console.print(f"{name:<{width}}  {text}", markup=False, highlight=False, soft_wrap=True)
