"""Simulation against exact theory, in standard errors, and sharp enough to notice a wrong formula.

``agrees`` wants the simulated value within 4.5 standard errors of the exact one, and the standard
error so small that a value off by ``sharpness`` (relative) would be seen as wrong.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tidings.model.reading import loads
from tidings.model.routes import route
from tidings.simulation.run import simulate

pytestmark = pytest.mark.statistical


def agrees(found, exact, standard_error, sharpness):
    assert 9.0 * standard_error < sharpness * exact, "not sharp enough to tell"
    assert abs(found - exact) < 4.5 * standard_error


def one_queue(
    broker="service: {exponential: 10ms}", every="{rate: 70/s}", lifetime="30ms", head=""
):
    return loads(
        f"""
        tidings: 1
        lifetime: {lifetime}
        {head}
        brokers: {{hub: {{{broker}}}}}
        publishers: {{p: {{at: hub, every: {every}, content: {{event: {{k: 1}}}}}}}}
        subscribers: {{s: {{at: hub, wants: {{k: 1}}}}}}
        """
    )


def only_subscriber(outcome):
    return outcome.subscribers.iloc[0]


def run(system, **options):
    given = {"seed": 11, "replications": 30, "events": 100_000} | options
    return simulate(system, **given)


def test_mm1_sojourn_mean_and_share_within_the_lifetime():
    found = run(one_queue())
    row = only_subscriber(found)
    agrees(row["delay_mean_s"], 1 / 30, row["delay_mean_se_s"], 0.06)
    agrees(row["on_time"], 1 - math.exp(-30 * 0.03), row["on_time_se"], 0.03)
    broker = found.brokers.iloc[0]
    agrees(broker["utilisation"], 0.7, broker["utilisation_se"], 0.02)
    agrees(broker["wait_mean_s"], 0.7 / 30, broker["wait_mean_se_s"], 0.08)
    # Quantiles of an exponential law; the grid's bins are 4.7 % wide, read off by interpolation.
    for name, share in (("delay_p50_s", 0.5), ("delay_p95_s", 0.95), ("delay_p99_s", 0.99)):
        assert row[name] == pytest.approx(-math.log(1 - share) / 30, rel=0.05)


def test_mm1_with_a_random_lifetime():
    # Sojourn and lifetime exponential: P[T ≤ D] = (μ − λ)/(μ − λ + δ).
    row = only_subscriber(run(one_queue(lifetime="{exponential: 20ms}")))
    agrees(row["on_time"], 30 / (30 + 50), row["on_time_se"], 0.05)


@pytest.mark.parametrize(
    ("service", "scv"),
    [
        ("10ms", 0.0),
        ("{uniform: [0ms, 20ms]}", 1 / 3),
        ("{hyperexponential: [{p: 0.9, mean: 5ms}, {p: 0.1, mean: 55ms}]}", 5.5),
    ],
)
def test_mg1_mean_wait_is_that_of_pollaczek_and_khinchine(service, scv):
    if scv > 1:  # E[S²]/E[S]² − 1 with E[S²] = 2 Σ p m²
        scv = 2 * (0.9 * 0.005**2 + 0.1 * 0.055**2) / 0.01**2 - 1
    found = run(one_queue(broker=f"service: {service}", every="{rate: 60/s}"))
    broker = found.brokers.iloc[0]
    exact = 0.6 * 0.01 * (1 + scv) / (2 * (1 - 0.6))
    agrees(broker["wait_mean_s"], exact, broker["wait_mean_se_s"], 0.12)


def test_mmc_mean_wait_is_that_of_erlang():
    servers, load = 3, 0.8
    offered = servers * load
    below = sum(offered**k / math.factorial(k) for k in range(servers))
    full = offered**servers / math.factorial(servers) / (1 - load)
    waits = full / (below + full)
    exact = waits * 0.03 / (servers * (1 - load))
    found = run(one_queue(broker="service: {exponential: 30ms}, servers: 3", every="{rate: 80/s}"))
    broker = found.brokers.iloc[0]
    agrees(broker["wait_mean_s"], exact, broker["wait_mean_se_s"], 0.15)
    agrees(broker["utilisation"], load, broker["utilisation_se"], 0.02)


def test_mm1k_loses_what_finds_the_buffer_full():
    load, places = 0.9, 5  # one in service, four that wait
    exact = (1 - load) * load**places / (1 - load ** (places + 1))
    found = run(one_queue(broker="service: {exponential: 10ms}, buffer: 4", every="{rate: 90/s}"))
    row = only_subscriber(found)
    lost = row["lost_overflow"]
    per_run = math.sqrt(exact * (1 - exact) / row["events"])  # a bound: losses come in clusters
    assert row["delivered"] + lost == pytest.approx(1.0, abs=1e-12)
    assert lost == pytest.approx(exact, abs=4.5 * 3 * per_run)
    assert 9 * 3 * per_run < 0.05 * exact


def test_an_overloaded_broker_with_a_buffer_is_stable_and_loses_the_excess():
    load, places = 1.5, 3
    exact = (1 - load) * load**places / (1 - load ** (places + 1))
    found = run(one_queue(broker="service: {exponential: 10ms}, buffer: 2", every="{rate: 150/s}"))
    row = only_subscriber(found)
    assert row["lost_overflow"] == pytest.approx(exact, rel=0.005)


def test_mm1_that_drops_expired_events_at_the_head_of_its_queue():
    """Fixed patience D until service: by level crossing the virtual wait V has the density
    λ p₀ e^{(λ−μ)x} up to D and falls off as e^{−μx} beyond; who meets V > D is dropped unserved.
    """
    rate, service, patience = 120.0, 100.0, 0.03
    inside = rate * math.expm1((rate - service) * patience) / (rate - service)
    beyond = rate * math.exp((rate - service) * patience) / service
    lost = beyond / (1 + inside + beyond)
    found = run(
        one_queue(every="{rate: 120/s}", lifetime="30ms", head="expired: in queue"),
    )
    row = only_subscriber(found)
    assert row["lost_expired"] == pytest.approx(lost, rel=0.01)


def chain(
    brokers,
    service="{service: {exponential: 10ms}}",
    link="",
    lifetime="60ms",
    every="{rate: 50/s}",
):
    names = [f"b{i}" for i in range(brokers)]
    links = [f"{{between: [{a}, {b}]{link}}}" for a, b in itertools.pairwise(names)]
    return loads(
        f"""
        tidings: 1
        lifetime: {lifetime}
        brokers: {{{", ".join(f"{name}: {service}" for name in names)}}}
        links: [{", ".join(links)}]
        publishers: {{p: {{at: b0, every: {every}, content: {{event: {{k: 1}}}}}}}}
        subscribers: {{s: {{at: {names[-1]}, wants: {{k: 1}}}}}}
        """
    )


def test_a_tandem_of_two_equal_mm1_has_an_erlang_sojourn():
    row = only_subscriber(run(chain(2)))
    x = 50 * 0.06
    agrees(row["delay_mean_s"], 2 / 50, row["delay_mean_se_s"], 0.04)
    agrees(row["on_time"], 1 - math.exp(-x) * (1 + x), row["on_time_se"], 0.02)


def test_a_tandem_with_different_rates_and_a_delaying_link_is_hypoexponential():
    system = loads(
        """
        tidings: 1
        lifetime: 80ms
        brokers: {a: {service: {exponential: 10ms}}, b: {service: {exponential: 8ms}}}
        links: [{between: [a, b], delay: 10ms}]
        publishers: {p: {at: a, every: {rate: 50/s}, content: {event: {k: 1}}}}
        subscribers: {s: {at: b, wants: {k: 1}}}
        """
    )
    first, second = 50.0, 75.0
    t = 0.07
    exact = 1 - (second * math.exp(-first * t) - first * math.exp(-second * t)) / (second - first)
    row = only_subscriber(run(system))
    agrees(row["on_time"], exact, row["on_time_se"], 0.02)
    agrees(row["delay_mean_s"], 1 / first + 1 / second + 0.01, row["delay_mean_se_s"], 0.04)


def test_a_path_that_only_loses_is_binomial():
    found = run(chain(4, service="{}", link=", reliability: 0.9"))
    row = only_subscriber(found)
    spread = math.sqrt(0.9**3 * (1 - 0.9**3) / row["events"])
    agrees(row["delivered"], 0.9**3, spread, 0.01)
    assert row["on_time"] == row["delivered"]
    assert row["lost_link"] + row["delivered"] == pytest.approx(1.0, abs=1e-12)
    # The standard error over replications is itself right: within what 29 degrees of freedom allow.
    assert 0.6 < row["on_time_se"] / spread < 1.5
    for link, rate in zip((0, 2, 4), (50, 45, 40.5), strict=True):
        sent = found.links.iloc[link]
        assert sent["events_per_s"] == pytest.approx(rate, rel=0.01)
        assert sent["lost"] == pytest.approx(0.1, rel=0.02)


def test_equal_delay_and_lifetime_is_on_time():
    system = chain(
        4, service="{service: 7ms}", link=", delay: 10ms", lifetime="58ms", every="100ms"
    )
    row = only_subscriber(simulate(system, replications=5, events=20_000, seed=3, warmup_s=10.0))
    assert row["on_time"] == 1.0
    assert row["delay_mean_s"] == pytest.approx(0.058, abs=1e-9)


def test_periodic_publishers_start_at_random_phases():
    system = one_queue(every="100ms", broker="")
    assert only_subscriber(run(system, replications=3, events=50))["events"] >= 147
    # Two publishers of one period and a service that they share: the wait depends on the phase
    # alone, max(0, s − phase difference), uniform over replications.
    two = loads(
        """
        tidings: 1
        brokers: {hub: {service: 40ms}}
        publishers:
          p: {at: hub, every: 100ms, content: {event: {k: 1}}}
          q: {at: hub, every: 100ms, content: {event: {k: 2}}}
        subscribers: {s: {at: hub, wants: {}}}
        """
    )
    found = simulate(two, replications=1200, events=20, seed=2, warmup_s=1.0).brokers.iloc[0]
    exact = 2 * (0.04**2 / 2 / 0.1) / 2
    agrees(found["wait_mean_s"], exact, found["wait_mean_se_s"], 0.25)


def test_rates_over_every_arc_are_those_of_filters_and_reliabilities():
    system = loads(
        """
        tidings: 1
        brokers: {hub: {service: {exponential: 1ms}}, east: {}, west: {service: 2ms}, far: {}}
        links:
          - {between: [hub, east], reliability: 0.9, delay: 3ms}
          - {between: [hub, west], reliability: 0.8, back: {reliability: 0.7}}
          - {between: [west, far], delay: {exponential: 50ms}}
        publishers:
          p:
            at: east
            every: {rate: 40/s}
            content: {independent: {topic: {a: 0.5, b: 0.3, c: 0.2}}}
          q:
            at: far
            every: {rate: 60/s}
            link: {reliability: 0.95}
            content: {independent: {topic: {a: 0.1, b: 0.2, d: 0.7}}}
        subscribers:
          one: {at: far, wants: {topic: a}}
          two: {at: west, wants: {topic: {one_of: [a, b]}}}
          three: {at: east, wants: {topic: {not: c}}}
          four: {at: hub, wants: {topic: d}}
        """
    )
    found = run(system, replications=20)
    rates = {(r["source"], r["target"]): r for _, r in found.links.iterrows()}
    q = 60 * 0.95
    expected = {
        ("east", "hub"): 40 * 0.8,
        ("hub", "west"): 40 * 0.8 * 0.9,
        ("west", "far"): 40 * 0.5 * 0.9 * 0.8,
        ("far", "west"): q * 1.0,
        ("west", "hub"): q * 1.0,
        ("hub", "east"): q * 1.0 * 0.7,
    }
    seconds = found.provenance["replications"] * found.provenance["duration_s"]
    for arc, rate in expected.items():
        assert rates[arc]["events_per_s"] == pytest.approx(
            rate, abs=4.5 * math.sqrt(rate / seconds)
        )
        assert 9 * math.sqrt(rate / seconds) < 0.05 * rate
    brokers = found.brokers.set_index("broker")
    assert brokers.loc["far", "arrivals_per_s"] == pytest.approx(q + 14.4, rel=0.01)
    assert brokers.loc["east", "arrivals_per_s"] == pytest.approx(40 + q * 0.7 * 0.9, rel=0.01)
    subscribers = found.subscribers.set_index("subscriber")
    assert subscribers.loc["two", "wanted_per_s"] == pytest.approx(32 + 18, rel=0.01)
    shares = subscribers.loc["three", "delivered"], (32 + q * 0.7 * 0.9) / (32 + 60)
    assert shares[0] == pytest.approx(shares[1], abs=0.003)
    rate_table = route(system).rates(np.array([40.0, 60.0]))
    assert rate_table.sum() == pytest.approx(100.0)


def test_client_links_lose_and_delay():
    system = loads(
        """
        tidings: 1
        lifetime: 50ms
        brokers: {hub: {}}
        publishers:
          p:
            at: hub
            every: {rate: 100/s}
            link: {reliability: 0.9, delay: {exponential: 10ms}}
            content: {event: {k: 1}}
        subscribers:
          s: {at: hub, wants: {}, count: 7, link: {reliability: 0.8, delay: {exponential: 20ms}}}
          own: {at: hub, wants: {}, lifetime: 15ms}
        """
    )
    found = run(system).subscribers.set_index("subscriber")
    within = 1 - (100 * math.exp(-50 * 0.05) - 50 * math.exp(-100 * 0.05)) / 50
    agrees(found.loc["s", "on_time"], 0.9 * 0.8 * within, found.loc["s", "on_time_se"], 0.01)
    own = 0.9 * (1 - math.exp(-1.5))
    agrees(found.loc["own", "on_time"], own, found.loc["own", "on_time_se"], 0.01)
    assert found.loc["s", "lost_link"] == pytest.approx(1 - 0.72, abs=0.003)
    assert found.loc["s", "count"] == 7
