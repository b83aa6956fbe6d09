"""The published queue models, by hand, by iteration, and against each other."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from systems.describing import exponential, line
from tidings.errors import InvalidInputError
from tidings.model.laws import Deterministic, Exponential, HyperExponential, Uniform, law_document
from tidings.model.reading import from_document
from tidings.model.routes import route
from tidings.theory.answer import answer_by_theory
from tidings.theory.queues.flows import flows
from tidings.theory.queues.published import (
    arriving_scvs,
    departing_scv,
    mean_wait_gg1_s,
    mean_wait_mm1_s,
)

LAWS = (
    Deterministic(value_s=1.0),
    Uniform(low_s=0.0, high_s=2.0),
    Exponential(mean_s=1.0),
    HyperExponential(weights=(0.9, 0.1), means_s=(0.5, 5.5)),
)


def in_a_row(*brokers, lifetime=1.0):
    """Brokers in a row, ten events a second at the first, a subscriber at each."""
    return from_document({"tidings": 1, **line(brokers, exponential(0.1), lifetime)}, "a line")


def scvs_of(system):
    rates = flows(system, route(system))
    return arriving_scvs(rates, [each.every for each in system.publishers])


# ---- the pieces, by hand -------------------------------------------------------------------------


def test_departing_by_hand():
    assert departing_scv(0.0, 1.0, 0.6) == pytest.approx(0.36, abs=1e-15)
    assert departing_scv(1.0, 1 / 3, 0.5) == pytest.approx(1.0 - 0.25 * 2 / 3, abs=1e-15)
    assert departing_scv(1.0, 0.0, 0.5) == pytest.approx(1.0 - 0.25 * 0.8, abs=1e-15)  # at least .2
    assert departing_scv(7.0, 0.5, 1.4) == pytest.approx(0.5, abs=1e-15)  # always busy


def test_waiting_by_hand():
    service = Uniform(low_s=0.0, high_s=0.2)  # mean .1, c² 1/3
    plain = 0.7 * 0.1 * (0.25 + 1 / 3) / (2 * 0.3)
    factor = math.exp(-2 * 0.3 * 0.75**2 / (3 * 0.7 * (0.25 + 1 / 3)))
    assert mean_wait_gg1_s(7.0, service, 0.25) == pytest.approx(plain * factor, rel=1e-14)
    bursty = 0.7 * 0.1 * (3 + 1 / 3) / 0.6
    assert mean_wait_gg1_s(7.0, service, 3.0) == pytest.approx(bursty, rel=1e-14)
    khinchine = 7.0 * (0.04 / 3) / (2 * 0.3)  # λ E[S²]/(2(1 − ρ))
    assert mean_wait_gg1_s(7.0, service, 1.0) == pytest.approx(khinchine, rel=1e-14)
    assert mean_wait_gg1_s(7.0, Deterministic(value_s=0.1), 0.0) == 0.0
    assert mean_wait_mm1_s(7.0, 0.1) == pytest.approx(1 / 3 - 0.1, rel=1e-14)  # 1/(μ − λ) − 1/μ


@pytest.mark.parametrize("arriving", [0.0, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("service", [Deterministic(value_s=0.1), Exponential(mean_s=0.1)])
def test_waits_at_the_edges(service, arriving):
    assert mean_wait_gg1_s(0.0, service, arriving) == 0.0
    assert mean_wait_gg1_s(10.0, service, arriving) == math.inf
    assert mean_wait_gg1_s(11.0, service, arriving) == math.inf
    assert mean_wait_mm1_s(10.0, 0.1) == math.inf


# ---- over a network ------------------------------------------------------------------------------


@st.composite
def systems(draw, laws=LAWS):
    """Trees of up to six brokers with lossy links in both directions, up to four publishers."""
    names = [f"b{index}" for index in range(draw(st.integers(1, 6)))]
    topics = st.lists(st.sampled_from("abc"), min_size=1, unique=True)

    def law(least_s, most_s):
        chosen = draw(st.sampled_from(laws)).scaled(draw(st.floats(least_s, most_s)))
        return law_document(chosen)

    def channel():
        return {"reliability": draw(st.floats(0.3, 1.0))}

    def contents(chosen):
        return [{"event": {"topic": topic}, "p": 1 / len(chosen)} for topic in chosen]

    document = {
        "tidings": 1,
        "lifetime": "0.5 s",
        "brokers": {name: {"service": law(0.001, 0.1)} for name in names},
        "links": [
            {
                "between": [names[draw(st.integers(0, index - 1))], names[index]],
                **channel(),
                "back": channel(),
            }
            for index in range(1, len(names))
        ],
        "publishers": {
            f"p{index}": {
                "at": draw(st.sampled_from(names)),
                "every": law(0.5, 3.0),
                "content": contents(draw(topics)),
                "link": channel(),
            }
            for index in range(draw(st.integers(1, 4)))
        },
        "subscribers": {
            f"s{index}": {"at": draw(st.sampled_from(names)), "wants": {"topic": draw(topics)}}
            for index in range(draw(st.integers(1, 4)))
        },
    }
    return from_document(document, "a random tree")


def qna_by_iteration(system):
    """c² of what arrives at each broker by QNA, iterated arc by arc until it stands still."""
    routes = route(system)
    rates = flows(system, routes)
    arcs = routes.arcs
    arc_rate = rates.source_rates[len(system.publishers) :]
    on_arc = np.ones(len(arcs))
    arriving = np.ones(len(system.brokers))

    def thinned(scv, share):
        return share * scv + 1.0 - share

    for _ in range(400):
        for b in range(len(system.brokers)):
            streams = [
                (p.rate_per_s * p.link.reliability, thinned(p.every.scv, p.link.reliability))
                for p in system.publishers
                if system.broker_index[p.at] == b
            ]
            streams += [(arc_rate[i], on_arc[i]) for i, a in enumerate(arcs) if a.target == b]
            streams = [each for each in streams if each[0] > 0]
            if not streams:
                continue
            total = sum(rate for rate, _ in streams)
            load = total * rates.services[b][0].mean_s
            effective = total**2 / sum(rate**2 for rate, _ in streams)
            weight = 1.0 / (1.0 + 4.0 * (1.0 - min(load, 1.0)) ** 2 * (effective - 1.0))
            mean = sum(rate * scv for rate, scv in streams) / total
            arriving[b] = thinned(mean, weight)
            gone = departing_scv(arriving[b], rates.services[b][0].scv, load)
            for i, a in enumerate(arcs):
                if a.source == b:
                    on_arc[i] = thinned(gone, arc_rate[i] / (total * rates.passes[b]))
    return arriving


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(system=systems())
def test_the_solved_equations_are_those_iterated_arc_by_arc(system):
    expected = qna_by_iteration(system)
    assert scvs_of(system) == pytest.approx(expected, abs=1e-10)
    assert expected.min() >= 0.0


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(system=systems(laws=(Exponential(mean_s=1.0),)))
def test_gg1_is_mm1_where_everything_is_exponential(system):
    one, other = (answer_by_theory(system, model=name).outcome for name in ("gg1", "mm1"))
    for column in ("on_time", "delivered", "delay_mean_s"):
        values = other.subscribers[column].to_numpy()
        assert one.subscribers[column].to_numpy() == pytest.approx(values, abs=1e-12, nan_ok=True)
    waits_s = other.brokers["wait_mean_s"].to_numpy()
    assert one.brokers["wait_mean_s"].to_numpy() == pytest.approx(waits_s, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("model", ["mm1", "gg1"])
def test_a_constant_wait_shifts_the_service(model):
    """M/M/1 at .7: the share in time is that of the service within what the mean wait leaves."""
    system = in_a_row({"service": exponential(0.07)}, lifetime=0.3)
    found = answer_by_theory(system, model=model).outcome
    wait_s = 0.07 / 0.3 - 0.07
    assert found.brokers["wait_mean_s"][0] == pytest.approx(wait_s, rel=1e-12)
    assert found.subscribers["delay_mean_s"][0] == pytest.approx(wait_s + 0.07, rel=1e-12)
    assert found.on_time == pytest.approx(1.0 - math.exp(-(0.3 - wait_s) / 0.07), abs=1e-5)
    whole = answer_by_theory(system).outcome
    assert whole.on_time == pytest.approx(1.0 - math.exp(-0.3 * 0.3 / 0.07), abs=1e-5)


def test_departures_go_on_to_the_next_station_and_broker():
    station = {"service": {"gamma": {"mean": 0.06, "shape": 2.0}}}
    system = in_a_row(station, station)
    assert scvs_of(system) == pytest.approx([1.0, 1.0 + 0.36 * (0.5 - 1.0)], abs=1e-14)
    waits_s = answer_by_theory(system, model="gg1").outcome.brokers["wait_mean_s"]
    law = system.brokers[1].service.law
    assert waits_s[1] == pytest.approx(mean_wait_gg1_s(10.0, law, 0.82), rel=1e-12)
    both = in_a_row({"cpu": station, "disk": station})
    together = answer_by_theory(both, model="gg1").outcome.brokers["wait_mean_s"][0]
    assert together == pytest.approx(waits_s.sum(), rel=1e-12)


@pytest.mark.parametrize("model", ["mm1", "gg1"])
def test_overload_loses_everything_and_departs_as_it_serves(model):
    second = {"service": {"gamma": {"mean": 0.05, "shape": 4.0}}}
    system = in_a_row({"service": exponential(0.2)}, second)
    assert scvs_of(system)[1] == pytest.approx(1.0, abs=1e-12)
    found = answer_by_theory(system, model=model).outcome
    assert found.subscribers["lost_overload"][0] == 1.0
    assert found.brokers["wait_mean_s"][0] == math.inf


def test_an_unknown_model_is_refused():
    with pytest.raises(InvalidInputError, match="no queue model 'mg1'; wants one of law, gg1, mm1"):
        answer_by_theory(in_a_row({"service": exponential(0.05)}), model="mg1")
