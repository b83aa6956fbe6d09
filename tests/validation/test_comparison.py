from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.errors import InvalidInputError
from tidings.model.outcome import Outcome, table
from tidings.validation.comparison import Comparison, compare, verdict

NAN = math.nan


def outcome(source, rows, **tables):
    return Outcome(
        source=source,
        subscribers=table("subscribers", rows),
        **{name: table(name, each) for name, each in tables.items()},
    )


def shares(source, on_time, se=None, count=None):
    """An outcome with subscribers s0, s1, ... that have these on-time shares."""
    return outcome(
        source,
        [
            {
                "subscriber": f"s{i}",
                "broker": "hub",
                "count": 1.0 if count is None else count[i],
                "wanted_per_s": 1.0,
                "on_time": share,
                "on_time_se": NAN if se is None else se[i],
            }
            for i, share in enumerate(on_time)
        ],
    )


def test_the_summary_holds_the_plain_errors():
    found = compare(
        shares("predicted", [0.9, 0.8, 0.5]), shares("measured", [0.8, 0.9, 0.1])
    ).summary
    assert found.compared == 3
    assert found.mean_absolute == pytest.approx((0.1 + 0.1 + 0.4) / 3, rel=1e-12)
    assert found.mean_signed == pytest.approx((0.1 - 0.1 + 0.4) / 3, rel=1e-12)
    assert found.maximum == pytest.approx(0.4, rel=1e-12)
    assert found.with_se == 0
    assert math.isnan(found.within_2se)


def test_z_combines_the_noise_of_both_sides():
    compared = compare(
        shares("simulated", [0.93, 0.80], se=[0.03, NAN]),
        shares("measured", [0.83, 0.90], se=[0.04, 0.02]),
    )
    assert compared.subscribers["on_time_se"].tolist() == pytest.approx([0.05, 0.02], rel=1e-12)
    assert compared.subscribers["on_time_z"].tolist() == pytest.approx([2.0, -5.0], rel=1e-9)


def test_within_two_standard_errors_counts_only_rows_that_have_one():
    a = shares("simulated", [0.50, 0.50, 0.50, 0.50], se=[0.01, 0.01, NAN, 0.01])
    b = shares("measured", [0.51, 0.53, 0.90, 0.481])
    found = compare(a, b).summary
    assert (found.compared, found.with_se) == (4, 3)
    assert found.within_2se == pytest.approx(2 / 3, rel=1e-12)


def test_exact_sides_agree_when_equal_and_are_infinitely_far_apart_when_not():
    a = shares("simulated", [1.0, 1.0], se=[0.0, 0.0])
    b = shares("measured", [1.0 - 1e-16, 0.9], se=[0.0, 0.0])
    compared = compare(a, b)
    assert compared.subscribers["on_time_z"].tolist() == [0.0, math.inf]
    assert compared.summary.within_2se == 0.5


def test_shares_that_nobody_can_know_are_counted_and_left_out_of_errors():
    found = compare(
        shares("predicted", [NAN, NAN, 0.7]), shares("measured", [NAN, 0.5, 0.6])
    ).summary
    assert (found.compared, found.undefined, found.undefined_in_one) == (1, 1, 1)
    assert found.mean_absolute == pytest.approx(0.1, rel=1e-12)


def test_identical_subscribers_count_each():
    a = shares("predicted", [0.5, 0.9], count=[3.0, 1.0])
    b = shares("measured", [0.6, 0.5], count=[3.0, 1.0])
    assert compare(a, b).summary.mean_absolute == pytest.approx((3 * 0.1 + 0.4) / 4, rel=1e-12)


def test_rows_are_joined_by_name_whatever_their_order_and_the_rest_is_named():
    a = outcome("predicted", [{"subscriber": n, "on_time": v} for n, v in [("x", 0.1), ("y", 0.2)]])
    b = outcome("measured", [{"subscriber": n, "on_time": v} for n, v in [("z", 0.9), ("x", 0.4)]])
    compared = compare(a, b)
    assert compared.subscribers["subscriber"].tolist() == ["x"]
    assert compared.subscribers["on_time_difference"].tolist() == pytest.approx([-0.3])
    assert (compared.only_a, compared.only_b) == (("y",), ("z",))


def test_pairs_brokers_and_links_are_compared_where_both_have_them():
    pair = {"publisher": "p", "subscriber": "s0", "on_time": 0.9, "on_time_se": 0.1}
    broker = {"broker": "hub", "utilisation": 0.7, "utilisation_se": 0.01, "wait_mean_s": 0.5}
    link = {"source": "hub", "target": "east", "lost": 0.02}
    a = outcome("predicted", [{"subscriber": "s0"}], pairs=[pair], brokers=[broker], links=[link])
    b = outcome(
        "measured",
        [{"subscriber": "s0"}],
        pairs=[pair | {"on_time": 0.8}],
        brokers=[broker | {"utilisation": 0.72, "utilisation_se": NAN, "wait_mean_s": math.inf}],
    )
    compared = compare(a, b)
    assert compared.pairs["on_time_z"].tolist() == pytest.approx([0.1 / math.sqrt(0.02)])
    assert compared.brokers["utilisation_z"].tolist() == pytest.approx([-2.0])
    assert compared.brokers["wait_mean_s_difference"].tolist() == [-math.inf]
    assert compared.links.empty
    assert compared.summarise("brokers", "utilisation").maximum == pytest.approx(0.02)


def test_two_overloaded_brokers_agree_without_a_number():
    broker = {"broker": "hub", "wait_mean_s": math.inf}
    both = [outcome("predicted", [{"subscriber": "s"}], brokers=[broker]) for _ in range(2)]
    assert compare(*both).summarise("brokers", "wait_mean_s").compared == 0


def test_a_name_that_stands_twice_is_refused():
    twice = outcome("measured", [{"subscriber": "bob"}, {"subscriber": "bob"}])
    with pytest.raises(InvalidInputError, match=r"measured outcome has more than one row.*bob"):
        compare(twice, twice)


def test_worst_rows_come_first_and_undefined_ones_never():
    compared = compare(
        shares("predicted", [0.5, NAN, 0.1, 0.9]), shares("measured", [0.6, 0.2, 0.8, 0.9])
    )
    assert compared.worst(2)["subscriber"].tolist() == ["s2", "s0"]
    assert compared.worst(10)["subscriber"].tolist() == ["s2", "s0", "s3"]
    assert "..." not in str(compared.worst(2))  # nothing elided where it is printed


def test_worst_rows_of_another_measure_have_its_columns():
    compared = compare(shares("predicted", [0.5, 0.4]), shares("measured", [0.6, 0.2]))
    worst = compared.worst(1, "delivered")
    assert [*worst.columns] == [
        "subscriber", "broker", "delivered_a", "delivered_b", "delivered_difference", "delivered_z"
    ]  # fmt: skip


def test_the_verdict_names_each_check_with_its_numbers():
    compared = compare(shares("predicted", [0.9, 0.8]), shares("measured", [0.88, 0.75]))
    found = verdict(compared, max_mae=0.04, max_error=0.04)
    assert {check.name: check.passed for check in found.checks} == {
        "compared": True,
        "missing": True,
        "mean_absolute": True,
        "maximum": False,
    }
    assert not found.passed
    assert found.checks[-1].text == "largest error: 0.05, wants at most 0.04"
    assert verdict(compared, max_mae=0.04).passed
    assert not verdict(compared, max_mae=0.03).passed


def test_a_limit_that_cannot_be_checked_fails():
    compared = compare(shares("predicted", [0.9]), shares("measured", [0.9]))
    assert verdict(compared).passed
    assert not verdict(compared, min_within_2se=0.9).passed


def test_nothing_in_common_does_not_pass():
    a, b = (outcome("measured", [{"subscriber": name, "on_time": 1.0}]) for name in "ab")
    assert not verdict(compare(a, b)).passed
    assert not verdict(compare(a, b), max_mae=None, max_missing=None).passed


def test_missing_subscribers_fail_unless_allowed():
    compared = compare(shares("predicted", [0.9, 0.8]), shares("measured", [0.9]))
    assert not verdict(compared).passed
    assert verdict(compared, max_missing=1).passed


def test_the_document_is_strict_json():
    a = shares("simulated", [1.0, NAN, 0.5], se=[0.0, NAN, 0.1])
    b = shares("measured", [0.9, NAN, 0.5], se=[0.0, NAN, 0.1])
    compared = compare(a, b)
    text = json.dumps(compared.to_document(), allow_nan=False)
    found = json.loads(text)
    assert found["a"] == "simulated"
    assert found["summary"]["compared"] == 2
    assert found["subscribers"][0]["on_time_z"] is None
    json.dumps(verdict(compared, min_within_2se=0.5).to_document(), allow_nan=False)


def test_an_unknown_measure_is_refused():
    compared = compare(shares("predicted", [0.9]), shares("measured", [0.9]))
    with pytest.raises(ValueError, match="not compared"):
        compared.summarise("subscribers", "happiness")


SHARES = st.one_of(st.just(NAN), st.floats(0, 1))
PAIRS = st.lists(st.tuples(SHARES, SHARES), min_size=1, max_size=20)


@pytest.mark.slow
@settings(deadline=None)
@given(PAIRS)
def test_comparing_the_other_way_round_only_turns_the_signs(pairs):
    first, second = zip(*pairs, strict=True)
    a, b = shares("predicted", first), shares("measured", second)
    there, back = compare(a, b), compare(b, a)
    signed = there.subscribers["on_time_difference"].to_numpy()
    np.testing.assert_array_equal(signed, -back.subscribers["on_time_difference"].to_numpy())
    assert isinstance(there, Comparison)
    summary = there.summary
    assert summary.compared + summary.undefined + summary.undefined_in_one == len(pairs)
    if summary.compared:
        assert abs(summary.mean_signed) <= summary.mean_absolute + 1e-15
        assert summary.mean_absolute <= summary.maximum + 1e-15
        assert summary.mean_absolute == back.summary.mean_absolute


def test_what_engines_state_of_their_errors_counts_beside_standard_errors():
    """√(.02² + (1.96 × .01)²) is .028; a simulated error is in the standard error already."""

    def side(source, shares, **answered):
        rows = [
            {"subscriber": name, "count": n, "on_time": share, "on_time_se": 0.01} | answered
            for n, (name, share) in enumerate(zip("abc", shares, strict=True), start=1)
        ]
        return Outcome(source=source, subscribers=table("subscribers", rows))

    measured = side("measured", [0.9, 0.9, 0.9])
    measured.subscribers["on_time_se"] = math.nan
    theory = side("predicted", [0.927, 0.929, 0.9], error=0.02, by="theory")
    comparison = compare(theory, measured)
    assert comparison.subscribers["on_time_error"].tolist() == pytest.approx(
        [math.hypot(0.02, 0.0196)] * 3, rel=1e-3
    )
    assert comparison.subscribers["by_a"].tolist() == ["theory"] * 3
    summary = comparison.summary
    assert (summary.with_error, summary.within_error) == (3, pytest.approx(4 / 6))
    assert not verdict(comparison, max_mae=None, min_within_error=0.95).passed
    assert verdict(comparison, max_mae=None, min_within_error=0.6).passed
    played = side("predicted", [0.927, 0.929, 0.9], error=0.02, by="simulation")
    assert compare(played, measured).summary.within_error == pytest.approx(3 / 6)
    silent = compare(side("predicted", [0.9] * 3), measured).summary
    assert silent.with_error == 0
    assert math.isnan(silent.within_error)
