"""Why events are not on time, and which single change helps most.

What each cause costs is known from the paths of one prediction. It says which changes are worth
trying; these are predicted by theory, and the best of them, like the system as it is, with the
error that every prediction promises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tidings.errors import TidingsError, UnsupportedError
from tidings.model.causes import LEAST, Cause, causes_of, total_costs
from tidings.model.json_text import plain
from tidings.model.outcome import Outcome, by_share
from tidings.model.progress import Progress
from tidings.model.shown import Shown
from tidings.model.system import System
from tidings.planning.changes import changed
from tidings.planning.evidence import foretell
from tidings.planning.remedies import Changes, promising
from tidings.prediction.network.arriving import on_time_and_mean
from tidings.prediction.predict import predict
from tidings.prediction.theory import network_of

FEW_CAUSES = 3  # whose remedies are tried for a single best change, the dearest
ALIKE = 3  # digits of a gain after the point; who differs in later ones gives as much
MOST_PROVEN = 2  # changes that are predicted as precisely as the system as it is
SECONDS = 2.0  # CPU seconds of simulation of each system at most; what is not held says so
_FACTOR = re.compile(r" x([0-9.]+)")
_MOST_TIMES, _HALVINGS = 4.0, 5  # powers of a factor that are tried, and halvings between two


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A single change, and the on-time share of all events after it.

    ``error`` is half the 95 % interval of the gain; None where only theory was asked.
    """

    changes: Changes
    on_time: float
    gain: float
    error: float | None = None

    @property
    def change(self) -> str:
        """What is changed, in words."""
        return "; ".join(self.changes)


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
        """The budget as plain data for JSON, the worst subscribers first."""
        own = ["subscriber", "broker", "count", "on_time", "error", "by", "delay_mean_s"]
        rows = by_share(self.outcome.subscribers)[own]
        of = causes_of(self.outcome)
        subscribers = [
            {**row, "causes": [_cause(*each) for each in of.get(row["subscriber"], ())]}
            for row in (rows if worst is None else rows.head(worst)).to_dict("records")
        ]
        document = {
            "on_time": self.outcome.on_time,
            "target": self.target,
            "causes": [_cause(*each) for each in self.totals],
            "bottleneck": self.bottleneck,
            "remedies": [
                {"change": each.change, "on_time": each.on_time, "gain": each.gain,
                 "error": each.error}
                for each in self.remedies
            ],
            "untried": self.untried,
            "subscribers": subscribers,
        }  # fmt: skip
        return dict(plain(document))


def _cause(cause: Cause, cost: float) -> dict[str, Any]:
    return {"cause": cause.kind, "place": cause.place, "words": cause.words, "cost": cost}


def explain(
    system: System,
    *,
    remedies: bool = True,
    target: float | None = None,
    of: Collection[str] | None = None,
    progress: Progress = lambda _: None,
) -> Budget:
    """Work out what each cause costs in on-time share, and which single changes help most.

    With a ``target`` for the on-time share, changes are as small as meets it. ``of`` names the
    subscribers whose events count; by default those of all do.
    """
    progress("as it is")
    outcome = predict(system, causes=True, delays=False, error_bars=False, seconds=SECONDS)
    outcome = _only(outcome, of)
    totals = total_costs(outcome)
    tried: tuple[Remedy, ...] = ()
    untried: dict[str, str] = {}
    if remedies and totals:
        search = _Search(system=system, outcome=outcome, target=target, progress=progress, of=of)
        tried, untried = search.tried(list(promising(system, outcome, totals)))
        tried = search.proven(tried)
    return Budget(outcome=outcome, totals=totals, remedies=tried, untried=untried, target=target)


def best_change(
    system: System, outcome: Outcome, progress: Progress = lambda _: None
) -> Remedy | None:
    """Find the single change that helps most against the dearest causes of a prediction."""
    totals = total_costs(outcome)[:FEW_CAUSES]
    search = _Search(system=system, outcome=outcome, target=None, progress=progress)
    tried, _ = search.tried(list(promising(system, outcome, totals)))
    best = [each for each in tried if each.gain > LEAST][:1]
    return search.proven(tuple(best))[0] if best else None


@dataclass(frozen=True, kw_only=True)
class _Search:
    """Changes of a system, tried by theory, and the best of them proven."""

    system: System
    outcome: Outcome
    target: float | None
    progress: Progress
    of: Collection[str] | None = None

    @cached_property
    def _before(self) -> float:
        return self._on_time(self.system)

    def _on_time(self, system: System) -> float:
        """Compute the on-time share of all events by theory; changes leave alone who wants what."""
        try:
            shares = on_time_and_mean(network_of(system))[0]
        except UnsupportedError:
            return _only(foretell(system), self.of).on_time
        rows = self.outcome.subscribers
        own, wanted = shares[rows.index], (rows["wanted_per_s"] * rows["count"]).to_numpy()
        known = ~np.isnan(own)
        return float(own[known] @ wanted[known] / wanted[known].sum())

    def tried(self, changes: list[Changes]) -> tuple[tuple[Remedy, ...], dict[str, str]]:
        """Changes by what they give according to theory, best first, and those not predicted."""
        remedies, untried = [], {}
        for number, each in enumerate(dict.fromkeys(changes), start=1):
            self.progress(f"{'; '.join(each)}, {number} of {len(changes)} changes")
            try:
                remedies.append(self._sized(self._after(each)))
            except TidingsError as error:
                untried["; ".join(each)] = str(error)
        return tuple(sorted(remedies, key=self._rank)), untried

    def _rank(self, remedy: Remedy) -> tuple[bool, float, float]:
        """Those that meet the target first, the smallest change of them; then by what they give.

        Of changes that give as much, the one against the dearest cause stays first.
        """
        meets = self.target is not None and remedy.on_time >= self.target
        return not meets, _size(remedy.changes) if meets else 0.0, -round(remedy.gain, ALIKE)

    def _after(self, changes: Changes) -> Remedy:
        after = self._on_time(changed(self.system, changes))
        return Remedy(changes=changes, on_time=after, gain=after - self._before)

    def _sized(self, remedy: Remedy) -> Remedy:
        """The same change, as small as meets the target; as it is where none does or none is."""
        factor = _FACTOR.search(remedy.changes[0])
        if self.target is None or factor is None:
            return remedy
        log = math.log(float(factor[1]))
        high, best = 1.0, remedy
        while best.on_time < self.target:
            if high >= _MOST_TIMES:
                return remedy
            high *= 2.0
            best = self._after(_scaled(remedy.changes, math.exp(high * log)))
        low = 0.0
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            one = self._after(_scaled(remedy.changes, math.exp(middle * log)))
            low, high, best = (
                (low, middle, one) if one.on_time >= self.target else (middle, high, best)
            )
        return best

    def proven(self, tried: tuple[Remedy, ...]) -> tuple[Remedy, ...]:
        """The same with the best of them predicted as precisely as the system as it is.

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
        self.progress(f"proving {remedy.change}")
        after = predict(
            changed(self.system, remedy.changes),
            delays=False,
            error_bars=False,
            causes=False,
            seconds=SECONDS,
        )
        after = _only(after, self.of)
        return Remedy(
            changes=remedy.changes,
            on_time=after.on_time,
            gain=after.on_time - self.outcome.on_time,
            error=_error(after) + _error(self.outcome),
        )


def _only(outcome: Outcome, of: Collection[str] | None) -> Outcome:
    """The outcome of these subscribers alone; of all for None."""
    if of is None:
        return outcome
    rows = outcome.subscribers
    return replace(outcome, subscribers=rows[rows["subscriber"].isin(list(of))])


def _scaled(changes: Changes, factor: float) -> Changes:
    """The changes with another factor, in two digits."""
    return tuple(_FACTOR.sub(f" x{factor:.2g}", each) for each in changes)


def _size(changes: Changes) -> float:
    """How large changes are: the logarithm of their factor; unknown ones count as three times."""
    factor = _FACTOR.search(changes[0])
    return abs(math.log(float(factor[1]))) if factor else math.log(3.0)


def _error(outcome: Outcome) -> float:
    """Half the 95 % interval of the share of all events: rows may all be off the same way."""
    rows = outcome.subscribers[outcome.subscribers["on_time"].notna()]
    weight = rows["wanted_per_s"] * rows["count"]
    total = float(weight.sum())
    return float((rows["error"] * weight).sum()) / total if total > 0 else 0.0
