"""Single changes of a system: tried by theory or short runs, made small, the best ones proven."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tidings.errors import TidingsError, UnstableError, UnsupportedError
from tidings.model.arrays import Floats
from tidings.model.outcome import Outcome
from tidings.model.progress import Progress, within
from tidings.model.system import System
from tidings.planning.changes import changed, sentences
from tidings.planning.evidence import (
    MEETS,
    Target,
    TargetStanding,
    errors,
    foretell,
    standing,
    verdict,
)
from tidings.planning.remedies import Changes, factors, scaled, size
from tidings.prediction.predict import predict
from tidings.prediction.simulated_causes import PlayedRun, Playing, paired, short_run
from tidings.theory.answer import network_of
from tidings.theory.network.arriving import on_time_and_mean

ALIKE = 3  # digits of a gain after the point; who differs in later ones gives as much
MOST_SIZES = 3  # of a change that are proven for targets, each a little larger
MOST_PROVEN = 2  # changes that are predicted as precisely as the system as it is
SIZING_SECONDS = 3.0  # CPU seconds in which changes are made smaller where they are simulated
AS_IT_IS_SECONDS = 3.0  # CPU seconds of simulation of the system as it is, at most
SECONDS = 2.0  # of each change; what is not held says so
OWN = Target()  # what the system file asks for
_MOST_TIMES, _HALVINGS = 4.0, 7  # powers of factors that are tried, and halvings between two


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A single change, and the on-time share of all events after it.

    ``error`` is half the 95 % interval of the gain; None where only theory was asked. ``margin`` is
    by how much who is worst off then gets more than its target, as theory says.
    """

    changes: Changes
    on_time: float
    gain: float
    error: float | None = None
    margin: float = math.nan
    verdict: str = ""  # on the targets in the system, where this was asked
    lacking: float = 0.0  # what the worst off lacks of surely meeting its target, when proven

    @property
    def change(self) -> str:
        """What is changed, as ``whatif`` takes it."""
        return sentences(self.changes)

    def to_document(self) -> dict[str, Any]:
        """Give the change and what it gains as plain data."""
        names = ("change", "on_time", "gain", "error")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """How a system stands to its own targets, and the smallest single change that meets them.

    ``least`` is None where no change that was tried meets them; its ``verdict`` says how sure it
    is. ``is_smallest`` is whether there was time to make all changes as small as will do: where
    theory does not handle the system, each is simulated.
    """

    standing: TargetStanding
    least: Remedy | None = None
    is_smallest: bool = True


def missed(system: System, outcome: Outcome, target: Target = OWN) -> TargetStanding | None:
    """Say how a system stands to a target; None where there is none or it surely meets it."""
    if np.isnan(target.shares(system)).all():
        return None
    stands = standing(system, target, outcome)
    return None if stands.tells == MEETS else stands


@dataclass(frozen=True, kw_only=True)
class ChangeSearch:
    """Changes of a system, tried by theory, and the best of them proven."""

    system: System
    everybody: Outcome  # the prediction of the system as it is
    target: float | None  # on-time share of all events that count
    progress: Progress
    of: Collection[str] | None = None  # whose events count; those of all for None
    goal: Target = OWN  # what everybody should get
    _proofs: dict[Changes, Remedy] = field(default_factory=dict)

    @cached_property
    def outcome(self) -> Outcome:
        """The prediction, of those alone whose events count."""
        return _only(self.everybody, self.of)

    @cached_property
    def _shares_before(self) -> Floats:
        return self._shares(self.system)

    @cached_property
    def _before(self) -> float:
        """The on-time share by theory, or as predicted where theory has none."""
        return self._on_time(self._shares_before) if self._by_theory else self.outcome.on_time

    @cached_property
    def _by_theory(self) -> bool:
        """Whether theory handles the system, so that a change is tried in a moment."""
        try:
            network_of(self.system)
        except UnsupportedError:
            return False
        return True

    @cached_property
    def _wanted(self) -> Floats:
        """What each subscriber should get; NaN for those of whom nothing is asked."""
        return self.goal.shares(self.system)

    @cached_property
    def _run_before(self) -> PlayedRun | None:
        """None where queues grow for ever, so that no run has anything to do with the next."""
        try:
            return short_run(self.system, self._playing)
        except UnstableError:
            return None

    @cached_property
    def _playing(self) -> Playing:
        return Playing(seed=1, warmup_s=self.everybody.provenance.get("warmup_s"))

    def _shares(self, system: System) -> Floats:
        """Compute everybody's on-time share by theory; changes leave alone who wants what."""
        try:
            shares = on_time_and_mean(network_of(system))[0]
        except UnsupportedError:
            shares = foretell(system).subscribers["on_time"].to_numpy()
        return np.asarray(shares, dtype=np.float64)

    @cached_property
    def _now(self) -> Floats:
        shares: Floats = self.everybody.subscribers["on_time"].to_numpy(dtype=np.float64)
        return shares

    def _shares_in(self, system: System) -> tuple[Floats, Floats]:
        """Add to what everybody gets what they gain in another system; with errors (NaN: none).

        Where theory does not handle the system as it is, short runs with the same random numbers
        say what is gained, and half its 95 % interval.
        """
        if self._by_theory:
            after = self._now + self._shares(system) - self._shares_before
            return after, np.full(after.size, np.nan)
        if self._run_before is None:
            answer = self._predicted(system)
            return answer.subscribers["on_time"].to_numpy(dtype=np.float64), errors(answer)
        run = short_run(system, self._playing, self._run_before.outcome)
        gains, errors_ = paired(self._run_before, run, self.everybody)
        return self._now + gains, errors_

    def _predicted(self, system: System, progress: Progress = lambda _: None) -> Outcome:
        return predict(
            system,
            delays=False,
            error_bars=False,
            causes=False,
            seconds=SECONDS,
            progress=progress,
        )

    def _on_time(self, everybody: Floats) -> float:
        """Compute the share of all events that count from everybody's; NaN where none is known."""
        rows = self.outcome.subscribers
        shares = everybody[rows.index]
        wanted = (rows["wanted_per_s"] * rows["count"]).to_numpy()
        known = ~np.isnan(shares)
        return (
            float(shares[known] @ wanted[known] / wanted[known].sum()) if known.any() else math.nan
        )

    def _margin(self, after: Floats) -> float:
        """Compute by how much the worst off exceeds its target; NaN where none has one.

        Of those that the goal asks for, where it leaves some out.
        """
        margins = np.clip(after, 0.0, 1.0) - self._wanted
        known = ~np.isnan(margins)
        if not known.any():
            return math.nan
        best_first = np.argsort(-margins[known], kind="stable")
        heads = self.everybody.subscribers["count"].to_numpy()[known][best_first].cumsum()
        asked = int(np.searchsorted(heads, self.goal.of * heads[-1] - 1e-9))
        return float(margins[known][best_first][asked])

    def tried(self, changes: list[Changes]) -> tuple[tuple[Remedy, ...], dict[str, str]]:
        """Rank changes by what they gain according to theory, best first.

        Also gives those that could not be predicted, each with the reason.
        """
        remedies, untried = [], {}
        for number, each in enumerate(dict.fromkeys(changes), start=1):
            self.progress(f"{sentences(each)}, {number} of {len(changes)} changes")
            try:
                remedy = self._after(each)
                remedies.append(
                    remedy if self.target is None else self._sized(remedy, self._reaches)
                )
            except TidingsError as error:
                untried[sentences(each)] = str(error)
        return tuple(sorted(remedies, key=self._rank)), untried

    def _reaches(self, remedy: Remedy) -> bool:
        """Test whether a change reaches the share of all events that is asked for."""
        return self.target is not None and remedy.on_time >= self.target

    def _rank(self, remedy: Remedy) -> tuple[bool, float, float]:
        """Rank a change: those that meet the target first, smallest first; then by what they gain.

        Of changes that give as much, the one against the dearest cause stays first.
        """
        meets = self._reaches(remedy)
        return not meets, size(remedy.changes) if meets else 0.0, -round(remedy.gain, ALIKE)

    def _after(self, changes: Changes) -> Remedy:
        after, errors_ = self._shares_in(changed(self.system, changes))
        gain, error = self._on_time(after) - self._on_time(self._now), self._on_time(errors_)
        return Remedy(
            changes=changes,
            on_time=self._before + gain,
            gain=gain,
            error=None if math.isnan(error) else error,
            margin=self._margin(after),
        )

    def _sized(
        self, remedy: Remedy, meets: Callable[[Remedy], bool], until_s: float = math.inf
    ) -> Remedy:
        """Shrink or grow a change until it just meets the target, or so much CPU time has passed.

        It stays as it is where no size does, or where it has no size.
        """
        if not factors(remedy.changes):
            return remedy
        high, best = 1.0, remedy
        while not meets(best):
            if high >= _MOST_TIMES:
                return remedy
            high *= 2.0
            best = self._after(scaled(remedy.changes, high))
        low = 0.0
        for _ in range(_HALVINGS):
            if time.process_time() > until_s:
                break
            middle = 0.5 * (low + high)
            one = self._after(scaled(remedy.changes, middle))
            low, high, best = (low, middle, one) if meets(one) else (middle, high, best)
        return best

    def _smallest(
        self, tried: list[Remedy], meets: Callable[[Remedy], bool], until_s: float
    ) -> Iterator[Remedy]:
        """Give changes as small as meets the target, each smaller than those before.

        One that is not enough where it is as large as the smallest so far is left at that; where so
        much CPU time has passed, changes are looked at as they were tried.
        """
        limit = math.inf
        for each in tried:
            if time.process_time() > until_s and not (meets(each) and size(each.changes) < limit):
                continue
            with contextlib.suppress(TidingsError):  # a change that cannot be made larger
                one = each
                if math.isfinite(limit) and factors(each.changes):
                    one = self._after(scaled(each.changes, limit / size(each.changes)))
                if math.isfinite(limit) and not meets(one):
                    continue
                sized = self._sized(one, meets, until_s)
                if meets(sized) and size(sized.changes) < limit:
                    limit = size(sized.changes)
                    yield sized

    def aim(self, tried: tuple[Remedy, ...]) -> Aim | None:
        """Find the smallest change that meets the goal; None where it is met as it is."""
        stands = missed(self.system, self.everybody, self.goal)
        if stands is None:
            return None

        self.progress("the smallest change that meets the targets")
        helping = [each for each in tried if each.gain > 0.0]
        least, spare = None, 0.0
        until_s = math.inf if self._by_theory else time.process_time() + SIZING_SECONDS
        for _ in range(MOST_SIZES):
            enough = self._enough(helping, spare, until_s)
            if enough is None:
                break
            least = self._proof(enough)
            if least.verdict == MEETS:
                break
            # The error that a share has after the change must fit above its target, too.
            spare = least.margin + least.lacking + 1e-9
        is_smallest = time.process_time() <= until_s
        if least is not None and least.verdict != MEETS:
            larger = [each for each in helping if size(each.changes) > size(least.changes)]
            for each in larger[:1]:  # what helps most, as it was tried
                if self._proof(each).verdict == MEETS:
                    least, is_smallest = self._proof(each), False
        return Aim(standing=stands, least=least, is_smallest=is_smallest)

    def _enough(self, helping: list[Remedy], spare: float, until_s: float) -> Remedy | None:
        """Find the smallest change after which the worst off has so much to spare."""
        enough = self._smallest(helping, lambda remedy: remedy.margin >= spare, until_s)
        return min(enough, key=lambda each: size(each.changes), default=None)

    def proven(self, tried: tuple[Remedy, ...]) -> tuple[Remedy, ...]:
        """Predict the best of the changes again, as precisely as the present system; keep the rest.

        Before and after a change theory may be off by as much as it is off now, either way: whoever
        is no further behind the best may be the best. Runs with the same random numbers are off
        by the same before and after.
        """
        off = abs(self._before - self.outcome.on_time) if self._by_theory else 0.0
        least = max((each.gain for each in tried), default=0.0) - 2.0 * off
        best = [each for each in tried if each.gain > 0.0 and each.gain >= least][:MOST_PROVEN]
        proven = [self._proof(each) for each in best]
        # Theory says what a change gives; what it gives is added to what is known of now.
        now = self.outcome.on_time
        rest = [
            replace(each, on_time=min(max(now + each.gain, 0.0), 1.0))
            for each in tried
            if each not in best
        ]
        return (*sorted(proven, key=self._rank), *rest)

    def _proof(self, remedy: Remedy) -> Remedy:
        """Predict a change as precisely as the present system, each change only once."""
        if remedy.changes not in self._proofs:
            self._proofs[remedy.changes] = self._proved(remedy)
        return self._proofs[remedy.changes]

    def _proved(self, remedy: Remedy) -> Remedy:
        said = f"proving {remedy.change}"
        self.progress(said)
        after = self._predicted(changed(self.system, remedy.changes), within(self.progress, said))
        decided, lacking = "", 0.0
        if not np.isnan(self._wanted).all():
            decided = verdict(self.system, self.goal, after)
            lacks = self._wanted + errors(after) - after.subscribers["on_time"].to_numpy()
            lacking = float(lacks[np.isfinite(lacks)].max(initial=0.0))
        after = _only(after, self.of)
        proven = replace(remedy, verdict=decided, lacking=lacking)
        gain = after.on_time - self.outcome.on_time
        error = _error(after) + _error(self.outcome)
        if remedy.error is not None and remedy.error < error:
            # Two runs with the same random numbers know better what is gained than two apart.
            return replace(proven, on_time=min(self.outcome.on_time + remedy.gain, 1.0))
        return replace(proven, on_time=after.on_time, gain=gain, error=error)


def _only(outcome: Outcome, of: Collection[str] | None) -> Outcome:
    """Restrict an outcome to these subscribers; None keeps all."""
    if of is None:
        return outcome
    rows = outcome.subscribers
    return replace(outcome, subscribers=rows[rows["subscriber"].isin(list(of))])


def _error(outcome: Outcome) -> float:
    """Compute half the 95 % interval of the share of all events: rows may all be off one way."""
    rows = outcome.subscribers[outcome.subscribers["on_time"].notna()]
    weight = rows["wanted_per_s"] * rows["count"]
    total = float(weight.sum())
    return float((rows["error"] * weight).sum()) / total if total > 0 else 0.0
