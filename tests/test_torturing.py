"""A few commands disturbed in every run of the tests, and the harness shown able to fail."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torturing import page, places
from torturing.driving import Strange, known, trial
from torturing.faults import FAULTS, can_mount
from torturing.subjects import KILLED, SUBJECTS, Subject

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks into /proc")

# What they begin with, as a program of its own.
BEGIN = """
import os, subprocess, sys, time
from pathlib import Path
from torturing.stepping import heed
heed()
place = Path("out")
"""
WELL = """
from tidings.model.writing import write_file
time.sleep(0.2)
write_file(place / "numbers.json", b'{"n": 1}')
"""
FAULTY = {
    "half a file": (
        "killed at a file",
        "half done",
        """
with open(place / "numbers.json", "w") as file:
    file.write('{"n": ')
    file.flush()
    (place / "next").mkdir()
    (place / "next").rmdir()
    file.write("1}")
""",
    ),
    "a draft that stays": (
        "killed at a file",
        "there is also .draft-",
        """
draft = place / f".draft-{os.getpid()}x"
draft.write_text('{"n": 1}')
os.replace(draft, place / "numbers.json")
""",
    ),
    "a process that stays": (
        "killed",
        "1 processes were left",
        """
own = dict(stdout=subprocess.DEVNULL, start_new_session=True)
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"], **own)
time.sleep(0.3)
child.kill()
child.wait()
(place / "numbers.json").write_text('{"n": 1}')
""",
    ),
    "a count that goes on": (
        "two writers",
        "undisturbed 1",
        """
import json
file = place / "numbers.json"
n = json.loads(file.read_text())["n"] if file.exists() else 0
file.write_text(json.dumps({"n": n + 1}))
""",
    ),
    "a traceback": (
        "disk full",
        "it showed a traceback",
        """
(place / "numbers.json").write_text('{"n": 1}')
(place / "more").write_bytes(b"." * 100_000)
os.fsync(os.open(place / "more", os.O_RDWR))
""",
    ),
    "another result": (
        "killed",
        "differs: numbers.json.n is ",
        "(place / 'numbers.json').write_text('{\"n\": %d}' % time.time_ns())",
    ),
}


def made(script: str) -> Subject:
    """A subject of a few lines."""
    return Subject(
        what="made up",
        prepare=lambda _: None,
        steps=(("-c", BEGIN + script),),
        read=SUBJECTS["predict"].read,
        faults=(),
    )


@pytest.mark.parametrize("fault", [*KILLED, "two writers"])
def test_what_writes_whole_files_passes(fault):
    with known("made", made(WELL)) as of:
        found = trial(of, fault, 1)
    assert (found.problems, found.numbers) == ((), 1)


@pytest.mark.parametrize(("fault", "said", "script"), FAULTY.values(), ids=FAULTY)
def test_what_does_not_survive_is_reported(fault, said, script, monkeypatch):
    monkeypatch.setattr(places, "GONE_WITHIN_S", 0.5)
    with known("made", made(script)) as of:
        trials = (trial(of, fault, number) for number in range(20))
        assert any(said in each for found in trials for each in found.problems)


def test_a_subject_that_fails_undisturbed_is_none():
    with (
        pytest.raises(Strange, match=r"ended with 3: no luck"),
        known("made", made("print('no luck'); sys.exit(3)")),
    ):
        pass


@pytest.mark.slow
def test_a_command_that_is_disturbed_comes_to_the_same():
    """More of these, with all commands and faults: ``make torture``."""
    with known("samples", SUBJECTS["samples"]) as of:
        assert of.stages[0].steps > 10
        for fault in ("killed at a file", "disk full"):
            found = trial(of, fault, 3)
            assert found.problems == ()
            assert found.struck
            assert found.numbers > 100


def test_all_faults_of_a_subject_are_there():
    for name, subject in SUBJECTS.items():
        assert set(subject.faults) <= FAULTS.keys(), name
    assert {each for subject in SUBJECTS.values() for each in subject.faults} == FAULTS.keys()
    assert can_mount() <= (os.geteuid() == 0)


def test_the_page_says_what_was_counted():
    assert page.PAGE.read_text(encoding="utf-8") == page.page(page.kept())
    assert sum(row["failed"] for row in page.kept()) == 0
    assert "tests/torture.py" in page.PAGE.read_text(encoding="utf-8")
