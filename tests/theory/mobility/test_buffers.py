from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.errors import InvalidInputError, UnsupportedError
from tidings.model.laws import Deterministic, Exponential
from tidings.theory.mobility.buffers import Limits, buffered_stage, fate
from tidings.theory.mobility.centre import OnOff, exponential_centre, mean_response_s
from tidings.theory.mobility.expiry import fate_with_lifetime
from tidings.theory.mobility.sojourn import sojourn_law
from tidings.theory.path_laws import Workshop, path_law

CENTRE = exponential_centre(0.25, 2.0, 1.0)


@settings(deadline=None, max_examples=50)
@given(
    buffer=st.integers(0, 30),
    expiring=st.one_of(st.just(0.0), st.floats(0.01, 5.0)),
    load=st.floats(0.05, 3.0),
    off_s=st.floats(0.1, 10.0),
)
def test_delivered_expired_and_dropped_are_everything(buffer, expiring, load, off_s):
    centre = exponential_centre(0.25, 2.0, off_s)
    rate = load * centre.most_per_s
    found = fate(centre, rate, Limits(buffer=buffer, expiring_per_s=expiring))
    total = found.delivered + found.expired + found.dropped
    assert total == pytest.approx(1.0, abs=1e-12)
    assert min(found.delivered, found.expired, found.dropped) >= 0.0
    assert found.response_s >= centre.service.mean_s


def test_a_large_buffer_is_the_queue_without_a_bound():
    rate = 0.7 * CENTRE.most_per_s
    found = fate(CENTRE, rate, Limits(buffer=2000))
    assert found.response_s == pytest.approx(mean_response_s(CENTRE, rate), rel=1e-12)
    assert found.dropped < 1e-12
    stage, exact = buffered_stage(CENTRE, rate, 2000), sojourn_law(CENTRE, rate)
    t = np.array([0.1, 1.0, 5.0])
    value, error = path_law(stage, Workshop()).cdf(t)
    assert np.all(np.abs(value - exact.cdf(t)) <= error)
    (delay,) = stage.delays
    assert delay.variance_s2 == pytest.approx(exact.scv * exact.mean_s**2, rel=1e-12)


def test_a_large_buffer_under_overload_is_full_and_hands_over_what_it_can():
    """It is never empty: shares down there are smaller than any number."""
    rate = 1.5 * CENTRE.most_per_s
    found = fate(CENTRE, rate, Limits(buffer=5000))
    assert found.delivered == pytest.approx(1 / 1.5, rel=1e-12)
    assert found.dropped == pytest.approx(1 - 1 / 1.5, rel=1e-11)
    assert found.response_s == pytest.approx(5000 * CENTRE.demand_s, rel=2e-3)


def test_without_a_place_to_wait_only_who_meets_an_idle_connected_peer_is_served():
    # idle & ON, busy, interrupted: three states by hand
    rate, served, leaves, back = 2.0, 4.0, 0.5, 1.0
    found = fate(CENTRE, rate, Limits(buffer=0))
    chain = np.array(
        [
            [-rate - leaves, rate, 0.0, leaves],
            [served, -served - leaves, leaves, 0.0],
            [0.0, back, -back, 0.0],
            [back, 0.0, 0.0, -back],
        ]
    )
    balance = np.vstack([chain.T, np.ones(4)])
    shares = np.linalg.lstsq(balance, np.array([0.0, 0.0, 0.0, 0.0, 1.0]), rcond=None)[0]
    assert found.delivered == pytest.approx(shares[0], rel=1e-12)
    assert found.response_s == pytest.approx(CENTRE.demand_s, rel=1e-12)


def test_stage_and_fate_say_the_same():
    rate = 1.3 * CENTRE.most_per_s
    found, stage = fate(CENTRE, rate, Limits(buffer=7)), buffered_stage(CENTRE, rate, 7)
    assert stage.survives == pytest.approx(found.delivered, rel=1e-12)
    assert stage.lost["overflow"] == pytest.approx(found.dropped, rel=1e-12)
    assert stage.mean_s == pytest.approx(found.response_s, rel=1e-12)
    (delay,) = stage.delays
    step = 1e-5
    slope = (1.0 - delay.transform(np.array([step + 0j]))[0].real) / step
    assert slope == pytest.approx(delay.mean_s, rel=1e-4)


def test_very_short_lifetimes_serve_as_if_nobody_could_wait():
    rate = 2.0
    impatient = fate(CENTRE, rate, Limits(buffer=50, expiring_per_s=1e6))
    none = fate(CENTRE, rate, Limits(buffer=0))
    assert impatient.delivered == pytest.approx(none.delivered, rel=1e-4)


def test_patience_bounds_an_overloaded_queue():
    rate = 2.0 * CENTRE.most_per_s
    found = fate(CENTRE, rate, Limits(expiring_per_s=0.2))
    assert found.delivered == pytest.approx(0.5, rel=0.02)  # the peer is hardly ever idle
    assert found.delivered + found.expired == pytest.approx(1.0, abs=1e-12)


def simulated_fates(rng, centre, rate, lifetime, until_s, asked_s=()):
    """Delivered, on time, mean response of those delivered, and their share by some times.

    First come first served; who expires before the start is passed by.
    """
    arrivals = np.sort(rng.random(rng.poisson(rate * until_s)) * until_s)
    periods = int(1.5 * until_s / (centre.on.mean_s + centre.off.mean_s)) + 200
    ons, offs = centre.on.sample(rng, periods), centre.off.sample(rng, periods)
    begins = np.concatenate([[0.0], np.cumsum(ons + offs)])
    services = centre.service.sample(rng, arrivals.size)
    limits_s = lifetime.sample(rng, arrivals.size)
    free_s, period, in_time, responses_s = 0.0, 0, 0, []
    for arrival, service, limit in zip(arrivals, services, limits_s, strict=True):
        start = max(arrival, free_s, begins[period])
        while start >= begins[period + 1]:
            period += 1
        if start >= begins[period] + ons[period]:  # OFF: begins when the peer is back
            start, period = begins[period + 1], period + 1
        if start - arrival > limit:
            continue
        while start + service > begins[period] + ons[period]:  # interrupted
            service -= begins[period] + ons[period] - start
            period += 1
            start = begins[period]
        free_s = start + service
        in_time += free_s - arrival <= limit
        responses_s.append(free_s - arrival)
    done = np.array(responses_s)
    within = [np.mean(done <= at_s) for at_s in asked_s]
    return done.size / arrivals.size, in_time / arrivals.size, done.mean(), *within


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["exponential", "certain", "certain, constant service"])
def test_simulated_expiry_agrees(kind):
    rate = 0.8 * CENTRE.most_per_s
    centre = CENTRE
    if kind == "certain, constant service":
        centre = OnOff(service=Deterministic(value_s=0.25), on=CENTRE.on, off=CENTRE.off)
    exponential = kind == "exponential"
    lifetime = Exponential(mean_s=3.0) if exponential else Deterministic(value_s=2.0)
    timed = fate_with_lifetime(centre, rate, 2.0)
    quantiles_s = (timed.delay_p50_s, timed.delay_p95_s, timed.delay_p99_s)
    runs = [
        simulated_fates(rng, centre, rate, lifetime, 6_000.0, quantiles_s)
        for rng in np.random.default_rng(7).spawn(12)
    ]
    means, noise = np.mean(runs, axis=0), np.std(runs, axis=0, ddof=1) / np.sqrt(len(runs))
    assert noise[0] < 0.002
    if exponential:
        found = fate(centre, rate, Limits(expiring_per_s=1 / 3))
        assert means[0] == pytest.approx(found.delivered, abs=4.5 * noise[0])
        assert means[2] == pytest.approx(found.response_s, abs=4.5 * noise[2])
    else:
        assert means[0] == pytest.approx(timed.delivered, abs=4.5 * noise[0])
        assert means[1] == pytest.approx(timed.on_time, abs=4.5 * noise[1])
        assert means[2] == pytest.approx(timed.delay_mean_s, abs=4.5 * noise[2])
        # A constant service makes steps at its own length, which quantiles may meet.
        assert np.all(np.abs(means[3:] - [0.5, 0.95, 0.99]) < 4.5 * noise[3:] + 1e-4)
        assert timed.delay_p99_s > 2.0  # some are begun in time and finished late
        assert timed.delivered + timed.expired == pytest.approx(1.0, abs=1e-12)


def test_a_long_lifetime_expires_nothing():
    timed = fate_with_lifetime(CENTRE, 1.0, 1e4)
    assert timed.expired == pytest.approx(0.0, abs=1e-9)
    assert timed.on_time == pytest.approx(1.0, abs=1e-9)


def test_what_is_not_predicted_is_refused():
    regular = OnOff(service=Deterministic(value_s=0.1), on=CENTRE.on, off=CENTRE.off)
    with pytest.raises(
        UnsupportedError, match="only where its service, ON and OFF are exponential"
    ):
        fate(regular, 1.0, Limits(buffer=3))
    with pytest.raises(UnsupportedError, match="ON are exponential"):
        fate_with_lifetime(
            OnOff(service=CENTRE.service, on=Deterministic(value_s=2.0), off=CENTRE.off), 1.0, 1.0
        )
    with pytest.raises(UnsupportedError, match="more than it can take"):
        fate_with_lifetime(CENTRE, 10.0, 1.0)
    with pytest.raises(UnsupportedError, match="give it a buffer"):
        fate(CENTRE, 10.0, Limits(expiring_per_s=1e-9))


def test_impossible_numbers_are_refused_by_name():
    centre = exponential_centre(0.1, 10.0, 10.0)
    for rate in (0.0, -1.0, float("nan")):
        with pytest.raises(InvalidInputError, match="rate_per_s: got"):
            fate(centre, rate, Limits(buffer=3))
    with pytest.raises(InvalidInputError, match="buffer: got -1"):
        fate(centre, 1.0, Limits(buffer=-1))
    with pytest.raises(InvalidInputError, match="expiring_per_s: got -2"):
        fate(centre, 1.0, Limits(expiring_per_s=-2.0))
    with pytest.raises(InvalidInputError, match="lifetime_s: got -5"):
        fate_with_lifetime(centre, 1.0, -5.0)
    with pytest.raises(InvalidInputError, match="rate_per_s: got -1"):
        fate_with_lifetime(centre, -1.0, 5.0)
