"""d(T_ON) as it was measured: by hand, and planted."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

from tidings.histories.checking import notification_pairs
from tidings.histories.stays import (
    BY_MOMENT,
    BY_STAY,
    Margins,
    area_s,
    by_moment,
    by_stay,
    measured_curves,
    measured_shares,
    stay_edges_s,
)
from tidings.theory.peers.notification_loss import exact_share

_path = Path(__file__).parent / "conftest.py"
_spec = importlib.util.spec_from_file_location("histories_made", _path)
made = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(made)

SECOND = 1_000_000_000


def check_curves(curves, margins):
    """f(τ) = P[D_sub ≤ τ] and g(τ) = P[D_diff < T_diff − τ], both delays exponential of 1.5 s.

    Only lives of 30 s are long enough for either.
    """
    assert set(curves["curve"]) == {"f", "g"}
    for _, row in curves.iterrows():
        ends = np.array([row["from_s"], row["to_s"]])
        if row["curve"] == "g":
            ends = margins.diffusion_s - ends[::-1]
        mean = 1.0 - 1.5 * (math.exp(-ends[0] / 1.5) - math.exp(-ends[1] / 1.5)) / np.ptp(ends)
        error = math.sqrt(mean * (1 - mean) / row["events"])
        assert row["notified"] == pytest.approx(mean, abs=3.5 * error + 1e-9)
    area, error = area_s(curves)
    assert area == pytest.approx(2 * (12.0 - 1.5), abs=3.5 * error)
    assert error < 0.6
    assert math.isnan(area_s(curves.iloc[1:])[0])  # a bin that nothing was published in


@pytest.mark.statistical
@pytest.mark.spark
def test_planted_delays_give_their_share_by_length_of_stay(tables):
    """Lone subscribers on a tree, X drawn for each: d = E[(T − X)⁺]/T in every bin of stays."""
    random = np.random.default_rng(4)
    stays_s, lives, events = (4.0, 8.0, 30.0), 100, 8
    publications, subscriptions, deliveries, delays_s = [], [], [], []
    for stay in stays_s:
        for life in range(lives):
            who, spread, travel = f"{stay}/{life}", *random.exponential(1.5, 2)
            delays_s.append(spread + travel)
            start = 10 * SECOND
            subscriptions.append(made.step(who, start, "subscribe", {"h": who}))
            subscriptions.append(made.step(who, start + round(stay * SECOND), "unsubscribe"))
            for number, at in enumerate(random.uniform(0.0, stay, events)):
                name = f"{who}/{number}"
                publications.append(made.event(name, start + round(at * SECOND), h=who))
                if at >= spread and at + travel < stay:
                    arrives = start + round((at + travel) * SECOND)
                    deliveries.append(made.notice(name, who, arrives))
    history = (publications, subscriptions, deliveries)
    margins = Margins(subscription_s=12.0, diffusion_s=12.0, bins=6)
    with notification_pairs(tables(history)) as pairs:
        for found, schema in (
            (by_stay(pairs, (5.0, 10.0)), BY_STAY),
            (by_moment(pairs, margins), BY_MOMENT),
        ):
            fields = [(field.name, field.dataType.simpleString()) for field in found.schema]
            assert fields == [tuple(part.split()) for part in schema.split(", ")]
        shares = measured_shares(by_stay(pairs, (5.0, 10.0)).toPandas())
        moments = by_moment(pairs, margins).toPandas()
        assert stay_edges_s(pairs, 3) == [4.0, 8.0]
    check_curves(measured_curves(moments, margins), margins)
    assert list(shares["lives"]) == [lives] * 3
    assert list(shares["events"]) == [lives * events] * 3
    assert shares["stay_mean_s"].to_numpy() == pytest.approx(stays_s, abs=1e-6)
    for index, stay in enumerate(stays_s):
        mine = np.array(delays_s[index * lives : (index + 1) * lives])
        row = shares.iloc[index]
        # Given these delays only the moments of publication are drawn: less than the error told.
        expected = float(exact_share(stay, mine))
        assert row["notified_se"] < 0.05
        assert row["notified"] == pytest.approx(expected, abs=3.5 * row["notified_se"])
        law = 1.0 - 3.0 / stay * (1 - math.exp(-stay / 1.5)) + math.exp(-stay / 1.5)
        assert row["notified"] == pytest.approx(law, abs=4 * row["notified_se"])


@pytest.mark.spark
def test_who_is_told_at_the_very_end_of_a_stay_is_not_told(tables):
    """A stay from 10 to 20: told within it counts, at its first and at its last moment does not."""
    told_at = {"first": 10, "within": 19, "last": 20, "later": 21}
    history = (
        [made.event(name, 10, h="a") for name in told_at],
        [made.step("p", 10, "subscribe", {"h": "a"}), made.step("p", 20, "unsubscribe")],
        [made.notice(name, "p", at) for name, at in told_at.items()],
    )
    with notification_pairs(tables(history)) as pairs:
        assert sorted(row.told for row in pairs.collect()) == [False, False, False, True]
