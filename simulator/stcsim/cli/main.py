"""The ``stcsim`` command and how it ends.

Exit status: 0, 1 for a failed value check, 2 for a fault of the input (one line
each, no traceback); a fault of the program keeps its traceback.  Commands import
what they need when they run, so that ``--help`` is quick.
"""

from __future__ import annotations

import errno
import importlib
import sys

import click

from stcsim import __version__
from stcsim.errors import StcsimError, must

_COMMANDS = {
    "run": "stcsim.cli.run:run",
    "sim": "stcsim.cli.sim:sim",
    "explain": "stcsim.cli.explain:explain",
    "trace": "stcsim.cli.trace:trace",
    "import": "stcsim.cli.import_:import_",
    "sweep": "stcsim.cli.sweep:sweep",
    "results": "stcsim.cli.results:results",
    "report": "stcsim.cli.report:report",
    "replay": "stcsim.cli.replay:replay",
    "validate": "stcsim.cli.validate:validate",
    "list": "stcsim.cli.listing:list_",
    "schema": "stcsim.cli.schema:schema",
    "isa": "stcsim.cli.isa:isa",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are asked for, with near misses named."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order in which a new user meets them."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command called `cmd_name`."""
        del ctx
        path = _COMMANDS.get(cmd_name)
        if path is None:
            return None
        module, _, attribute = path.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        if not isinstance(command, click.Command):
            message = f"{path} is not a command"
            raise TypeError(message)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown one is told with the nearest name."""
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(
                must(f"command must be one of {', '.join(_COMMANDS)}", args[0], near=_COMMANDS)
            )
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="stcsim %(version)s")
def cli() -> None:
    """Simulate sparse tensor cores cycle by cycle, on real operand patterns.

    Start with:  stcsim run configs/studies/quickstart.yaml
    """


def main() -> None:
    """Run the command line and exit."""
    try:
        status = cli.main(standalone_mode=False)
    except StcsimError as error:
        for problem in error.problems:
            print(problem, file=sys.stderr)
        sys.exit(error.exit_status)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.UsageError as error:
        where = f"{error.ctx.command_path}: " if error.ctx else ""
        print(f"{where}{_lowered(error.format_message())}", file=sys.stderr)
        sys.exit(2)
    except click.ClickException as error:
        print(error.format_message(), file=sys.stderr)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        print("stopped", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except MemoryError as error:
        told = str(error).splitlines()[0][:120] if str(error) else "more than there is"
        print(f"problem: must fit into this machine's memory ({told})", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        print(f"output: must fit on the device ({error.strerror})", file=sys.stderr)
        sys.exit(2)
    sys.exit(status if isinstance(status, int) else 0)


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:].rstrip(".")
