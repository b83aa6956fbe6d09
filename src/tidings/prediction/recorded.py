r"""How far an answer from recorded times can be off because another time is not the recorded one.

Three things are open. A record of a length T is itself a draw: blocks of it come at random, so that
shares of runs of a time t in all vary as those of other records do, with a variance of v/t; a
record leaves v/T open, and :math:`v/t + v/T = (v/t)(1 + t/T)`. Whatever lasts longer than blocks is
seen in parts of the record: eighths are played one by one, and the time to come is taken to differ
from the record as much as one of them does from all. And as parts that were never late say nothing
of a time with more events, the whole is played faster and slower, by as much as rates of the parts
differ. Nothing averages out in the latter two, because nobody knows how long it lasts.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from tidings.model.arrays import Floats
from tidings.model.outcome import Outcome
from tidings.model.remarks import Remark
from tidings.model.system import System
from tidings.simulation.network import CompiledSystem, compile_system
from tidings.simulation.stretches import Played, RecordStretch, equal_parts, events_in, play
from tidings.simulation.windows import affordable_s

SHARE = 0.5  # of the seconds allowed: what stretches may take beside what is simulated
SLOWEST = 0.1  # of the recorded rate, however much the parts differ
PROMISE = 0.05  # half-width (95 %) from which on an answer is not to be relied upon
TWO_SIDED = 1.96
UNLIKE = (
    "the recording is too short, or traffic changed too much during it, to predict other times "
    "from it, so on-time shares may be off"
)
DO = "record for longer, or record the kind of traffic that you want to predict"


def with_record_errors(simulated: Outcome, system: System, seconds: float, seed: int) -> Outcome:
    """Give a simulated outcome whose standard errors hold what a record leaves open.

    A record that is looped tells nothing of it.
    """
    compiled = compile_system(system)
    drawn = [each for each in compiled.records if each.block_s < each.length_s]
    if not drawn:
        return simulated
    shortest = min(drawn, key=lambda each: each.length_s)
    story = simulated.provenance
    measured_s = story["replications"] * story["duration_s"]
    rows = simulated.subscribers.copy()
    chance = rows["on_time_se"].to_numpy() * math.sqrt(measured_s / shortest.length_s)
    stretches = _Stretches(
        compiled=compiled, length_s=shortest.length_s, seconds=SHARE * seconds, seed=seed
    )
    left_open = np.hypot(chance, stretches.unlike(equal_parts(shortest)))
    rows["on_time_se"] = np.minimum(np.hypot(rows["on_time_se"], left_open), 1.0)
    remarks = (*simulated.remarks, *_remarks(rows["subscriber"].to_numpy(), TWO_SIDED * left_open))
    return dataclasses.replace(simulated, subscribers=rows, remarks=remarks)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretches:
    """Stretches of the record of one system, each played for as long as can be afforded."""

    compiled: CompiledSystem
    length_s: float
    seconds: float
    seed: int

    def unlike(self, parts: list[RecordStretch]) -> Floats:
        """Find the standard deviation of on-time shares between times like these parts."""
        count = len(self.compiled.asked.subscribers)
        if len(parts) < 2:
            return np.zeros(count)
        most_s = affordable_s(self.compiled, self.seconds / (len(parts) + 3))
        rates = events_in(self.compiled, parts)
        spread = float(rates.std(ddof=1) / rates.mean())
        played = [self._play(each, most_s) for each in parts]
        speeds = (1.0, 1.0 + spread, max(1.0 - spread, SLOWEST))
        shares = [_shares(self._play(RecordStretch(speed=each), most_s)) for each in speeds]
        moved = np.maximum(abs(shares[1] - shares[0]), abs(shares[2] - shares[0]))
        return np.hypot(_between(played), moved)

    def _play(self, stretch: RecordStretch, most_s: float) -> Played:
        played = play(self.compiled, stretch, length_s=self.length_s, most_s=most_s, seed=self.seed)
        if played is not None:
            return played
        nothing = np.zeros(len(self.compiled.asked.subscribers))
        return Played(wanted=nothing + 1.0, on_time=nothing)  # more waits than can be simulated


def _shares(played: Played) -> Floats:
    """Compute the shares of wanted events that were on time; 0 where nothing is wanted."""
    shares: Floats = played.on_time / np.maximum(played.wanted, 1.0)
    return shares


def _between(played: list[Played]) -> Floats:
    """Find the standard deviation between parts of a ratio of sums, each with its own weight."""
    wanted = np.array([each.wanted for each in played])
    on_time = np.array([each.on_time for each in played])
    share = on_time.sum(axis=0) / np.maximum(wanted.sum(axis=0), 1.0)
    apart = (on_time - share * wanted) / np.maximum(wanted.mean(axis=0), 1.0)
    spread: Floats = np.sqrt((apart**2).sum(axis=0) / (len(played) - 1))
    return spread


def _remarks(names: Floats, half_widths: Floats) -> list[Remark]:
    over = np.flatnonzero(half_widths > PROMISE)
    if not over.size:
        return []
    worst = over[np.argsort(-half_widths[over], kind="stable")]
    return [
        Remark(
            kind="record",
            what=UNLIKE,
            where=tuple(map(str, names[worst[:20]])),
            size=min(float(half_widths[worst[0]]), 1.0),
            unit="at worst (half-width, 95 %)",
            do=DO,
        )
    ]
