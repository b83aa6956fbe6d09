from __future__ import annotations

import numpy as np
import pytest

from tidings.model.reading import loads
from tidings.simulation.run import simulate
from tidings.simulation.warmup import BATCH, mser


def _slow_rule(series):
    """The rule as it is written: a standard error for every cut, the least wins."""
    batches = np.array(series)[: len(series) // BATCH * BATCH].reshape(-1, BATCH).mean(axis=1)
    count = len(batches)
    scores = [
        np.sum((batches[d:] - batches[d:].mean()) ** 2) / (count - d) ** 2
        for d in range(count - max(2, count // 10))
    ]
    return int(np.argmin(scores)) * BATCH


@pytest.mark.parametrize("seed", range(8))
def test_mser_is_the_least_standard_error_of_what_is_left(seed):
    rng = np.random.default_rng(seed)
    series = rng.normal(size=400) + 8.0 * np.exp(-np.arange(400) / rng.uniform(2, 60))
    assert mser(series) == _slow_rule(series)


def test_mser_cuts_a_ramp_and_spares_noise():
    rng = np.random.default_rng(3)
    noise = rng.normal(size=1000)
    ramp = np.where(np.arange(1000) < 200, np.arange(1000) / 10.0 - 20.0, 0.0)
    assert 150 <= mser(noise + ramp) <= 300
    assert mser(np.zeros(1000)) == 0
    assert mser([1.0, 2.0]) == 0


def test_without_queues_there_is_no_warmup():
    system = loads(
        """
        tidings: 1
        brokers: {hub: {}}
        publishers: {p: {at: hub, every: 1s, content: {event: {k: 1}}}}
        subscribers: {s: {at: hub, wants: {k: 1}}}
        """
    )
    assert simulate(system, events=100, replications=2).provenance["warmup_s"] == 0.0


def test_a_system_slow_to_settle_gets_a_longer_warmup():
    def busy(load):
        return loads(
            f"""
            tidings: 1
            brokers: {{hub: {{service: {{exponential: 1s}}}}}}
            publishers: {{p: {{at: hub, every: {{rate: {load}/s}}, content: {{event: {{k: 1}}}}}}}}
            subscribers: {{s: {{at: hub, wants: {{k: 1}}}}}}
            """
        )

    def warmup_s(load):
        found = [simulate(busy(load), seed=s, replications=1, events=10) for s in range(6)]
        return float(np.median([each.provenance["warmup_s"] for each in found]))

    # Relaxation takes about (1 − √ρ)⁻² service times: 12 at half load, 1560 at 0.95.
    assert warmup_s(0.5) < 200.0
    assert 500.0 < warmup_s(0.95) < 20_000.0
