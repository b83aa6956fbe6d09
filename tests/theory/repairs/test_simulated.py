"""Theory against simulation on small systems that fail all the time, in standard errors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from systems import small_failing as systems
from tidings.model.reading import loads
from tidings.simulation.run import simulate
from tidings.theory.answer import answer_by_theory

pytestmark = pytest.mark.statistical
CAUSES = ("broker_down", "path_down", "not_restored", "expired_in_buffer", "link")
UNEVEN = (
    "failure: {up: {weibull: {mean: 85s, shape: 0.6}}, "
    "down: {hyperexponential: [{p: 0.8, mean: 6s}, {p: 0.2, mean: 40s}]}}"
)
GROUP = "failure_groups: {g: {members: [a, a--b, d], failure: {availability: 0.9, period: 100s}}}"


def system(scheme, *, group="", link="", brokers=None, lifetime="20s", subscriber="wants: {}"):
    text = systems.text_of(
        brokers or systems.SQUARE,
        {pair: f"{systems.failing(s)}{link}" for pair, s in systems.SQUARE_LINKS.items()},
        f"scheme: {scheme}",
        routing="{tree: [[a,b],[b,d],[a,c]]}",
        lifetime=lifetime,
    )
    return loads(text.replace("wants: {}", subscriber) + group)


CASES = {
    "none": system("none"),
    "periodic, a group, slow links": system(
        "periodic", group=GROUP, link=", delay: {exponential: 3s}"
    ),
    "buffering, a group, random lifetimes": system(
        "buffering", group=GROUP, lifetime="{exponential: 30s}"
    ),
    "buffering, other times up and down": system(
        "buffering", brokers={"a": 0.9, "b": UNEVEN, "c": 1, "d": UNEVEN}
    ),
    "bypass-buffering, other times up and down": system(
        "bypass-buffering", brokers={"a": 0.9, "b": UNEVEN, "c": 1, "d": 0.95}
    ),
    "bypass, a group": system("bypass", group=GROUP),
    "bypass-buffering, lossy links": system(
        "bypass-buffering", link=", reliability: 0.7", lifetime="10s"
    ),
}


def off(case, columns):
    """How far theory is from independent simulations, in standard errors of their mean."""
    runs = [
        simulate(case, seed=seed, replications=2, duration_s=30_000.0).subscribers.iloc[0]
        for seed in range(12)
    ]
    ours = answer_by_theory(case).outcome.subscribers.iloc[0]
    apart = {}
    for column in columns:
        seen = np.array([run[column] for run in runs])
        error = seen.std(ddof=1) / math.sqrt(seen.size)
        apart[column] = (ours.get(column, 0.0) - seen.mean()) / max(error, 1e-9)
    return apart


@pytest.mark.parametrize("case", CASES)
def test_shares_and_causes_are_what_is_simulated(case):
    apart = off(CASES[case], ["on_time", *(f"lost_{cause}" for cause in CAUSES)])
    assert max(map(abs, apart.values())) < 4.5, apart


def test_delays_are_of_what_is_delivered():
    """Events that expire in buffers have no delay; many that wait come in time."""
    slow = "wants: {}, link: {delay: {exponential: 8s}}"
    case = system("bypass-buffering", lifetime="30s", subscriber=slow)
    apart = off(case, ["late", "delay_mean_s", "delay_p50_s", "delay_p95_s"])
    assert max(map(abs, apart.values())) < 4.5, apart
