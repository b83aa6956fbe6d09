"""What docs/trust.md says: that every line has a test, and the tests that have no other home."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from snapshots import everything_below
from tidings.cli import spark as cli_spark
from tidings.cli.commands import run
from tidings.errors import EngineError, InvalidInputError, InvalidSystemError
from tidings.kernels import compile as compiling
from tidings.model.reading import loads
from tidings.model.routes import route
from tidings.model.writing import check_new_folder, new_folder, write_file
from tidings.testbed.layout import layout
from tidings.traces import session
from tidings.traces.places import find_tables

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "trust.md").read_text(encoding="utf-8")
TIDINGS = [sys.executable, "-c", "from tidings.cli.main import main; main()"]
LINES = [line for line in PAGE.splitlines() if line.startswith("| ")][1:]
SYSTEM = """
tidings: 1
lifetime: 1s
brokers: {{"{name}": {{service: {{exponential: 3ms}}}}}}
publishers:
  p: {{at: "{name}", every: {{exponential: 1s}}, content: [{{p: 1, event: {{topic: a}}}}]}}
subscribers: {{s: {{at: "{at}", wants: {{topic: a}}}}}}
"""


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.split("|")[1].strip())
def test_every_line_has_a_test(line):
    tests = re.findall(r"`(tests/[a-z_/]+\.py)::(test_[a-z_]+)`", line)
    assert tests
    for file, name in tests:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert name in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}


def test_links_to_tables_are_followed_for_reading(tmp_path):
    (tmp_path / "traces").mkdir()
    (tmp_path / "elsewhere.csv").write_text("event\n")
    (tmp_path / "traces" / "hops.csv").symlink_to(tmp_path / "elsewhere.csv")
    before = everything_below(tmp_path)
    assert find_tables(tmp_path / "traces")["hops"].path.endswith("/elsewhere.csv")
    assert everything_below(tmp_path) == before


def test_control_characters_of_names_are_shown(tmp_path, capsys):
    path = tmp_path / "system.yaml"
    path.write_text(SYSTEM.format(name=r"hub\e]0;owned\a\e[2J", at="no"))
    assert run(["check", str(path)]) == 2
    path.write_text(SYSTEM.format(name=r"\e[2Jhub", at=r"\e[2Jhub"))
    assert run(["explain", str(path)]) == 0
    said = "".join(capsys.readouterr())
    assert r"hub\x1b]0;owned" in said
    assert r"\x1b[2Jhub" in said
    assert not re.search(r"\x1b(?!\[[0-9;]*m)|[\x00-\x08\x7f-\x9f]", said)


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["for a person", "for a program"])
def test_what_no_terminal_can_show_is_shown_as_it_is_written(tmp_path, options):
    """In a process of its own: what is captured here takes any character."""
    craft_steps(tmp_path, drop=["hops.\ud800\x9b2J"])
    sample = ROOT / "docs" / "samples" / "brokers"
    command = ["import", "table", f"{sample}.csv", "--mapping", f"{sample}.yaml", "--to", tmp_path]
    done = subprocess.run([*TIDINGS, *command, *options], capture_output=True, check=False)
    assert done.returncode == 2
    assert rb"hops.\ud800" in done.stderr
    assert not re.search(r"[\x7f-\x9f]", (done.stdout + done.stderr).decode())
    if options:
        assert "hops.\ud800\x9b2J" in json.loads(done.stdout)["error"]["message"]


def craft_steps(folder, **steps):
    """What an import leaves in its folder that was stopped at its last step."""
    (folder / ".finishing" / "tables").mkdir(parents=True)
    document = {"folder": folder.stat().st_ino, "drop": [], "move": {}, **steps}
    (folder / ".finishing" / "steps.json").write_text(json.dumps(document))


def test_names_are_no_paths_in_a_testbed(tmp_path):
    name = "../../hub"
    system = loads(SYSTEM.format(name=name, at=name))
    plan = layout(system, route(system), seed=1).servers[name]
    assert re.fullmatch("[a-z0-9]+", plan.label)
    assert name not in plan.configuration(tmp_path)


def test_a_testbed_listens_on_the_loopback(tmp_path):
    system = loads(SYSTEM.format(name="hub", at="hub"))
    text = layout(system, route(system), seed=1).servers["hub"].configuration(tmp_path)
    listening = re.findall(r'(?:listen|http): "([^":]+):', text)
    assert listening == ["127.0.0.1"] * 3


@pytest.mark.parametrize(
    "value", ["!!python/object/apply:os.mkdir [made]", "!!python/name:os.system", "!!binary aGk="]
)
def test_tags_run_nothing(tmp_path, monkeypatch, value):
    monkeypatch.chdir(tmp_path)
    text = SYSTEM.format(name="hub", at="hub") + f"description: {value}\n"
    with pytest.raises(InvalidSystemError, match="got the tag"):
        loads(text)
    assert not everything_below(tmp_path)


def test_what_is_written_goes_through_no_link(tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "letter").write_text("dear")
    (tmp_path / "link").symlink_to(mine / "letter")
    (tmp_path / "second name").hardlink_to(mine / "letter")
    (tmp_path / "nowhere").symlink_to(mine / "new")
    before = everything_below(mine)
    for name in ("link", "second name", "nowhere"):
        write_file(tmp_path / name, b"new")
        assert (tmp_path / name).read_bytes() == b"new"
    (tmp_path / "folder").symlink_to(mine)
    (tmp_path / "new folder").symlink_to(mine / "new")
    for name in ("folder", "new folder"):
        with pytest.raises(InvalidInputError, match="exists already"):
            check_new_folder(tmp_path / name)
    with new_folder(tmp_path / "folder", replace=True) as fresh:
        (fresh / "x").touch()
    assert everything_below(mine) == before


def test_compiled_code_of_others_is_not_run(tmp_path, monkeypatch):
    folder = tmp_path / "tidings" / "kernels" / "hash"
    assert compiling._is_writable(folder)
    usual = Path.stat

    def of_somebody(path, **options):
        status = usual(path, **options)
        if path != tmp_path / "tidings":
            return status
        return os.stat_result([*status[:4], os.getuid() + 1, *status[5:10]])

    monkeypatch.setattr(Path, "stat", of_somebody)
    assert not compiling._is_writable(folder)


@pytest.mark.parametrize("master", ["local[2]", "local-cluster[1,1,512]", "spark://127.0.0.1:7077"])
def test_spark_listens_on_the_loopback(master, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_IP", "")
    settings = {**session._CLASSIC, **session._local_settings(master, small=False)}
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.ui.enabled"] == "false"
    assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"


@pytest.mark.parametrize(
    ("master", "exposed"),
    [
        ("spark://cluster:7077", True),
        ("spark://127.0.0.1:1,b:1", True),
        ("yarn", True),
        ("sc://h", False),
    ],
)
def test_that_spark_listens_on_the_network_is_said(master, exposed, monkeypatch, capsys):
    def none(*_, **__):
        raise EngineError("not today")

    monkeypatch.setattr(cli_spark, "spark_session", none)
    with pytest.raises(EngineError), cli_spark.started(master):
        pass
    said = capsys.readouterr().err
    assert ("listens on this machine's network" in said) == exposed
    assert (master in said) == exposed
