"""A live system to watch: real brokers in a tree, traffic, and something that goes wrong.

The traffic runs in a process of its own, which ends with this one: it must keep its times while
Spark counts beside it.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidings.demonstration.mishaps import CUT, OFTEN, SLOW, TIMES_AS_OFTEN, TIMES_SLOWER, Mishap
from tidings.errors import EngineError
from tidings.model import reading
from tidings.model.system import System

if TYPE_CHECKING:
    from tidings.testbed.runs import Run


RECORDED_S, WARMUP_S = 2.0, 6.0  # between two files of a table; before the first
_LOOK_S, _PATIENCE_S = 0.5, 20.0
_STOP_FILE = "stop"
_APART_S = 7.0  # copies of what is still to be published: independent of it
SYSTEM = f"""
tidings: 1
description: a small shop
lifetime: 500ms
brokers:
  north: {{service: {{exponential: 4ms}}}}
  {SLOW}: {{service: {{exponential: 5ms}}}}
  south: {{service: {{exponential: 4ms}}}}
links:
  - {{between: [north, {SLOW}], delay: {{exponential: 40ms}}}}
  - {{between: [{SLOW}, south], delay: {{exponential: 40ms}}}}
publishers:
  orders:
    {{at: north, link: {{delay: 40ms}}, every: {{exponential: 50ms}},
     content: [{{p: 1, event: {{topic: orders}}}}]}}
  prices:
    {{at: south, link: {{delay: 40ms}}, every: {{exponential: 50ms}},
     content: [{{p: 1, event: {{topic: prices}}}}]}}
subscribers:
  warehouse: {{at: south, link: {{delay: 40ms}}, target: 0.97, wants: {{topic: orders}}}}
  till: {{at: north, link: {{delay: 40ms}}, target: 0.97, wants: {{topic: prices}}}}
  audit: {{at: {SLOW}, link: {{delay: 40ms}}, target: 0.97, wants: {{topic: orders}}}}
"""


def small_shop() -> System:
    """Give the system that is played, as it is before anything goes wrong."""
    return reading.loads(SYSTEM)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTraffic:
    """Traffic on real brokers that goes on; its traces come into ``traces``."""

    folder: Path
    process: subprocess.Popen[str]

    @property
    def traces(self) -> Path:
        """The folder that trace tables come into."""
        return self.folder / "traces"

    def let(self, mishap: Mishap) -> None:
        """Let something go wrong from now on."""
        (self.folder / mishap).touch()

    def check(self) -> None:
        """Raise :class:`EngineError` where the traffic has ended."""
        if self.process.poll() is not None:
            said = "" if self.process.stderr is None else self.process.stderr.read().strip()
            raise EngineError(f"the brokers of the demo have ended: {said[-500:]}")


@contextmanager
def traffic(folder: Path, *, duration_s: float, seed: int) -> Iterator[LiveTraffic]:
    """Run traffic on real brokers beside this process while the block runs."""
    (folder / "traces").mkdir(parents=True)
    words = [sys.executable, "-m", __name__, str(folder), str(duration_s), str(seed)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield LiveTraffic(folder=folder, process=process)
        finally:
            (folder / _STOP_FILE).touch()  # it takes its brokers with it
            try:
                process.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()


def play(folder: Path, duration_s: float, seed: int) -> None:
    """Run the traffic, recorded as it goes on, until somebody asks for its end."""
    from tidings.testbed.live import Recorder
    from tidings.testbed.running import run_testbed
    from tidings.testbed.runs import TestbedOptions

    async def record(run: Run) -> None:
        await Recorder(run=run, folder=folder / "traces").record(RECORDED_S)

    async def obey(run: Run) -> None:
        parent, begun = os.getppid(), set[Mishap]()
        while os.getppid() == parent and not (folder / _STOP_FILE).exists():
            for mishap in Mishap:
                if mishap not in begun and (folder / mishap).exists():
                    begun.add(mishap)
                    await _begin(mishap, run)
            await asyncio.sleep(_LOOK_S)
        raise EngineError("the demo is over")

    options = TestbedOptions(
        duration_s=duration_s, warmup_s=WARMUP_S, seed=seed, most_events=200_000
    )
    run_testbed(small_shop(), options, beside=(record, obey))


async def _begin(mishap: Mishap, run: Run) -> None:
    """Let something go wrong in a run."""
    from tidings.testbed.runs import StateChange

    match mishap:
        case Mishap.SLOW:
            station = run.layout.stations[SLOW]
            service = station.service
            station.service = lambda: TIMES_SLOWER * service()
        case Mishap.CUT:
            for relay in run.layout.links[CUT]:
                await relay.cut()
            at_s = asyncio.get_running_loop().time()
            run.states.append(StateChange(component=CUT, is_up=False, at_s=at_s))
        case Mishap.BURST:
            (publisher,) = (n for n, one in enumerate(run.system.publishers) if one.name == OFTEN)
            done = len(run.published) + 1  # one may be waiting for its moment
            ahead = [each for each in run.publications[done:] if each.publisher == publisher]
            until_s = run.publications[-1].at_s
            more = [
                replace(each, event=f"{each.event}.{copy}", at_s=each.at_s - copy * _APART_S)
                for copy in range(1, TIMES_AS_OFTEN)
                for each in ahead
            ]
            now_s = asyncio.get_running_loop().time() - run.start_s
            soon = [each for each in more if now_s < each.at_s < until_s]
            run.publications[done:] = sorted(
                [*run.publications[done:], *soon], key=lambda each: each.at_s
            )


if __name__ == "__main__":
    play(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
