"""What docs/reference/trust.md says: every line has a test; those that have no other home."""

from __future__ import annotations

import ast
import json
import os
import re
import socket
import struct
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from snapshots import everything_below
from stopped_imports import mark_for
from tidings.cli import spark as cli_spark
from tidings.cli.characterising import ResultFiles
from tidings.cli.commands import run
from tidings.demonstration import run as demonstrating
from tidings.errors import EngineError
from tidings.model import own_folders
from tidings.model.reading import load, loads
from tidings.model.routes import route
from tidings.testbed.layout import layout
from tidings.testbed.servers import Nats
from tidings.traces import session
from tidings.traces.places import find_tables

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "reference" / "trust.md").read_text(encoding="utf-8")
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


def test_links_to_tables_are_followed_for_reading(tmp_path, capsys):
    (tmp_path / "traces").mkdir()
    (tmp_path / "elsewhere.csv").write_text("event\n")
    (tmp_path / "traces" / "hops.csv").symlink_to(tmp_path / "elsewhere.csv")
    before = everything_below(tmp_path)
    assert find_tables(tmp_path / "traces")["hops"].path.endswith("/elsewhere.csv")
    assert run(["characterise", str(tmp_path / "traces")]) == 2
    assert "found hops" in capsys.readouterr().err
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
    document = {"mark": mark_for(folder), "drop": [], "move": {}, **steps}
    (folder / ".finishing" / "steps.json").write_text(json.dumps(document))


def test_names_are_no_paths_in_a_testbed(tmp_path):
    name = "../../hub"
    system = loads(SYSTEM.format(name=name, at=name))
    plan = layout(system, route(system), seed=1).servers[name]
    assert re.fullmatch("[a-z0-9]+", plan.label)
    assert name not in Nats().configuration(plan, tmp_path)


def test_a_testbed_listens_on_the_loopback(tmp_path):
    system = loads(SYSTEM.format(name="hub", at="hub"))
    plan = layout(system, route(system), seed=1).servers["hub"]
    text = Nats().configuration(plan, tmp_path)
    listening = re.findall(r'(?:listen|http): "([^":]+):', text)
    assert listening == ["127.0.0.1"] * 3


@pytest.mark.parametrize(
    "value", ["!!python/object/apply:os.mkdir [made]", "!!python/name:os.system", "!!binary aGk="]
)
def test_tags_run_nothing(tmp_path, monkeypatch, value, capsys):
    monkeypatch.chdir(tmp_path)
    Path("system.yaml").write_text(SYSTEM.format(name="hub", at="hub") + f"description: {value}\n")
    assert run(["check", "system.yaml"]) == 2
    assert "got the tag" in capsys.readouterr().err
    assert everything_below(tmp_path).keys() == {"system.yaml"}


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Somebody's own letter, with a link, a second name and a link to nothing outside."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "letter").write_text("dear")
    Path("system.yaml").write_text(SYSTEM.format(name="hub", at="hub"))
    for end in (".json", ".html", ""):
        Path(f"link{end}").symlink_to(folder / "letter")
        Path(f"second{end}").hardlink_to(folder / "letter")
        Path(f"nowhere{end}").symlink_to(folder / "new")
    Path("folder").symlink_to(folder)
    Path("taken").mkdir()
    return folder


@pytest.mark.parametrize("name", ["link", "second", "nowhere"])
def test_files_are_written_through_no_link(mine, name):
    before = everything_below(mine)
    assert run(["predict", "system.yaml", "--output", f"{name}.json"]) == 0
    assert run(["report", "system.yaml", f"{name}.json", "--to", f"{name}.html"]) == 0
    for end in (".json", ".html"):
        assert not Path(f"{name}{end}").is_symlink()
        assert len(Path(f"{name}{end}").read_bytes()) > 100
    assert everything_below(mine) == before


@pytest.mark.parametrize("name", ["link", "second", "nowhere"])
def test_fitted_systems_are_written_through_no_link(mine, name):
    """What ``characterise`` writes once it has found something, without the finding."""
    Path(name).rename("taken/regime-1.yaml")
    for place in ("fitted.yaml", "taken/regime-2.yaml"):
        Path(place).symlink_to(mine / "letter")
    before, fitted = everything_below(mine), SimpleNamespace(system=load("system.yaml"))
    parts = SimpleNamespace(regimes=[SimpleNamespace(fitted=fitted)] * 2)
    places = ResultFiles(to=Path("fitted.yaml"), measured=None, regimes=Path("taken"), report=None)
    places.check()
    places.save(fitted, parts, "traces")
    for place in ("fitted.yaml", "taken/regime-1.yaml", "taken/regime-2.yaml"):
        assert not Path(place).is_symlink()
        assert load(place) == fitted.system
    assert everything_below(mine) == before


@pytest.mark.parametrize("name", ["link", "second", "nowhere", "folder", "taken"])
@pytest.mark.parametrize(
    "command",
    [
        "predict system.yaml --output",
        "simulate system.yaml --events 100 --traces",
        "whatif system.yaml --scenarios scenarios.yaml --to",
        "testbed run system.yaml --to",
        "testbed compare system.yaml --to",
        "characterise taken --to",
        "audit taken --subscription-delay 1s --diffusion-delay 1s --to",
        "characterise taken --quarantine",
        "generate system.yaml --into",
    ],
)
def test_folders_to_write_are_new(mine, tmp_path, command, name, capsys):
    if command.startswith("testbed"):
        pytest.importorskip("nats")  # which comes with an extra
    before = everything_below(tmp_path)
    assert run([*command.split(), name]) == 2
    assert f"{name} exists already" in capsys.readouterr().err
    assert everything_below(tmp_path) == before


@pytest.mark.spark
def test_an_import_changes_only_what_is_its_own(spark, mine, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tidings.cli.spark.started", lambda *_, **__: nullcontext(spark))
    to = tmp_path / "taken"
    (to / "thesis.txt").write_text("years of work")
    (to / "hops").symlink_to(mine)
    (to / "publications.csv").hardlink_to(mine / "letter")
    before, kept = everything_below(mine), (to / "thesis.txt").stat()
    sample = ROOT / "docs" / "samples" / "brokers"
    command = f"import table {sample}.csv --mapping {sample}.yaml --to"
    assert run([*command.split(), "nowhere"]) == 2
    assert "a link to nothing" in capsys.readouterr().err
    assert run([*command.split(), "taken"]) == 2
    assert "already has hops, publications.csv" in capsys.readouterr().err
    assert run([*command.split(), "taken", "--replace"]) == 0
    assert everything_below(mine) == before
    assert (to / "thesis.txt").stat() == kept
    assert (to / "hops").is_dir()
    assert not (to / "hops").is_symlink()
    assert not (to / "publications.csv").exists()


def test_a_demo_replaces_what_is_wholly_of_a_demo(mine, tmp_path, capsys, monkeypatch):
    Path("taken", "demo.json").write_text('{"tidings_demo": 1}')
    Path("taken", "thesis.txt").write_text("years of work")
    before = everything_below(tmp_path)
    for name in ("taken", "folder", "link"):
        assert run(["demo", "--to", name]) == 2
    assert "was not made by tidings demo" in capsys.readouterr().err
    assert everything_below(tmp_path) == before
    Path("taken", "thesis.txt").unlink()
    Path("taken", "traces").mkdir()
    Path("taken", "traces", "hops").symlink_to(mine)
    kept = everything_below(mine)
    steps = ("_play", "write_traces", "read_traces", "predict", "simulate", "with_truth", "advise")
    for step in steps:
        monkeypatch.setattr(demonstrating, step, lambda *_, **__: None)
    monkeypatch.setattr(demonstrating, "characterise", lambda *_, **__: Mock())
    monkeypatch.setattr(demonstrating, "_checks", lambda *_: ())
    monkeypatch.setattr(
        demonstrating, "_write", lambda *told: (told[-1] / "report.html").write_text("new")
    )
    demonstrating.demonstrate(None, None, folder=Path("taken"))
    assert everything_below(Path("taken")).keys() == {"report.html"}
    assert everything_below(mine) == kept


def test_compiled_code_of_others_is_not_run(tmp_path, monkeypatch):
    folder = tmp_path / "tidings" / "kernels" / "hash"
    assert own_folders.is_own(folder)
    usual = Path.stat

    def of_somebody(path, **options):
        status = usual(path, **options)
        if path != tmp_path / "tidings":
            return status
        return os.stat_result([*status[:4], os.getuid() + 1, *status[5:10]])

    with monkeypatch.context() as patch:
        patch.setattr(Path, "stat", of_somebody)
        assert not own_folders.is_own(folder)
    for each in (folder, folder.parent, folder.parents[1]):
        for others in (0o770, 0o707):
            each.chmod(others)
            assert not own_folders.is_own(folder)
        each.chmod(0o755)
        assert own_folders.is_own(folder)


def test_folders_for_compiled_code_are_for_one_user_whatever_the_umask(tmp_path):
    usual = os.umask(0)
    try:
        assert own_folders.is_own(tmp_path / "new" / "tidings" / "kernels" / "hash")
    finally:
        os.umask(usual)


@pytest.mark.parametrize("master", ["local[2]", "local-cluster[1,1,512]", "spark://127.0.0.1:7077"])
def test_spark_listens_on_the_loopback(master, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_IP", "")
    settings = {**session._CLASSIC, **session._settings_here(master, "")}
    assert settings["spark.driver.host"] == settings["spark.driver.bindAddress"] == "127.0.0.1"
    assert settings["spark.ui.enabled"] == "false"
    assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.1"


def listening(pid):
    """Addresses, as the kernel writes them, on which a process takes connections from others."""
    links = [os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir() if each.is_symlink()]
    own = {link.removeprefix("socket:[").rstrip("]") for link in links if "socket:" in link}
    rows = [
        line.split()
        for kind in ("tcp", "tcp6")
        for line in Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]
    ]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A" and row[9] in own}


def as_the_kernel_writes(kind, address):
    """An address as four-byte words in the order of bytes of this machine."""
    packed = socket.inet_pton(kind, address)
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return "".join(f"{word:08X}" for word in words)


LOOPBACK = {
    as_the_kernel_writes(socket.AF_INET, "127.0.0.1"),
    as_the_kernel_writes(socket.AF_INET6, "::ffff:127.0.0.1"),
    as_the_kernel_writes(socket.AF_INET6, "::1"),
}


@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="sockets are told by /proc")
def test_an_embedded_spark_listens_on_the_loopback_alone(spark):
    for address in ("127.0.0.1", "0.0.0.0"):  # that this way of looking tells them apart
        with socket.create_server((address, 0)):
            told = as_the_kernel_writes(socket.AF_INET, address)
            assert told in listening(os.getpid())
    assert spark.range(10).repartition(2).count() == 10
    java = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    assert listening(java)
    assert listening(java) <= LOOPBACK
    assert listening(os.getpid()) <= LOOPBACK


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

    monkeypatch.setattr("tidings.traces.session.spark_session", none)
    with pytest.raises(EngineError), cli_spark.started(master):
        pass
    said = capsys.readouterr().err
    assert ("listens on the network" in said) == exposed
    assert (master in said) == exposed
