"""How long what was repaired takes to join again: every part that fails taken down on purpose."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tidings.model.system import System
from tidings.testbed.breaking import rejoinings
from tidings.testbed.outages import Outage, failing, with_reconnection
from tidings.testbed.pacing import Progress
from tidings.testbed.running import require_whole, run_testbed
from tidings.testbed.runs import Rejoining, TestbedOptions
from tidings.testbed.tables import doubts

_DOWN_S, _UP_S = 0.4, 1.2  # long enough to be noticed, and to be over
_REPAIRS = 12  # at least so many are looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconnection:
    """Mean times from a repair until events pass again, in seconds."""

    brokers_s: float
    links_s: float
    repairs: int
    doubts: tuple[str, ...] = ()  # why they are not to be believed

    def added_to(self, system: System) -> System:
        """The system as events meet it: times down are longer by it."""
        return with_reconnection(system, self.brokers_s, self.links_s)


def drill(system: System, options: TestbedOptions, progress: Progress) -> Reconnection:
    """Take down everything that fails, one after the other, and see how long it takes to rejoin."""
    parts = failing(system)
    rounds = math.ceil(_REPAIRS / len(parts))
    step_s = _DOWN_S + _UP_S
    outages = [
        Outage(component=part, begin_s=number * step_s, end_s=number * step_s + _DOWN_S)
        for number, part in enumerate(parts * rounds)
    ]
    length = replace(options, warmup_s=0.0, duration_s=len(outages) * step_s)
    run = run_testbed(system, length, outages=outages, progress=progress)
    require_whole(run, "before all that fails had been taken down and repaired")
    found = rejoinings(run)
    links = {link.name for link in system.links}
    return Reconnection(
        brokers_s=_mean_s(found, set(parts) - links),
        links_s=_mean_s(found, set(parts) & links),
        repairs=len(found),
        doubts=tuple(f"repairs: {doubt}" for doubt in doubts(run)),
    )


def _mean_s(found: list[Rejoining], parts: set[str]) -> float:
    took_s = [each.took_s for each in found if each.component in parts]
    return float(np.mean(took_s)) if took_s else 0.0
