"""The command ``tidings``: finds the command asked for, runs it, turns errors into exit codes.

Exit codes: 0 all is well; 1 a check did not hold; 2 the input is wrong; 3 the input is right but
this engine does not handle it; 4 a queue grows without limit; 5 Spark, Java or a cluster is
missing; 70 a fault of Tidings itself; 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer

from tidings.cli import characterise, check, demo, predict, report, reproduce, simulate, validate
from tidings.cli.console import complain, err
from tidings.errors import TidingsError

FAULT, INTERRUPTED = 70, 130
# The root of all errors in how a command is used; typer may or may not bring a click of its own.
UsageProblem: Any = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="tidings",
    help="Will it arrive in time? Predicts, simulates and measures on-time delivery in "
    "publish/subscribe systems.",
    epilog="Begin with: tidings demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("check")(check.check)
app.command("predict")(predict.predict)
app.command("simulate")(simulate.simulate)
app.command("characterise")(characterise.characterise)
app.command("validate")(validate.validate)
app.command("report")(report.report)
app.command("demo")(demo.demo)
app.add_typer(reproduce.app, name="reproduce")


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
) -> None:
    """Will it arrive in time?"""


def run(arguments: Sequence[str]) -> int:
    """Run one command line and give its exit code."""
    try:
        code = app(list(arguments), standalone_mode=False)
        return code if isinstance(code, int) else 0
    except TidingsError as error:
        complain(error)
        return error.exit_code
    except UsageProblem as error:
        error.show()
        return int(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        err().print("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has had enough of it; writing on would raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get("TIDINGS_DEBUG"):
            raise
        err().print(
            f"[red]a fault of Tidings itself:[/] {type(error).__name__}: {error}\n"
            "Please report it; with TIDINGS_DEBUG=1 it shows where.",
            highlight=False,
        )
        return FAULT


def main() -> NoReturn:
    """The entry point of the command ``tidings``."""
    sys.exit(run(sys.argv[1:]))
