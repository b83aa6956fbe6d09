"""Stations of every discipline, and service times by event type, against exact theory."""

from __future__ import annotations

import math

import pytest

from tidings.errors import InvalidInputError, UnstableError
from tidings.model.reading import loads
from tidings.simulation.run import simulate


def one_station(station, rates, head=""):
    """One broker, for each event type a Poisson publisher and a subscriber of its own."""
    publishers = "\n".join(
        f"  p{kind}: {{at: hub, every: {{rate: {rate}/s}}, content: {{event: {{k: {kind}}}}}}}"
        for kind, rate in rates.items()
    )
    subscribers = "\n".join(f"  s{kind}: {{at: hub, wants: {{k: {kind}}}}}" for kind in rates)
    return loads(
        f"tidings: 1\nlifetime: 30ms\nevent_type: k\n{head}\n"
        f"brokers: {{hub: {{{station}}}}}\npublishers:\n{publishers}\nsubscribers:\n{subscribers}\n"
    )


def run(system, **options):
    return simulate(system, **({"seed": 5, "replications": 20, "events": 100_000} | options))


def agrees(found, exact, error, sharpness):
    assert 8.0 * error < sharpness * exact, "not sharp enough to tell"
    assert abs(found - exact) < 4.0 * error


def mean_delay_agrees(row, exact, sharpness):
    agrees(row["delay_mean_s"], exact, row["delay_mean_se_s"], sharpness)


@pytest.mark.statistical
def test_priorities_wait_as_cobham_has_it():
    station = "service: {exponential: 10ms}, discipline: priority, priorities: {a: 2, b: 1}"
    rows = run(one_station(station, {"a": 30, "b": 20, "c": 25}), events=300_000).subscribers
    # W = W0 / ((1 − σ above)(1 − σ so far)); W0 = λ E[S²]/2.
    rest_s = 0.75 * 0.01
    for row, above, so_far in zip(rows.itertuples(), (0, 0.3, 0.5), (0.3, 0.5, 0.75), strict=True):
        exact = rest_s / ((1 - above) * (1 - so_far)) + 0.01
        mean_delay_agrees(row._asdict(), exact, 0.05)


@pytest.mark.statistical
def test_the_highest_priority_waits_for_the_service_met_and_its_own_kind():
    r"""Its wait is (1 − ρ) 0 + ρ Exp(μ − λ₁): it finds a server busy, and then it is M/M/1."""
    station = "service: {exponential: 10ms}, discipline: priority, priorities: {a: 1}"
    row = run(one_station(station, {"a": 40, "b": 40})).subscribers.iloc[0]
    # Sojourn: Exp(100) alone with 0.2, else Exp(60) + Exp(100); shares within 30 ms.
    alone = math.exp(-3.0)
    both = (100 * math.exp(-1.8) - 60 * math.exp(-3.0)) / 40
    agrees(1 - row["on_time"], 0.2 * alone + 0.8 * both, row["on_time_se"], 0.03)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "law",
    [
        "{exponential: 10ms}",
        "10ms",
        "{hyperexponential: [{p: 0.9, mean: 5ms}, {p: 0.1, mean: 55ms}]}",
    ],
)
def test_shared_servers_delay_by_the_mean_service_alone(law):
    found = run(one_station(f"service: {law}, discipline: processor-sharing", {"a": 60}))
    mean_delay_agrees(found.subscribers.iloc[0], 0.01 / 0.4, 0.04)
    broker = found.brokers.iloc[0]
    agrees(broker["utilisation"], 0.6, broker["utilisation_se"], 0.02)
    agrees(broker["wait_mean_s"], 0.015, broker["wait_mean_se_s"], 0.06)


@pytest.mark.statistical
def test_two_shared_servers_are_mm2_in_the_mean():
    """With exponential services the number present is that of M/M/2: T = S/(1 − ρ²)."""
    station = "service: {exponential: 20ms}, servers: 2, discipline: processor-sharing"
    mean_delay_agrees(run(one_station(station, {"a": 60})).subscribers.iloc[0], 0.02 / 0.64, 0.03)


@pytest.mark.statistical
def test_shared_servers_with_a_buffer_lose_as_mg1k_does():
    """The number present is insensitive: of M/D/1/3-PS as of M/M/1/3."""
    station = "service: 10ms, buffer: 2, discipline: processor-sharing"
    row = run(one_station(station, {"a": 80})).subscribers.iloc[0]
    exact = 0.2 * 0.8**3 / (1 - 0.8**4)
    error = math.sqrt(exact * (1 - exact) / row["events"])
    assert abs(row["lost_overflow"] - exact) < 4.0 * 2.0 * error  # losses come in clusters
    assert row["delivered"] + row["lost_overflow"] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.statistical
def test_servers_for_all_delay_by_the_service_alone_however_many_come():
    station = "service: {exponential: 20ms}, discipline: infinite-server"
    found = run(one_station(station, {"a": 500}))
    row, broker = found.subscribers.iloc[0], found.brokers.iloc[0]
    mean_delay_agrees(row, 0.02, 0.02)
    agrees(row["on_time"], 1 - math.exp(-1.5), row["on_time_se"], 0.01)
    assert (broker["utilisation"], broker["wait_mean_s"]) == (0.0, 0.0)
    assert broker["service_mean_s"] == pytest.approx(0.02, rel=0.01)


@pytest.mark.statistical
def test_demands_by_type_wait_as_pollaczek_and_khinchine_have_it():
    demands = "cpu: {demands: {a: 4ms, b: {exponential: 30ms}}}"
    rows = run(one_station(demands, {"a": 75, "b": 10})).subscribers
    wait_s = (75 * 0.004**2 + 10 * 2 * 0.03**2) / 2 / (1 - 0.3 - 0.3)
    for (_, row), service_s in zip(rows.iterrows(), (0.004, 0.03), strict=True):
        mean_delay_agrees(row, wait_s + service_s, 0.08)


def test_order_of_service_by_hand():
    """A clock for each type; the urgent one is served next, without interrupting."""
    system = loads(
        """
        tidings: 1
        event_type: k
        brokers: {hub: {cpu: {demands: {a: 1s, b: 3s}, discipline: priority, priorities: {a: 1}}}}
        publishers:
          p: {at: hub, publishes: {period: 10s, offset: 0s, clock: c}, content: {event: {k: b}}}
          q: {at: hub, publishes: {period: 10s, offset: 1s, clock: c}, content: {event: {k: b}}}
          r: {at: hub, publishes: {period: 10s, offset: 2s, clock: c}, content: {event: {k: a}}}
        subscribers:
          b: {at: hub, wants: {k: b}}
          a: {at: hub, wants: {k: a}}
        """
    )
    found = simulate(system, duration_s=1000.0, warmup_s=100.0, replications=1)
    delays = found.pairs.set_index("publisher")["delay_mean_s"]
    assert dict(delays.round(9)) == {"p": 3.0, "q": 6.0, "r": 2.0}


def test_a_type_without_a_demand_is_named_with_its_station():
    system = one_station("cpu: {demands: {a: 1ms}}", {"a": 1, "b": 1})
    with pytest.raises(InvalidInputError, match=r"brokers\.hub\.cpu\.demands: .*type 'b'"):
        simulate(system)


def test_an_overload_by_types_is_refused_and_servers_for_all_have_none():
    with pytest.raises(UnstableError, match=r"at 1\.5 times its capacity"):
        simulate(one_station("cpu: {demands: {a: 10ms, b: 100ms}}", {"a": 50, "b": 10}))
    with pytest.raises(UnstableError, match=r"at 1\.5 times its capacity"):
        simulate(one_station("service: 10ms, discipline: processor-sharing", {"a": 150}))


@pytest.mark.statistical
@pytest.mark.parametrize("discipline", ["priority", "processor-sharing", "infinite-server"])
def test_lines_crash_and_drop_what_has_expired(discipline):
    """What is wanted is delivered or lost by a cause."""
    line = f"service: {{exponential: 10ms}}, buffer: 6, discipline: {discipline}"
    failing = one_station(
        f"{line}, failure: {{mtbf: 2s, mttr: 200ms}}", {"a": 80}, "expired: in queue"
    )
    row = simulate(failing, replications=4, events=20_000).subscribers.iloc[0]
    lost = row["lost_broker_down"] + row["lost_overflow"] + row["lost_expired"]
    assert row["delivered"] + lost == pytest.approx(1.0, abs=1e-12)
    assert row["lost_broker_down"] > 0.09


@pytest.mark.statistical
def test_rare_misses_of_the_highest_priority_are_split():
    station = "service: {exponential: 4ms}, discipline: priority, priorities: {a: 1}"
    asked = {"events": 20_000, "replications": 20, "split": True, "precision": 1e-5}
    row = run(one_station(station, {"a": 100, "b": 100}), **asked).subscribers.iloc[0]
    # Sojourn: Exp(250) alone with 0.2, else Exp(150) + Exp(250), beyond 30 ms.
    both = (250 * math.exp(-4.5) - 150 * math.exp(-7.5)) / 100
    exact = 0.2 * math.exp(-7.5) + 0.8 * both
    agrees(1 - row["on_time"], exact, row["on_time_se"], 0.3)
