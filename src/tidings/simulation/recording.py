"""One run recorded as trace tables, as if it had been observed.

Recorded is everything that happened to the events born in the window, to the end of each. Times
are whole nanoseconds; the window begins at a fixed epoch, so that they look like real ones. A copy
that a broker drops (full buffer, expired, a crash) leaves no row in ``hops``. What fails and who
comes and goes is in ``states`` and ``sessions``: how it was when the window began, and every change
in the window. A subscriber with a ``count`` is one subscriber in the traces.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.errors import InvalidInputError
from tidings.kernels.memory import World
from tidings.model.features import require_only
from tidings.model.outcome import Outcome
from tidings.model.progress import Progress
from tidings.model.system import System
from tidings.model.trace_files import write_trace_folder
from tidings.model.trace_tables import FORMAT_VERSION
from tidings.simulation.network import compile_system
from tidings.simulation.provenance import provenance_of, remarks_of
from tidings.simulation.results import outcome_of
from tidings.simulation.run import HANDLED, SimulationOptions, refuse_overload
from tidings.simulation.tally import count_world, find_units
from tidings.simulation.tapes import EPOCH_NS, Tapes, nanoseconds
from tidings.simulation.totals import Totals
from tidings.simulation.trace_rows import trace_tables
from tidings.simulation.windows import find_window
from tidings.simulation.world import make_world, run_world

ROWS_AT_ONCE = 1 << 16
_TAPES = {
    "tape_publications": "taped_publications",
    "tape_hops": "taped_hops",
    "tape_sends": "taped_sends",
    "tape_deliveries": "taped_deliveries",
    "tape_turns": "taped_turns",
    "tape_learnt": "taped_learnt",
}

# What trace tables cannot tell would be learnt wrongly from them, so it is not recorded: a hop has
# one start and one end, and a delivery does not say how long its subscriber would have waited.
RECORDED = HANDLED - {
    "several servers",
    "several stations in a broker",
    "lifetimes of subscribers",
    "many subscribers in one",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Trace tables by name, the window they cover, and the outcome as the simulator counted it."""

    tables: Mapping[str, pa.Table]
    from_ns: int
    until_ns: int
    seed: int
    outcome: Outcome

    @property
    def manifest(self) -> dict[str, Any]:
        """What ``traces.json`` says."""
        return {
            "version": FORMAT_VERSION,
            "source": "simulated",
            "from_ns": self.from_ns,
            "until_ns": self.until_ns,
            "seed": self.seed,
        }


def record(
    system: System,
    options: SimulationOptions | None = None,
    *,
    probes_per_s: float = 1.0,
    progress: Progress | None = None,
    **changes: Any,
) -> Recording:
    """Simulate one run, replication 0 of its seed, and record what happened.

    Every link, clients' links included, is also probed ``probes_per_s`` times a second; probes meet
    the link's delay and loss and nothing else. The warm-up is found as for a simulation and is not
    recorded. Options are those of :class:`SimulationOptions` that concern one run, also by name.
    """
    require_only(system, RECORDED, "recording as traces")
    many = sorted({"replications", "precision", "max_replications"} & changes.keys())
    if many:
        raise InvalidInputError(f"one run is recorded; leave {', '.join(many)} out")
    chosen = replace(options or SimulationOptions(), **changes, replications=1, precision=None)
    tell = progress or (lambda _: None)
    tell("contents and routes")
    compiled = compile_system(system)
    refuse_overload(compiled)
    units = find_units(compiled)
    plain, remarks = find_window(compiled, chosen, tell)
    window = replace(plain, tape=ROWS_AT_ONCE)
    world = make_world(compiled, window, chosen.seed, 0)
    parts: dict[str, list[Any]] = {name: [] for name in _TAPES}

    def take(each: World) -> None:
        _take(each, parts)
        tell(f"recording, {min(float(each.record[0].now) / window.end_s, 1.0):.0%} of the run")

    tell("recording")
    run_world(world, compiled, window, take)
    tell("writing the traces")
    totals = Totals(compiled, units, window.length_s)
    totals.add(count_world(world, compiled, units))
    tapes = Tapes(**{name.removeprefix("tape_"): np.concatenate(parts[name]) for name in parts})
    return Recording(
        tables=trace_tables(compiled, tapes, window, chosen.seed, probes_per_s),
        from_ns=EPOCH_NS,
        until_ns=int(nanoseconds(np.array([window.end_s]), window)[0]),
        seed=chosen.seed,
        outcome=outcome_of(
            totals,
            provenance_of(totals, window, chosen.seed),
            [*remarks, *remarks_of(totals)],
        ),
    )


def _take(world: World, parts: dict[str, list[Any]]) -> None:
    """Take what is on the tape off it."""
    for name, count in _TAPES.items():
        taken = int(world.record[0][count])
        parts[name].append(world.tables[name][:taken].copy())
        world.record[0][count] = 0


def write_traces(
    recording: Recording, folder: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write a recording as a folder of Parquet tables; it appears whole or not at all."""
    write_trace_folder(recording.tables, recording.manifest, folder, overwrite=overwrite)
