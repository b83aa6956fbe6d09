"""With peers that come and go, too, the kernel's counts equal those of an obvious simulator."""

from __future__ import annotations

import numpy as np
import pytest

import naive_mobile as naive
from tidings.model import delay_grid
from tidings.model.reading import loads
from tidings.simulation.kernel_layout import KERNEL_CAUSES
from tidings.simulation.network import compile_system
from tidings.simulation.run import replicate
from tidings.simulation.tally import find_units

SYSTEM = """
tidings: 1
lifetime: {exponential: 3s}
expired: EXPIRED
brokers:
  hub: {service: {exponential: 6ms}}
  east: {service: {uniform: [0ms, 9ms]}}
links:
  - {between: [hub, east], delay: {exponential: 5ms}, reliability: 0.95}
publishers:
  p:
    at: east
    every: {exponential: 40ms}
    connectivity:
      {on: {exponential: 2s}, off: {uniform: [0s, 2s]}, service: {exponential: 8ms}BUFFER}
    link: {delay: {exponential: 3ms}, reliability: 0.97}
    content: [{p: 0.7, event: {k: 1}}, {p: 0.3, event: {k: 2}, lifetime: 1s}]
  q: {at: hub, every: {uniform: [10ms, 90ms]}, content: {event: {k: 1}}}
  r:
    at: hub
    rates: {slot: 700ms, per_s: [5, 0, 60, 10]}
    connectivity: {on: 1s, off: {gamma: {mean: 300ms, shape: 2.5}}, service: 1msBUFFER}
    content: {event: {k: 2}}
  once: {at: hub, rates: {slot: 3s, per_s: [5, 30], repeat: false}, content: {event: {k: 2}}}
subscribers:
  plain: {at: hub, wants: {}}
  mobile:
    at: hub
    wants: {}
    lifetime: 2s
    connectivity:
      {on: {weibull: {mean: 2s, shape: 0.6}}, off: {lognormal: {mean: 1s, scv: 2}},
       service: {uniform: [0ms, 10ms]}BUFFER}
  both:
    at: east
    wants: {k: 1}
    link: {delay: {exponential: 4ms}, reliability: 0.9}
    connectivity: {on: {exponential: 3s}, off: {exponential: 1s}, service: {exponential: 9ms}BUFFER}
    processing: {exponential: 12ms}
  slow: {at: east, wants: {k: 2}, link: {delay: 2ms}, processing: {exponential: 20ms}, count: 3}
  replayed:
    at: east
    wants: {k: 2}
    connectivity: {trace: TRACE, replay: REPLAY, service: 4ms}
"""
CASES = {
    "kept": {"EXPIRED": "at subscriber", "BUFFER": "", "REPLAY": "resample"},
    "bounded": {"EXPIRED": "at hop", "BUFFER": ", buffer: 6", "REPLAY": "loop"},
    "expiring": {"EXPIRED": "in queue", "BUFFER": "", "REPLAY": "loop"},
    "expiring from small buffers": {
        "EXPIRED": "in queue",
        "BUFFER": ", buffer: 4",
        "REPLAY": "resample",
    },
}
TRACE = """peer,state,at_ns
x,connected,0
x,connected,300000000
x,disconnected,700000000
x,connected,1200000000
x,disconnected,2300000000
x,connected,2500000000
x,disconnected,3700000000
x,connected,4500000000
x,connected,4900000000
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    file = tmp_path_factory.mktemp("traces") / "sessions.csv"
    file.write_text(TRACE)
    return file


def the_system(name, trace):
    text = SYSTEM.replace("TRACE", str(trace))
    for key, value in CASES[name].items():
        text = text.replace(key, value)
    return loads(text)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("replication", [0, 1])
def test_counts_equal_those_of_the_obvious_twin(name, replication, trace):
    system = the_system(name, trace)
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
        assert found["wanted"] == found["delivered"] + counts.lost[unit].sum()
        assert found["wanted"] > 300
        bins = np.bincount(delay_grid.bin_of(delays[subscriber.name]), minlength=delay_grid.BINS)
        assert counts.curves[units.curves[unit]].sum(axis=0).tolist() == bins.tolist()
        assert counts.delay_sum_s[mine].sum() == pytest.approx(
            delays[subscriber.name].sum(), rel=1e-9
        )
    lost = dict(zip(KERNEL_CAUSES, counts.lost.sum(axis=0), strict=True))
    assert lost["link"] > 0
    assert (lost["overflow"] > 0) == bool(CASES[name]["BUFFER"])
    assert (lost["expired"] > 0) == (CASES[name]["EXPIRED"] != "at subscriber")
