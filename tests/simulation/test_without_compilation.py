"""The kernel is plain Python too: with compilation off it counts the same, to the last event."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tidings.model.reading import loads
from tidings.simulation.run import replicate

SYSTEM = """
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
OPTIONS = {"seed": 2, "replication": 0, "warmup_s": 0.5, "duration_s": 4.0}
SCRIPT = f"""
import json
from tidings.kernels.compile import IS_COMPILING
from tidings.model.reading import loads
from tidings.simulation.run import replicate
assert not IS_COMPILING
system = loads('''{SYSTEM}''')
counts = replicate(system, **{OPTIONS!r})
print(json.dumps([counts.wanted.tolist(), counts.on_time.tolist(), counts.lost.tolist(),
    counts.delay_sum_s.tolist(), counts.curves.sum(axis=0).tolist()]))
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
    wanted, on_time, lost, delays, curve = json.loads(done.stdout)
    counts = replicate(loads(SYSTEM), **OPTIONS)
    assert sum(wanted) > 300
    assert wanted == counts.wanted.tolist()
    assert on_time == counts.on_time.tolist()
    assert lost == counts.lost.tolist()
    assert curve == counts.curves.sum(axis=0).tolist()
    assert delays == pytest.approx(counts.delay_sum_s.tolist(), rel=1e-12)
