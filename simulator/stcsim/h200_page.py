"""The page of ``stcsim validate h200``: errors by part, rows that no constant was chosen on apart, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stcsim.h200 import Row, Summary, deltas, summarize

WORST = 10
"""Rows that are listed one by one."""
TARGET = 0.025
"""Largest error that counts as met (design page: instructions)."""


def _percent(summary: Summary) -> str:
    return (
        f"{summary.n} | {summary.mean:.2%} | {summary.largest:.1%} | {summary.naive_mean:.1%} | "
        f"{summary.naive_largest:.1%}"
    )


def page(parts: Mapping[str, tuple[str, str, Sequence[Row]]]) -> str:
    """Return the page.

    Parameters
    ----------
    parts : mapping
        By name: file, title and rows.
    """
    lines = [
        "# The SM engine against an H200",
        "",
        "Made by `stcsim validate h200 --data DIR -o FILE`.  Naive: `max(interval x warps / 4, latency / ILP)` for",
        "instructions; for loops in-order warps with stall counts, an MMA pipe and loads of fixed latency.",
        "Calibrated rows are those that a constant or a rule was chosen on; docs/sm_engine.md says which.",
    ]
    for name, (file, title, rows) in parts.items():
        lines += ["", f"## {name}: {title}", "", f"Measured: `{file}`.", ""]
        lines += ["| rows | n | mean error | largest | naive mean | naive largest |", "|---" * 6 + "|"]
        lines.append(f"| all | {_percent(summarize(rows))} |")
        lines.append(
            f"| not calibrated | {_percent(summarize([row for row in rows if not row.calibrated]))} |"
        )
        lines += [
            f"| {what} | {_percent(summarize([row for row in rows if row.what == what]))} |"
            for what in dict.fromkeys(row.what for row in rows)
        ]
        over = [row for row in rows if abs(row.error) > TARGET]
        lines += ["", f"{len(over)} of {len(rows)} rows are more than {TARGET:.1%} off."]
        if name == "loops":
            lines += _loop_lines(rows)
        lines += [
            "",
            "| worst rows | case | measured | predicted | error | naive | calibrated |",
            "|---" * 7 + "|",
        ]
        lines += [
            f"| {row.what} | {row.case} | {row.measured:.2f} | {row.predicted:.2f} | {row.error:+.1%} | "
            f"{row.naive_error:+.1%} | {'yes' if row.calibrated else ''} |"
            for row in sorted(rows, key=lambda row: -abs(row.error))[:WORST]
        ]
    return "\n".join(lines)


def _loop_lines(rows: Sequence[Row]) -> list[str]:
    """Return what patches change, and every variant that most loops have."""
    right, counted, error, correlation = deltas(rows)
    base = summarize([row for row in rows if row.case == "base"])
    names = list(dict.fromkeys(row.what for row in rows))
    found = {(row.what, row.case): row for row in rows}
    lines = [
        "",
        f"Unpatched loops: mean error {base.mean:.2%}, largest {base.largest:.1%}; naive {base.naive_mean:.1%}.",
        f"Changes by a patch of more than 10 cycles: right sign {right} of {counted}; mean error of all changes "
        f"{error:.1f} cycles, correlation {correlation:.3f}.",
        "",
        "Predicted / measured cycles of an iteration:",
        "",
        f"| variant | {' | '.join(names)} |",
        "|---" * (len(names) + 1) + "|",
    ]
    for case in dict.fromkeys(row.case for row in rows):
        cells = [found.get((name, case)) for name in names]
        if sum(cell is not None for cell in cells) < len(names) // 2:
            continue
        texts = [
            f"{cell.predicted:.0f} / {cell.measured:.0f} ({cell.error:+.1%})" if cell is not None else ""
            for cell in cells
        ]
        lines.append(f"| {case} | {' | '.join(texts)} |")
    return lines
