"""Files that a system file names: those below its own folder, and others only where allowed."""

from __future__ import annotations

import json
import os
import pickle

import pytest

from snapshots import everything_below
from tidings.cli.commands import run
from tidings.errors import InvalidInputError, InvalidSystemError
from tidings.model import named_tables, reading
from tidings.model.connectivity_traces import periods_of
from tidings.model.named_files import FILES_BELOW
from tidings.model.reading import load, loads, save
from tidings.planning.changes import changed

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
    with pytest.raises(InvalidSystemError, match=r"(?s)connectivity.trace: .*a file below"):
        load(path)
    assert everything_below(place) == before


@pytest.mark.parametrize("trace", ["given/trips.csv", "mine/../given/trips.csv"])
def test_files_of_its_own_folder_are_read(place, trace, capsys):
    path = write(place, trace)
    assert load(path).subscribers[0].connectivity.trace == trace
    assert run(["check", str(path)]) == 0
    assert run(["check", str(write(place, "mine/trips.csv"))]) == 2
    assert "the folder of the file that refers to it" in capsys.readouterr().err


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


@pytest.mark.parametrize(("put_back", "said"), [(True, "exchanged while"), (False, "not below")])
def test_what_is_exchanged_while_it_is_opened_is_not_read(place, monkeypatch, put_back, said):
    """Its name is resolved and found good, and leads elsewhere at the moment of opening."""
    own, usual = place / "given" / "own", named_tables.open_plain
    own.mkdir()
    (own / "trips.csv").write_text(ROWS)
    (peer,) = load(write(place, "given/own/trips.csv")).subscribers

    def exchanging(path):
        own.rename(place / "away")
        own.symlink_to(place / "mine")
        opened = usual(path)  # by now somebody else's
        if put_back:
            own.unlink()
            (place / "away").rename(own)
        return opened

    monkeypatch.setattr(named_tables, "open_plain", exchanging)
    with pytest.raises(InvalidInputError, match=said):
        periods_of(peer.connectivity, peer.name)


def naming(trace, kind):
    """A change that names a trace, in each way there is."""
    told = f"{{trace: {trace}, service: 1ms}}"
    if kind == "connectivity":
        return f"connectivity s {told}"
    return f"subscriber t {{at: hub, wants: {{topic: a}}, connectivity: {told}}}"


@pytest.mark.parametrize("trace", ELSEWHERE.values(), ids=ELSEWHERE)
@pytest.mark.parametrize("kind", ["connectivity", "subscriber"])
def test_scenarios_name_files_below_their_own_folder(place, trace, kind, capsys):
    (place / "base").mkdir()
    base = place / "base" / "system.yaml"
    base.write_text(SYSTEM.format(trace="x").replace("trace: x", "on: 5s, off: 3s"))
    scenarios = place / "given" / "scenarios.yaml"
    scenarios.write_text(json.dumps({"own": naming("given/trips.csv", kind)}))
    assert run(["whatif", str(base), "--scenarios", str(scenarios)]) == 0
    elsewhere = naming(trace(place), kind)
    scenarios.write_text(json.dumps({"theirs": elsewhere}))
    capsys.readouterr()
    assert run(["whatif", str(base), "--scenarios", str(scenarios)]) == 2
    assert f"a file below {place / 'given'}" in capsys.readouterr().err
    if "/dev" not in elsewhere:  # what was typed is read wherever it is, as is what was allowed
        assert run(["whatif", str(base), elsewhere]) == 0
        allowed = ["--files-below", str(place / "mine")]
        assert run([*allowed, "whatif", str(base), "--scenarios", str(scenarios)]) == 0


def test_where_a_file_may_lie_outlives_changes_and_goes_with_the_document(place):
    """A system that was changed, or made anew elsewhere, opens no more than it might before."""
    system = load(write(place, "given/trips.csv"))
    moved = changed(system, ["add 2 like s", "rate all x2"])
    (place / "given" / "trips.csv").unlink()
    (place / "given" / "trips.csv").symlink_to(place / "mine" / "trips.csv")
    document = pickle.loads(pickle.dumps(reading.system_document(moved)))
    for each in (moved, reading.from_document(document)):
        for peer in each.subscribers:
            with pytest.raises(InvalidInputError, match="not below"):
                periods_of(peer.connectivity, peer.name)


@pytest.mark.parametrize("trace", ["given/round.csv", '"given/trips.csv\\0"'])
def test_names_that_lead_nowhere_are_refused(place, trace, capsys):
    (place / "given" / "round.csv").symlink_to("round.csv")
    assert run(["check", str(write(place, trace))]) == 2
    assert "connectivity.trace" in capsys.readouterr().err
