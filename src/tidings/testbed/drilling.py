"""How long what was repaired takes to join again: every part that fails taken down on purpose.

A server that lost a neighbour tries again every ``RECONNECT_S``, so how long a repair waits to be
noticed depends on its phase: at which moment between two tries it comes. Real outages end at any;
so lengths down are drawn at random, spread evenly over one whole period.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tidings.model.progress import Progress
from tidings.model.system import System
from tidings.testbed.breaking import rejoinings
from tidings.testbed.outages import Outage, failing, with_reconnection
from tidings.testbed.running import require_whole, run_testbed
from tidings.testbed.runs import Rejoining, TestbedOptions
from tidings.testbed.servers import RECONNECT_S
from tidings.testbed.tables import doubts

_LEAST_DOWN_S, _UP_S = 0.4, 1.2  # long enough to be noticed, and to be over
_REPAIRS = 24  # at least so many are looked at
_PURPOSE = 12  # of the random numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconnection:
    """Times from a repair until events pass again, in seconds: means and standard deviations."""

    brokers_s: float
    links_s: float
    repairs: int
    brokers_sd_s: float = math.nan  # from repair to repair; NaN: fewer than two were seen
    links_sd_s: float = math.nan
    doubts: tuple[str, ...] = ()  # why they are not to be believed

    def added_to(self, system: System) -> System:
        """The system as events meet it: times down are longer by it."""
        return with_reconnection(system, self.brokers_s, self.links_s)


def drill(system: System, options: TestbedOptions, progress: Progress) -> Reconnection:
    """Take down everything that fails, one after the other, and see how long it takes to rejoin."""
    outages = drill_outages(system, options.seed)
    length = replace(options, warmup_s=0.0, duration_s=outages[-1].end_s + _UP_S)
    run = run_testbed(system, length, outages=outages, progress=progress)
    require_whole(run, "before all that fails had been taken down and repaired")
    rejoined = rejoinings(run)
    brokers_s, brokers_sd_s = _mean_and_deviation_s(
        rejoined, {each.name for each in system.brokers}
    )
    links_s, links_sd_s = _mean_and_deviation_s(rejoined, {each.name for each in system.links})
    return Reconnection(
        brokers_s=brokers_s,
        links_s=links_s,
        repairs=len(rejoined),
        brokers_sd_s=brokers_sd_s,
        links_sd_s=links_sd_s,
        doubts=tuple(f"repairs: {doubt}" for doubt in doubts(run)),
    )


def drill_outages(system: System, seed: int) -> list[Outage]:
    """One outage after the other, every part that fails as often as any other.

    Lengths down are uniform over one period of the reconnect timer, on top of a least length. They
    are stratified: all those of brokers cut the period into as many slices, one random length in
    each, and so do those of links; those of one part are in slices far apart.
    """
    generator = np.random.default_rng([seed, _PURPOSE])
    parts = failing(system)
    links = {link.name for link in system.links}
    kinds = [[each for each in parts if (each in links) is kind] for kind in (False, True)]
    rounds = math.ceil(_REPAIRS / len(parts))
    outages: list[Outage] = []
    begin_s = 0.0
    for turn in generator.permutation(rounds):
        for kind in kinds:
            for place, part in enumerate(kind):
                slice_ = (turn * len(kind) + place + generator.random()) / (rounds * len(kind))
                end_s = begin_s + _LEAST_DOWN_S + RECONNECT_S * float(slice_)
                outages.append(Outage(component=part, begin_s=begin_s, end_s=end_s))
                begin_s = end_s + _UP_S
    return outages


def _mean_and_deviation_s(rejoined: list[Rejoining], parts: set[str]) -> tuple[float, float]:
    took_s = [each.took_s for each in rejoined if each.component in parts]
    mean_s = float(np.mean(took_s)) if took_s else 0.0
    return mean_s, float(np.std(took_s, ddof=1)) if len(took_s) > 1 else math.nan
