"""Periods whose rows have all come in, counted and added to a store.

What is counted is told by the store alone: from where its last part ends. So a run that is killed
before or after the store has changed goes on from there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from tidings.characterisation.count.adding import add_traces, check_sampled
from tidings.characterisation.count.carrying import down_since
from tidings.characterisation.count.compacting import compact
from tidings.characterisation.count.store import StorePart, read_catalogue
from tidings.characterisation.statistics import NEEDED
from tidings.errors import InvalidTracesError
from tidings.model.progress import Progress
from tidings.model.system import System
from tidings.model.trace_tables import MANIFEST
from tidings.traces.reading import Traces, parse_manifest, parse_sampled
from tidings.traces.window import TraceWindow
from tidings.watching.staging import Limits, MicroBatch, Staging

LEAST_KEPT_S = 7200.0  # of which the last hour is fitted
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+:/")  # s3://place, of which a path keeps one slash
FIRST_SHARE = 0.1  # of a period; a shorter first part waits for the next one


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """Where periods are counted to, and by which rules.

    ``margin_s`` is both how long an event may travel and how much later than the newest publication
    a row may come in. It is no longer than a period, so that no event meets three parts. Parts that
    ended more than ``keep_s`` ago are dropped.
    """

    source: Path
    store: Path
    base: System
    period_s: float = 60.0
    margin_s: float = 10.0
    keep_s: float | None = None

    def __post_init__(self) -> None:
        if not self.source.is_dir():
            raise InvalidTracesError(
                f"{self.source}: there is no such folder; wants one that trace tables come into"
            )
        if _ADDRESS.match(str(self.store)):
            raise InvalidTracesError(
                f"--store is {self.store}, an address; wants a folder of this machine, also one "
                "that is mounted: parts are put in place by renaming"
            )
        if self.store.resolve().is_relative_to(self.source.resolve()):
            raise InvalidTracesError(
                f"{self.store} lies in {self.source}, whose files are taken in; wants a --store "
                "outside"
            )
        if not 0 < self.margin_s <= self.period_s:
            raise InvalidTracesError(
                f"the margin is {self.margin_s:g} s and parts are {self.period_s:g} s long; wants "
                "a margin above 0 and at most as long as a part, so that no event meets three parts"
            )
        if self.keep_s is not None and self.keep_s < LEAST_KEPT_S:
            raise InvalidTracesError(
                f"--keep is {self.keep_s:g} s; wants {LEAST_KEPT_S / 3600:g} h or more: what is "
                "judged is judged by the last hours"
            )

    @property
    def period_ns(self) -> int:
        """How long a period is."""
        return round(self.period_s * 1e9)

    def parts(self) -> tuple[StorePart, ...]:
        """List the parts that the store has, in the order of time."""
        catalogue = read_catalogue(self.store)
        if catalogue is None:
            return ()
        if catalogue.margin_s != self.margin_s:
            raise InvalidTracesError(
                f"{self.store} keeps {catalogue.margin_s:g} s at the ends of its parts, but the "
                f"margin is {self.margin_s:g} s; give --margin {catalogue.margin_s:g}s, or a new "
                "--store"
            )
        manifest = self._manifest()
        if manifest is not None and catalogue.parts:  # else counting the next part tells
            check_sampled(str(self.source), parse_sampled(*manifest), self.store, catalogue)
        return catalogue.parts

    def sampled(self) -> float:
        """Give the share of all events that was recorded of those that are counted."""
        catalogue = read_catalogue(self.store)
        return 1.0 if catalogue is None else catalogue.sampled

    def down_since(self) -> dict[str, int]:
        """List components that are recorded to be down, and since when, in nanoseconds."""
        catalogue = read_catalogue(self.store)
        return {} if catalogue is None else down_since(self.store, catalogue)

    def counted_until_ns(self) -> int:
        """Give until when the store has counted, in ns; 0 where it has nothing yet."""
        return max((part.until_ns for part in self.parts()), default=0)

    def limits(self, now_ns: int) -> Limits:
        """Make the limits that decide where a row goes."""
        return Limits(
            period_ns=self.period_ns,
            counted_until_ns=self.counted_until_ns(),
            now_ns=now_ns + round(self.margin_s * 1e9),
        )

    def close(
        self, spark: SparkSession, staging: Staging, latest: MicroBatch, tell: Progress
    ) -> TraceWindow | None:
        """Count all periods that are due, as one part, and forget their rows; None: none is due.

        A period is due when the newest publication is a margin beyond its end.
        """
        counted_ns = self.counted_until_ns()
        if not counted_ns:
            staging.set_strays_aside(self.period_ns)
        due_ns = latest.newest_ns - round(self.margin_s * 1e9)
        until_ns = due_ns // self.period_ns * self.period_ns
        begin_ns = counted_ns or self._begin_ns(staging)
        staging.forget(counted_ns, self.period_ns)  # a run was killed between adding and this
        least_ns = round(FIRST_SHARE * self.period_ns)
        if begin_ns is None or until_ns - begin_ns < least_ns:
            return None
        if not set(NEEDED) <= set(latest.tables):
            return None  # as of a source whose tables come one after the other
        window = TraceWindow(from_ns=begin_ns, until_ns=until_ns)
        add_traces(
            self._traces(spark, staging, latest, window),
            self.store,
            base=self.base,
            margin_s=self.margin_s,
            progress=tell,
        )
        staging.forget(until_ns, self.period_ns)
        return window

    def compact(self, spark: SparkSession, tell: Progress) -> None:
        """Put old parts of the store together, and drop those that are too old."""
        compact(spark, self.store, keep_s=self.keep_s, progress=tell)

    def _traces(
        self, spark: SparkSession, staging: Staging, latest: MicroBatch, window: TraceWindow
    ) -> Traces:
        tables = {  # rows of periods that are counted have been forgotten
            table: staging.rows(spark, table, window.until_ns, self.period_ns)
            for table in latest.tables
        }
        manifest = self._manifest()
        return Traces(
            tables=tables,
            window=window,
            source=str(self.source),
            sampled=1.0 if manifest is None else parse_sampled(*manifest),
        )

    def _begin_ns(self, staging: Staging) -> int | None:
        """Find when watching began, in ns: as a manifest says, or with the first publication."""
        first_ns = staging.first_publication_ns()
        manifest = self._manifest()
        if first_ns is None or manifest is None:
            return first_ns
        return parse_manifest(*manifest).from_ns

    def _manifest(self) -> tuple[str, str] | None:
        """Read the manifest of the source: its text, and where it is; None where there is none."""
        path = self.source / MANIFEST
        return (path.read_text(encoding="utf-8"), str(path)) if path.is_file() else None
