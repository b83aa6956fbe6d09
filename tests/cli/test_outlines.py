"""What commands are for is told without importing them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.main import get_command

from tidings.cli.commands import COMMANDS, app, name_in_python
from tidings.cli.outlines import purpose


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_in_the_list_what_it_says_itself(name):
    group = get_command(app)
    own = name_in_python(name)
    told = purpose(f"tidings.cli.{own}", own)
    assert told
    assert group.get_command(None, name).help.startswith(told.split("\n\n")[0])


def test_the_list_imports_none_of_them():
    script = (
        "import sys; from tidings.cli.commands import run; run(['--help']); "
        "print([name for name in ('numba', 'pyspark', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.endswith("[]\n"), done.stderr
