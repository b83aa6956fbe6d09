"""Theory against simulation on small systems that fail all the time, in standard errors."""

from __future__ import annotations

import pytest

import failing_systems as systems
from tidings.model.reading import loads
from tidings.prediction.theory import answer_by_theory
from tidings.simulation.run import simulate

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
    "bypass, a group": system("bypass", group=GROUP),
    "bypass-buffering, lossy links": system(
        "bypass-buffering", link=", reliability: 0.7", lifetime="10s"
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_shares_and_causes_are_what_is_simulated(case):
    seen = simulate(CASES[case], seed=3, replications=20, duration_s=30_000.0).subscribers.iloc[0]
    ours = answer_by_theory(CASES[case]).outcome.subscribers.iloc[0]
    error = max(seen["on_time_se"], 1e-9)
    assert abs(ours["on_time"] - seen["on_time"]) < 4.5 * error
    spread = max(error, 0.003)  # of a cause that does not count as on time
    for cause in CAUSES:
        assert abs(ours.get(f"lost_{cause}", 0.0) - seen[f"lost_{cause}"]) < 5.0 * spread, cause


def test_quantiles_are_of_what_is_delivered():
    """Events that expire in buffers have no delay; many that wait come in time."""
    slow = "wants: {}, link: {delay: {exponential: 8s}}"
    case = system("bypass-buffering", lifetime="30s", subscriber=slow)
    seen = simulate(case, seed=5, replications=20, duration_s=60_000.0).subscribers.iloc[0]
    ours = answer_by_theory(case).outcome.subscribers.iloc[0]
    for name in ("delay_mean_s", "delay_p50_s", "delay_p95_s", "delay_p99_s"):
        assert ours[name] == pytest.approx(seen[name], rel=0.04), name
