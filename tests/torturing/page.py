"""What was counted, kept as JSON, and the page of the docs that is made of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.recording import record
from torturing.driving import Trial
from torturing.faults import FAULTS
from torturing.subjects import SUBJECTS

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "torture.json"
PAGE = ROOT / "docs" / "evidence" / "faults.md"
Row = Mapping[str, Any]

HEAD = """# Faults survived

Commands are killed, run out of disk and memory, lose servers and workers, meet others that write to the same place. Then they are run again, and what they come to is held against what they come to undisturbed, number by number.
{total}

```sh
make torture RUNS=20 SEED=1             # of each subject with each fault: hours
python tests/torture.py --runs 5 store  # one subject; --run 17 --fault killed does one run again
```

A run passes where all of this holds:

- the disturbed command leaves no process, and what can be seen of its results is what was there before, or what it was to write: nothing half-written. (Tables of an import that was stopped at its last step are refused until the next import has finished it; a run of a testbed of which a server ended is kept, marked as incomplete.)
- a command that was not killed itself ends by itself, with an [exit code](../reference/commands.md), in words, without a traceback, and leaves no temporary file;
- run again, it ends well and leaves the undisturbed result: whole numbers equal, sums to 1e-9, with the same files and no other, neither among results nor in the temporary folder.

*Struck* counts the runs in which the command still ran when it was to be disturbed, or ended otherwise because of the fault. What Java or Python had in the temporary folder when it was killed stays there, as after any `kill -9`.

## Counted

| subject | fault | runs | struck | failed | numbers compared |
|---|---|---|---|---|---|
"""  # noqa: E501
TAIL = """
`python tests/killing.py` does the same to a [watch](../reference/watch.md), whose rows come late, far too late and twice meanwhile ([benchmarks](benchmarks.md)).

## Found, and mended before these were counted

- Drafts of files and folders that a killed process was writing stayed beside the result for ever; now whoever writes there next clears away what nobody locks. A folder that was being replaced when the process was killed is put back.
- `tidings samples` called a full disk a bug of Tidings, as many commands did a lack of memory.
- `tidings receive` and `serve` closed their socket under their own feet at Ctrl-C, now and then: a traceback.
- A testbed whose watchdog was killed left the folder of its servers and showed a traceback; it tidies up itself now.
- `tidings simulate --traces FOLDER -o FILE` that found no room for the file could not be repeated, as the folder was there: the file is written first.

## Not shown

- Power cuts: a kill loses nothing that was handed to the system. That results are on the disk before their names is held by tests of the calls (`tests/model/test_writing.py`).
- Memory that is short from the first moment: OpenBLAS tries for ever to begin where it finds no room, so limits hold from when libraries are loaded.
- A machine that has no memory left for others: limits are of one process. An out-of-memory killer does what `kill -9` does.
- A clock that steps while Spark's own timers wait on another machine; file systems other than those of this machine; object stores.
"""  # noqa: E501


def rows_of(trials: Iterable[Trial]) -> list[dict[str, Any]]:
    """Count runs by subject and fault."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for each in trials:
        nothing = {"runs": 0, "struck": 0, "failed": 0, "numbers": 0}
        start = {"subject": each.subject, "fault": each.fault, **nothing}
        row = rows.setdefault((each.subject, each.fault), start)
        row["runs"] += 1
        row["struck"] += each.struck
        row["failed"] += bool(each.problems)
        row["numbers"] += each.numbers
    return list(rows.values())


def write(trials: Sequence[Trial]) -> None:
    """Keep what was counted in the place of what was counted of the same before, and the page."""
    found = {(row["subject"], row["fault"]): row for row in (*kept(), *rows_of(trials))}
    order = [(subject, fault) for subject in SUBJECTS for fault in FAULTS]
    rows = [found[each] for each in order if each in found]
    record("torture", {"rows": rows})
    PAGE.write_text(page(rows), encoding="utf-8")


def kept() -> list[Row]:
    """Read what was counted before."""
    if not RESULTS.exists():
        return []
    return list(json.loads(RESULTS.read_text(encoding="utf-8"))["rows"])


def page(rows: Sequence[Row]) -> str:
    """Make the page of what was counted."""
    runs, failed, numbers = (sum(row[name] for row in rows) for name in _COUNTED)
    total = f"{runs:,} runs, {failed:,} failed; {numbers:,} numbers compared."
    return HEAD.format(total=total) + "".join(_lines(rows)) + TAIL


_COUNTED = ("runs", "failed", "numbers")


def _missing(rows: Sequence[Row]) -> Iterator[str]:
    """Name what the command runs, but nobody has run for the page."""
    known = {(row["subject"], row["fault"]) for row in rows}
    for name, subject in SUBJECTS.items():
        faults = [each for each in subject.faults if (name, each) not in known]
        if faults:
            yield f"{name} ({'all' if len(faults) == len(subject.faults) else ', '.join(faults)})"


def _lines(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        counts = " | ".join(f"{row[name]:,}" for name in ("runs", "struck", "failed", "numbers"))
        yield f"| {row['subject']} | {row['fault']} | {counts} |\n"
    if missing := list(_missing(rows)):
        yield f"\nNot run yet: {'; '.join(missing)}.\n"
    for title, all_of in (("subject", SUBJECTS), ("fault", FAULTS)):
        yield f"\n| {title} | what |\n|---|---|\n"
        for name in all_of:
            yield f"| {name} | {all_of[name].what} |\n"
