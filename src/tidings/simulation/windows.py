"""Which part of a replication is measured: long enough for what fails, comes and goes to return.

A share that outages decide is known no better than the outages are counted. So all replications
together span many cycles of whatever is up and down by turns, if that can be afforded. What can be
is reckoned from the work that the system makes, not from a clock, so that a seed gives the same
numbers on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from tidings.errors import InvalidInputError
from tidings.kernels.replications import (
    MOST_PILOT_DOUBLINGS,
    PILOT_SAMPLES,
    PILOTS,
    detect_warmup,
)
from tidings.model.progress import Progress
from tidings.model.remarks import Remark
from tidings.simulation.options import SimulationOptions
from tidings.simulation.settling import ENOUGH, relaxation_s
from tidings.simulation.world import Window, make_world, run_world

if TYPE_CHECKING:
    from tidings.simulation.groups import Group
    from tidings.simulation.network import CompiledSystem

USUAL_EVENTS = 50_000  # published in each replication when nothing else is asked for
MOST_EVENTS = 1e12  # the same; so many take days
PILOT_EVENTS, FEWEST_PILOT_EVENTS = 5_000, 250
CYCLES = 400  # of what is up and down by turns: its share of time is then known to about a tenth
FEWEST_CYCLES = 20  # that a half-width is believed after
# Reckoned CPU time of one event at one broker: a plain one takes 0.15 µs (benchmarks/simulator.py),
# one among failures several times as long.
VISIT_S = 5e-7
LOOKED_AT = 0.07  # visits: each partition of a group is looked at for each of its events
HANDED_OUT, MOST_AGAIN = 2, 10  # visits of each delivery, and so many of each event
LEAST = 0.01  # of the usual length, however short the time allowed
PILOTED = 0.5  # of the seconds allowed, for all pilot runs: the longest take half of it
# Of a queue near full load, that all replications together span: as many backlogs.
RELAXATIONS = 100
WARMING = 0.5  # of the time of a replication, where a queue near full load starts empty
PLANNED = 0.5  # of the seconds allowed, for the first replications; others may follow


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """Something that is up and down by turns, and what one turn of it takes in the mean."""

    name: str
    length_s: float
    down: float  # share of the time

    def needed_s(self, precision: float | None) -> float:
        r"""Give the measured time, in seconds, in which it comes round often enough.

        Over n cycles the share of time down, u, is known with a standard error of about
        :math:`u \sqrt{2/n}` (exponential times). Four of those are to be within the precision.
        """
        if precision is None:
            return CYCLES * self.length_s
        enough = 32.0 * (self.down / precision) ** 2
        return min(max(enough, FEWEST_CYCLES), CYCLES) * self.length_s


def cycles(compiled: CompiledSystem) -> Iterator[Cycle]:
    """Give all that is up and down by turns: what fails, peers, bursts, subscriptions."""
    for name, failure, _ in compiled.faults.failures:
        length_s = failure.up.mean_s + failure.down.mean_s
        yield Cycle(name=name, length_s=length_s, down=failure.down.mean_s / length_s)
    for queue in compiled.peer_queues:
        if queue.periods is not None:
            down = 1.0 - queue.periods.connected
            yield Cycle(name=queue.peer, length_s=queue.cycle_s, down=down)
    for group in compiled.groups:
        for member in group.members:
            if member.failure is not None:
                length_s = member.failure.up.mean_s + member.failure.down.mean_s
                name = f"{group.name}, member {member.name}"
                yield Cycle(name=name, length_s=length_s, down=1.0 - member.failure.availability)
    for burst in compiled.bursts:
        yield Cycle(name="bursts", length_s=burst.cycle_s, down=1.0 - burst.share_on)
    for index, _ in compiled.churn.churners[: compiled.churn.watched]:
        churner = compiled.system.subscribers[index]
        assert churner.stays is not None
        away_s = churner.away.mean_s if churner.away is not None else 0.0
        # How soon a subscription is known decides its shares, so that each stay counts.
        yield Cycle(
            name=f"subscriber {churner.name}", length_s=churner.stays.mean_s + away_s, down=0.5
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What comes round most rarely among all that matters, and how long it has to be watched."""

    cycle: Cycle
    needed_s: float

    def trials(self, measured_s: float) -> float:
        """Count the independent trials of being up or down that so many seconds amount to."""
        return measured_s / self.cycle.length_s / (2.0 * self.cycle.down)

    def remarks(self, measured_s: float) -> list[Remark]:
        """Say how many cycles were spanned where these are too few."""
        if measured_s >= 0.99 * self.needed_s:
            return []
        return [
            Remark(
                kind="few cycles",
                what="too few failures or disconnections fit in the simulated time, so "
                "on-time shares depend on chance",
                where=(self.cycle.name,),
                size=measured_s / self.cycle.length_s,
                unit="cycles of up and down",
                do="simulate longer (a longer duration, more replications or more seconds)",
            )
        ]


def find_span(compiled: CompiledSystem, precision: float | None) -> Span | None:
    """Find what has to be watched longest; None where nothing is up and down by turns."""
    spans = [Span(cycle=each, needed_s=each.needed_s(precision)) for each in cycles(compiled)]
    return max(spans, key=lambda each: each.needed_s, default=None)


def find_window(
    compiled: CompiledSystem,
    options: SimulationOptions,
    tell: Progress,
    span: Span | None = None,
) -> tuple[Window, list[Remark]]:
    """Find which part of a replication is measured, and what to know about it."""
    rate = float(compiled.publisher_rates.sum())
    asked_s = options.duration_s or (options.events / rate if options.events else None)
    length_s = asked_s or USUAL_EVENTS / rate
    _refuse_endless(rate, length_s + (options.warmup_s or 0.0))
    warmup_s = options.warmup_s
    remarks: list[Remark] = []
    if compiled.day_s:
        length_s, remarks = _whole_days(compiled, options, length_s)
    if warmup_s is None:
        # The day or the record before: it tells nothing of a state that takes longer to reach.
        warmup_s = compiled.day_s or compiled.record_s
        if compiled.has_queues and not warmup_s:
            tell("pilot runs for the warm-up")
            events, doublings = _pilot_events(compiled, options)
            pilot = _pilot(compiled, options)
            warmup_s, remarks = detect_warmup(pilot, events / rate, tell, doublings)
        warmup_s = max(warmup_s, compiled.settling_s, _affordable_warmup_s(compiled, options))
    if asked_s is None and not compiled.day_s:
        length_s = _affordable(compiled, options, length_s, span, warmup_s)
    window = Window(warmup_s=warmup_s, end_s=warmup_s + length_s, max_copies=options.max_copies)
    return window, remarks


def _visits_per_s(compiled: CompiledSystem) -> float:
    """Count what one simulated second makes a run do: events at brokers and at peers."""
    at_peers = float(compiled.peer_arrivals.sum()) if compiled.peer_queues else 0.0
    groups = zip(compiled.groups, compiled.group_arrivals.tolist(), strict=True)
    at_groups = sum(_visits_of_group(group, rate) for group, rate in groups)
    flow = float(compiled.publisher_rates.sum() + compiled.cells.flow_per_s.sum())
    return flow + at_peers + at_groups


def _visits_of_group(group: Group, arriving_per_s: float) -> float:
    """Count what a group does beside what a plain subscriber would.

    It may hand out again whatever its members can handle.
    """
    visits = LOOKED_AT * len(group.owners) * arriving_per_s
    if group.consumers.acknowledges:
        visits += HANDED_OUT * min(group.able_per_s, MOST_AGAIN * arriving_per_s)
    return visits


def affordable_s(compiled: CompiledSystem, seconds: float) -> float:
    """Reckon how long a system can be simulated in so many CPU seconds, in its own seconds."""
    return seconds / (VISIT_S * _visits_per_s(compiled))


def _affordable_warmup_s(compiled: CompiledSystem, options: SimulationOptions) -> float:
    """Compute how long queues near full load take to forget their start, as far as affordable."""
    each_s = PLANNED * options.planned_seconds / options.first_replications
    return min(ENOUGH * relaxation_s(compiled), WARMING * affordable_s(compiled, each_s))


def _affordable(
    compiled: CompiledSystem,
    options: SimulationOptions,
    usual_s: float,
    span: Span | None,
    warmup_s: float,
) -> float:
    """Choose how long to measure in each replication where nobody said it, in seconds."""
    often = options.first_replications
    # What other records would say varies as replications do that are as long as the record.
    wanted_s = max(compiled.record_s or usual_s, span.needed_s / often if span else 0.0)
    wanted_s = max(wanted_s, RELAXATIONS * relaxation_s(compiled) / often)
    most_s = affordable_s(compiled, PLANNED * options.planned_seconds / often)
    # Without a limit on its seconds nobody waits less than is usual.
    least_s = usual_s if options.seconds is None else max(warmup_s, LEAST * usual_s)
    return max(min(wanted_s, most_s - warmup_s), min(least_s, wanted_s))


def _pilot_events(compiled: CompiledSystem, options: SimulationOptions) -> tuple[float, int]:
    """Count the events of each pilot run, and how often these may be doubled.

    Fewer, and less often, where pilot runs would take a good part of the time.
    """
    if options.seconds is None:
        return PILOT_EVENTS, MOST_PILOT_DOUBLINGS
    visits = _visits_per_s(compiled) / float(compiled.publisher_rates.sum())
    most = options.seconds / (PILOTS * VISIT_S * visits)  # in all seconds allowed
    events = min(PILOT_EVENTS, max(0.1 * most, FEWEST_PILOT_EVENTS))
    doublings = math.floor(math.log2(max(0.5 * PILOTED * most / events, 1.0)))
    return events, min(doublings, MOST_PILOT_DOUBLINGS)


def _refuse_endless(rate_per_s: float, length_s: float) -> None:
    events = rate_per_s * length_s
    if events > MOST_EVENTS:
        raise InvalidInputError(
            f"each replication would last {length_s:.3g} s and publish {events:.3g} "
            f"events; wants at most {MOST_EVENTS:.0e}: give a shorter duration, or fewer "
            "events"
        )


def _whole_days(
    compiled: CompiledSystem, options: SimulationOptions, length_s: float
) -> tuple[float, list[Remark]]:
    """Compute how long to measure where rates change, in seconds.

    Measuring begins with a day, and lasts whole days unless a duration is given.
    """
    day_s = compiled.day_s
    if options.duration_s is None:
        again = any(each.rates and each.rates.repeat for each in compiled.system.publishers)
        again = again or any(each.cycle_s for each in compiled.records)
        again = again or compiled.delay_day_s > 0.0
        length_s = compiled.record_s or length_s
        return day_s * (max(1, math.ceil(length_s / day_s - 1e-9)) if again else 1), []
    days = length_s / day_s
    if abs(days - round(days)) < 1e-9 * days:
        return length_s, []
    remark = Remark(
        kind="part of a day",
        what="rates change by time of day, but the simulated time is not a whole number of "
        "days, so some hours weigh more than others",
        size=days,
        unit="days",
        do="give a duration of whole days",
    )
    return length_s, [remark]


def _pilot(
    compiled: CompiledSystem, options: SimulationOptions
) -> Callable[[int, float], ArrayLike]:
    """Make a pilot run that notes how many copies there are at regular moments."""

    def pilot(number: int, length_s: float) -> ArrayLike:
        window = Window(
            warmup_s=0.0, end_s=length_s, samples=PILOT_SAMPLES, max_copies=options.max_copies
        )
        world = make_world(compiled, window, options.seed, number)
        run_world(world, compiled, window)
        copies: ArrayLike = world.tables["samples"].copies
        return copies

    return pilot
