from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tidings.errors import UnsupportedError
from tidings.model.loads import waiting_probability
from tidings.model.workload import Centre
from tidings.operational.responses import Demands, responses_s


def demands(*kinds):
    rates, means, scvs = (np.array(each, dtype=float) for each in zip(*kinds, strict=True))
    return Demands(rates_per_s=rates, means_s=means, scvs=scvs)


def queue(discipline="fcfs", servers=1):
    return Centre(name="q", discipline=discipline, servers=servers)


def test_two_types_under_first_come_first_served_and_sharing():
    both = demands((30.0, 0.01, 1.0), (5.0, 0.04, 1.0))  # loads 0.3 and 0.2
    wait_s = (30 * 0.01**2 + 5 * 0.04**2) / 0.5
    assert responses_s(queue(), both) == pytest.approx([0.01 + wait_s, 0.04 + wait_s], rel=1e-12)
    shared = responses_s(queue("processor-sharing"), both)
    assert shared == pytest.approx([0.02, 0.08], rel=1e-12)  # S/(1 − U)
    # Short events are told far too short by the sharing formula where the queue is in order.
    assert responses_s(queue(), both)[0] == pytest.approx(1.6 * shared[0], rel=1e-12)


def test_service_that_varies_less_waits_less():
    (fixed,) = responses_s(queue(), demands((0.8, 1.0, 0.0)))
    assert fixed == pytest.approx(1.0 + 0.8 / (2 * 0.2), rel=1e-12)  # M/D/1


@pytest.mark.parametrize("servers", [1, 2, 5, 40])
@pytest.mark.parametrize("load", [0.05, 0.6, 0.97])
def test_several_servers_are_the_birth_and_death_chain(servers, load):
    """M/M/m, from the chain's own balance equations."""
    offered = load * servers
    weights, total = [1.0], 1.0
    for n in range(1, 6000):
        weights.append(weights[-1] * offered / min(n, servers))
        total += weights[-1]
    busy = sum(weights[servers:]) / total
    number = sum(n * weight for n, weight in enumerate(weights)) / total
    assert waiting_probability(servers, offered) == pytest.approx(busy, rel=1e-10)
    for discipline in ("fcfs", "processor-sharing"):
        (found,) = responses_s(queue(discipline, servers), demands((offered, 1.0, 1.0)))
        assert found == pytest.approx(number / offered, rel=1e-10)  # Little


def test_infinite_servers_only_serve_and_overload_never_ends():
    both = demands((30.0, 0.5, 1.0), (1.0, 0.1, 3.0))
    assert responses_s(queue("infinite-server"), both).tolist() == [0.5, 0.1]
    for discipline in ("fcfs", "processor-sharing"):
        assert responses_s(queue(discipline), both).tolist() == [math.inf, math.inf]
    with pytest.raises(UnsupportedError, match="'q' serves by priority with 2 servers"):
        responses_s(queue("priority", 2), demands((0.1, 1.0, 1.0)))


def test_priorities_are_cobhams_waits():
    kinds = replace(
        demands((0.5, 0.5, 1.0), (0.2, 1.0, 0.0), (0.3, 1.0, 2.0)), priorities=np.array([2, 0, 0])
    )
    left_s = 0.5 * 0.5**2 + 0.5 * (0.2 * 1.0 + 0.3 * 3.0)
    last_s = left_s / (0.75 * 0.25)
    found = responses_s(queue("priority"), kinds)
    assert found == pytest.approx([0.5 + left_s / 0.75, 1 + last_s, 1 + last_s], rel=1e-12)


def test_the_work_that_waits_is_the_same_under_priorities():
    """Σ ρ W does not depend on the order of service (Kleinrock); alike, all wait as in a line."""
    kinds = demands((0.5, 0.5, 1.0), (0.2, 1.0, 0.0), (0.3, 1.0, 2.0))
    line = responses_s(queue(), kinds)
    assert responses_s(queue("priority"), kinds) == pytest.approx(line, rel=1e-12)
    ranked = responses_s(queue("priority"), replace(kinds, priorities=np.array([0, 1, 2])))
    loads = kinds.rates_per_s * kinds.means_s
    waits = (loads @ (each - kinds.means_s) for each in (line, ranked))
    assert next(waits) == pytest.approx(next(waits), rel=1e-12)
