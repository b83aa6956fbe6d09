"""Why events are not on time, and which single change helps most.

What each cause costs is known from the paths of one prediction. It says which changes are worth
trying; these are predicted by theory, and the best of them, like the system as it is, with the
error that every prediction promises.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from tidings.errors import TidingsError, UnsupportedError
from tidings.model.arrays import Floats
from tidings.model.causes import LEAST, Cause, causes_of, total_costs
from tidings.model.json_text import plain
from tidings.model.outcome import Outcome, by_share
from tidings.model.outcome_files import costs_document
from tidings.model.progress import Progress
from tidings.model.shown import Shown
from tidings.model.system import System
from tidings.planning.changes import changed
from tidings.planning.evidence import MEETS, Standing, Target, errors, foretell, standing, verdict
from tidings.planning.remedies import Changes, promising
from tidings.prediction.network.arriving import on_time_and_mean
from tidings.prediction.predict import predict
from tidings.prediction.theory import network_of

FEW_CAUSES = 3  # whose remedies are tried for a single best change, the dearest
ALIKE = 3  # digits of a gain after the point; who differs in later ones gives as much
MOST_SIZES = 3  # of a change that are proven for targets, each a little larger
MOST_PROVEN = 2  # changes that are predicted as precisely as the system as it is
SECONDS = 2.0  # CPU seconds of simulation of each system at most; what is not held says so
OWN = Target()  # what the system file asks for
_FACTOR = re.compile(r" x([0-9.]+)$")  # at the end: names may hold anything
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
        return "; ".join(self.changes)

    def to_document(self) -> dict[str, Any]:
        """Give the change and what it gains as plain data."""
        names = ("change", "on_time", "gain", "error")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """How a system stands to its own targets, and the smallest single change that meets them.

    ``least`` is None where no change that was tried meets them; its ``verdict`` says how sure it
    is. Where theory does not handle the system, changes are tried as they are and none smaller.
    """

    standing: Standing
    least: Remedy | None = None
    is_smallest: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What to do: the single change that gives most, and what it takes to meet the targets."""

    best: Remedy | None = None
    aim: Aim | None = None  # None where nobody has a target, or all surely get theirs


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Budget(Shown):
    """What every cause costs, the busiest broker, and single changes by what they give."""

    _table = "remedies"
    _columns = ("change", "gain", "error", "on_time")

    outcome: Outcome
    totals: list[tuple[Cause, float]]  # on-time share of all events gained without it
    remedies: tuple[Remedy, ...]  # best first, proven ones before others
    untried: dict[str, str]  # changes that are not predicted, and why
    target: float | None = None
    aim: Aim | None = None  # the targets in the system, where they are not surely met

    @property
    def bottleneck(self) -> dict[str, Any]:
        """The busiest broker, its utilisation and its mean wait in seconds; empty where none is."""
        rows = self.outcome.brokers
        busy = rows[rows["utilisation"] > 0]
        if busy.empty:
            return {}
        busiest = busy.loc[busy["utilisation"].round(9).idxmax()]
        return {name: busiest[name] for name in ("broker", "utilisation", "wait_mean_s")}

    def headline(self) -> str:
        """Say how many events are on time in percent, and what costs most."""
        cause = f"; dearest: {self.totals[0][0].words}" if self.totals else ""
        return f"{100 * self.outcome.on_time:.1f} % on time{cause}"

    def to_document(self, worst: int | None = None) -> dict[str, Any]:
        """Give the budget as plain data for JSON, the worst subscribers first."""
        own = ["subscriber", "broker", "count", "on_time", "error", "by", "delay_mean_s"]
        rows = by_share(self.outcome.subscribers)[own]
        of = causes_of(self.outcome)
        subscribers = [
            {**row, "causes": costs_document(of.get(row["subscriber"], ()))}
            for row in (rows if worst is None else rows.head(worst)).to_dict("records")
        ]
        document = {
            "on_time": self.outcome.on_time,
            "target": self.target,
            "causes": costs_document(self.totals),
            "bottleneck": self.bottleneck,
            "remedies": [each.to_document() for each in self.remedies],
            "aim": None if self.aim is None else _aim(self.aim),
            "untried": self.untried,
            "subscribers": subscribers,
        }
        return dict(plain(document))


def _aim(aim: Aim) -> dict[str, Any]:
    least = aim.least and {**aim.least.to_document(), "verdict": aim.least.verdict}
    return {**aim.standing.to_document(), "least": least, "is_smallest": aim.is_smallest}


def explain(
    system: System,
    *,
    remedies: bool = True,
    target: float | None = None,
    of: Collection[str] | None = None,
    goal: Target = OWN,
    progress: Progress = lambda _: None,
) -> Budget:
    """Work out what each cause costs in on-time share, and which single changes help most.

    With a ``target`` for the on-time share, changes are as small as meets it; without, the smallest
    that meets what everybody should get (``goal``; by default the targets in the system) is looked
    for too. ``of`` names the subscribers whose events count; by default those of all do.
    """
    progress("as it is")
    everybody = predict(system, causes=True, delays=False, error_bars=False, seconds=SECONDS)
    search = _Search(
        system=system, everybody=everybody, target=target, progress=progress, of=of, goal=goal
    )
    outcome = search.outcome
    totals = total_costs(outcome)
    tried: tuple[Remedy, ...] = ()
    untried: dict[str, str] = {}
    if remedies and totals:
        tried, untried = search.tried(list(promising(system, outcome, totals)))
    aim = search.aim(tried) if remedies and target is None else None
    tried = search.proven(tried) if tried else ()
    return Budget(
        outcome=outcome, totals=totals, remedies=tried, untried=untried, target=target, aim=aim
    )


def missed(system: System, outcome: Outcome, target: Target = OWN) -> Standing | None:
    """Say how a system stands to a target; None where there is none or it surely meets it."""
    if np.isnan(target.shares(system)).all():
        return None
    stands = standing(system, target, outcome)
    return None if stands.tells == MEETS else stands


def advise(system: System, outcome: Outcome, progress: Progress = lambda _: None) -> Advice:
    """Find the single change that helps most against the dearest causes of a prediction.

    Where the system has targets that are not surely met, also the smallest change that meets them.
    """
    totals = total_costs(outcome)[:FEW_CAUSES]
    search = _Search(system=system, everybody=outcome, target=None, progress=progress)
    tried, _ = search.tried(list(promising(system, outcome, totals)))
    best = [each for each in tried if each.gain > LEAST][:1]
    return Advice(
        best=search.proven(tuple(best))[0] if best else None,
        aim=search.aim(tried),
    )


@dataclass(frozen=True, kw_only=True)
class _Search:
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
        return self._on_time(self._shares_before)

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

    def _shares(self, system: System) -> Floats:
        """Compute everybody's on-time share by theory; changes leave alone who wants what."""
        try:
            shares = on_time_and_mean(network_of(system))[0]
        except UnsupportedError:
            shares = foretell(system).subscribers["on_time"].to_numpy()
        return np.asarray(shares, dtype=np.float64)

    def _on_time(self, everybody: Floats) -> float:
        """Compute the on-time share of all events that count from everybody's."""
        rows = self.outcome.subscribers
        shares = everybody[rows.index]
        wanted = (rows["wanted_per_s"] * rows["count"]).to_numpy()
        known = ~np.isnan(shares)
        return float(shares[known] @ wanted[known] / wanted[known].sum())

    def _margin(self, shares: Floats) -> float:
        """Compute by how much the worst off exceeds its target; NaN where none has one.

        Of those that the goal asks for, where it leaves some out. What theory says that a change
        gives is added to what is known of now.
        """
        now = self.everybody.subscribers["on_time"].to_numpy()
        margins = np.clip(now + shares - self._shares_before, 0.0, 1.0) - self._wanted
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
            self.progress(f"{'; '.join(each)}, {number} of {len(changes)} changes")
            try:
                remedy = self._after(each)
                remedies.append(
                    remedy if self.target is None else self._sized(remedy, self._reaches)
                )
            except TidingsError as error:
                untried["; ".join(each)] = str(error)
        return tuple(sorted(remedies, key=self._rank)), untried

    def _reaches(self, remedy: Remedy) -> bool:
        """Test whether a change reaches the share of all events that is asked for."""
        return self.target is not None and remedy.on_time >= self.target

    def _rank(self, remedy: Remedy) -> tuple[bool, float, float]:
        """Rank a change: those that meet the target first, smallest first; then by what they gain.

        Of changes that give as much, the one against the dearest cause stays first.
        """
        meets = self._reaches(remedy)
        return not meets, _size(remedy.changes) if meets else 0.0, -round(remedy.gain, ALIKE)

    def _after(self, changes: Changes) -> Remedy:
        shares = self._shares(changed(self.system, changes))
        after = self._on_time(shares)
        return Remedy(
            changes=changes,
            on_time=after,
            gain=after - self._before,
            margin=self._margin(shares),
        )

    def _sized(self, remedy: Remedy, meets: Callable[[Remedy], bool]) -> Remedy:
        """Shrink or grow a change until it just meets the target.

        It stays as it is where no size does, or where it has no size.
        """
        if not _factors(remedy.changes):
            return remedy
        high, best = 1.0, remedy
        while not meets(best):
            if high >= _MOST_TIMES:
                return remedy
            high *= 2.0
            best = self._after(_scaled(remedy.changes, high))
        low = 0.0
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            one = self._after(_scaled(remedy.changes, middle))
            low, high, best = (low, middle, one) if meets(one) else (middle, high, best)
        return best

    def _smallest(self, tried: list[Remedy], meets: Callable[[Remedy], bool]) -> Iterator[Remedy]:
        """Give changes as small as meets the target, each smaller than those before.

        One that is not enough where it is as large as the smallest so far is left at that.
        """
        limit = math.inf
        for each in tried:
            with contextlib.suppress(TidingsError):  # a change that cannot be made larger
                one = each
                if math.isfinite(limit) and _factors(each.changes):
                    one = self._after(_scaled(each.changes, limit / _size(each.changes)))
                if math.isfinite(limit) and not meets(one):
                    continue
                sized = self._sized(one, meets)
                if meets(sized) and _size(sized.changes) < limit:
                    limit = _size(sized.changes)
                    yield sized

    def aim(self, tried: tuple[Remedy, ...]) -> Aim | None:
        """Find the smallest change that meets the goal; None where it is met as it is.

        Where theory does not handle the system, changes are not made smaller than they were tried.
        """
        stands = missed(self.system, self.everybody, self.goal)
        if stands is None:
            return None

        self.progress("the smallest change that meets the targets")
        helping = [each for each in tried if each.gain > 0.0]
        least, spare = None, 0.0
        for _ in range(MOST_SIZES):
            enough = self._enough(helping, spare)
            if enough is None:
                break
            least = self._proof(enough)
            if least.verdict == MEETS:
                break
            # The error that a share has after the change must fit above its target, too.
            spare = least.margin + least.lacking + 1e-9
        return Aim(standing=stands, least=least, is_smallest=self._by_theory)

    def _enough(self, helping: list[Remedy], spare: float) -> Remedy | None:
        """Find the smallest change after which the worst off has so much to spare, by theory."""

        def meets(remedy: Remedy) -> bool:
            return remedy.margin >= spare

        enough: Iterable[Remedy] = filter(meets, helping)
        if self._by_theory:
            enough = self._smallest(helping, meets)
        return min(enough, key=lambda each: _size(each.changes), default=None)

    def proven(self, tried: tuple[Remedy, ...]) -> tuple[Remedy, ...]:
        """Predict the best of the changes again, as precisely as the present system; keep the rest.

        Before and after a change theory may be off by as much as it is off now, either way: whoever
        is no further behind the best may be the best.
        """
        off = abs(self._before - self.outcome.on_time)
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
        self.progress(f"proving {remedy.change}")
        after = predict(
            changed(self.system, remedy.changes),
            delays=False,
            error_bars=False,
            causes=False,
            seconds=SECONDS,
        )
        decided, lacking = "", 0.0
        if not np.isnan(self._wanted).all():
            decided = verdict(self.system, self.goal, after)
            lacks = self._wanted + errors(after) - after.subscribers["on_time"].to_numpy()
            lacking = float(lacks[np.isfinite(lacks)].max(initial=0.0))
        after = _only(after, self.of)
        return replace(
            remedy,
            on_time=after.on_time,
            gain=after.on_time - self.outcome.on_time,
            error=_error(after) + _error(self.outcome),
            verdict=decided,
            lacking=lacking,
        )


def _only(outcome: Outcome, of: Collection[str] | None) -> Outcome:
    """Restrict an outcome to these subscribers; None keeps all."""
    if of is None:
        return outcome
    rows = outcome.subscribers
    return replace(outcome, subscribers=rows[rows["subscriber"].isin(list(of))])


def _factors(changes: Changes) -> list[float]:
    """List the factors of changes; empty where one of them has none."""
    factors = [_FACTOR.search(each) for each in changes]
    return [float(each[1]) for each in factors if each] if all(factors) else []


def _scaled(changes: Changes, power: float) -> Changes:
    """Raise the factors of changes to a power, in three digits, rather larger than smaller."""
    return tuple(
        _FACTOR.sub(f" x{_three_digits(factor**power)}", each)
        for each, factor in zip(changes, _factors(changes), strict=True)
    )


def _three_digits(factor: float) -> str:
    unit = 10.0 ** (math.floor(math.log10(factor)) - 2)
    digits = factor / unit
    return f"{(math.ceil(digits - 1e-9) if factor > 1.0 else math.floor(digits + 1e-9)) * unit:.3g}"


def _size(changes: Changes) -> float:
    """Measure how large changes are: the sum of absolute logs of their factors.

    Changes without a factor count as log 3.
    """
    factors = _factors(changes)
    return sum(abs(math.log(each)) for each in factors) if factors else math.log(3.0)


def _error(outcome: Outcome) -> float:
    """Compute half the 95 % interval of the share of all events: rows may all be off one way."""
    rows = outcome.subscribers[outcome.subscribers["on_time"].notna()]
    weight = rows["wanted_per_s"] * rows["count"]
    total = float(weight.sum())
    return float((rows["error"] * weight).sum()) / total if total > 0 else 0.0
