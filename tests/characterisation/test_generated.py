"""Traces made by Spark itself: what was planted is found again, in spite of planted dirt."""

from __future__ import annotations

import pytest

from tidings.characterisation import gathering
from tidings.characterisation.job import characterise
from tidings.characterisation.quality import rows_read
from tidings.errors import UnsupportedError
from tidings.model.laws import Exponential, Gamma, LogNormal, Uniform
from tidings.model.reading import loads
from tidings.traces.dirt import Dirt
from tidings.traces.drawing import law_numbers
from tidings.traces.generating import Planting, generate_traces, span_of, write_generated
from tidings.traces.reading import read_traces

SYSTEM = loads("""
tidings: 1
lifetime: 80ms
brokers:
  hub: {service: {exponential: 3ms}}
  east: {service: {uniform: [1ms, 5ms]}}
links:
  - {between: [east, hub], delay: {lognormal: {mean: 8ms, scv: 0.5}}, reliability: 0.98}
publishers:
  ticker:
    at: hub
    every: {exponential: 10ms}
    content:
      - {p: 0.7, event: {topic: stock, price: 12}}
      - {p: 0.3, event: {topic: fx}}
    link: {delay: {deterministic: 1ms}, reliability: 0.99}
  tower: {at: east, every: {exponential: 20ms}, content: [{p: 1, event: {topic: wind}}]}
subscribers:
  alice:
    at: east
    wants: {topic: stock}
    link: {delay: {weibull: {scale: 20ms, shape: 2}}, reliability: 0.97}
  bob: {at: hub, wants: {topic: {one_of: [fx, wind]}}, link: {delay: {exponential: 4ms}}}
""")
EXPECTED = {
    "brokers.hub.service": 0.003,
    "brokers.east.service": 0.003,
    "links.east--hub.delay": 0.008,
    "links.east--hub.back.delay": 0.008,
    "links.east--hub.reliability": 0.98,
    "links.east--hub.back.reliability": 0.98,
    "publishers.ticker.rate": 100.0,
    "publishers.tower.rate": 50.0,
    "publishers.ticker.link.reliability": 0.99,
    "publishers.ticker.content.1.p": 0.7,
    "subscribers.alice.link.delay": SYSTEM.subscribers[0].link.delay.mean_s,
    "subscribers.alice.link.reliability": 0.97,
    "subscribers.bob.link.delay": 0.004,
}


@pytest.mark.slow
@pytest.mark.statistical
def test_what_is_planted_is_found_in_spite_of_the_dirt(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(gathering, "MOST_CONTENTS", 1)  # so that contents are folded, too
    events, dirt = 30_000, Dirt(twice=0.02, nameless=0.01, impossible=0.01)
    planting = Planting(seed=3, probes=3000, dirt=dirt)
    made = generate_traces(spark, SYSTEM, span_of(SYSTEM, events), planting)
    found = characterise(read_traces(spark, write_generated(made, tmp_path / "traces")))
    table = found.parameters.set_index("path")
    used = 1.0 - dirt.nameless - dirt.impossible
    for path, truth in EXPECTED.items():
        estimate, error = table.loc[path, ["estimate", "standard_error"]]
        kept = used if path.endswith(".rate") else 1.0  # what is spoilt is not counted
        assert abs(estimate - kept * truth) <= 5 * error + 5e-10, path
        assert 5 * error < 0.1 * truth, path
    laws = {broker.name: broker.service.law for broker in found.system.brokers}
    assert isinstance(laws["hub"], Exponential)
    assert isinstance(laws["east"], Uniform)
    assert isinstance(found.system.links[0].there.delay, LogNormal)
    assert found.stationarity["verdict"].tolist() == ["steady", "steady"]
    contents = [row.event for row in found.system.publishers[0].content.rows()]
    assert contents == [{"topic": "stock"}, {"topic": "fx"}]  # nobody asks for the price
    (note,) = (note for note in found.notes if "distinct contents" in note)
    assert "(topic)" in note
    fates = found.quality.groupby(["table", "fate"])["rows"].sum()
    copies = fates["publications", "duplicate"]
    assert rows_read(found.quality)["publications"] == events + copies
    assert copies == pytest.approx(0.02 * events, abs=5 * (0.02 * events) ** 0.5)
    assert fates["publications", "set aside"] == pytest.approx(600, abs=5 * 600**0.5)


def test_a_law_that_cannot_be_drawn_is_refused_by_name():
    with pytest.raises(UnsupportedError, match="family Gamma"):
        law_numbers(Gamma(mean_s=1.0, shape=2.0))
