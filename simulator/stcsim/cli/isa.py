"""``stcsim isa``: the instruction tables, the assembler, and programs run on values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stcsim.isa.program import Program

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group()
def isa() -> None:
    """Read the instruction set, assemble programs, and run them on values."""


@isa.command("list")
@click.option("--family", help="Only the instructions of this family.")
@click.option("--markdown", is_flag=True, help="Print the tables of isa/README.md instead.")
def list_(family: str | None, markdown: bool) -> None:
    """List the instructions of all tables."""
    from stcsim.errors import IsaError, unknown
    from stcsim.isa import load_isa
    from stcsim.isa.manual import instruction_list, instruction_tables

    rows = load_isa()
    if family is not None and family not in rows.families():
        raise IsaError(unknown("family", family, rows.families()))
    if markdown:
        click.echo(instruction_tables(rows))
    else:
        click.echo(instruction_list(spec for spec in rows.values() if family in (None, spec.family)))


@isa.command()
@click.argument("mnemonic")
def show(mnemonic: str) -> None:
    """Print all that is known of MNEMONIC, such as OHMMA.8161."""
    from stcsim.isa import load_isa
    from stcsim.isa.manual import describe

    click.echo(describe(load_isa()[mnemonic]))


@isa.command()
@click.argument("file", type=_FILE)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, writable=True, path_type=Path), help="Binary."
)
def asm(file: Path, output: Path | None) -> None:
    """Assemble FILE; write the binary, or without -o print each word beside its instruction."""
    from stcsim.isa.assembler import assemble_file
    from stcsim.isa.binary import to_bytes
    from stcsim.isa.encoding import encode

    program = assemble_file(file)
    if output is None:
        for i, instruction in enumerate(program.instructions):
            click.echo(f"{i:4d}  {encode(instruction):032x}  {instruction}")
        return
    content = to_bytes(program)
    try:
        output.write_bytes(content)
    except OSError as error:
        raise click.FileError(str(output), error.strerror or "cannot be written") from None
    click.echo(f"{output}: {len(program.instructions)} instructions, {len(content)} bytes")


@isa.command()
@click.argument("file", type=_FILE)
def disasm(file: Path) -> None:
    """Print the binary FILE as assembly text, which assembles to the same bytes."""
    from stcsim.isa.binary import read

    click.echo(read(file).disassemble(), nl=False)


@isa.command("exec")
@click.argument("file", type=_FILE)
@click.option("--trace", is_flag=True, help="Print one line for each instruction: what it changed.")
def exec_(file: Path, trace: bool) -> None:
    """Run FILE (assembly text or a binary) on the values that it holds; print what it leaves.

    Printed are the matrices that its .show directives ask for, then all other registers, predicates and
    accumulator tiles that the run changed.
    """
    from stcsim.isa.inspection import report
    from stcsim.isa.interpreter import run
    from stcsim.isa.loading import initial_state

    program = _program(file)
    state = initial_state(program)
    before = initial_state(program)
    n_steps = run(program, state, click.echo if trace else None)
    click.echo(f"{n_steps} instructions")
    for line in report(program, before, state):
        click.echo(line)


def _program(file: Path) -> Program:
    from stcsim.isa.assembler import assemble_file
    from stcsim.isa.binary import is_binary, read

    return read(file) if is_binary(file) else assemble_file(file)
