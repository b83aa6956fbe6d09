import numpy as np
import pytest

import naive_onoff
from tidings.model.behaviour import Connectivity
from tidings.model.laws import Deterministic, Exponential, Gamma, LogNormal
from tidings.theory.delay.grids import Grid
from tidings.theory.peers.connectivity import peer_delay, peer_load

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


CENTRES = {
    "exponential": (Exponential(mean_s=0.25), Exponential(mean_s=1.0), 0.6),
    "constant service": (Deterministic(value_s=0.25), Exponential(mean_s=1.0), 0.7),
    "any OFF": (Gamma(mean_s=0.25, shape=1.5), LogNormal(mean_s=1.0, scv=0.9), 0.6),
    "constant OFF": (Exponential(mean_s=0.25), Deterministic(value_s=1.0), 0.6),
}


@pytest.mark.statistical
@pytest.mark.parametrize("name", CENTRES)
def test_the_distribution_is_that_of_a_queue_with_breakdowns_at_twenty_points(name):
    service, off, load = CENTRES[name]
    peer = Connectivity(on=Exponential(mean_s=2.0), off=off, service=service)
    rate = load / peer_load(peer, 1.0)
    sample = [
        np.sort(naive_onoff.sojourns(rng, peer, rate, until_s=40_000.0, warmup_s=300.0))
        for rng in np.random.default_rng(20261).spawn(30)
    ]
    t_s = np.quantile(sample[0], np.linspace(0.04, 0.99, 20)) + 1e-9  # steps safely passed
    runs = [np.searchsorted(each, t_s, side="right") / each.size for each in sample]
    noise = np.std(runs, axis=0, ddof=1) / np.sqrt(len(runs))
    assert noise.max() <= 0.002  # sharp enough to notice a wrong formula
    predicted = peer_delay(GRID, peer, rate).at(t_s[None, :])[0]
    off_by = np.abs(np.mean(runs, axis=0) - predicted)
    assert np.all(off_by <= 4.5 * noise)
