"""The kernel is plain Python too: with compilation off it counts the same, to the last event."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tidings.model.reading import loads
from tidings.simulation.run import replicate

PLAIN = """
tidings: 1
lifetime: 60ms
expired: in queue
brokers:
  hub: {service: {exponential: 8ms}, buffer: 3}
  east: {service: {uniform: [0ms, 30ms]}, servers: 2}
links: [{between: [hub, east], delay: {exponential: 5ms}, reliability: 0.9}]
publishers:
  p:
    at: east
    every: {exponential: 14ms}
    content: [{p: 0.6, event: {k: 1}}, {p: 0.4, event: {k: 2}, lifetime: {exponential: 30ms}}]
subscribers:
  a: {at: hub, wants: {k: 1}}
  b: {at: east, wants: {}, link: {reliability: 0.9, delay: 1ms}}
"""
FAILING = """
tidings: 1
lifetime: 3s
recovery: {scheme: bypass-buffering, refresh: 400ms, timeout: 700ms, detection: 20ms}
routing: {root: hub}
failure_groups: {site: {members: [east, far--hub], failure: {mtbf: 4s, mttr: 500ms}}}
brokers:
  hub: {service: {exponential: 8ms}, failure: {mtbf: 2s, mttr: 200ms}}
  east: {failure: {up: {weibull: {mean: 2s, shape: 0.5}}, down: {uniform: [0s, 1s]}}}
  far: {service: {exponential: 8ms}, failure: {mtbf: 2s, mttr: 200ms}}
links:
  - {between: [hub, east], delay: {exponential: 5ms}, reliability: 0.9}
  - {between: [hub, far], failure: {mtbf: 2s, mttr: 1s}}
  - {between: [east, far], delay: 2ms, failure: {mtbf: 2s, mttr: 300ms}}
publishers:
  p: {at: east, every: {exponential: 14ms}, content: {event: {k: 1}}}
subscribers:
  a: {at: hub, wants: {k: 1}}
  b: {at: far, wants: {}, link: {reliability: 0.9, delay: 1ms}}
"""
BYPASS = FAILING.replace("bypass-buffering", "bypass")
MOBILE = """
tidings: 1
lifetime: {exponential: 500ms}
expired: in queue
brokers: {hub: {service: {exponential: 8ms}}}
publishers:
  p:
    at: hub
    rates: {slot: 100ms, per_s: [0, 150]}
    connectivity: {on: {exponential: 1s}, off: {uniform: [0s, 1s]}, service: 1ms, buffer: 9}
    content: {event: {k: 1}}
subscribers:
  a:
    at: hub
    wants: {k: 1}
    connectivity: {on: {exponential: 1s}, off: 200ms, service: {exponential: 2ms}, buffer: 3}
    processing: {exponential: 9ms}
  b: {at: hub, wants: {}, link: {reliability: 0.9, delay: 1ms}, processing: 5ms}
"""
LINES = """
tidings: 1
lifetime: 60ms
expired: in queue
event_type: k
brokers:
  hub:
    service: {exponential: 8ms}
    buffer: 3
    discipline: priority
    priorities: {x: 1}
    disk: {demands: {x: 2ms, y: {exponential: 4ms}}, servers: 2, buffer: 2}
    failure: {mtbf: 2s, mttr: 100ms}
  east:
    cpu: {service: {exponential: 9ms}, discipline: processor-sharing, buffer: 5}
    out: {demands: {x: 1ms, y: {uniform: [0ms, 30ms]}}, discipline: infinite-server}
links: [{between: [hub, east], delay: {exponential: 5ms}}]
publishers:
  p:
    at: east
    every: {exponential: 10ms}
    content: [{p: 0.6, event: {k: x}}, {p: 0.4, event: {k: y}}]
subscribers:
  a: {at: hub, wants: {}}
  b: {at: east, wants: {k: y}, link: {reliability: 0.9, delay: 1ms}}
"""
WIRES = """
tidings: 1
lifetime: 60ms
size: 1kB
networks: {air: {bandwidth: 200kB/s, duplex: half}}
brokers: {hub: {service: {exponential: 3ms}}, east: {}}
links:
  - {between: [hub, east], bandwidth: 150kB/s, reliability: 0.9, loss_burst: 4,
     failure: {mtbf: 1s, mttr: 100ms}}
publishers:
  p:
    at: east
    every: {exponential: 9ms}
    content: {event: {k: 1}}
    link: {bandwidth: 150kB/s, delay: 5ms, failure: {mtbf: 1s, mttr: 100ms}}
subscribers:
  a: {at: hub, wants: {k: 1}, link: {network: air, reliability: 0.9}}
  b: {at: hub, wants: {}, link: {delay: 1ms, failure: {mtbf: 1s, mttr: 300ms}}}
  c: {at: east, wants: {}, processing: 1ms, link: {network: air, failure: {mtbf: 1s, mttr: 50ms}}}
"""
GROUPS = """
tidings: 1
lifetime: 60ms
brokers:
  hub: {service: {exponential: 3ms}, buffer: 3, when_full: block, disk: {service: 1ms}}
  east: {cpu: {service: 1ms}}
links: [{between: [hub, east], delay: {exponential: 5ms}, reliability: 0.9}]
publishers:
  p:
    at: east
    every: {exponential: 14ms}
    content: {event: {k: 1}}
    batch: {size: 3, linger: 20ms}
  q:
    at: hub
    every: {exponential: 9ms}
    content: [{p: 0.7, event: {k: 1}}, {p: 0.3, event: {k: 2}}]
    connectivity: {on: {exponential: 1s}, off: 200ms}
    when_blocked: pause
subscribers:
  a:
    at: hub
    wants: {k: 1}
    processing: {exponential: 9ms}
    link: {delay: 1ms, reliability: 0.95, failure: {mtbf: 2s, mttr: 100ms}}
    consumers:
      members: {x: {failure: {mtbf: 1s, mttr: 200ms}}, y: {count: 2}}
      partitions: {count: 4, shares: [0.4, 0.3, 0.2, 0.1], rebalance: 50ms}
      prefetch: 4
      ack_wait: 40ms
      deliveries: 3
  b:
    at: east
    wants: {}
    processing: {exponential: 12ms}
    consumers: {count: 2, choose: random, buffer: 6, when_full: block, in_flight: 3}
  c:
    at: hub
    wants: {k: 1}
    processing: {exponential: 20ms}
    consumers: {count: 2, fetch: {size: 4, linger: 15ms, handled: together}, choose: least busy}
  d: {at: hub, wants: {k: 2}, processing: 9ms, consumers: {buffer: 2, when_full: drop old}}
  e: {at: hub, wants: {k: 2}, processing: 9ms, consumers: {fetch: {size: 4, linger: 30ms}}}
"""
SYSTEMS = {
    "groups": GROUPS,
    "plain": PLAIN,
    "lines": LINES,
    "wires": WIRES,
    "failing": FAILING,
    "bypass": BYPASS,
    "mobile": MOBILE,
}
OPTIONS = {"seed": 2, "replication": 0, "warmup_s": 0.5, "duration_s": 4.0}
SCRIPT = f"""
import json
from tidings.kernels.compile import IS_COMPILING
from tidings.model.reading import loads
from tidings.simulation.run import replicate
assert not IS_COMPILING
for text in {list(SYSTEMS.values())!r}:
    counts = replicate(loads(text), **{OPTIONS!r})
    print(json.dumps([counts.wanted.tolist(), counts.on_time.tolist(), counts.lost.tolist(),
        counts.delay_sum_s.tolist(), counts.curves.sum(axis=0).tolist(), counts.duplicates]))
"""


@pytest.mark.slow
def test_counts_are_the_same_without_compilation():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for name, line in zip(SYSTEMS, lines, strict=True):
        wanted, on_time, lost, delays, curve, duplicates = json.loads(line)
        counts = replicate(loads(SYSTEMS[name]), **OPTIONS)
        assert sum(wanted) > 300, name
        assert wanted == counts.wanted.tolist(), name
        assert on_time == counts.on_time.tolist(), name
        assert lost == counts.lost.tolist(), name
        assert curve == counts.curves.sum(axis=0).tolist(), name
        assert duplicates == counts.duplicates, name
        assert (duplicates > 0) == (name == "failing")
        assert delays == pytest.approx(counts.delay_sum_s.tolist(), rel=1e-12)


SPLIT = """
import json, sys
import numpy as np
from tidings.kernels.compile import IS_COMPILING
from tidings.model.reading import loads
from tidings.simulation.network import compile_system
from tidings.simulation.run import replications
from tidings.simulation.splitting import Splitting
from tidings.simulation.world import Window
assert IS_COMPILING == (sys.argv[1] == "compiled")
compiled = compile_system(loads(sys.argv[2]))
urgency, levels = np.array([100], dtype=np.int64), np.array([100, 200, 400], dtype=np.int64)
splitting = Splitting(urgency=urgency, upper=levels[1:], lower=levels[:-1], room=64)
window = Window(warmup_s=0.5, end_s=4.5)
counts = next(replications(compiled, window, 2, [0], splitting=splitting))
print(json.dumps([counts.wanted.tolist(), counts.late.tolist(), counts.lost.tolist()]))
"""
ONE_QUEUE = """
tidings: 1
lifetime: 60ms
brokers: {hub: {service: {exponential: 8ms}, buffer: 9}}
publishers: {p: {at: hub, every: {rate: 100/s}, content: {event: {k: 1}}}}
subscribers: {a: {at: hub, wants: {}}}
"""


@pytest.mark.slow
def test_retrials_count_the_same_without_compilation():
    lines = []
    for how, disable in (("compiled", "0"), ("plain", "1")):
        done = subprocess.run(
            [sys.executable, "-c", SPLIT, how, ONE_QUEUE],
            env=os.environ | {"NUMBA_DISABLE_JIT": disable},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        lines.append(json.loads(done.stdout))
    assert lines[0] == lines[1]
    _, late, lost = lines[0]
    assert late[0] % 1.0 > 0.0  # by weight
    assert sum(lost[0]) > 0.0
