from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tidings.model.behaviour import Service, Station
from tidings.model.laws import Deterministic, Exponential, Uniform
from tidings.model.routes import route
from tidings.theory.flows import flows
from tidings.theory.predicting import predict
from tidings.theory.queue_models import QUEUE_MODELS
from tidings.theory.traffic import Traffic


def only_queue(make, name, service, rate_per_s):
    system = make.line([service], rate_per_s=rate_per_s)
    routes = route(system)
    ((queue,),) = QUEUE_MODELS[name].queues(
        Traffic(system=system, routes=routes, flows=flows(system, routes))
    )
    return queue


@pytest.mark.parametrize("name", QUEUE_MODELS)
def test_every_model_at_its_edges(make, name):
    free = only_queue(make, name, Deterministic(value_s=0.0), 5.0)
    assert (free.stage.survives, free.stage.shift_s, free.stage.delays) == (1.0, 0.0, ())
    full = only_queue(make, name, Exponential(mean_s=0.1), 10.0)
    assert (full.stage.survives, dict(full.stage.lost)) == (0.0, {"overload": 1.0})
    assert full.wait_s == math.inf
    alone = only_queue(make, name, Exponential(mean_s=0.1), 1e-300)
    assert alone.stage.mean_s == pytest.approx(0.1, rel=1e-12)
    busy = only_queue(make, name, Exponential(mean_s=0.1), 7.0)
    assert busy.stage.mean_s == pytest.approx(1.0 / 3.0, rel=1e-12)  # M/M/1: 1/(μ − λ)
    assert busy.wait_s == pytest.approx(busy.stage.mean_s - 0.1, rel=1e-12)
    assert np.isfinite(busy.wait_s)


def test_brokers_in_a_line_are_told(make):
    """All that leaves one goes on to the next, and the publisher is more regular than services."""

    def told(interval, services):
        system = make.line(services, lifetime_s=9.0)
        publisher = replace(system.publishers[0], every=interval)
        found = predict(replace(system, publishers=(publisher,)), delays=False)
        return [each for each in found.provenance["approximations"] if "in a line" in each]

    uniform, fast = Uniform(low_s=0.0, high_s=1.5), Uniform(low_s=0.0, high_s=0.5)
    assert told(Deterministic(value_s=1.0), [uniform, uniform])
    narrow = Uniform(low_s=0.3, high_s=1.3)  # c² = .13: shares come out .02 too high
    assert told(Deterministic(value_s=1.0), [narrow, narrow])
    assert not told(Deterministic(value_s=1.0), [uniform, fast])  # hardly anybody waits
    assert not told(Uniform(low_s=0.0, high_s=2.0), [uniform, uniform])  # all alike


@pytest.mark.parametrize(("disk_s", "told"), [(0.75, True), (0.2, False)])
def test_stations_in_a_line_are_told(make, disk_s, told):
    """All that leaves one station of a broker goes on to the next."""
    system = make.line([None], lifetime_s=9.0)
    services = [Service(law=Uniform(low_s=0.0, high_s=2.0 * mean_s)) for mean_s in (0.75, disk_s)]
    cpu, disk = (Station(service=service) for service in services)
    publisher = replace(system.publishers[0], every=Deterministic(value_s=1.0))
    broker = replace(system.brokers[0], cpu=cpu, disk=disk)
    found = predict(replace(system, brokers=(broker,), publishers=(publisher,)), delays=False)
    assert any("in a line" in each for each in found.provenance["approximations"]) == told
