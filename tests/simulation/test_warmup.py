from __future__ import annotations

import numpy as np

from tidings.model.reading import loads
from tidings.simulation.run import simulate


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
