"""A run recorded while it goes on: what is new, every few seconds, as files of trace tables."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tidings.testbed.journal import StationVisit
from tidings.testbed.runs import Run
from tidings.testbed.tables import trace_tables
from tidings.testbed.workload import Publication

SETTLED_S = 1.0  # after an event has left a broker: its server has told by then where it went


@dataclass(slots=True, kw_only=True)
class Recorder:
    """Writes what has happened since it wrote last into a folder that grows."""

    run: Run
    folder: Path
    _numbers: int = 0  # of files so far
    _publications: int = 0
    _deliveries: int = 0
    _handlings: int = 0
    _states: int = 0
    _visits: int = 0
    _documents: list[tuple[float, int]] = field(
        default_factory=lambda: [(0.0, 0)]
    )  # when, how many
    _waiting: list[StationVisit] = field(default_factory=list)  # at brokers, or only just gone

    async def record(self, every_s: float) -> None:
        """Write every so many seconds, until the run ends."""
        while True:
            await asyncio.sleep(every_s)
            # In a thread: relays must keep their times meanwhile. It only reads lists that grow.
            await asyncio.to_thread(self._write_new, asyncio.get_running_loop().time())

    def _write_new(self, now_s: float) -> None:
        self._write(self._new_tables(now_s))

    def _new_tables(self, now_s: float) -> dict[str, pa.Table]:
        """Make trace tables of what is new; subscriptions are in the first ones only."""
        run, journal = self.run, self.run.layout.journal
        seen, received, handled = len(journal.visits), len(run.deliveries), len(run.handlings)
        changed = len(run.states)
        visits = [*self._waiting, *journal.visits[self._visits : seen]]
        gone = [each for each in visits if each.left_s <= now_s - SETTLED_S]
        self._waiting = [each for each in visits if each.left_s > now_s - SETTLED_S]
        new = replace(
            run,
            deliveries=run.deliveries[self._deliveries : received],
            handlings=run.handlings[self._handlings : handled],
            documents=run.documents[self._first_document(visits) :],
            states=run.states[self._states : changed],
            layout=replace(run.layout, journal=replace(journal, visits=gone)),
        )
        published = run.published
        tables = trace_tables(new, published[self._publications :], _by_event(published))
        if self._numbers:
            del tables["subscriptions"]
        self._publications, self._visits = len(published), seen
        self._deliveries, self._handlings, self._states = received, handled, changed
        self._documents.append((now_s, len(run.documents)))
        return {name: table for name, table in tables.items() if table.num_rows}

    def _first_document(self, visits: Sequence[StationVisit]) -> int:
        """Find the first document that may report these visits; forget all before it."""
        earliest_s = min((each.arrived_s for each in visits), default=math.inf) - SETTLED_S
        old = [each for each in self._documents if each[0] <= earliest_s]
        self._documents = self._documents[max(len(old) - 1, 0) :]
        return self._documents[0][1]

    def _write(self, tables: Mapping[str, pa.Table]) -> None:
        """Write every table to a file that appears whole."""
        self._numbers += 1
        for name, table in tables.items():
            place = self.folder / name
            place.mkdir(parents=True, exist_ok=True)
            draft = place / f".{self._numbers:06}.parquet"
            pq.write_table(table, draft)
            os.rename(draft, place / f"{self._numbers:06}.parquet")


def _by_event(published: list[Publication]) -> dict[str, Publication]:
    return {each.event: each for each in published}
