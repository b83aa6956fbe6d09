"""The recovery schemes by name, each turning the stages of a way into a way that can fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from tidings.model.system import Recovery, System
from tidings.prediction.faults.buffered_ways import buffered_way
from tidings.prediction.faults.bypassing_ways import (
    approximate_wait,
    bypassing_buffered_way,
    bypassing_way,
    exact_wait,
)
from tidings.prediction.faults.components import Components, Path, components, ways_to_fail
from tidings.prediction.faults.connectivity import TooWideError
from tidings.prediction.faults.disjoint_products import network
from tidings.prediction.faults.processes import exponential
from tidings.prediction.faults.reachability import Reachability, Reached
from tidings.prediction.faults.static_ways import checked_way, lost_for_good, up_checks
from tidings.prediction.stages import Stage

FAULT_MODELS = ("exact", "paper")

Pieces = Callable[[Path], Sequence[Stage]]  # the stages of a way: broker, link, broker, …


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What fails in a system and what is done about it."""

    components: Components
    recovery: Recovery
    reachability: Reachability
    model: str  # one of FAULT_MODELS

    def reached(self, path: Path) -> Reached:
        """P[the ends of a way can reach each other over any way]."""
        if self.model == "paper":
            return self.reachability.disjoint_paths(path)
        return self.reachability.between(path)

    def way(self, path: Path, pieces_of: Pieces) -> Stage:
        """What becomes of an event that is to go this way."""
        return SCHEMES[self.recovery.scheme](self, path, pieces_of)


def faults(system: System, model: str) -> Faults | None:
    """What fails in a system, or None where nothing does."""
    found = ways_to_fail(system)
    if not found:
        return None
    parts = components(system, {failure: exponential(failure) for failure in found})
    index = system.broker_index
    ends = [(index[link.between[0]], index[link.between[1]]) for link in system.links]
    return Faults(
        components=parts,
        recovery=system.recovery or Recovery(scheme="none"),
        reachability=Reachability(network=network(parts, ends)),
        model=model,
    )


def _none(known: Faults, path: Path, pieces_of: Pieces) -> Stage:
    return checked_way(pieces_of(path), lost_for_good(known.components, path))


def _periodic(known: Faults, path: Path, pieces_of: Pieces) -> Stage:
    return checked_way(pieces_of(path), up_checks(known.components, path))


def _buffering(known: Faults, path: Path, pieces_of: Pieces) -> Stage:
    return buffered_way(known.components, path, pieces_of(path))


def _bypass(known: Faults, path: Path, pieces_of: Pieces) -> Stage:
    reached = known.reached(path)
    return bypassing_way(known.reachability.network, path, reached.share, pieces_of)


def _bypass_buffering(known: Faults, path: Path, pieces_of: Pieces) -> Stage:
    if len(path.brokers) == 1:
        return _buffering(known, path, pieces_of)
    graph = known.reachability.network
    waiting = None
    if known.model != "paper":
        with suppress(TooWideError):
            waiting = exact_wait(graph, path)
    if waiting is None:
        share = known.reached(path).share
        waiting = approximate_wait(known.components, path, share)
    else:
        home = known.components.all_up(known.components.of_broker[path.brokers[0]])
        share = home * waiting.atom
    return bypassing_buffered_way(graph, path, share, waiting, pieces_of)


SCHEMES: dict[str, Callable[[Faults, Path, Pieces], Stage]] = {
    "none": _none,
    "periodic": _periodic,
    "buffering": _buffering,
    "bypass": _bypass,
    "bypass-buffering": _bypass_buffering,
}
