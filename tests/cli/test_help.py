"""Help, the version and completion: at once, for nothing heavy is imported for them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from typer.main import get_command

from tidings.cli.commands import COMMANDS, GROUPS, app, run

HEAVY = {"networkx", "numba", "numpy", "pandas", "pyarrow", "pydantic", "pyspark", "rich", "scipy"}
# Runs a command line, and says on stderr what is imported at its end.
SCRIPT = """
import atexit, sys
atexit.register(lambda: print(*sorted({each.partition(".")[0] for each in sys.modules}),
                              file=sys.stderr))
from tidings.cli.main import main
main()
"""


def imported(*words, **environment):
    """What a command line prints, and which packages it imports on the way."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=True,
    )
    return done.stdout, set(done.stderr.splitlines()[-1].split())


def lines_of_help():
    """Command lines that ask for the help of every command, of groups and of what is in them."""
    for name in COMMANDS:
        yield (name, "--help")
        command = get_command(app).get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from ((name, each, "--help") for each in command.list_commands(None))


@pytest.mark.parametrize("words", [("--version",), ("--help",), *lines_of_help()], ids=" ".join)
def test_nothing_heavy_is_imported_for_help(words):
    out, packages = imported(*words)
    assert out.startswith("tidings 0" if words == ("--version",) else "Usage: tidings")
    assert "tidings" in packages
    assert packages & HEAVY == set()


def test_a_command_that_works_imports_what_it_works_with():
    assert imported("check", "--schema")[1] & HEAVY  # so that the test above can fail


@pytest.mark.parametrize(
    "words", [[], ["plan"], ["petri"], ["testbed"], ["reproduce"]], ids=" ".join
)
def test_without_a_command_the_help_is_printed_and_the_input_is_wrong(words, capsys):
    assert run(words) == 2
    printed = capsys.readouterr()
    assert printed.out.startswith(" ".join(["Usage: tidings", *words]))
    assert printed.err == ""


def test_the_help_lists_commands_by_what_they_are_for(capsys):
    assert run(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    listed = {group: lines.index(f"{group}:") for group in GROUPS}
    assert list(listed.values()) == sorted(listed.values())
    ends = [*list(listed.values())[1:], len(lines)]
    for (group, begin), end in zip(listed.items(), ends, strict=True):
        named = [line.split()[0] for line in lines[begin + 1 : end] if line[2:3].strip()]
        assert tuple(named[: len(GROUPS[group])]) == GROUPS[group]
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("tidings pred", ["predict"]),
        ("tidings p", ["petri", "predict", "prepare", "plan"]),
        ("tidings plan s", ["scheme"]),
        ("tidings --files", ["--files-below"]),
        ("tidings --spark", ["--spark-conf"]),
        ("tidings predict --with", ["--within"]),
    ],
)
def test_bash_completes_commands_and_options(line, offered):
    words = line.split()
    out, packages = imported(
        _TIDINGS_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1)
    )
    assert out.split() == offered
    assert packages & (HEAVY - {"pydantic"}) == set()  # which reads the values of options


def test_completion_can_be_shown():
    out, packages = imported(
        "--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1"
    )
    assert "_TIDINGS_COMPLETE" in out
    assert packages & (HEAVY - {"pydantic"}) == set()
