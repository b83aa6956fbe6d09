"""Spreading over brokers: by hand, planted parameters, and the plan."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation.rapidity import fit_rapidity, read_spreading
from tidings.characterisation.spreading import (
    SPREAD_STATISTICS,
    SPREADS,
    publication_spreads,
    spread_statistics,
    subscription_spreads,
)
from tidings.errors import InvalidTracesError

S = 1_000_000_000
STEPS = "subscription string, subscriber string, broker string, action string, at_ns bigint"


def schema(frame):
    return [(field.name, field.dataType.simpleString()) for field in frame.schema]


def ddl(text):
    return [tuple(part.split()) for part in text.split(", ")]


def test_a_broker_learns_after_the_last_subscribe(frame):
    rows = [
        ("s", "ann", "hub", "subscribe", 10 * S),
        ("s", "ann", "hub", "learnt", 10 * S),
        ("s", "ann", "east", "learnt", 12 * S),
        ("s", "ann", "east", "learnt", 13 * S),  # again: the first counts
        ("s", "ann", "hub", "unsubscribe", 20 * S),
        ("s", "ann", "west", "subscribe", 30 * S),
        ("s", "ann", "east", "learnt", 31 * S),
        ("t", "bob", "east", "learnt", 5 * S),  # of nothing that anybody saw begin
    ]
    found = subscription_spreads(frame(rows, STEPS))
    assert schema(found) == ddl(SPREADS)
    seen = {(row.origin, row.broker, row.delay_s) for row in found.collect()}
    assert seen == {("hub", "hub", 0.0), ("hub", "east", 2.0), ("west", "east", 1.0)}
    statistics = spread_statistics(found)
    assert schema(statistics) == ddl(SPREAD_STATISTICS)
    rows = {row.origin: row for row in statistics.collect() if row.statistic == "origins"}
    hub = rows["hub"]
    assert (hub.spreads, hub.reached, hub.total_s, hub.most_longest_s) == (1, 2, 2.0, 2.0)
    plan = statistics._jdf.queryExecution().executedPlan().toString()
    assert "Python" not in plan
    assert "CartesianProduct" not in plan


@pytest.mark.statistical
def test_planted_times_come_back(frame):
    """Nine brokers, delays uniform up to 8 s: mean 4 s, the longest 8 · 9/10 on average."""
    random = np.random.default_rng(3)
    events, brokers = 400, 9
    delays_s = random.uniform(0.0, 8.0, (events, brokers))
    names = [f"e{n}" for n in range(events)]
    published = [(name, "b0", n * S) for n, name in enumerate(names)]
    hops = [
        (name, f"b{b}", n * S + round(delays_s[n, b] * S))
        for n, name in enumerate(names)
        for b in range(brokers)
    ]
    spreads = publication_spreads(
        frame(hops, "event string, broker string, arrived_ns bigint"),
        frame(published, "event string, broker string, published_ns bigint"),
    )
    found = read_spreading(spread_statistics(spreads).toPandas(), "publication")
    assert (found.spreads, found.brokers) == (events, brokers)
    assert found.mean_s == pytest.approx(delays_s.mean(), rel=1e-9)
    assert found.mean_se_s == pytest.approx(8 / math.sqrt(12 * events * brokers), rel=0.15)
    assert found.mean_s == pytest.approx(4.0, abs=5 * found.mean_se_s)
    assert found.typical_s == pytest.approx(7.2, abs=5 * found.typical_se_s)
    assert found.typical_se_s < 0.05
    assert found.worst_s == pytest.approx(delays_s.max(), abs=1e-9)
    reached = [(delays_s <= t + 1e-9).mean() for t in found.times_s]
    assert found.reached == pytest.approx(reached, abs=1e-12)
    # B(t) = t/8 is the power law with r = 1, within the worst time
    r = fit_rapidity(found, found, worst=True)
    assert r.value == pytest.approx(1.0, abs=5 * r.error + (8 - found.worst_s) / 4)
    assert r.error < 0.05
    typical = fit_rapidity(found, found, worst=False)
    assert typical.value == pytest.approx(7.2 / 4 - 1, abs=5 * typical.error)


def test_nothing_seen_is_an_error():
    nothing = pd.DataFrame(columns=[part.split()[0] for part in SPREAD_STATISTICS.split(", ")])
    with pytest.raises(InvalidTracesError, match="no subscription was seen to spread"):
        read_spreading(nothing, "subscription")
