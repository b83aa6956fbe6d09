"""Files that a system file names: those below its own folder, and others only where allowed."""

from __future__ import annotations

import os

import pytest

from snapshots import everything_below
from tidings.cli.commands import run
from tidings.errors import InvalidInputError, InvalidSystemError
from tidings.model.connectivity_traces import periods_of
from tidings.model.reading import FILES_BELOW, load, loads, save

SYSTEM = """
tidings: 1
lifetime: 1s
brokers: {{hub: {{service: {{exponential: 3ms}}}}}}
publishers: {{p: {{at: hub, every: {{exponential: 1s}}, content: [{{p: 1, event: {{topic: a}}}}]}}}}
subscribers:
  s: {{at: hub, wants: {{topic: a}}, connectivity: {{trace: {trace}, service: 1ms}}}}
"""
ROWS = "state,at_ns\n" + "".join(
    f"{state},{at_s}000000000\n"
    for state, at_s in zip(["connected", "disconnected"] * 2, [0, 5, 8, 12], strict=True)
)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Where the command runs, with the folder of a system file and somebody's own beside it."""
    for name in ("given", "mine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "trips.csv").write_text(ROWS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(FILES_BELOW, raising=False)
    return tmp_path


def write(place, trace):
    path = place / "given" / "system.yaml"
    path.write_text(SYSTEM.format(trace=trace))
    return path


def linked(place):
    (place / "given" / "linked.csv").symlink_to(place / "mine" / "trips.csv")
    return "given/linked.csv"


def linked_folder(place):
    (place / "given" / "linked").symlink_to(place / "mine")
    return "given/linked/trips.csv"


ELSEWHERE = {
    "absolute": lambda place: place / "mine" / "trips.csv",
    "relative": lambda place: "mine/trips.csv",
    "above": lambda place: "given/../mine/trips.csv",
    "link": linked,
    "link to a folder": linked_folder,
    "device": lambda place: "/dev/zero",
}


@pytest.mark.parametrize("trace", ELSEWHERE.values(), ids=ELSEWHERE)
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_files_elsewhere_are_refused_by_name(place, trace, kind):
    path = write(place, trace(place))
    if kind == "folder":
        save(loads(path.read_text()), place / "given" / "tables")
        path = place / "given" / "tables"
    before = everything_below(place)
    with pytest.raises(InvalidSystemError, match=r"(?s)names files.*connectivity\.trace.*below"):
        load(path)
    assert everything_below(place) == before


@pytest.mark.parametrize("trace", ["given/trips.csv", "mine/../given/trips.csv"])
def test_files_of_its_own_folder_are_read(place, trace, capsys):
    path = write(place, trace)
    assert load(path).subscribers[0].connectivity.trace == trace
    assert run(["check", str(path)]) == 0
    assert run(["check", str(write(place, "mine/trips.csv"))]) == 2
    assert "names files that are not its own" in capsys.readouterr().err


def test_other_folders_are_allowed_by_an_option(place, monkeypatch):
    path = write(place, "mine/trips.csv")
    monkeypatch.setenv(FILES_BELOW, os.pathsep.join(["elsewhere", "mine"]))
    assert load(path).subscribers[0].connectivity.trace == "mine/trips.csv"
    monkeypatch.setenv(FILES_BELOW, "elsewhere")
    assert run(["check", str(path)]) == 2
    assert run(["--files-below", "mine", "check", str(path)]) == 0


@pytest.mark.parametrize("kind", ["made later", "exchanged", "exchanged for a folder"])
def test_what_is_put_in_place_of_a_trace_after_the_check_is_not_read(place, kind):
    """The system was read and found good; only then does its name lead elsewhere."""
    inside, secret = place / "given" / "own" / "trips.csv", place / "mine" / "trips.csv"
    inside.parent.mkdir()
    if kind != "made later":
        inside.write_text(ROWS)
    (peer,) = load(write(place, "given/own/trips.csv")).subscribers
    inside.unlink(missing_ok=True)
    if kind == "exchanged for a folder":
        inside.parent.rmdir()
        inside.parent.symlink_to(secret.parent)
    else:
        inside.symlink_to(secret)
    with pytest.raises(InvalidInputError, match="not below"):
        periods_of(peer.connectivity, peer.name)


@pytest.mark.parametrize("trace", ["given/round.csv", '"given/trips.csv\\0"'])
def test_names_that_lead_nowhere_are_refused(place, trace, capsys):
    (place / "given" / "round.csv").symlink_to("round.csv")
    assert run(["check", str(write(place, trace))]) == 2
    assert "connectivity.trace" in capsys.readouterr().err
