"""The commands of ``tidings``: finds the one asked for, runs it, turns errors into exit codes.

Exit codes: 0 all is well; 1 a check did not hold; 2 the input is wrong; 3 the input is right but
this engine does not handle it; 4 a queue grows without limit; 5 Spark, Java or a cluster is
missing; 70 a fault of Tidings itself; 130 interrupted.

With ``--json`` a failure is a document on stdout too, ``{"error": {"kind", "message", "problems",
"exit_code"}}``; an invalid system is what ``check`` was asked about: ``{"valid": false, …}``.
"""

from __future__ import annotations

import keyword
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from tidings.cli import console, interrupts
from tidings.cli.outlines import purpose
from tidings.errors import InvalidSystemError, TidingsError

FAULT = 70
# Each is the function of this name in the module of this name, or ``app`` for a group of them; a
# word of Python's own has an underscore there.
COMMANDS = (
    "check",
    "predict",
    "simulate",
    "generate",
    "analyse",
    "petri",
    "import",
    "characterise",
    "audit",
    "spread",
    "validate",
    "report",
    "demo",
    "explain",
    "whatif",
    "plan",
    "testbed",
    "reproduce",
)
# The root of all errors in how a command is used; typer may or may not bring a click of its own.
UsageProblem: Any = typer.BadParameter.__mro__[2]
EPILOGUE = (
    "Begin with: [bold]tidings demo[/]\n\n"
    "Exit codes: 0 all is well, 1 a check did not hold, 2 wrong input, 3 right input that this "
    "engine does not handle, 4 a queue grows without limit, 5 Spark or Java is missing, 70 a "
    "fault of Tidings, 130 interrupted. With --json an error is a JSON document on stdout too."
)


def name_in_python(command: str) -> str:
    """What the module and the function of a command are called.

    >>> name_in_python("predict"), name_in_python("import")
    ('predict', 'import_')
    """
    return f"{command}_" if keyword.iskeyword(command) else command


class Commands(TyperGroup):
    """The commands, each imported when it is asked for: not all need Spark and the compiler."""

    _listing = False

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """What each is for, which takes no import of any."""
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, or None."""
        if cmd_name not in COMMANDS:
            return None
        own_name = name_in_python(cmd_name)
        place = f"tidings.cli.{own_name}"
        if self._listing:
            return TyperCommand(cmd_name, help=purpose(place, own_name))
        alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
        module = import_module(place)
        if "pyarrow" in sys.modules:  # its own handlers set a mark that it may never come to read
            sys.modules["pyarrow"].enable_signal_handlers(False)
        if hasattr(module, "app"):
            alone.add_typer(module.app, name=cmd_name)
        else:
            alone.command(cmd_name)(getattr(module, own_name))
        return typer.main.get_group(alone).commands[cmd_name]


app = typer.Typer(
    name="tidings",
    cls=Commands,
    help="Will it arrive in time? Predicts, simulates and measures on-time delivery in "
    "publish/subscribe systems.",
    epilog=EPILOGUE,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        import tidings

        typer.echo(f"tidings {tidings.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
    files_below: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FOLDER",
            help="Files of systems and scenarios may name files below this folder too, not only "
            "below their own.",
        ),
    ] = None,
) -> None:
    """Will it arrive in time?"""
    if files_below:
        from tidings.model.named_files import FILES_BELOW

        os.environ[FILES_BELOW] = os.pathsep.join(map(str, files_below))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and give its exit code."""
    try:
        code = app(list(arguments), standalone_mode=False)
        return code if isinstance(code, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        return interrupts.EXIT_CODE
    except BrokenPipeError:
        # Whoever read our output has had enough of it; writing on would raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if interrupts.asked():
            return interrupts.EXIT_CODE
        return _failed(error, arguments)


def _failed(error: Exception, arguments: Sequence[str]) -> int:
    """Say what went wrong, to a person and, where asked for, to a program; gives the exit code."""
    if isinstance(error, TidingsError):
        code, kind, message = error.exit_code, error.kind, str(error)
        console.complain(error)
    elif isinstance(error, UsageProblem):
        code, kind, message = int(error.exit_code), "usage", error.format_message()
        error.show()
    else:
        if os.environ.get("TIDINGS_DEBUG"):
            raise error
        code, kind, message = FAULT, "fault", f"{type(error).__name__}: {error}"
        console.complain_of_fault(message)
    if "--json" in arguments:
        said = console.failure_document(error, kind=kind, message=message, code=code)
        asked_whether_valid = "check" in arguments and isinstance(error, InvalidSystemError)
        console.show_json({"valid": False, **said} if asked_whether_valid else {"error": said})
    return code
