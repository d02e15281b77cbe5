"""The tables as text: one instruction in full, and the tables of isa/README.md.

Reads rows, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from stcsim.isa.spec import InstructionSpec, OperandSpec
from stcsim.isa.table import Isa

_GUARDS = {
    "lane": "lane by lane",
    "warp": "the whole warp, all lanes alike",
    "step": "read in the lane of its (k, j)",
    "none": "none may be given",
}


def describe(spec: InstructionSpec) -> str:
    """Return what is known of one instruction, a line each.

    Parameters
    ----------
    spec : InstructionSpec

    Returns
    -------
    text : str
    """
    facts = {
        "syntax": _syntax(spec),
        "what": spec.summary,
        "table": f"{spec.table} (family {spec.family})",
        "unit": spec.unit + (", a warp-level instruction that stands for a sequence" if spec.macro else ""),
        "guard": _GUARDS[spec.guard],
        "shape": "" if spec.shape is None else f"{spec.shape.m} x {spec.shape.n} x {spec.shape.k}",
        "multiplier slots": str(spec.macs) if spec.macs else "",
        "semantics": " ".join(
            [spec.semantics, *(f"{name}={value}" for name, value in spec.parameters.items())]
        ),
        "source": spec.source,
    }
    lines = [spec.mnemonic, *(f"  {name:<17} {fact}" for name, fact in facts.items() if fact)]
    lines.append("  operands" if spec.operands else "  operands          none")
    lines += [f"    {o.name:<10} {_size(o):<24} {o.access:<7} {o.holds}" for o in spec.operands]
    if spec.opcode is None:
        return "\n".join([*lines, "  no encoding: a derived row"])
    lines.append("  fields of the 128-bit word (ASSUMED: ours)")
    lines.append(f"    {'opcode':<10} bits 0..11     0x{spec.opcode:03X}")
    lines.append(f"    {'guard':<10} bits 12..15    predicate, bit 15 its negation; 7 for none")
    lines += [f"    {o.name:<10} bits {o.at}..{o.at + o.width - 1}" for o in spec.operands]
    return "\n".join(lines)


def instruction_list(specs: Iterable[InstructionSpec]) -> str:
    """Return one line for each instruction: mnemonic, family, unit, multiplier slots, what it does.

    Parameters
    ----------
    specs : iterable of InstructionSpec

    Returns
    -------
    text : str
    """
    rows = [("instruction", "family", "unit", "MACs", "what it does")]
    rows += [(s.mnemonic, s.family, s.unit, str(s.macs or "-"), s.summary) for s in specs]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]])
        for row in rows
    )


def instruction_tables(isa: Isa) -> str:
    """Return the tables of isa/README.md: Markdown, one line for each row of isa/*.yaml.

    Parameters
    ----------
    isa : Isa

    Returns
    -------
    text : str
    """
    lines: list[str] = []
    for table, specs in groupby(isa.values(), lambda spec: spec.table):
        lines += [f"### isa/{table}.yaml", ""]
        lines += [
            "| instruction | operands | unit | MACs | what it does | source |",
            "|---|---|---|---|---|---|",
        ]
        for forms in _rows(specs):
            spec = forms[0]
            cells = [
                _names([form.mnemonic for form in forms]),
                ", ".join(f"{o.name} {_size(o)}" for o in spec.operands) or "none",
                spec.unit,
                str(spec.macs or "-"),
                spec.summary,
                spec.source,
            ]
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def _rows(specs: Iterable[InstructionSpec]) -> Iterator[list[InstructionSpec]]:
    """Yield the forms that one row of a table stands for."""
    for _, forms in groupby(specs, lambda spec: (spec.family, spec.summary)):
        yield list(forms)


def _names(mnemonics: list[str]) -> str:
    """Write the mnemonics of a row: the first in full, then the suffixes that the others have instead."""
    if len(mnemonics) == 1:
        return f"`{mnemonics[0]}`"
    parts = [mnemonic.split(".") for mnemonic in mnemonics]
    n_common = next(i for i in range(len(parts[0]) + 1) if len({tuple(part[: i + 1]) for part in parts}) > 1)
    suffixes = " ".join(f"`.{'.'.join(part[n_common:])}`" for part in parts)
    return f"`{'.'.join(parts[0][:n_common])}` {suffixes}"


def _size(operand: OperandSpec) -> str:
    """Write how many registers, or how many bits, an operand has."""
    if operand.kind == "register":
        return "1 register" if operand.count == 1 else f"{operand.count} registers"
    if operand.kind == "immediate":
        least, largest = operand.limits
        return f"{least}..{largest}"
    return operand.kind.replace("_", " ")


def _syntax(spec: InstructionSpec) -> str:
    operands = ", ".join(operand.name for operand in spec.operands)
    guard = "" if spec.guard == "none" else "[@P] "
    return f"{guard}{spec.mnemonic} {operands}".rstrip()
