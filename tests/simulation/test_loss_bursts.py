"""Losses in a row: as many in the long run as without, and in runs of the length that is said."""

from __future__ import annotations

import math

import numpy as np
import pyarrow.compute as pc
import pytest

from tidings.model.reading import loads
from tidings.simulation.recording import record
from tidings.simulation.run import simulate

pytestmark = pytest.mark.statistical
LOSSY = "{reliability: 0.8, loss_burst: 5}"


def chain(there="{}", publisher="{}", subscriber="{}"):
    between = there.replace("{", "{between: [a, b], ", 1).replace(", }", "}")
    return loads(
        f"""
        tidings: 1
        lifetime: 1s
        brokers: {{a: {{service: 1ms}}, b: {{}}}}
        links: [{between}]
        publishers: {{p: {{at: a, every: {{rate: 50/s}}, content: {{event: {{k: 1}}}},
                          link: {publisher}}}}}
        subscribers: {{s: {{at: b, wants: {{k: 1}}, link: {subscriber}}}}}
        """
    )


def lost_in_order(system):
    """Whether each event of the only publisher was lost, in the order they were published."""
    tables = record(system, events=200_000, warmup_s=1.0, seed=3).tables
    published = tables["publications"].sort_by("published_ns")["event"]
    return ~pc.is_in(published, tables["deliveries"]["event"].combine_chunks()).to_numpy()


@pytest.mark.parametrize("where", ["there", "publisher", "subscriber"])
def test_runs_of_losses_have_their_mean_and_losses_their_share(where):
    lost = lost_in_order(chain(**{where: LOSSY}))
    # Runs of losses are geometric with mean 5, those of deliveries with mean 5 · 0.8/0.2 = 20.
    for state, mean in ((True, 5.0), (False, 20.0)):
        same = lost == state
        runs = np.count_nonzero(same[:-1] & ~same[1:])
        found = np.count_nonzero(same[:-1]) / runs
        error = math.sqrt(mean * (mean - 1) / runs)
        assert 8.0 * error < 0.1 * mean
        assert abs(found - mean) < 4.0 * error
    # Neighbours at a distance of k are correlated by (1 − q)ᵏ, q = 1/4.
    error = math.sqrt(0.8 * 0.2 / lost.size * (2 - 0.25) / 0.25)
    assert abs(lost.mean() - 0.2) < 4.0 * error


def test_shares_and_their_errors_know_of_bursts():
    found = {
        burst: simulate(
            chain(there=f"{{reliability: 0.8, loss_burst: {burst}}}"),
            replications=60, events=20_000, seed=2,
        ).subscribers.iloc[0]
        for burst in (1, 5)
    }  # fmt: skip
    for row in found.values():
        assert abs(row["lost_link"] - 0.2) < 4.0 * row["on_time_se"]
    # The variance is (2 − q)/q = 7 times that of single losses, each known to 18 % (60 samples).
    ratio = (found[5]["on_time_se"] / found[1]["on_time_se"]) ** 2
    assert 7.0 / 2.2 < ratio < 7.0 * 2.2


def test_shorter_bursts_than_those_by_chance_are_by_chance():
    assert chain(there="{reliability: 0.5, loss_burst: 1.5}").links[0].there.decided_anew == 1.0
