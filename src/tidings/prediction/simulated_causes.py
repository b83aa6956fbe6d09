"""What causes cost where theory has no answer: the system is simulated again without each of them.

All runs have the same random numbers, so that little but the cause differs between them; what a
replication gains without a cause differs less from one to the next than its shares do. Causes that
are likelier to matter come first; when the seconds are over, the rest is not asked, and named.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy import special

from tidings.errors import TidingsError
from tidings.model.arrays import Floats
from tidings.model.causes import ALL_PUBLISHERS, LEAST, MOST_OF_ONE, Cause, Cost, in_order
from tidings.model.outcome import Outcome, table
from tidings.model.progress import Progress, within
from tidings.model.record_tables import column, names
from tidings.model.remarks import Remark
from tidings.model.standard_errors import share_se
from tidings.model.system import System
from tidings.prediction.suspects import Suspect, all_suspects, beyond_theory, has_failures
from tidings.simulation.network import compile_system
from tidings.simulation.options import SimulationOptions
from tidings.simulation.run import simulate
from tidings.simulation.tally import Counts, Units, find_units

SECONDS = 10.0  # CPU seconds of all runs together
_EVENTS, _RUNS = 4_000, 5  # of each system
_SURE = 0.5  # of its error: what is gained less is chance
_FAILING_SECONDS = 2.0  # CPU seconds of a run with failures
_MOSTLY = 0.8  # of what bursts cost together


@dataclass(frozen=True, slots=True, kw_only=True)
class Playing:
    """How systems are played: CPU seconds of all runs together, and what to leave out of each.

    Without ``warmup_s``, pilot runs say what to leave out. ``known`` is a better answer for the
    system as it is, if there is one: runs then say which part of what is missed a cause takes.
    """

    seed: int
    seconds: float = SECONDS
    warmup_s: float | None = None
    known: Outcome | None = None
    progress: Progress = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCauses:
    """The table of causes, and which were left out when the seconds were over."""

    causes: pd.DataFrame
    left_out: tuple[Cause, ...] = ()

    def remarks(self) -> tuple[Remark, ...]:
        """Say what was left out."""
        if not self.left_out:
            return ()
        what = "the CPU seconds ran out before it was known what these causes cost"
        where = tuple(each.words for each in self.left_out)
        do = "allow more seconds (--seconds)"
        return (Remark(kind="causes left out", what=what, where=where, do=do),)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedRun:
    """A system as it was played, and by [replication, subscriber] what came in time, and wanted."""

    outcome: Outcome
    on_time: Floats
    wanted: Floats


def simulated_causes(system: System, how: Playing) -> AskedCauses:
    """Find what each cause costs each subscriber, the dearest first."""
    return _asked(system, how, lambda before: all_suspects(system, before))


def causes_beyond_theory(system: System, how: Playing) -> AskedCauses:
    """Find what those causes cost that theory has no answer for: bursts, groups, outages."""
    return _asked(system, how, lambda before: beyond_theory(system, before))


def _asked(
    system: System, how: Playing, suspects: Callable[[Outcome], Iterator[Suspect]]
) -> AskedCauses:
    how.progress("causes")
    before = short_run(system, how)
    begin_s = time.process_time()  # the first run may have had to compile what it runs
    everybody = names(system.subscribers)
    costs: list[list[Cost]] = [[] for _ in everybody]
    every = list(suspects(before.outcome))
    left_out: tuple[Cause, ...] = ()
    for number, suspect in enumerate(every, start=1):
        if time.process_time() - begin_s > how.seconds:
            left_out = tuple(each.cause for each in every[number - 1 :])
            break
        said = f"without {suspect.cause.words}, {number} of at most {len(every)} causes"
        told = replace(how, progress=within(how.progress, said))
        try:
            after = short_run(suspect.system, told, before.outcome)
        except TidingsError:
            continue
        for own, cost in zip(costs, _gains(suspect, before, after, how.known), strict=True):
            if cost.cost > max(_SURE * cost.error, LEAST):
                own.append(cost)
    rows = [
        cost.row(name)
        for name, own in zip(everybody, costs, strict=True)
        for cost in in_order(_told_apart(own))[:MOST_OF_ONE]
    ]
    return AskedCauses(causes=table("causes", rows), left_out=left_out)


def _told_apart(costs: list[Cost]) -> list[Cost]:
    """Leave out bursts of all publishers together where one of them makes most of it."""
    together = Cause("bursts", ALL_PUBLISHERS)
    bursts = {each.cause: each.cost for each in costs if each.cause.kind == "bursts"}
    of_all = bursts.pop(together, 0.0)
    if max(bursts.values(), default=0.0) >= _MOSTLY * of_all:
        return [each for each in costs if each.cause != together]
    return costs


def short_run(system: System, how: Playing, as_in: Outcome | None = None) -> PlayedRun:
    """Simulate for a short while; for as long as another run, and with its random numbers."""
    options = SimulationOptions(
        seed=how.seed, replications=_RUNS, events=_EVENTS, warmup_s=how.warmup_s
    )
    if has_failures(system):
        # Long enough for some failures to come, as far as the seconds allow.
        options = replace(options, events=None, seconds=_FAILING_SECONDS)
    if as_in is not None:
        times = {name: as_in.provenance[name] for name in ("duration_s", "warmup_s")}
        options = replace(options, events=None, seconds=None, **times)
    kept: list[Counts] = []
    outcome = simulate(system, options, progress=how.progress, counted=kept.append)
    units = find_units(compile_system(system))
    on_time, wanted = (
        np.array([_by_subscriber(getattr(each, name), units) for each in kept])
        for name in ("on_time", "wanted")
    )
    return PlayedRun(outcome=outcome, on_time=on_time, wanted=wanted)


def _by_subscriber(pairs: Floats, units: Units) -> Floats:
    """Add up what pairs counted, [subscriber]."""
    by_unit = np.bincount(units.pair_unit, weights=pairs, minlength=units.count)
    return by_unit.astype(np.float64)[units.of_subscriber]


def _gains(
    suspect: Suspect, before: PlayedRun, after: PlayedRun, known: Outcome | None = None
) -> Iterator[Cost]:
    """Yield each subscriber's gain, under the name of what is gained most of."""
    old, new = before.outcome.subscribers, after.outcome.subscribers
    if suspect.cause.kind == "deadline":
        own = column(suspect.system.subscribers, "lifetime").where(lambda each: each is not None)
        named = {int(place) for place in own}
        lates = zip(new["late"].fillna(0.0), new["error"].fillna(0.0), strict=True)
        for place, (late, error) in enumerate(lates):
            name = str(new["subscriber"].iloc[place]) if place in named else ""
            yield Cost(Cause("deadline", name), late, error)
        return
    for place, (gain, error) in enumerate(zip(*paired(before, after, known), strict=True)):
        cause = suspect.cause
        if suspect.when_lost is not None:
            lost, other = suspect.when_lost
            if old[lost].iloc[place] - new[lost].iloc[place] > 0.5 * gain:
                cause = other
        yield Cost(cause, gain, error)


def paired(before: PlayedRun, after: PlayedRun, known: Outcome | None) -> tuple[Floats, Floats]:
    r"""Compute what is gained, and half its 95 % interval, as shares, [subscriber].

    Of replications that both have: a run whose seconds are over has fewer. Replication i gains
    :math:`d_i`, by which its two ratios differ from those of all; the standard error is that of the
    mean of n such differences, but at least that of as many independent events as came in time only
    once. Student's t of n − 1 makes an interval of it.

    Where it is ``known`` how much is missed, what counts is the part of it that is gained: a run
    with few outages misses and gains less than usual, of which the part hardly depends on it.
    """
    runs = min(len(before.wanted), len(after.wanted))
    wanted = before.wanted[:runs].sum(axis=0)
    missed, missed_by_run = _shares(before, runs, missed=True)
    gain, gain_by_run = (
        new - old for new, old in zip(_shares(after, runs), _shares(before, runs), strict=True)
    )
    if runs < 2:
        return gain, np.full(gain.size, np.inf)
    least = np.nan_to_num(share_se(np.abs(gain) * wanted, wanted))
    t = float(special.stdtrit(runs - 1, 0.975))
    if known is None:
        return gain, t * np.fmax(_mean_se(gain_by_run), least)
    part = np.divide(gain, missed, out=np.zeros_like(gain), where=missed > 0.0)
    own = known.subscribers
    scale = np.divide(
        1.0 - own["on_time"].to_numpy(), missed, out=np.zeros_like(gain), where=missed > 0.0
    )
    of_part = scale * np.fmax(_mean_se(gain_by_run - part * missed_by_run), least)
    return scale * gain, np.hypot(t * of_part, part * np.nan_to_num(own["error"].to_numpy()))


def _shares(run: PlayedRun, runs: int, *, missed: bool = False) -> tuple[Floats, Floats]:
    """Compute shares on time (or missed), [subscriber], and by how much each run differs."""
    wanted, on_time = run.wanted[:runs], run.on_time[:runs]
    counted = wanted - on_time if missed else on_time
    total = np.maximum(wanted.sum(axis=0), 1.0)
    share = counted.sum(axis=0) / total
    return share, runs / total * (counted - share * wanted)


def _mean_se(differences: Floats) -> Floats:
    """Compute the standard error of means, of [run, subscriber] differences from them."""
    runs = len(differences)
    errors: Floats = np.sqrt((differences**2).sum(axis=0) / (runs * (runs - 1)))
    return errors
