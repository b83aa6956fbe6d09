import numpy as np
import pytest

from tidings.model.behaviour import Connectivity
from tidings.model.laws import Deterministic, Exponential, Gamma
from tidings.prediction.delays import Grid
from tidings.prediction.peers import peer_delay, peer_load

GRID = Grid.spanning(1e-5, 1e6)


def connectivity(on_s=20.0, off_s=20.0, service_s=0.125):
    return Connectivity(
        on=Exponential(mean_s=on_s),
        off=Exponential(mean_s=off_s),
        service=Exponential(mean_s=service_s) if service_s else None,
    )


def test_the_mean_response_is_that_of_the_published_theorem():
    # R = (a + D s)/(1 − λ D s), a = T_OFF²/(T_ON + T_OFF), s = (T_ON + T_OFF)/T_ON
    delay = peer_delay(GRID, connectivity(), 2.0)
    assert float(delay.mean_s[0]) == pytest.approx(20.5, rel=1e-9)
    assert peer_load(connectivity(), 2.0) == pytest.approx(0.5)


def test_the_mean_is_that_of_the_distribution():
    delay = peer_delay(GRID, connectivity(), 2.0)
    t_s = np.concatenate([[0.0], np.geomspace(1e-4, 5e3, 4000)])
    missed = 1.0 - delay.at(t_s[None, :])[0]
    area = float(np.sum(0.5 * (missed[1:] + missed[:-1]) * np.diff(t_s)))
    assert area == pytest.approx(20.5, rel=2e-3)


def test_without_a_handover_an_event_waits_for_the_rest_of_an_absence():
    off = Deterministic(value_s=10.0)
    peer = Connectivity(on=Exponential(mean_s=30.0), off=off)
    delay = peer_delay(GRID, peer, 1.0)
    assert delay.at(np.array([0.0]))[0] == pytest.approx(0.75)
    assert delay.at(np.array([4.0]))[0] == pytest.approx(0.75 + 0.25 * 0.4, abs=2e-3)
    assert float(delay.mean_s[0]) == pytest.approx(0.25 * 5.0)


def test_a_peer_that_is_offered_too_much_gets_nothing():
    delay = peer_delay(GRID, connectivity(), 4.0)
    assert float(delay.survival[0]) == 0.0
    assert float(delay.lost["overload"][0]) == 1.0


@pytest.mark.statistical
def test_responses_are_those_of_a_queue_with_breakdowns():
    rng = np.random.default_rng(3)
    on, off, service = (
        Exponential(mean_s=5.0),
        Gamma(mean_s=2.0, shape=3.0),
        Gamma(mean_s=0.2, shape=2.0),
    )
    peer = Connectivity(on=on, off=off, service=service)
    shares = [_on_time(rng, on, off, service, 2.0, 4.0) for _ in range(20)]
    simulated, error = np.mean(shares), np.std(shares, ddof=1) / np.sqrt(20)
    predicted = float(peer_delay(GRID, peer, 2.0).at(np.array([4.0]))[0])
    assert error < 0.01
    assert predicted == pytest.approx(simulated, abs=4.5 * error)


def _on_time(rng, on, off, service, rate, limit_s):
    """The share of 20,000 events that is handed over within a time: events by events."""
    events = 20_000
    arrivals = np.cumsum(rng.exponential(1.0 / rate, events))
    end = arrivals[-1] * 3.0
    count = int(end / (on.mean_s + off.mean_s) * 1.5) + 50
    lengths = np.empty(2 * count)
    lengths[0::2], lengths[1::2] = on.sample(rng, count), off.sample(rng, count)
    edges = np.cumsum(lengths)
    work = np.cumsum(np.where(np.arange(2 * count) % 2 == 0, lengths, 0.0))  # time ON by each edge

    def on_until(t):
        at = np.searchsorted(edges, t)
        before = work[at - 1] if at else 0.0
        begin = edges[at - 1] if at else 0.0
        return before + (t - begin if at % 2 == 0 else 0.0)

    def moment(done):
        at = int(np.searchsorted(work, done))
        begin = edges[at - 1] if at else 0.0
        before = work[at - 1] if at else 0.0
        return begin + done - before

    done, on_time = 0.0, 0
    for arrival, need in zip(arrivals, service.sample(rng, events), strict=True):
        done = max(done, on_until(arrival)) + need
        on_time += moment(done) - arrival <= limit_s
    return on_time / events
