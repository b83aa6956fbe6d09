"""A small network for tests with real servers, and how to see which of them run."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from tidings.testbed.runs import Run

HAS_MOSQUITTO = pytest.mark.skipif(
    not (shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin")),
    reason="there is no mosquitto here (on Debian: apt install mosquitto)",
)
LINE = """
tidings: 1
lifetime: 500ms
brokers:
  left: {service: 4ms}
  hub: {service: 3ms}
  right: {service: 5ms}
links:
  - {between: [left, hub], delay: 20ms}
  - {between: [right, hub], delay: 10ms, back: {delay: 30ms, reliability: 0.8}}
publishers:
  p:
    {at: left, every: {rate: 60/s}, link: {delay: 5ms},
     content:
       [{p: 0.5, event: {topic: a}}, {p: 0.3, event: {topic: b}}, {p: 0.2, event: {topic: c}}]}
subscribers:
  near: {at: left, wants: {topic: a}}
  far: {at: right, wants: {topic: [a, b]}, link: {delay: 7ms}}
"""


def servers_under(folder: Path) -> list[int]:
    """The servers that run now with their files under a folder, by process id."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"nats-server") and str(folder).encode() in b" ".join(words):
            found.append(int(place.parent.name))
    return found


def latest_s(run: Run) -> float:
    """How late this machine was at its worst."""
    return max(*run.published_late_s, *run.layout.journal.lateness_s, *run.connecting_s)


def skip_if_later(run: Run, limit_s: float) -> None:
    """What is certain only on a machine that keeps its times is not judged on one that did not."""
    if latest_s(run) > limit_s:
        pytest.skip(f"this machine was {latest_s(run):.2f} s late; at most {limit_s:g} s will do")


def wait_for(happened, seconds=90.0):
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)
