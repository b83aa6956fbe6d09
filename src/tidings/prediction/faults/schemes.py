"""The recovery schemes by name, each turning the stages of a way into a way that can fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidings.model.system import Recovery, System
from tidings.prediction.faults.buffered_ways import buffered_way
from tidings.prediction.faults.components import Components, Path, components, ways_to_fail
from tidings.prediction.faults.processes import exponential
from tidings.prediction.faults.static_ways import checked_way, lost_for_good, up_checks
from tidings.prediction.stages import Stage

Pieces = Callable[[Path], Sequence[Stage]]  # the stages of a way: broker, link, broker, …


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What fails in a system and what is done about it."""

    components: Components
    recovery: Recovery

    def way(self, path: Path, pieces_of: Pieces) -> Stage:
        """What becomes of an event that is to go this way."""
        return SCHEMES[self.recovery.scheme](self, path, pieces_of)


def faults(system: System) -> Faults | None:
    """What fails in a system, or None where nothing does."""
    found = ways_to_fail(system)
    if not found:
        return None
    return Faults(
        components=components(system, {failure: exponential(failure) for failure in found}),
        recovery=system.recovery or Recovery(scheme="none"),
    )


def _none(known: Faults, path: Path, pieces_of: Pieces) -> Stage:
    return checked_way(pieces_of(path), lost_for_good(known.components, path))


def _periodic(known: Faults, path: Path, pieces_of: Pieces) -> Stage:
    return checked_way(pieces_of(path), up_checks(known.components, path))


def _buffering(known: Faults, path: Path, pieces_of: Pieces) -> Stage:
    return buffered_way(known.components, path, pieces_of(path))


SCHEMES: dict[str, Callable[[Faults, Path, Pieces], Stage]] = {
    "none": _none,
    "periodic": _periodic,
    "buffering": _buffering,
}
