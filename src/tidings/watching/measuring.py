"""What was measured of a watched system: counts of events, stretch by stretch.

Events published less than a margin before the end of what is counted may still be on their way, so
that they wait to be measured. A stretch that is measured stays as it is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from tidings.characterisation.count.store import StorePart
from tidings.characterisation.fit.laws import fit_moments
from tidings.characterisation.fit.queues import Counters
from tidings.characterisation.statistics import BATCHES
from tidings.characterisation.stored import characterise_store, end_of_batches, stored_counters
from tidings.model import json_text
from tidings.model.delay_grid import EDGES_S
from tidings.model.plain_files import read_text
from tidings.model.system import System
from tidings.model.writing import write_file
from tidings.traces.window import HOUR_NS
from tidings.watching.counts import EventCounts, Stretch

MEASURED_FILE = "measured.jsonl"
ENOUGH_POLLS = 2 * BATCHES
BEFORE_NS = HOUR_NS
_MIDDLES = (np.arange(20) + 0.5) / 20  # quantiles that stand for a distribution
NowAndBefore = tuple[Mapping[str, Counters], Mapping[str, Counters]]


@dataclass(slots=True, kw_only=True)
class Ledger:
    """The file of stretches that were measured, as far back as somebody asks.

    A line is added for each; the file is written anew when half of its lines are too old.
    """

    path: Path
    keep_s: float
    _kept: list[Stretch] | None = field(init=False, default=None)
    _lines: int = field(init=False, default=0)

    def read(self) -> list[Stretch]:
        """Give all periods, in the order of time; none where nothing can be read."""
        if self._kept is None:
            self._kept = self._read()
            self._lines = len(self._kept)
        return list(self._kept)

    def _read(self) -> list[Stretch]:
        try:
            text = read_text(self.path)
            whole = text[: text.rindex("\n") + 1]  # what a line was killed in the middle of is not
            stretches = [_stretch(json_text.parse(line)) for line in whole.splitlines()]
        except (OSError, ValueError, LookupError, TypeError):
            return []  # measured anew from here on
        if len(whole) < len(text):
            self._write(stretches)
        return stretches

    def add(self, stretch: Stretch) -> list[Stretch]:
        """Write one more stretch, and leave those out that are too old; gives what is left."""
        oldest_ns = stretch.until_ns - round(self.keep_s * 1e9)
        self._kept = [each for each in self.read() if each.until_ns > oldest_ns] + [stretch]
        if self._lines and self._lines < 2 * len(self._kept):
            with self.path.open("ab") as lines:
                lines.write(_line(stretch))
                lines.flush()
                os.fsync(lines.fileno())
            self._lines += 1
        else:
            self._write(self._kept)
        return list(self._kept)

    def _write(self, stretches: Sequence[Stretch]) -> None:
        write_file(self.path, b"".join(map(_line, stretches)))
        self._lines = len(stretches)


def measure(
    store: Path, base: System, parts: Sequence[StorePart], measured_until_ns: int, margin_s: float
) -> Stretch | None:
    """Count what became of the events published since a moment; None: none can be told of yet."""
    ready_ns = end_of_batches(parts, parts[-1].until_ns - round(margin_s * 1e9))
    begin_ns = max(measured_until_ns, parts[0].from_ns)
    if ready_ns <= begin_ns:
        return None
    since_ns = max(part.from_ns for part in parts if part.from_ns <= begin_ns)
    found = characterise_store(
        store, base, since_ns=since_ns, measured_ns=(begin_ns, ready_ns), fit_delay=fit_moments
    )
    rows = found.measured.subscribers
    within = _within_own_lifetimes(base, found.measured.delays)
    counts = {}
    for row in rows[rows["events"] > 0].itertuples():
        name, delivered = str(row.subscriber), _share(row.delivered, row.events)
        on_time = _share(row.on_time, row.events)
        if name in within:
            on_time = min(on_time, round(delivered * within[name]))
        counts[name] = EventCounts(wanted=round(row.events), delivered=delivered, on_time=on_time)
    return Stretch(from_ns=begin_ns, until_ns=ready_ns, counts=counts)


def _within_own_lifetimes(system: System, delays: pd.DataFrame) -> dict[str, float]:
    """Compute which share of what they got came within the lifetimes that subscribers have.

    Traces know lifetimes of events only; an objective has its own. Delays are those of all of the
    parts that were read, which begin before and end after what is measured; between edges of the
    delay grid they are taken to lie evenly.
    """
    lifetimes = {each.name: each.lifetime for each in system.subscribers if each.lifetime}
    shares = {}
    for name, rows in delays[delays["subscriber"].isin(list(lifetimes))].groupby("subscriber"):
        lengths_s = np.asarray(lifetimes[str(name)].quantile(_MIDDLES))
        arrived = rows["arrived"].to_numpy(np.float64)
        lower_s = np.append(0.0, EDGES_S)[np.searchsorted(EDGES_S, rows["delay_s"].to_numpy())]
        edges_s = np.stack([lower_s, rows["delay_s"].to_numpy(np.float64)], 1).ravel()
        below = np.stack([np.append(0.0, arrived[:-1]), arrived], 1).ravel()
        shares[str(name)] = float(np.interp(lengths_s, edges_s, below, 0.0).mean() / arrived[-1])
    return shares


def newest_counters(store: Path, parts: Sequence[StorePart]) -> NowAndBefore:
    """Read how far counters of queues went now, and in the hour before.

    Now is as many of the newest parts as it takes for polls to fill batches, within an hour.
    """
    number, now = 1, stored_counters(store, parts[-1:])
    while number < len(parts) and any(each.polls < ENOUGH_POLLS for each in now.values()):
        if parts[-1].until_ns - parts[-number].from_ns > BEFORE_NS:
            break
        number = min(2 * number, len(parts))
        now = stored_counters(store, parts[-number:])
    if not now:
        return {}, {}
    begin_ns = parts[-number].from_ns
    before = [each for each in parts[:-number] if each.from_ns >= begin_ns - BEFORE_NS]
    return now, stored_counters(store, before)


def _share(share: float, events: float) -> int:
    return round(share * events)


def _line(stretch: Stretch) -> bytes:
    counts = {
        name: [each.wanted, each.delivered, each.on_time] for name, each in stretch.counts.items()
    }
    document = {"from_ns": stretch.from_ns, "until_ns": stretch.until_ns, "counts": counts}
    return json.dumps(document).encode() + b"\n"


def _stretch(document: Mapping[str, object]) -> Stretch:
    stretch = Stretch(**{**document, "counts": {}})  # type: ignore[arg-type]
    counts: Mapping[str, Sequence[int]] = document["counts"]  # type: ignore[assignment]
    names = ("wanted", "delivered", "on_time")
    read = {
        name: EventCounts(**dict(zip(names, each, strict=True))) for name, each in counts.items()
    }
    return replace(stretch, counts=read)
