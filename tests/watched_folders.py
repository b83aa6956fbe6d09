"""Folders of watched systems, made up: a writer of states as ``tidings watch`` writes them."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

from tidings.watching.state import (
    EVERYBODY,
    Alarm,
    Health,
    Share,
    Standing,
    State,
)
from tidings.watching.state import write_state as write

SECOND = 1_000_000_000
SYSTEM = """
tidings: 1
lifetime: 1s
brokers:
  north: {service: {exponential: 3ms}}
  hub: {service: {exponential: 3ms}}
  south: {service: {exponential: 3ms}}
links:
  - {between: [north, hub], delay: {exponential: 10ms}}
  - {between: [hub, south], delay: {exponential: 10ms}}
publishers:
  feed: {at: north, every: {exponential: 1s}, content: [{p: 1, event: {topic: a}}]}
subscribers:
"""


def share(value: float, half: float = 0.01) -> Share:
    return Share(share=value, low=max(0.0, value - half), high=min(1.0, value + half))


def standing(index: int, name: str) -> Standing:
    """The first is far below its promise, the fourth and later ones keep it."""
    measured = min(0.995, 0.9 + 0.03 * index)
    return Standing(
        name=name,
        promised=0.99,
        measured=share(measured, 0.003),
        predicted=share(0.993, 0.002),
        wanted=1000,
        burn_rates={"5m": (1 - measured) / 0.01, "1h": 0.5 * (1 - measured) / 0.01},
        median_s=0.02,
        p99_s=0.9,
        cause="waiting at south" if index < 3 else "",
    )


ALARM = Alarm(
    name="target:first",
    kind="target",
    where=("client 0", "south"),
    what="fewer events on time than promised",
    size=0.09,
    unit="share",
    since_ns=0,
    cause="waiting at south",
    do="double the speed of south",
)


def made_state(names: list[str], **changes) -> State:
    """A state of now with these subscribers, the first of which are late."""
    now_ns = time.time_ns()
    state = State(
        at_ns=now_ns,
        system="city",
        window_s=300.0,
        standings=(
            Standing(
                name=EVERYBODY,
                promised=0.99,
                measured=share(0.97),
                predicted=share(0.993, 0.002),
                wanted=1000 * len(names),
                burn_rates={"5m": 3.0, "1h": 1.5},
                median_s=0.02,
                p99_s=0.9,
                cause="waiting at south",
            ),
            *(standing(index, name) for index, name in enumerate(names)),
        ),
        alarms=(replace(ALARM, since_ns=now_ns - 600 * SECOND),),
        health=Health(batch=7, rows=4200, batch_s=1.5, trigger_s=10.0, behind_s=2.0),
        backlogs={"south": 120, "hub": 3},
    )
    return replace(state, **changes)


def write_state(folder: Path, state: State) -> State:
    """Write a state as who watches does, and give it back."""
    write(folder, state)
    return state


def write_system(folder: Path, names: list[str]) -> str:
    """Write a system file with these subscribers at south; gives its path."""
    people = "".join(
        f"  {json.dumps(name)}: {{at: south, wants: {{topic: a}}}}\n" for name in names
    )
    (folder / "system.yaml").write_text(SYSTEM + people)
    return str(folder / "system.yaml")
