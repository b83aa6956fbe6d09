"""One run recorded as trace tables, as if it had been observed.

Recorded is everything that happened to the events born in the window, to the end of each. Times
are whole nanoseconds; the window begins at a fixed epoch, so that they look like real ones. A copy
that a broker drops (full buffer, expired, a crash) leaves no row in ``hops``. What fails and who
comes and goes is in ``states`` and ``sessions``: how it was when the window began, and every change
in the window. Subscribers with a ``count`` are in the traces one by one, with names of their own.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.errors import InvalidInputError
from tidings.kernels.memory import World
from tidings.model.features import require_only, used_features
from tidings.model.one_by_one import one_by_one
from tidings.model.outcome import Outcome
from tidings.model.progress import Progress
from tidings.model.remarks import Remark
from tidings.model.system import System
from tidings.model.trace_files import subscription_table, write_trace_folder
from tidings.model.trace_tables import FORMAT_VERSION
from tidings.simulation.network import CompiledSystem, compile_system
from tidings.simulation.options import SimulationOptions
from tidings.simulation.results import outcome_of, provenance_of, remarks_of
from tidings.simulation.run import HANDLED, refuse_overload
from tidings.simulation.tally import count_world, find_units
from tidings.simulation.totals import Totals
from tidings.simulation.trace_rows import (
    EPOCH_NS,
    ROWS_AT_ONCE,
    TraceRows,
    nanoseconds,
    probe_rows,
    subscription_rows,
    tapes_of,
    turn_tables,
)
from tidings.simulation.unsteady import unsteady_units
from tidings.simulation.windows import find_window
from tidings.simulation.world import Window, make_world

# What trace tables cannot tell would be learnt wrongly from them, so it is not recorded: a hop has
# one start and one end, and nothing to say beside whom or before whom an event was served, and a
# delivery does not say how long its subscriber would have waited. States name no clients' links.
RECORDED = HANDLED - {
    "several servers",
    "other disciplines than fcfs",
    "failures of clients' links",
    "several stations in a broker",
    "lifetimes of subscribers",
}
# What an event waits for these is in the traces, between the times of two rows, and nothing says
# that it was a wait: it is learnt as the delay of a link.
AS_DELAYS = ("bandwidth", "blocked publishers", "publishers that send in batches")


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
    system = recordable(system, RECORDED, "recording as traces")
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
    run = RecordedRun(
        compiled=compiled, window=plain, seed=chosen.seed, probes=int(plain.length_s * probes_per_s)
    )
    world = run.make_world()
    parts: dict[str, list[pa.Table]] = {}
    tell("recording")
    for name, rows in run.rows(recorded_tables(compiled), world):
        parts.setdefault(name, []).append(rows)
        done = 100.0 * min(float(world.record[0].now) / plain.end_s, 1.0)
        tell(f"recording, {done:.0f} of 100 % of the run")
    totals = Totals(compiled, units, plain.length_s)
    totals.add(count_world(world, compiled, units))
    return Recording(
        tables={name: pa.concat_tables(each) for name, each in parts.items()},
        from_ns=EPOCH_NS,
        until_ns=int(nanoseconds(np.array([plain.end_s]), plain)[0]),
        seed=chosen.seed,
        outcome=outcome_of(
            totals,
            provenance_of(totals, plain, chosen.seed),
            [*remarks, *remarks_of(totals), *untold(system)],
            unsteady_units(totals),
            plain,
        ),
    )


def recordable(system: System, handled: Collection[str], who: str) -> System:
    """Give the system whose traces are recorded: everyone one by one; refuse others by name."""
    require_only(system, handled, who)
    return one_by_one(system)[0]


def untold(system: System) -> list[Remark]:
    """Say what traces of a system hold without telling it apart from the delays of links."""
    used = used_features(system)
    return [
        Remark(
            kind="not in traces",
            what=f"traces do not record waits caused by {name}: 'tidings characterise' counts "
            "them as link delay",
            where=tuple(used[name]),
            do="compare results with the original system file, not with the fitted one",
        )
        for name in AS_DELAYS
        if name in used
    ]


def recorded_tables(compiled: CompiledSystem) -> list[str]:
    """List the tables of a recording; what never changes has no ``states`` and no ``sessions``."""
    tables = ["publications", "hops", "deliveries", "probes", "subscriptions"]
    tables += ["states"] if compiled.faults.failures else []
    return tables + (["sessions"] if any(each.periods for each in compiled.peer_queues) else [])


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """One replication whose window is recorded, and how many probes of each link go with it."""

    compiled: CompiledSystem
    window: Window
    seed: int
    replication: int = 0
    probes: int = 0

    def make_world(self) -> World:
        """Make the world that this run begins with."""
        window = replace(self.window, tape=ROWS_AT_ONCE)
        return make_world(self.compiled, window, self.seed, self.replication)

    def rows(
        self, tables: Collection[str], world: World | None = None
    ) -> Iterator[tuple[str, pa.Table]]:
        """Give rows of these tables as they come, each with the name of its table.

        Nothing is run for tables that need no run: probes, and subscriptions that all last.
        """
        compiled = self.compiled
        taped = set(tables) - {"probes"}
        if "probes" in tables:
            of_run = (self.seed, self.replication, self.probes)
            for each in probe_rows(compiled.system, self.window, *of_run):
                yield "probes", each
        if "subscriptions" in taped and not compiled.churn.matters:
            taped.remove("subscriptions")
            yield "subscriptions", subscription_table(compiled.system.subscribers, EPOCH_NS)
        if taped:
            yield from self._taped_rows(taped, world or self.make_world())

    def _taped_rows(self, tables: set[str], world: World) -> Iterator[tuple[str, pa.Table]]:
        """Run, and give rows of what happened to events; of what fails, comes and goes at the end.

        In memory are one part of each table, and 24 bytes for every change.
        """
        compiled, window = self.compiled, self.window
        rows = TraceRows(compiled, window, self.seed, self.replication)
        makers = {
            "publications": rows.publications,
            "hops": rows.hops,
            "deliveries": rows.deliveries,
        }
        turns, learnt = [], []
        for tapes in tapes_of(world, compiled, window):
            for name in [each for each in makers if each in tables]:
                yield from ((name, each) for each in makers[name](tapes))
            if tables - makers.keys():
                turns.append(tapes.turns)
                learnt.append(tapes.learnt)
        if not turns:
            return
        whole = replace(tapes, turns=np.concatenate(turns), learnt=np.concatenate(learnt))
        changed = turn_tables(compiled, whole, window)
        if compiled.churn.matters:
            changed["subscriptions"] = subscription_rows(compiled, whole, window)
        yield from ((name, each) for name, each in changed.items() if name in tables)


def write_traces(
    recording: Recording, folder: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write a recording as a folder of Parquet tables; it appears whole or not at all."""
    write_trace_folder(recording.tables, recording.manifest, folder, overwrite=overwrite)
