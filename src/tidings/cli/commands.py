"""The commands of ``tidings``: finds the one asked for, runs it, turns errors into exit codes.

Exit codes: 0 all is well; 1 a check did not hold; 2 the input is wrong; 3 the input is right but
this engine does not handle it; 4 a queue grows without limit; 5 an extra, Java or a cluster is
missing; 70 a fault of Tidings itself; 130 interrupted.

With ``--json`` a failure is a document on stdout too, ``{"error": {"kind", "message", "problems",
"exit_code"}}``; an invalid system is what ``check`` was asked about: ``{"valid": false, …}``.
"""

from __future__ import annotations

import keyword
import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from tidings.cli import console, interrupts
from tidings.cli.listing import Listing
from tidings.errors import EngineError, InvalidSystemError, TidingsError, missing_extra
from tidings.model.writing import DISK, refusal

FAULT = 70
# What says so where it is no MemoryError: a library that finds no room, a thread, a process.
_NO_MEMORY = re.compile(
    r"failed to map segment|cannot allocate memory|can't start new thread", re.IGNORECASE
)
# Listed by what they are for. Each is the function of this name in the module of this name, or
# ``app`` for a group of them; a word of Python's own has an underscore there.
GROUPS = {
    "Model": ("init", "check", "draw", "export", "petri"),
    "Data": (
        "capture",
        "receive",
        "import",
        "generate",
        "samples",
        "characterise",
        "audit",
        "spread",
    ),
    "Answer": ("predict", "simulate", "analyse", "validate", "report", "demo", "prepare"),
    "Watch": ("watch", "serve"),
    "Decide": ("explain", "whatif", "catchup", "plan", "gate"),
    "Research": ("testbed", "reproduce"),
}
COMMANDS = tuple(name for names in GROUPS.values() for name in names)
# The root of all errors in how a command is used; typer may or may not bring a click of its own.
UsageProblem: Any = typer.BadParameter.__mro__[2]
EPILOGUE = (
    "Begin with: tidings demo\n\nExit codes: 0 success, 1 a check failed or a target is "
    "not met, 2 invalid input, 3 valid input that this command does not support, 4 "
    "overload: a queue grows without limit, 5 an extra, Java or a server is missing, 70 a "
    "bug in Tidings, 130 interrupted. With --json an error is a JSON document on stdout "
    "too."
)


def name_in_python(command: str) -> str:
    """Name the module and the function of a command.

    >>> name_in_python("predict"), name_in_python("import")
    ('predict', 'import_')
    """
    return f"{command}_" if keyword.iskeyword(command) else command


class Commands(Listing):
    """The commands, each imported when it is asked for; what it works with, when it works."""

    def headings(self, ctx: Any) -> Mapping[str, Sequence[str]]:
        """List their names, by what they are for."""
        return GROUPS

    def help_of(self, ctx: Any, name: str) -> str:
        """Give the help of a command, whose options need not be looked at for it."""
        made = _made(name)
        return str(made.info.help if isinstance(made, typer.Typer) else made.__doc__)

    def list_commands(self, ctx: Any) -> list[str]:
        """List their names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Give the command of this name, or None."""
        if cmd_name not in COMMANDS:
            return None
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        made = _made(cmd_name)
        if isinstance(made, typer.Typer):
            alone.add_typer(made, name=cmd_name)
        else:
            alone.command(cmd_name)(made)
        return typer.main.get_group(alone).commands[cmd_name]


def _made(command: str) -> Any:
    own_name = name_in_python(command)
    module = import_module(f"tidings.cli.{own_name}")
    return getattr(module, "app", None) or getattr(module, own_name)


app = typer.Typer(
    name="tidings",
    cls=Commands,
    help="Will it arrive in time? Predicts, simulates and measures on-time delivery in "
    "publish/subscribe systems.",
    epilog=EPILOGUE,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
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
            help="Let system and scenario files refer to files below this folder too, not "
            "only below their own. Can be repeated.",
        ),
    ] = None,
    spark_conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A setting of Spark's for commands that start it, such as "
            "spark.sql.shuffle.partitions=64; wins over spark-defaults.conf. Can be repeated.",
        ),
    ] = None,
) -> None:
    """Will it arrive in time?"""
    if files_below:
        from tidings.model.named_files import FILES_BELOW

        os.environ[FILES_BELOW] = os.pathsep.join(map(str, files_below))
    if spark_conf is not None:
        from tidings.cli import spark

        spark.choose(spark_conf)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and give its exit code."""
    try:
        code = app(list(arguments), prog_name="tidings", standalone_mode=False)
        sys.stdout.flush()  # what cannot be written is told here, not when Python ends
        return code if isinstance(code, int) else 0
    except (KeyboardInterrupt, typer.Abort):
        return interrupts.EXIT_CODE
    except BrokenPipeError:
        console.write_no_more()  # whoever read our output has had enough of it
        return 0
    except Exception as error:
        if interrupts.asked():
            return interrupts.EXIT_CODE
        return _failed(_meant(error), arguments)


def _meant(error: Exception) -> Exception:
    """Find what an error of Python's says to whoever asked for the command, where it is known."""
    if isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)):
        return EngineError(
            f"there is not enough memory ({type(error).__name__}: {error}); give this command more "
            "memory, or less to do"
        )
    if isinstance(error, ImportError):
        return missing_extra(error) or error
    if isinstance(error, OSError) and error.errno in DISK:
        console.write_no_more()
        return refusal("the output", error)
    return error


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
