from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

from tidings.model.reading import loads
from tidings.prediction.predict import predict
from tidings.simulation.run import simulate
from tidings.theory.error_table import TAIL, ErrorTable, measured_errors, stated_errors
from tidings.theory.feature_names import (
    FEATURES,
    IN_WORDS,
    LEFT_OUT,
    NEVER_BELIEVED,
    NEVER_TOGETHER,
    OF_SHARES,
)

# heat ≤ .5: a leaf; else spread ≤ 2 or more. Names are the table's own affair.
BRANCHED = [
    [0, -1, 1, -1, -1],
    [0.5, 0.0, 2.0, 0.0, 0.0],
    [1, -1, 3, -1, -1],
    [2, -1, 4, -1, -1],
    [9.0, 0.1, 9.0, 0.2, 0.3],
]
SPLIT = [[1, -1, -1], [1.0, 0.0, 0.0], [1, -1, -1], [2, -1, -1], [9.0, -1.0, 1.0]]
DOCUMENT = {
    "features": ["heat", "spread"],
    "low": [0.0, 0.5],
    "high": [0.9, 4.0],
    "start": -5.0,
    "margin": math.log(3.0),
    "trees": [BRANCHED, SPLIT],
    "absent": ["heat"],
    "exact": 0.001,
}


def rows(*numbers):
    return pd.DataFrame(numbers, columns=["spread", "heat"])


def test_leaves_of_all_trees_add_up_to_the_logarithm():
    regimes = rows((1.0, 0.5), (4.0, 0.2), (2.0, 0.51), (2.1, 0.9))
    logs = [-5 + 0.1 - 1, -5 + 0.1 + 1, -5 + 0.2 + 1, -5 + 0.3 + 1]
    table = ErrorTable.from_document(DOCUMENT)
    assert table.expected(regimes) == pytest.approx(np.exp(logs), rel=1e-12)
    assert table.errors(regimes) == pytest.approx(3.0 * np.exp(logs), rel=1e-12)


def test_where_nothing_is_approximate_no_more_is_stated_than_was_measured_there():
    table = ErrorTable.from_document(DOCUMENT)
    by_trees = 3.0 * math.exp(-5 + 0.1 - 1)
    assert by_trees > 0.001
    assert table.errors(rows((1.0, 0.0), (1.0, 0.01))).tolist() == pytest.approx([0.001, by_trees])
    wide = ErrorTable.from_document(DOCUMENT | {"exact": 0.1})
    assert wide.errors(rows((1.0, 0.0))).tolist() == pytest.approx([by_trees])


def test_few_misses_are_off_by_a_part_of_themselves_where_nothing_is_approximate():
    table = ErrorTable.from_document(
        DOCUMENT | {"features": ["heat", "sensitivity"], "low": [0.0, 0.0]}
    )
    regimes = pd.DataFrame(
        # The first moves by less than rounding, as an exact share may.
        {"heat": [0.0, 0.0, 0.0, 0.0, 0.1], "sensitivity": [2e-16, 0.0, 0.0, 0.5, 0.0]}
    )
    missed, roughness = np.array([1e-3, 1e-5, 0.1, 1e-3, 1e-3]), np.full(5, 2e-5)
    plain = table.errors(regimes)
    assert plain.min() >= 0.001  # as measured of shares
    stated = table.tail_errors(regimes, missed, roughness)
    assert stated[0] == pytest.approx(TAIL * 1e-3 + 2e-5)
    # Too few or too many to have been measured, waits or something else approximate:
    assert stated[1:].tolist() == plain[1:].tolist()
    rough = table.tail_errors(regimes, missed, np.full(5, 0.01))
    assert rough.tolist() == pytest.approx([0.01] * 5)


def test_what_lies_outside_the_measurement_is_not_known():
    table = ErrorTable.from_document(DOCUMENT)
    regimes = rows((1.0, 0.91), (0.4, 0.5), (math.nan, 0.5))
    assert np.all(np.isinf(table.errors(regimes)))
    assert table.unmeasured(regimes).tolist() == ["heat", "spread", "spread"]


def test_the_walk_agrees_with_going_down_row_by_row():
    table, draws = ErrorTable.from_document(DOCUMENT), np.random.default_rng(3)
    regimes = pd.DataFrame(
        {"heat": draws.uniform(0, 0.9, 500), "spread": draws.uniform(0.5, 4, 500)}
    )
    for row, expected in zip(regimes.to_dict("records"), table.expected(regimes), strict=True):
        total = DOCUMENT["start"]
        for feature, threshold, left, right, value in DOCUMENT["trees"]:
            node = 0
            while feature[node] >= 0:
                goes_left = row[DOCUMENT["features"][feature[node]]] <= threshold[node]
                node = left[node] if goes_left else right[node]
            total += value[node]
        assert math.log(expected) == pytest.approx(total, rel=1e-12)


def test_the_table_that_comes_with_this_version_fits_the_regimes_of_theory():
    table = measured_errors()
    measured = [
        each for each in (*FEATURES, *OF_SHARES) if each not in (*NEVER_BELIEVED, *LEFT_OUT)
    ]
    assert list(table.features) == measured
    assert np.all(table.low <= table.high)
    assert np.isfinite(stated_errors(_middle(table))).all()
    for tree in table.trees:
        inner = tree.feature >= 0
        children = [*tree.left[inner], *tree.right[inner]]
        assert sorted(children) == list(range(1, tree.feature.size))


@pytest.mark.parametrize("flag", NEVER_BELIEVED)
def test_some_regimes_are_never_believed_whatever_was_measured(flag):
    table = measured_errors()
    middle = _middle(table)
    assert np.isinf(table.errors(middle.assign(**{flag: 1.0}))).all()
    assert table.unmeasured(middle.assign(**{flag: 1.0})).tolist() == [flag]
    assert np.isfinite(table.errors(middle.assign(**{flag: 0.0}))).all()


def _middle(table):
    """A regime in the middle of what was measured, of exponential services and times ON."""
    middle = pd.DataFrame([(table.low + table.high) / 2], columns=list(table.features))
    return middle.assign(own_pacing=0.0, service_pacing=0.0, peer_periods=0.0)


@pytest.mark.parametrize("name", NEVER_TOGETHER)
def test_nor_are_some_that_come_together(name):
    table = measured_errors()
    just_beyond = {each: least + 0.01 for each, least in NEVER_TOGETHER[name].items()}
    regime = _middle(table).assign(**just_beyond)
    assert np.isinf(table.errors(regime)).all()
    assert table.unmeasured(regime).tolist() == [name]
    for each, least in NEVER_TOGETHER[name].items():
        assert np.isfinite(table.errors(regime.assign(**{each: least}))).all()


def test_a_table_survives_its_way_through_a_file():
    again = ErrorTable.from_document(json.loads(json.dumps(DOCUMENT)))
    assert again.errors(rows((1.0, 0.3))) == ErrorTable.from_document(DOCUMENT).errors(
        rows((1.0, 0.3))
    )


def test_every_feature_has_words_for_people():
    assert set(IN_WORDS) == {*FEATURES, *OF_SHARES}


AWAY = """
tidings: 1
lifetime: {lifetime}
brokers: {{a: {{service: {{exponential: 10ms}}}}, b: {{service: {{exponential: 10ms}}}}}}
links: [{{between: [a, b], delay: 5ms}}]
publishers:
  away:
    at: a
    every: {{exponential: 50ms}}
    content: {{event: {{t: x}}}}
    connectivity: {{on: {{exponential: {on}}}, off: {{exponential: {off}}}}}
  there: {{at: a, every: {{exponential: 50ms}}, content: {{event: {{t: x}}}}}}
subscribers: {{z: {{at: b, wants: {{t: x}}}}}}
"""


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("lifetime", "on", "off"), [("500ms", "20s", "20s"), ("5s", "20s", "20s"), ("5s", "20s", "40s")]
)
def test_who_waits_behind_what_was_kept_while_a_publisher_was_away_is_in_the_error(
    lifetime, on, off
):
    """Theory has others wait as ever; it is off by up to .16 and must say so."""
    system = loads(AWAY.format(lifetime=lifetime, on=on, off=off))
    told = predict(system, by="theory").subscribers.iloc[0]
    played = simulate(system, seed=3, replications=8, duration_s=4000.0).subscribers.iloc[0]
    off_by = abs(told["on_time"] - played["on_time"])
    assert off_by > 0.05  # else this tests nothing
    assert off_by <= told["error"] + 2.0 * played["on_time_se"]
    assert told["error"] < 0.4
