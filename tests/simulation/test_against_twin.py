"""The kernel's counts must equal, to the last one, those of a simulator written to be obvious."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from tidings.model import delay_grid
from tidings.model.reading import loads
from tidings.simulation.kernel_layout import KERNEL_CAUSES
from tidings.simulation.network import compile_system
from tidings.simulation.run import replicate
from tidings.simulation.tally import find_units

_SPEC = importlib.util.spec_from_file_location(
    "naive_simulator", Path(__file__).parents[1] / "naive_simulator.py"
)
naive = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(naive)

CONTENTS = """
    content:
      - {p: 0.5, event: {topic: stock, price: 12}}
      - {p: 0.3, event: {topic: stock, price: 40}, lifetime: 80ms}
      - {p: 0.2, event: {topic: fx}}
"""
TREE = """
links:
  - {between: [hub, east], delay: {exponential: 5ms}, reliability: 0.95}
  - {between: [hub, west], delay: {uniform: [1ms, 4ms]}, back: {reliability: 0.9}}
  - {between: [west, far], delay: {exponential: 2ms}}
"""
PEERS = f"""
publishers:
  p:
    at: east
    every: {{exponential: 20ms}}
{CONTENTS}
  q:
    at: far
    every: {{uniform: [10ms, 50ms]}}
    link: {{delay: {{exponential: 3ms}}, reliability: 0.97}}
{CONTENTS}
subscribers:
  all: {{at: hub, wants: {{}}}}
  cheap: {{at: west, wants: {{topic: stock, price: {{below: 20}}}}}}
  cheap-too: {{at: west, wants: {{topic: stock, price: {{below: 20}}}}, count: 3}}
  fx: {{at: far, wants: {{topic: fx}}}}
  hasty: {{at: east, wants: {{topic: stock}}, lifetime: 25ms}}
  shaky: {{at: far, wants: {{}}, link: {{reliability: 0.8, delay: {{exponential: 10ms}}}}}}
  moody: {{at: hub, wants: {{topic: stock}}, lifetime: {{exponential: 30ms}}}}
"""
BROKERS = """
brokers:
  hub: {service: {exponential: 6ms}, cpu: {service: {exponential: 1ms}}}
  east: {service: {uniform: [0ms, 9ms]}}
  west: {}
  far: {service: {gamma: {mean: 5ms, shape: 2.5}}}
"""
SMALL_BUFFERS = """
brokers:
  hub: {service: {exponential: 12ms}, buffer: 2}
  east: {service: {exponential: 22ms}, servers: 2, buffer: 1}
  west: {service: {exponential: 1ms}}
  far: {service: {exponential: 14ms}, servers: 3, buffer: 0}
"""
BY_TOPIC = """
routing: {root: west, by: topic, roots: {stock: hub, fx: far}}
"""
MORE_LINKS = TREE + "  - {between: [east, far], delay: {exponential: 4ms}, reliability: 0.99}\n"
HEAD = "tidings: 1\nlifetime: {exponential: 60ms}\n"
SYSTEMS = {
    "queues, losses, delays": HEAD + BROKERS + TREE + PEERS,
    "small buffers": HEAD + SMALL_BUFFERS + TREE + PEERS,
    "expired at hop": HEAD + "expired: at hop\n" + BROKERS + TREE + PEERS,
    "expired in queue": HEAD + "expired: in queue\n" + SMALL_BUFFERS + TREE + PEERS,
    "a tree per topic": HEAD + BY_TOPIC + BROKERS + MORE_LINKS + PEERS,
    "every subscription costs": HEAD
    + BROKERS.replace("{uniform: [0ms, 9ms]}", "{exponential: 0.6ms, per: subscription}")
    + TREE
    + PEERS,
}


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("replication", [0, 1])
def test_counts_equal_those_of_the_obvious_twin(name, replication):
    system = loads(SYSTEMS[name])
    options = {"seed": 5, "replication": replication, "warmup_s": 1.0, "duration_s": 30.0}
    counts = replicate(system, **options)
    expected, delays = naive.simulate(system, **options)
    units = find_units(compile_system(system))
    for index, subscriber in enumerate(system.subscribers):
        unit = units.of_subscriber[index]
        mine = units.pair_unit == unit
        found = {
            "wanted": counts.wanted[mine].sum(),
            "delivered": counts.delivered[mine].sum(),
            "on_time": counts.on_time[mine].sum(),
        }
        found |= dict(zip(KERNEL_CAUSES, counts.lost[unit], strict=True))
        wanted = expected[subscriber.name]
        assert found == {key: wanted[key] for key in found}, subscriber.name
        assert found["wanted"] > 100
        assert found["wanted"] == found["delivered"] + counts.lost[unit].sum()
        bins = np.bincount(delay_grid.bin_of(delays[subscriber.name]), minlength=delay_grid.BINS)
        assert counts.curves[units.curves[unit]].sum(axis=0).tolist() == bins.tolist()
        assert counts.delay_sum_s[mine].sum() == pytest.approx(
            delays[subscriber.name].sum(), rel=1e-12
        )


def test_the_systems_above_meet_every_cause_of_loss():
    for name, cause in (
        ("queues, losses, delays", "link"),
        ("small buffers", "overflow"),
        ("expired at hop", "expired"),
        ("expired in queue", "expired"),
    ):
        counts = replicate(loads(SYSTEMS[name]), seed=5, replication=0, warmup_s=1, duration_s=30)
        assert counts.lost[:, KERNEL_CAUSES.index(cause)].min() > 0
