from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

from tidings.prediction.error_table import ErrorTable, measured_errors, stated_errors

# load ≤ .5: a leaf; else variability ≤ 2 or more. Names are the table's own affair.
TREE = {
    "features": ["heat", "spread"],
    "feature": [0, -1, 1, -1, -1],
    "threshold": [0.5, 0.0, 2.0, 0.0, 0.0],
    "left": [1, -1, 3, -1, -1],
    "right": [2, -1, 4, -1, -1],
    "slope": [9.0, 0.1, 9.0, 0.2, 0.3],
    "floor": [9.0, 0.01, 9.0, 0.02, 0.03],
    "low": [0.0, 0.5],
    "high": [0.9, 4.0],
}


def rows(*numbers):
    return pd.DataFrame(numbers, columns=["spread", "heat", "sensitivity"])


def test_each_row_gets_slope_times_sensitivity_plus_floor_of_its_leaf():
    regime = rows((1.0, 0.5, 1.0), (4.0, 0.2, 2.0), (2.0, 0.51, 0.5), (2.1, 0.9, 1.0))
    assert ErrorTable.from_document(TREE).errors(regime) == pytest.approx(
        [0.1 + 0.01, 0.2 + 0.01, 0.1 + 0.02, 0.3 + 0.03], rel=1e-12
    )


def test_what_lies_outside_the_measurement_is_not_known():
    table = ErrorTable.from_document(TREE)
    regime = rows((1.0, 0.91, 1.0), (0.4, 0.5, 1.0), (math.nan, 0.5, 1.0), (1.0, 0.5, math.nan))
    assert np.all(np.isinf(table.errors(regime)))
    assert table.unmeasured(regime) == ["heat", "spread", "spread", ""]


def test_the_walk_agrees_with_going_down_row_by_row():
    table, draws = ErrorTable.from_document(TREE), np.random.default_rng(3)
    regime = pd.DataFrame(
        {
            "heat": draws.uniform(0, 0.9, 500),
            "spread": draws.uniform(0.5, 4, 500),
            "sensitivity": draws.uniform(0, 1, 500),
        }
    )
    for row, stated in zip(regime.to_dict("records"), table.errors(regime), strict=True):
        node = 0
        while TREE["feature"][node] >= 0:
            value = row[TREE["features"][TREE["feature"][node]]]
            side = "left" if value <= TREE["threshold"][node] else "right"
            node = TREE[side][node]
        expected = TREE["slope"][node] * row["sensitivity"] + TREE["floor"][node]
        assert stated == pytest.approx(expected, rel=1e-12)


def test_the_table_that_comes_with_this_version_is_a_tree():
    table = measured_errors()
    nodes, inner = table.feature.size, table.feature >= 0
    assert table.low.size == table.high.size == len(table.features)
    assert np.all(table.low <= table.high)
    assert np.all(table.slope[~inner] >= 0)
    assert np.all(table.floor[~inner] >= 0)
    children = [*table.left[inner], *table.right[inner]]
    assert sorted(children) == list(range(1, nodes))  # each node but the root is once a child
    middle = pd.DataFrame([(table.low + table.high) / 2], columns=list(table.features))
    assert np.isfinite(stated_errors(middle.assign(sensitivity=0.5))).all()


def test_a_table_survives_its_way_through_a_file():
    again = ErrorTable.from_document(json.loads(json.dumps(TREE)))
    regime = rows((1.0, 0.3, 1.0))
    assert again.errors(regime) == ErrorTable.from_document(TREE).errors(regime)
