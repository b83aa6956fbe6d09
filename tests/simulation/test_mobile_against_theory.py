"""Peers that come and go against exact theory, in standard errors, sharp enough to notice."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model import delay_grid
from tidings.model.laws import Deterministic, Exponential, Uniform
from tidings.model.reading import loads
from tidings.simulation.run import replicate, simulate

RATE, SERVICE_S, ON_S, OFF_S = 4.0, 0.1, 2.0, 1.0


def one_peer(connectivity, *, head="", publisher=False):
    """Poisson events through the queue of one peer and nothing else."""
    of_publisher = f", connectivity: {{{connectivity}}}" if publisher else ""
    of_subscriber = "" if publisher else f", connectivity: {{{connectivity}}}"
    return loads(
        f"""
        tidings: 1
        {head}
        brokers: {{hub: {{}}}}
        publishers:
          p: {{at: hub, every: {{rate: {RATE}/s}}, content: {{event: {{k: 1}}}}{of_publisher}}}
        subscribers: {{s: {{at: hub, wants: {{}}{of_subscriber}}}}}
        """
    )


def periods(service="{exponential: 100ms}", off="{exponential: 1s}", more=""):
    return f"on: {{exponential: {ON_S}}}, off: {off}, service: {service}{more}"


def agrees(found, exact, standard_error, sharpness):
    assert 9.0 * standard_error < sharpness * exact, "not sharp enough to tell"
    assert abs(found - exact) < 4.5 * standard_error


def mean_response_s(service, off):
    """Poisson arrivals, exponential ON: M/G/1 of completion times, and what is left of OFF."""
    slow = 1.0 + off.mean_s / ON_S
    complete_s = service.mean_s * slow
    off_s2 = off.mean_s**2 * (1.0 + off.scv)
    complete_s2 = slow**2 * service.mean_s**2 * (1.0 + service.scv)
    complete_s2 += service.mean_s * off_s2 / ON_S
    wait_s = RATE * complete_s2 / (2.0 * (1.0 - RATE * complete_s))
    away_s = off.mean_s / (ON_S + off.mean_s) * off_s2 / (2.0 * off.mean_s)
    return complete_s + wait_s + away_s


def sojourn_above(t):
    """P[T > t] of the ON/OFF centre with exponential times: a mixture of two exponentials."""
    served, g = 1.0 / SERVICE_S, 1.0 / ON_S + 1.0 / OFF_S
    c = served / OFF_S - RATE * g
    k, b = c / g, served + g - RATE
    root = math.sqrt(b * b - 4.0 * c)
    one, other = (b - root) / 2.0, (b + root) / 2.0
    share = k * (g - one) / (one * (other - one))
    return share * np.exp(-one * t) + (1.0 - share) * np.exp(-other * t)


@pytest.mark.statistical
def test_the_whole_law_of_the_sojourn_at_twenty_points():
    """Sojourns hang together, so the standard errors are those of independent replications."""
    system = one_peer(periods())
    curves, delays = [], []
    for number in range(48):
        counts = replicate(system, seed=7, replication=number, warmup_s=100.0, duration_s=25_000.0)
        curves.append(np.cumsum(counts.curves[0]) / counts.wanted.sum())
        delays.append(counts.delay_sum_s.sum() / counts.wanted.sum())
    exact = 1.0 - sojourn_above(delay_grid.EDGES_S)
    places = np.unique(np.searchsorted(exact, np.linspace(0.05, 0.99, 20)))
    assert places.size == 20
    shares = np.array(curves)[:, places]
    error = shares.std(axis=0, ddof=1) / math.sqrt(len(shares))
    assert error.max() < 0.002
    assert np.abs((shares.mean(axis=0) - exact[places]) / error).max() < 4.5
    # The published theorem: R = (a + D s)/(1 − λ D s).
    s, a = (ON_S + OFF_S) / ON_S, OFF_S**2 / (ON_S + OFF_S)
    published_s = (a + SERVICE_S * s) / (1.0 - RATE * SERVICE_S * s)
    assert published_s == pytest.approx(
        mean_response_s(Exponential(mean_s=SERVICE_S), Exponential(mean_s=OFF_S)), rel=1e-12
    )
    agrees(np.mean(delays), published_s, np.std(delays, ddof=1) / math.sqrt(48), 0.08)


@pytest.mark.statistical
@pytest.mark.parametrize("publisher", [False, True])
@pytest.mark.parametrize(
    ("service", "off"),
    [
        (Deterministic(value_s=0.1), Uniform(low_s=0.0, high_s=2.0)),
        (Uniform(low_s=0.0, high_s=0.2), Deterministic(value_s=1.0)),
    ],
)
def test_mean_response_of_any_service_and_absence(service, off, publisher):
    texts = {"0.1": "100ms", "1.0": "1s"}
    words = [
        f"{{uniform: [{law.low_s}, {law.high_s}]}}"
        if isinstance(law, Uniform)
        else texts[str(law.value_s)]
        for law in (service, off)
    ]
    system = one_peer(periods(*words), publisher=publisher)
    found = simulate(system, seed=5, replications=30, duration_s=15_000.0, warmup_s=100.0)
    row = found.subscribers.iloc[0]
    agrees(row["delay_mean_s"], mean_response_s(service, off), row["delay_mean_se_s"], 0.1)


def chain(buffer, expiring_per_s):
    """Shares delivered, dropped, expired: a chain on (waiting, begun or not, ON or OFF)."""
    states = [
        (waiting, begun, on)
        for waiting, begun, on in itertools.product(range(buffer + 1), (0, 1), (0, 1))
        if not (on and not begun and waiting)
    ]
    place = {state: index for index, state in enumerate(states)}
    rates = np.zeros((len(states), len(states)))
    for (waiting, begun, on), index in place.items():
        moves = []
        if on and not begun:
            moves.append((RATE, (0, 1, 1)))
        elif waiting < buffer:
            moves.append((RATE, (waiting + 1, begun, on)))
        if waiting:
            moves.append((expiring_per_s * waiting, (waiting - 1, begun, on)))
        if on and begun:
            after = (waiting - 1, 1, 1) if waiting else (0, 0, 1)
            moves.append((1.0 / SERVICE_S, after))
        if on:
            moves.append((1.0 / ON_S, (waiting, begun, 0)))
        else:
            starts = not begun and waiting
            moves.append((1.0 / OFF_S, (waiting - 1, 1, 1) if starts else (waiting, begun, 1)))
        for rate, to in moves:
            rates[index, place[to]] += rate
            rates[index, index] -= rate
    shares = np.linalg.lstsq(
        np.vstack([rates.T, np.ones(len(states))]), np.append(np.zeros(len(states)), 1.0)
    )[0]
    full = sum(shares[i] for s, i in place.items() if s[0] == buffer and not (s[2] and not s[1]))
    busy = sum(shares[i] for s, i in place.items() if s[1] and s[2])
    waiting = sum(shares[i] * s[0] for s, i in place.items())
    found = busy / SERVICE_S / RATE, full, expiring_per_s * waiting / RATE
    assert sum(found) == pytest.approx(1.0, abs=1e-9)
    return found


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("buffer", "lifetime_s", "publisher"),
    [(0, None, True), (5, None, False), (5, None, True), (5, 0.8, False), (40, 0.8, False)],
)
def test_bounded_buffers_and_random_lifetimes_are_those_of_the_chain(buffer, lifetime_s, publisher):
    head = f"lifetime: {{exponential: {lifetime_s}}}\n        expired: in queue"
    system = one_peer(
        periods(more=f", buffer: {buffer}"), head=head if lifetime_s else "", publisher=publisher
    )
    runs = []
    for number in range(24):
        counts = replicate(system, seed=3, replication=number, warmup_s=50.0, duration_s=8_000.0)
        lost = counts.lost[0] / counts.wanted.sum()
        runs.append([counts.delivered.sum() / counts.wanted.sum(), lost[1], lost[2]])
    exact = np.array(chain(buffer, 1.0 / lifetime_s if lifetime_s else 0.0))
    error = np.std(runs, axis=0, ddof=1) / math.sqrt(len(runs))
    assert error.max() < 0.002
    seen = exact > 1e-4  # with forty places hardly anything overflows
    assert np.abs((np.mean(runs, axis=0) - exact)[seen] / error[seen]).max() < 4.5


@pytest.mark.statistical
def test_a_subscribers_own_queue_is_an_mm1_queue():
    system = loads(
        """
        tidings: 1
        brokers: {hub: {}}
        publishers: {p: {at: hub, every: {rate: 4/s}, content: {event: {k: 1}}}}
        subscribers: {s: {at: hub, wants: {}, link: {delay: 1s}, processing: {exponential: 100ms}}}
        """
    )
    row = simulate(system, seed=5, replications=20, events=50_000).subscribers.iloc[0]
    agrees(row["delay_mean_s"] - 1.0, 0.1 / 0.6, row["delay_mean_se_s"], 0.06)


@pytest.mark.statistical
def test_without_a_service_events_wait_for_the_absence_only():
    row = simulate(
        one_peer("on: {exponential: 2s}, off: {uniform: [0s, 2s]}"),
        seed=5, replications=20, duration_s=20_000.0,
    ).subscribers.iloc[0]  # fmt: skip
    agrees(row["delay_mean_s"], (1 / 3) * (4 / 3) / 2, row["delay_mean_se_s"], 0.05)


@pytest.mark.statistical
@pytest.mark.parametrize("replay", ["laws", "loop"])
def test_peers_begin_as_if_they_had_been_coming_and_going_for_ever(replay, tmp_path):
    """At the very start many peers are away, and for as long as a random moment finds them to be.

    Absences are uniform up to 2 s, or 1 s and 3 s by turns; the peers are connected 2 s between.
    """
    periods, away_s = "on: 2s, off: {uniform: [0s, 2s]}", (1 / 3) * (4 / 3) / 2
    if replay == "loop":
        changes = enumerate([0, 2, 3, 5, 8, 10, 11, 13, 16])
        lines = [f"{('connected', 'disconnected')[i % 2]},{at * 10**9}" for i, at in changes]
        (tmp_path / "loop.csv").write_text("\n".join(["state,at_ns", *lines]))
        periods, away_s = f"trace: {tmp_path / 'loop.csv'}, replay: loop", 10 / 16
    peers = "\n".join(
        f"          s{i}: {{at: hub, wants: {{}}, connectivity: {{{periods}}}}}" for i in range(100)
    )
    system = loads(
        f"""
        tidings: 1
        brokers: {{hub: {{}}}}
        publishers: {{p: {{at: hub, every: 10ms, content: {{event: {{k: 1}}}}}}}}
        subscribers:
{peers}
        """
    )
    found = []
    for number in range(20):
        counts = replicate(system, seed=9, replication=number, warmup_s=0.0, duration_s=0.1)
        found.append(counts.delay_sum_s.sum() / counts.delivered.sum())
    agrees(np.mean(found), away_s, np.std(found, ddof=1) / math.sqrt(20), 0.45)


LAWS = st.sampled_from(
    ["300ms", "{exponential: 1s}", "{uniform: [0s, 2s]}", "{lognormal: {mean: 1s, scv: 3}}"]
)
QUEUES = st.fixed_dictionaries(
    {"on": LAWS, "off": LAWS},
    optional={
        "service": st.sampled_from(["20ms", "{exponential: 60ms}"]),
        "buffer": st.integers(0, 5).map(str),
    },
)


@settings(max_examples=60, deadline=None)
@given(
    publisher=st.none() | QUEUES,
    subscriber=st.none() | QUEUES,
    processing=st.none() | st.sampled_from(["10ms", "{exponential: 80ms}"]),
    expired=st.sampled_from(["at subscriber", "at hop", "in queue"]),
    lifetime=st.sampled_from(["200ms", "{exponential: 2s}", "1h"]),
    reliability=st.sampled_from([1.0, 0.8]),
    scheme=st.none() | st.sampled_from(["periodic", "buffering", "bypass-buffering"]),
)
def test_everything_published_is_delivered_dropped_expired_or_lost_by_a_cause(
    publisher, subscriber, processing, expired, lifetime, reliability, scheme
):
    def of(queue):
        inside = ", ".join(f"{key}: {value}" for key, value in (queue or {}).items())
        return f", connectivity: {{{inside}}}" if queue else ""

    link = f", link: {{reliability: {reliability}, delay: 5ms}}"
    own = f", processing: {processing}" if processing else ""
    recovery = f"recovery: {{scheme: {scheme}, refresh: 500ms}}" if scheme else ""
    failing = ", failure: {mtbf: 3s, mttr: 300ms}" if scheme else ""
    system = loads(
        f"""
        tidings: 1
        lifetime: {lifetime}
        expired: {expired}
        {recovery}
        brokers:
          hub: {{service: {{exponential: 10ms}}{failing}}}
          east: {{service: 5ms}}
        links: [{{between: [hub, east], reliability: {reliability}{failing}}}]
        publishers:
          p: {{at: hub, every: {{rate: 9/s}}, content: {{event: {{k: 1}}}}{link}{of(publisher)}}}
        subscribers:
          s: {{at: east, wants: {{}}{link}{own}{of(subscriber)}}}
          t: {{at: hub, wants: {{}}{of(subscriber)}}}
          u: {{at: hub, wants: {{}}}}
        """
    )
    counts = replicate(system, seed=1, replication=0, warmup_s=2.0, duration_s=30.0)
    assert counts.published.sum() > 100
    assert (counts.wanted == counts.published.sum()).all()
    assert (counts.delivered + counts.pair_lost.sum(axis=1) == counts.wanted).all()
    assert (counts.delivered >= counts.on_time).all()
    assert counts.pair_lost.min() >= 0
    assert counts.curves.sum() == counts.delivered.sum()
