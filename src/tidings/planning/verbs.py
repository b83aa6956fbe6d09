"""Plans as Python asks for them: a system, typed options, an answer."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

from tidings.errors import InvalidInputError
from tidings.model.outcome import Outcome
from tidings.model.progress import Progress
from tidings.model.system import System
from tidings.planning.admission import Admission, Admissions, newcomer_like
from tidings.planning.capacity import Capacity, least_copies, least_speed
from tidings.planning.choices import ALL, SCHEME_SECONDS, SECONDS
from tidings.planning.consumers import ConsumersPlan, plan_group
from tidings.planning.deadlines import LEVELS, Deadlines, shortest_lifetimes
from tidings.planning.evidence import Evidence, Play, Target, weigh
from tidings.planning.gating import Gate, hold
from tidings.planning.homes import HomesAdvice, assign_homes, search_for
from tidings.planning.mix import Mix, cheapest_mix
from tidings.planning.objectives import read_objectives, with_objectives
from tidings.planning.scenarios import Difference, Scenario, difference
from tidings.planning.schemes import SchemeAdvice, compare_schemes
from tidings.prediction.predict import PredictOptions, predict
from tidings.simulation import run
from tidings.simulation.options import SimulationOptions, Wanted

UNLIMITED = 1_000_000  # replications; the seconds are the limit


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """What a plan is asked for, all of it by name."""

    target: float | None = None  # on-time share of whoever has no target in the system
    of: float = 1.0  # share of subscribers that must reach theirs
    slo: str | os.PathLike[str] | None = None  # targets from an OpenSLO file
    simulate: bool = True  # what prediction alone leaves open
    seconds: float = SECONDS  # CPU seconds of all simulations together
    seed: int = 1


class PlanChanges(TypedDict, total=False):
    """The options of a plan by name; tests hold them to :class:`PlanOptions`."""

    target: float | None
    of: float
    slo: str | os.PathLike[str] | None
    simulate: bool
    seconds: float
    seed: int


def whatif(
    system: System,
    *changes: str | Iterable[str],
    options: PredictOptions | None = None,
    progress: Progress | None = None,
) -> Difference:
    """Predict on-time shares before and after changes, one by one or in a list, made together."""
    asked = options or PredictOptions(delays=False, error_bars=False)
    made = tuple(one for each in changes for one in ((each,) if isinstance(each, str) else each))
    scenario = Scenario(name=", ".join(made), changes=made)
    return difference(system, scenario, lambda each: predict(each, asked, progress=progress))


def gate(
    system: System,
    options: PlanOptions | None = None,
    *,
    progress: Progress = lambda _: None,
    **changes: Unpack[PlanChanges],
) -> Gate:
    """Hold a system against its targets; where they are not met, say who misses, why, what helps.

    Options are those of :class:`PlanOptions`, also by name: ``gate(system, slo="slo.yaml")``.
    """
    asked = _TargetedSystem(system, options, progress, changes)
    return hold(asked.system, asked.target, asked.play, progress=progress)


def plan_targets(
    system: System,
    options: PlanOptions | None = None,
    *,
    progress: Progress = lambda _: None,
    **changes: Unpack[PlanChanges],
) -> Evidence:
    """Find whether everybody gets their target, as the system is."""
    asked = _TargetedSystem(system, options, progress, changes)
    return weigh(asked.system, asked.target, asked.play)


def plan_admission(
    system: System,
    like: str,
    options: PlanOptions | None = None,
    *,
    count: int = 1,
    at: Sequence[str] = (),
    **changes: Unpack[PlanChanges],
) -> Admission:
    """Find where so many newcomers like a subscriber can be admitted."""
    asked = _TargetedSystem(system, options, lambda _: None, changes)
    newcomer = newcomer_like(asked.system, like, count)
    share = newcomer.target if newcomer.target is not None else asked.target.share
    if share is None:
        raise InvalidInputError(f"'{like}' has no target in the system; give target")
    desk = Admissions(system=asked.system, target=asked.target)
    brokers = tuple(at or asked.system.broker_index)
    return desk.prove(newcomer, desk.ask(newcomer, target=share, brokers=brokers), asked.play)


def plan_capacity(
    system: System,
    options: PlanOptions | None = None,
    *,
    broker: str | None = None,
    copies: str | None = None,
    costs: Mapping[str, float] | None = None,
    progress: Progress = lambda _: None,
    **changes: Unpack[PlanChanges],
) -> Mix | Capacity:
    """Find the cheapest mix of faster brokers that meets the target; or the least size of one.

    ``broker`` asks for the least speed of one broker (or of ``all`` by the same factor), ``copies``
    for how many must share the subscribers of one. ``costs`` says what adding a broker's present
    speed once more costs in a mix, 1 by default.
    """
    asked = _TargetedSystem(system, options, progress, changes)
    if costs and (broker or copies):
        raise InvalidInputError("'costs' are for the cheapest mix, without 'broker' and 'copies'")
    if copies is not None:
        return least_copies(asked.system, asked.target, copies, play=asked.play, progress=progress)
    if broker is not None:
        return least_speed(asked.system, asked.target, broker, play=asked.play, progress=progress)
    return cheapest_mix(asked.system, asked.target, costs, play=asked.play, progress=progress)


def plan_consumers(
    system: System,
    options: PlanOptions | None = None,
    *,
    group: str | None = None,
    progress: Progress = lambda _: None,
    **changes: Unpack[PlanChanges],
) -> ConsumersPlan:
    """Find the least members of a consumer group that meet the target, with settings that hold."""
    asked = _TargetedSystem(system, options, progress, changes)
    return plan_group(asked.system, asked.target, group, play=asked.play, progress=progress)


def plan_scheme(
    system: System,
    options: PlanOptions | None = None,
    *,
    progress: Progress = lambda _: None,
    **changes: Unpack[PlanChanges],
) -> SchemeAdvice:
    """Find the cheapest recovery scheme that meets the target; ``seconds`` are for each."""
    asked = _TargetedSystem(
        system, options or PlanOptions(seconds=SCHEME_SECONDS), progress, changes
    )
    limits = SimulationOptions(seed=asked.options.seed, seconds=asked.options.seconds)
    return compare_schemes(asked.system, asked.target, limits, progress=progress)


def plan_homes(
    system: System,
    options: PlanOptions | None = None,
    *,
    who: str = ALL,
    most: int | None = None,
    progress: Progress = lambda _: None,
    **changes: Unpack[PlanChanges],
) -> HomesAdvice:
    """Find home brokers with which most subscribers get their targets, ``most`` at each."""
    asked = _TargetedSystem(system, options, progress, changes)
    search = search_for(asked.system, asked.target, who=who, most=most, progress=progress)
    return assign_homes(search, asked.play)


def plan_deadline(
    system: System,
    at: float | Sequence[float] = LEVELS,
    options: PlanOptions | None = None,
    *,
    progress: Progress = lambda _: None,
    **changes: Unpack[PlanChanges],
) -> Deadlines:
    """Find the shortest lifetimes in seconds with which a share, or each of several, is on time."""
    if isinstance(at, PlanOptions):
        raise InvalidInputError("plan_deadline: the shares come first; give options=PlanOptions(…)")
    levels = (at,) if isinstance(at, int | float) else tuple(at)
    asked = dataclasses.replace(options or PlanOptions(), **changes)
    play = playing(asked.simulate, asked.seed, asked.seconds, progress)
    return shortest_lifetimes(system, levels, play=play, progress=progress)


class _TargetedSystem:
    """A system with its targets, and what simulates it."""

    def __init__(
        self,
        system: System,
        options: PlanOptions | None,
        progress: Progress,
        changes: PlanChanges,
    ) -> None:
        chosen = dataclasses.replace(options or PlanOptions(), **changes)
        slo = chosen.slo
        self.options = chosen
        self.system = system if slo is None else with_objectives(system, read_objectives(slo))
        self.target = Target(share=chosen.target, of=chosen.of)
        self.target.wanted(self.system)
        self.play = playing(chosen.simulate, chosen.seed, chosen.seconds, progress)


def playing(wanted: bool, seed: int, seconds: float, progress: Progress) -> Play | None:
    """Make the simulation that candidates are played through with; None where it is not wanted.

    Each may take half of the seconds that are left, so that all of them together end in time.
    """
    left_s = seconds

    def play(plan: System, precision: Wanted) -> Outcome:
        nonlocal left_s
        left_s /= 2.0
        options = SimulationOptions(
            seed=seed, precision=precision, seconds=left_s, max_replications=UNLIMITED
        )
        return run.simulate(plan, options, progress=progress)

    return play if wanted else None
