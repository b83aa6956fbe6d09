from __future__ import annotations

import pandas as pd
import pytest

from studies.fault_tolerance import (
    POINT_COLUMNS,
    Difference,
    Settings,
    all_above_zero,
    mean_se,
    study,
)

# Mean simulated shares by hand: (topology, machines): {scheme: share}.
MEANS = {
    ("tree", "low-end"): {"periodic": 0.70, "buffering": 0.80},
    ("tree", "high-end"): {"periodic": 0.97, "buffering": 0.98},
    ("graph, own trees", "low-end"): {
        "periodic": 0.78,
        "buffering": 0.85,
        "bypass": 0.84,
        "bypass-buffering": 0.90,
    },
    ("graph, own trees", "high-end"): {
        "periodic": 0.97,
        "buffering": 0.9900,
        "bypass": 0.9890,
        "bypass-buffering": 0.9902,
    },
}


@pytest.fixture
def results():
    return results_with(0.001)


def results_with(actual_se):
    rows = []
    for (topology, machines), means in MEANS.items():
        for scheme, mean in means.items():
            models = {"exact": 0.0} | ({"paper": -0.03} if "bypass" in scheme else {})
            for model, off in models.items():
                for number, side in enumerate((-0.01, 0.01)):
                    actual = mean + side
                    about = (1, topology, machines, scheme, model, f"s{number}", "b01", 100.0)
                    rows.append((*about, actual + off + side / 10, actual, actual_se))
    return pd.DataFrame(rows, columns=POINT_COLUMNS)


def test_a_run_for_every_case_and_no_bypass_in_trees():
    runs = Settings(systems=1).runs
    assert len(runs) == 2 * (2 + 4 + 4)
    assert not any("bypass" in scheme for _, topology, _, scheme in runs if topology == "tree")
    assert len(set(Settings(systems=3).runs)) == 60


def test_claims_are_answered_from_the_runs():
    told = study(Settings(), results_with(0.00005)).findings
    assert [(each.section, each.case, each.holds) for each in told] == [
        ("5.2.1", "tree", True),  # 0.001 off
        ("5.2.1", "tree", True),  # 0.10 by buffering, 0.27 by machines
        ("5.2.2", "graph, own trees", False),  # the paper's formulas are 0.03 off
        ("5.2.2", "graph, own trees", False),  # bypass is behind buffering
        ("5.2.2", "graph, own trees", True),  # 0.0002 is nothing
    ]


def test_what_is_within_the_noise_speaks_neither_for_a_claim_nor_against_it(results):
    # Whether bypass-buffering gains more than 0.0005 cannot be seen.
    assert [each.holds for each in study(Settings(), results).findings] == [
        True,
        True,
        False,
        False,
        None,
    ]
    # Nor can, with ten times the noise, which of bypass and buffering is ahead.
    loud = [each.holds for each in study(Settings(), results_with(0.01)).findings]
    assert loud == [True, True, False, None, None]
    assert all_above_zero([Difference(0.3, 0.1), Difference(0.1, 0.04)]) is True
    assert all_above_zero([Difference(0.3, 0.1), Difference(-0.1, 0.04)]) is False


def test_subscribers_of_a_system_may_be_off_together_and_systems_are_not():
    about = {"topology": "tree", "machines": "low-end", "scheme": "periodic", "model": "exact"}
    rows = [(1, 0.01), (1, 0.03), (2, 0.02), (2, 0.04)]
    points = pd.DataFrame([{**about, "seed": seed, "actual_se": se} for seed, se in rows])
    assert mean_se(points).iloc[0] == pytest.approx((0.04**2 + 0.06**2) ** 0.5 / 4, rel=1e-12)


def test_the_best_scheme_is_named_and_errors_stand_beside_the_noise(results):
    best, tree, graph = study(Settings(), results).sections
    assert [row[:3] for row in best.exhibits[0].rows] == [
        ("tree", "low-end", "buffering"),
        ("tree", "high-end", "buffering"),
        ("graph, own trees", "low-end", "bypass-buffering"),
        ("graph, own trees", "high-end", "bypass-buffering = buffering"),  # within the noise
    ]
    errors, *plots = graph.exhibits
    noise = f"{0.001 * (2 / 3.141592653589793) ** 0.5:.5f}"
    assert errors.rows[2] == (
        "low-end", "bypass", "0.8400", "0.8400", noise, "0.00100 (0.0010)", "0.03000 (0.0310)"
    )  # fmt: skip
    assert tree.exhibits[0].rows[0][-1] == "the same"
    assert [plot.low for plot in plots[:1] + plots[-1:]] == [0.7, 0.95]
