"""From a system to what fails in it and what is done about it, by one of the fault models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tidings.errors import InvalidInputError, UnsupportedError
from tidings.model import topology
from tidings.model.arrays import Floats
from tidings.model.behaviour import Failure
from tidings.model.features import used_features
from tidings.model.routes import Routes
from tidings.model.system import System
from tidings.theory.delay.delays import Delays
from tidings.theory.delay.grids import Grid
from tidings.theory.models import FAULT_MODELS
from tidings.theory.repairs.components import (
    BUFFERING,
    Chain,
    Components,
    Path,
    Process,
    alternating,
    components,
    failures,
    is_buffering,
)
from tidings.theory.repairs.detours import Detouring, Detours
from tidings.theory.repairs.phase_fits import fit
from tidings.theory.repairs.reachability import Reachability
from tidings.theory.repairs.waits import (
    TooManyPhasesError,
    Waits,
    follows,
    shortest_phase_s,
    typical_wait_s,
)

BYPASSING = ("bypass", "bypass-buffering")
_CLOSE = 2e-3  # bounds of a probability are taken where they are so close
_NEARLY = 1e-9  # exponential
_UP_PARTS, _DOWN_PARTS = 3, 4  # of a fitted mixture: events wait for repairs, not for failures


@dataclass(frozen=True, kw_only=True)
class Repairs:
    """What fails in a system and what is done about it."""

    scheme: str
    published: bool  # by the published formulas, for reproducing them
    components: Components
    reachability: Reachability
    detouring: Detouring
    waits: Waits
    reliability: Floats  # [arc]: share of copies that chance does not lose
    simplified: bool  # times up are taken as exponential that are not
    rough: set[tuple[int, int, int]] = field(default_factory=set)  # start, home, tree: not exact
    _reached: dict[tuple[int, int], float] = field(default_factory=dict)
    _detours: dict[Path, Detours] = field(default_factory=dict)
    _cut_off: dict[tuple[Path, float], Delays] = field(default_factory=dict)

    @property
    def buffering(self) -> bool:
        """Whether brokers keep events until the next one has them."""
        return self.scheme in BUFFERING

    @property
    def bypassing(self) -> bool:
        """Whether events go round what is down."""
        return self.scheme in BYPASSING

    def first_up(self, path: Path) -> float:
        """Compute P[the first broker of a path is up]."""
        return self.components.all_up(self.components.of_broker[path.brokers[0]])

    def reached(self, path: Path) -> float:
        """Compute P[the ends of a path reach each other by any path | the first broker is up].

        By the published bound, exactly, or within 0.001 where the network is wide.
        """
        ends = path.brokers[0], path.brokers[-1]
        if ends not in self._reached:
            self._reached[ends] = self._connected(path)
        return min(self._reached[ends] / self.first_up(path), 1.0)

    def _connected(self, path: Path) -> float:
        if self.published:  # loads a library that takes a fifth of a second, which few need
            from tidings.theory.repairs.disjoint_paths import disjoint_path_bound

            return disjoint_path_bound(
                self.reachability.graph({}), path.brokers[0], path.brokers[-1]
            )
        both = self.reachability.connected(path)
        if both is None:
            low, high = self.detouring.detours(path).bounds
            both = 0.5 * (low + high)
            if high - low > _CLOSE:
                raise UnsupportedError(
                    "theory cannot compute how often brokers reach each other by "
                    "detours: the network is too wide and fails too often. Simulate it "
                    "instead (--by simulation)."
                )
        return both

    def detours(self, path: Path) -> Detours:
        """List the paths that events take instead of one."""
        if path not in self._detours:
            self._detours[path] = self.detouring.likely_detours(path)
        return self._detours[path]

    def wait_when_cut_off(self, path: Path, survives: float) -> Delays | None:
        """Compute the wait given the real partition at publication; None: too large for that."""
        key = (path, survives)
        if key not in self._cut_off:
            if any(other.brokers[-1] != path.brokers[-1] for other, _ in self._cut_off):
                self._cut_off.clear()  # homes are asked for one after the other
            cut = self.reachability.cut_off(path, survives)
            if cut is None:
                return None
            try:
                self._cut_off[key] = self.waits.cut_off(path, *cut)
            except TooManyPhasesError:
                return None
        return self._cut_off[key]

    def waits_to(self, home: int, tree: int, paths: dict[int, Path]) -> Delays:
        """Compute the wait on all of a path of an event whose first broker is up, [start]."""
        try:
            return self.waits.to_home(home, tree, paths)
        except TooManyPhasesError as error:
            raise UnsupportedError(_TOO_MANY_PHASES) from error


_TOO_MANY_PHASES = (
    "theory cannot compute the repairs of this system: too many phases of up and down "
    "times, or failure groups, on one path. Simulate, or give exponential times ('mtbf' "
    "and 'mttr')."
)


def require_repairs_handled(system: System, model: str) -> None:
    """Refuse what theory has no answer for where something fails, naming every field."""
    if model not in FAULT_MODELS:
        names = ", ".join(FAULT_MODELS)
        raise InvalidInputError(f"there is no fault model '{model}'; wants one of {names}")
    recovery = system.used_recovery
    published = model == "paper"
    failing = bool(failures(system))
    forgetting = any(broker.failure is not None for broker in system.brokers) or any(
        system.failure_groups
    )
    reacting = recovery.scheme in {*BUFFERING, *BYPASSING}
    refused = {
        "recovery.refresh above 0": forgetting and recovery.refresh_s > 0.0 and not published,
        "recovery.detection above 0": failing and reacting and recovery.detection_s > 0.0,
        "recovery.timeout": recovery.timeout_s is not None and not published,
        "failure_groups by the published formulas": published and bool(system.failure_groups),
        "subscription churn among failures without recovery": failing
        and recovery.scheme == "none"
        and "subscription churn" in used_features(system),
    }
    named = [what for what, is_used in refused.items() if is_used]
    if named:
        raise UnsupportedError(
            f"theory does not handle {', '.join(named)}. Simulate instead (--by "
            "simulation), or remove these fields.",
            named,
        )


def failing_parts(system: System, model: str) -> Components | None:
    """List what fails in a system; None where nothing does.

    Times are followed by phases only where events wait for repairs; elsewhere their means are all
    that matters.
    """
    if not failures(system):
        return None
    scheme = system.used_recovery.scheme
    if model == "paper" or scheme not in BUFFERING:
        return components(system, _exponential)
    followed = (_fitted, _exponential_up) if scheme == "buffering" else (_exponential_up,)
    for process_of in followed:  # beside detours all processes of a path are followed at once
        parts = components(system, process_of)
        if follows(parts):
            return parts
    raise UnsupportedError(_TOO_MANY_PHASES)


def _one_phase(mean_s: float) -> Chain:
    return np.ones(1), np.array([[-1.0 / mean_s]])


def _exponential(failure: Failure) -> Process:
    return alternating(_one_phase(failure.up.mean_s), _one_phase(failure.down.mean_s))


def _fitted(failure: Failure) -> Process:
    return alternating(fit(failure.up, _UP_PARTS), fit(failure.down, _DOWN_PARTS))


def _exponential_up(failure: Failure) -> Process:
    """Make a process with fewer phases and the same repairs: times up are exponential."""
    return alternating(_one_phase(failure.up.mean_s), fit(failure.down, _DOWN_PARTS))


def repair_times_s(parts: Components) -> Sequence[float]:
    """List the shortest and the longest time that events wait for repairs, in seconds."""
    return shortest_phase_s(parts), typical_wait_s(parts)


def repairs(system: System, routes: Routes, grid: Grid, parts: Components, model: str) -> Repairs:
    """Build what is needed to follow events through a system that fails."""
    return Repairs(
        scheme=system.used_recovery.scheme,
        published=model == "paper",
        components=parts,
        reachability=Reachability(components=parts),
        detouring=Detouring(components=parts),
        waits=Waits(grid=grid, routes=routes, components=parts),
        reliability=np.array([arc.channel.reliability for arc in topology.arcs(system)]),
        simplified=is_buffering(system)
        and all(each.forgets for each in parts.processes)
        and any(abs(each.up.scv - 1.0) > _NEARLY for each in failures(system)),
    )
