"""Systems that theory does not handle are simulated, and every command says so or goes on."""

from __future__ import annotations

import pytest

import tidings as td
from tidings.model.features import FEATURES
from tidings.model.reading import loads
from tidings.prediction.predict import PredictOptions, predict
from tidings.simulation.run import HANDLED

BASE = """
tidings: 1
lifetime: 40ms
event_type: k
size: 1kB
brokers:
  hub: {BROKER}
  east: {service: {exponential: 4ms}}
links: [{between: [hub, east], delay: 2ms LINK}]
publishers:
  p: {at: hub, every: {rate: 40/s}, content: {event: {k: x}}, link: {PUBLISHER}}
  q: {at: hub, every: {rate: 20/s}, content: {event: {k: y}}}
subscribers:
  s: {at: east, wants: {k: x}}
  t: {at: hub, wants: {}, link: {SUBSCRIBER}}
"""
USES = {
    "other disciplines than fcfs": {
        "BROKER": "service: {exponential: 8ms}, discipline: priority, priorities: {x: 1}"
    },
    "demands by event type": {"BROKER": "cpu: {demands: {x: 4ms, y: {exponential: 12ms}}}"},
    "bandwidth": {"LINK": ", bandwidth: 100kB/s", "SUBSCRIBER": "bandwidth: 100kB/s"},
    "failures of clients' links": {"PUBLISHER": "failure: {mtbf: 10s, mttr: 1s}"},
    "blocked publishers": {"BROKER": "service: {exponential: 8ms}, buffer: 3, when_full: block"},
    "publishers that send in batches": {"PUBLISHER": "}, batch: {size: 3, linger: 5ms"},
    "bursts of losses": {"LINK": ", reliability: 0.9, loss_burst: 4"},
}


def using(feature):
    text = BASE
    for name in ("BROKER", "LINK", "PUBLISHER", "SUBSCRIBER"):
        usual = "service: {exponential: 8ms}" if name == "BROKER" else ""
        text = text.replace(name, USES[feature].get(name, usual))
    return loads(text)


@pytest.mark.parametrize("feature", USES)
def test_such_a_system_is_simulated_and_every_row_says_why(feature):
    rows = predict(using(feature), within=0.05, seconds=2.0).subscribers
    assert set(rows["by"]) == {"simulation"}
    assert set(rows["why"]) == {f"theory does not handle {feature}"}
    assert rows["on_time"].between(0.1, 1.0).all()


@pytest.mark.parametrize("feature", USES)
def test_other_questions_of_such_a_system_are_answered(feature):
    system = using(feature)
    quick = PredictOptions(within=0.05, seconds=1.0)
    assert td.whatif(system, "rate all x1.1", options=quick) is not None
    assert td.explain(system, remedies=False) is not None


def test_nothing_that_a_file_can_say_is_refused():
    assert set(FEATURES) - HANDLED == set()
