"""Simulations that find a truth of which predictions know nothing, without the time they take."""

from __future__ import annotations

from dataclasses import replace

from tidings.model.outcome import Outcome
from tidings.model.system import System
from tidings.planning.changes import changed
from tidings.planning.evidence import Play, foretell
from tidings.simulation.options import Wanted


def played_by(*changes: str, noise: float = 1e-6) -> Play:
    """A play in which the world is otherwise than the model says, known to two times a noise."""

    def play(system: System, precision: Wanted) -> Outcome:
        found = foretell(changed(system, changes) if changes else system)
        rows = found.subscribers.assign(on_time_se=noise, error=2.0 * noise, by="simulation")
        return replace(found, source="simulated", subscribers=rows)

    return play
