"""The recovery schemes by name, each turning the stages of a way into a way that can fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from tidings.prediction.faults.buffered_ways import buffered_way
from tidings.prediction.faults.bypassing_ways import (
    approximate_wait,
    bypassing_buffered_way,
    bypassing_way,
    exact_wait,
)
from tidings.prediction.faults.components import Components, Path
from tidings.prediction.faults.connectivity import TooWideError
from tidings.prediction.faults.notes import Notes
from tidings.prediction.faults.reachability import Reachability, Reached
from tidings.prediction.faults.refresh import Refresh, bounded_passed, exact_passed
from tidings.prediction.faults.refreshed_reachability import known_share
from tidings.prediction.faults.static_ways import (
    checked_way,
    lost_for_good,
    refreshed_checks,
    up_checks,
)
from tidings.prediction.stages import Stage

Pieces = Callable[[Path], Sequence[Stage]]  # the stages of a way: broker, link, broker, …


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What fails in a system and what is done about it."""

    scheme: str
    published: bool  # by the published formulas, for reproducing them
    components: Components
    reachability: Reachability
    refresh: Refresh | None = None  # None: subscriptions are back at the instant of recovery
    lossy: bool = False  # whether links between brokers lose events by chance, too
    notes: Notes = field(default_factory=Notes)

    def way(self, path: Path, pieces_of: Pieces) -> Stage:
        """What becomes of an event that is to go this way."""
        return SCHEMES[self.scheme](self, path, pieces_of)

    def home_up(self, path: Path) -> float:
        """P[the first broker of a way is up]."""
        return self.components.all_up(self.components.of_broker[path.brokers[0]])

    def reached(self, path: Path) -> Reached:
        """P[the ends of a way can reach each other over any way], tables apart."""
        found = self.reachability
        answer = found.disjoint_paths(path) if self.published else found.between(path)
        self.notes.add(f"connectivity: {answer.method}", answer.error)
        return answer

    def reached_with_tables(self, path: Path, reached: float) -> float:
        """The same, with all brokers of the usual way that are up knowing the subscription."""
        if self.refresh is None:
            return reached
        self.notes.add("refresh: taken to reach all brokers that are up", None)
        return reached * known_share(self.reachability.network, path, self.refresh)


def _none(known: Faults, path: Path, pieces_of: Pieces) -> Stage:
    return checked_way(pieces_of(path), lost_for_good(known.components, path))


def _periodic(known: Faults, path: Path, pieces_of: Pieces) -> Stage:
    if known.refresh is None:
        return checked_way(pieces_of(path), up_checks(known.components, path))
    passed = exact_passed(known.components, path, known.refresh)
    if passed is None:
        passed = bounded_passed(known.components, path, known.refresh)
        known.notes.add("refresh: middle of two bounds", passed.off)
    else:
        known.notes.add("refresh: exact", 0.0)
    return checked_way(pieces_of(path), refreshed_checks(passed))


def _buffering(known: Faults, path: Path, pieces_of: Pieces) -> Stage:
    found, remembered = buffered_way(known.components, path, pieces_of(path))
    if known.refresh is not None:
        known.notes.add("buffers: the wait for a refresh taken as exponential", None)
    elif remembered:
        known.notes.add("buffers: exact", 0.0)
    if not remembered:
        known.notes.add("buffers: failure groups taken as independent from hop to hop", None)
    return found


def _bypass(known: Faults, path: Path, pieces_of: Pieces) -> Stage:
    share = known.reached(path).share
    shares = known.home_up(path), share, known.reached_with_tables(path, share)
    return bypassing_way(known.reachability.network, path, shares, pieces_of)


def _bypass_buffering(known: Faults, path: Path, pieces_of: Pieces) -> Stage:
    if len(path.brokers) == 1:
        return _buffering(known, path, pieces_of)
    if known.lossy:
        known.notes.add("chance losses on ways around, which nobody acknowledges, left out", None)
    graph = known.reachability.network
    waiting = None
    if not known.published:
        with suppress(TooWideError):
            waiting = exact_wait(graph, path)
    if waiting is not None:
        if known.refresh is None:
            known.notes.add("buffers beside ways around: exact", 0.0)
        else:
            how = "the wait for a refresh taken as exponential"
            known.notes.add(f"buffers beside ways around: {how}", None)
        share = known.home_up(path) * waiting.atom
    else:
        known.notes.add("buffers beside ways around: as if the usual way alone were down", None)
        share = known.reached_with_tables(path, known.reached(path).share)
        waiting = approximate_wait(known.components, path, share)
    return bypassing_buffered_way(graph, path, (known.home_up(path), share), waiting, pieces_of)


SCHEMES: dict[str, Callable[[Faults, Path, Pieces], Stage]] = {
    "none": _none,
    "periodic": _periodic,
    "buffering": _buffering,
    "bypass": _bypass,
    "bypass-buffering": _bypass_buffering,
}
