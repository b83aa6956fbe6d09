"""With failures, too, the kernel's counts equal those of a simulator written to be obvious."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tidings.model.reading import loads
from tidings.simulation.kernel_layout import KERNEL_CAUSES
from tidings.simulation.network import compile_system
from tidings.simulation.run import replicate
from tidings.simulation.tally import find_units

_SPEC = importlib.util.spec_from_file_location(
    "naive_failures", Path(__file__).parents[1] / "naive_failures.py"
)
naive = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(naive)

SYSTEM = """
tidings: 1
lifetime: {exponential: 600ms}
recovery: {RECOVERY}
routing: {root: west, by: topic, roots: {stock: hub, fx: far}}
failure_groups:
  site: {members: [west, hub--east], failure: {mtbf: 9s, mttr: 1s}}
brokers:
  hub:
    service: {exponential: 6ms}
    cpu: {service: {exponential: 5ms}}
    failure: {mtbf: 3s, mttr: 400ms}
  east:
    service: {uniform: [0ms, 9ms]}
    failure: {up: {weibull: {mean: 3s, shape: 0.6}}, down: 300ms}
  west: {failure: {mtbf: 4s, mttr: 500ms}}
  far: {service: {gamma: {mean: 5ms, shape: 2.5}}SERVERS}
links:
  - between: [hub, east]
    delay: {exponential: 50ms}
    reliability: 0.95
    failure: {mtbf: 2s, mttr: 300ms}
  - {between: [hub, west], delay: {uniform: [1ms, 4ms]}, back: {reliability: 0.9}}
  - {between: [west, far], delay: {exponential: 2ms}, failure: {mtbf: 2s, mttr: 1s}}
  - {between: [east, far], delay: {exponential: 4ms}, reliability: 0.99}
publishers:
  p:
    at: east
    every: {exponential: 20ms}
    content: [{p: 0.7, event: {topic: stock}}, {p: 0.3, event: {topic: fx}, lifetime: 80ms}]
  q:
    at: far
    every: {uniform: [10ms, 50ms]}
    link: {delay: {exponential: 3ms}, reliability: 0.97}
    content: [{p: 0.5, event: {topic: stock}}, {p: 0.5, event: {topic: fx}}]
subscribers:
  all: {at: hub, wants: {}}
  stocks: {at: west, wants: {topic: stock}}
  fx: {at: far, wants: {topic: fx}}
  shaky: {at: far, wants: {}, link: {reliability: 0.8, delay: {exponential: 10ms}}}
"""
RECOVERIES = {
    "at once": "scheme: periodic",
    "refreshed": "scheme: periodic, refresh: 700ms",
    "timed out": "scheme: periodic, refresh: 700ms, timeout: 1s",
    "kept": "scheme: buffering",
}


@pytest.mark.parametrize("name", RECOVERIES)
@pytest.mark.parametrize("replication", [0, 1])
def test_counts_equal_those_of_the_obvious_twin(name, replication):
    text = SYSTEM.replace("RECOVERY", RECOVERIES[name])
    system = loads(text.replace("SERVERS", "" if name == "kept" else ", servers: 2"))
    options = {"seed": 5, "replication": replication, "warmup_s": 1.0, "duration_s": 40.0}
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
        assert found == {key: expected[subscriber.name][key] for key in found}, subscriber.name
        assert found["wanted"] > 500
        assert counts.delay_sum_s[mine].sum() == pytest.approx(
            delays[subscriber.name].sum(), rel=1e-12
        )
    lost = dict(zip(KERNEL_CAUSES, counts.lost.sum(axis=0), strict=True))
    causes = ("expired_in_buffer",) if name == "kept" else ("path_down", "link")
    causes += ("not_restored",) if "refresh" in RECOVERIES[name] else ()
    assert all(lost[cause] > 0 for cause in ("broker_down", *causes))
