"""d(T_ON) as it was measured: by hand, and planted."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

from tidings.histories.checking import shares_by_stay
from tidings.histories.stays import BY_STAY, measured_shares
from tidings.prediction.churn.closed_form import exact_share

_path = Path(__file__).parent / "conftest.py"
_spec = importlib.util.spec_from_file_location("histories_made", _path)
made = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(made)

SECOND = 1_000_000_000


@pytest.mark.statistical
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
    with shares_by_stay(tables(history), edges_s=(5.0, 10.0)) as found:
        schema = [(field.name, field.dataType.simpleString()) for field in found.schema]
        assert schema == [tuple(part.split()) for part in BY_STAY.split(", ")]
        shares = measured_shares(found.toPandas())
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
