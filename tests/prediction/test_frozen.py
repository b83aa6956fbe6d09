"""Theory's answers to the whole catalogue of systems, against what was said when it was frozen.

Only rows that theory answers by itself are looked at; the rest is simulated. A row that moves is
looked at with ``python tests/systems/compare_frozen.py --rows``; where the move is wanted,
``python tests/systems/freeze.py --predict --only NAME`` makes it the new one.
"""

from __future__ import annotations

import pytest

from systems import frozen
from systems.catalogue import CATALOGUE
from tidings.errors import UnsupportedError
from tidings.prediction.predict import predict

FROZEN = frozen.load()
# Those that take longest, each with a larger or a like one that is asked every time.
NIGHTLY = (
    "combined, failures, churn",
    "combined, queues, churn",
    "combined, all but failures",
    "fault tolerance, graph, one tree, low-end, bypass-buffering",
)
CASES = [
    pytest.param(name, marks=[pytest.mark.nightly] if name in NIGHTLY else []) for name in CATALOGUE
]


def test_everything_is_frozen_by_both_engines():
    assert list(FROZEN) == list(CATALOGUE)
    assert [
        name for name, each in FROZEN.items() if not {"predicted", "simulated"} <= set(each)
    ] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_where_theory_speaks_it_stays_where_it_was_right(name):
    try:
        outcome = predict(CATALOGUE[name].make(), by="theory", delays=False, causes=False)
    except UnsupportedError:
        return  # the simulator answers
    held = set(outcome.subscribers["subscriber"][outcome.subscribers["error"] <= frozen.PROMISED])
    rows = [row for row in frozen.rows(FROZEN[name], outcome) if row.subscriber in held]
    moved = [str(row) for row in rows if not row.holds]
    assert not moved, "\n".join([f"{name}: {len(moved)} of {len(rows)} moved", *moved])


def row(**changes):
    """A subscriber predicted .9 when frozen, .905 simulated to .001: right."""
    parts = {"before": 0.9, "now": 0.9, "now_se": 0.0, "by": "theory", "simulated": 0.905}
    return frozen.Row(**{"subscriber": "s", "simulated_se": 0.001, **parts, **changes})


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({}, True),
        ({"now": 0.9004}, True),
        ({"now": 0.904}, True),  # nearer
        ({"now": 0.897}, False),  # further off, and it was right before
        ({"simulated": 0.95}, True),  # as wrong as it was
        ({"simulated": 0.95, "now": 0.93}, True),
        ({"simulated": 0.95, "now": 0.89}, False),
        ({"before": None, "now": 0.907}, True),
        ({"before": None, "now": 0.92}, False),
        ({"by": "simulation", "now": 0.909}, True),
        ({"by": "simulation", "now": 0.912}, False),
        ({"by": "simulation", "now": 0.912, "now_se": 0.002}, True),
        ({"before": None, "simulated": None}, False),  # nothing to compare with
    ],
)
def test_a_right_answer_stays_and_a_wrong_one_comes_nearer(changes, holds):
    assert row(**changes).holds is holds


def test_rows_are_those_frozen_and_say_which_engine_answers():
    system = CATALOGUE["three M/M/1 in a line, .6 busy"].make()
    outcome = predict(system)
    record = FROZEN["three M/M/1 in a line, .6 busy"]
    assert [each.by for each in frozen.rows(record, outcome)] == ["theory"] * 3
    outcome.subscribers["by"] = ["theory", "simulation", "theory"]
    found = frozen.rows(record, outcome)
    assert [each.by for each in found] == ["theory", "simulation", "theory"]
    assert [each.subscriber for each in found] == ["s0", "s1", "s2"]
