import numpy as np
import pytest

from tidings.model.laws import Deterministic, Exponential, Gamma, HyperExponential, PhaseType
from tidings.model.reading import loads
from tidings.model.routes import route
from tidings.theory.queues.dispersion import (
    _SCALES,
    departure_weight,
    dispersion,
    renewal_dispersion,
    renewal_scv,
)
from tidings.theory.queues.flows import flows
from tidings.theory.queues.renewal_streams import renewal_stream


def test_short_scales_look_poisson_and_long_ones_show_the_variability():
    for law in (
        Gamma(mean_s=1.0, shape=4.0),
        HyperExponential(weights=(0.9, 0.1), means_s=(0.5, 5.5)),
    ):
        curve = renewal_dispersion(law, np.array([1e-3, 1e4]))
        assert curve == pytest.approx([1.0, law.scv], abs=0.02 * law.scv + 0.01)


def test_a_periodic_stream_counts_whole_periods():
    curve = renewal_dispersion(Deterministic(value_s=2.0), np.array([1.0, 2.0, 3.0]))
    assert curve == pytest.approx([0.5, 0.0, 0.25 / 1.5])


@pytest.mark.statistical
def test_the_curve_of_a_renewal_stream_is_that_of_counts():
    law = Gamma(mean_s=1.0, shape=3.0)
    rng = np.random.default_rng(4)
    times = np.cumsum(law.sample(rng, 2_000_000))
    for length in (0.5, 2.0, 10.0):
        counts = np.histogram(times, bins=np.arange(100.0, times[-1] - 1.0, length))[0]
        parts = [part.var() / part.mean() for part in np.array_split(counts, 30)]
        error = np.std(parts, ddof=1) / np.sqrt(30)
        predicted = renewal_dispersion(law, np.array([length]))[0]
        assert predicted == pytest.approx(np.mean(parts), abs=4.5 * error)


@pytest.mark.parametrize("scv", [0.2, 0.5, 1.0, 3.0, 12.0])
@pytest.mark.parametrize("scale", [0.5, 3.0, 30.0])
def test_what_a_renewal_stream_is_felt_like_gives_its_variability_back(scv, scale):
    stream = renewal_stream(1.0, scv)
    exits = stream.arriving.sum(axis=1)
    initial = stream.arriving[np.argmax(exits)] / exits.max()
    law = PhaseType(initial=tuple(initial), generator=tuple(map(tuple, stream.silent.tolist())))
    felt = float(renewal_dispersion(law, scale * _SCALES).mean())
    assert renewal_scv(felt, scale) == pytest.approx(scv, rel=0.1)


def test_departures_are_services_on_short_scales_and_arrivals_on_long_ones():
    weight = departure_weight(np.array([1e-9, 0.3, 1.0, 1e4]))
    assert weight[0] < 1e-3
    assert weight[-1] > 0.9999
    assert np.all(np.diff(weight) > 0.0)


def test_everything_poisson_and_exponential_stays_poisson():
    system = loads(
        """
        tidings: 1
        lifetime: 1s
        brokers: {a: {service: {exponential: 10ms}}, b: {service: {exponential: 10ms}}}
        links: [{between: [a, b]}]
        publishers: {p: {at: a, every: {exponential: 20ms}, content: {event: {x: 1}}}}
        subscribers: {s: {at: b, wants: {}}}
        """
    )
    rates = flows(system, route(system))
    curves = dispersion(rates, [Exponential(mean_s=0.02)])
    assert np.all(curves.curves == 1.0)
    assert curves.felt(1, Exponential(mean_s=0.01))[0] == pytest.approx([1.0], abs=1e-6)
