"""Measure a watched system: count what became of its events, stretch by stretch.

Events published less than a margin before the end of what is counted may still be on their way, so
that they wait to be measured. A stretch that is measured stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from tidings.characterisation.count.store import StorePart
from tidings.characterisation.fit.laws import fit_moments
from tidings.characterisation.fit.queues import Counters
from tidings.characterisation.statistics import BATCHES
from tidings.characterisation.stored import (
    characterise_store,
    end_of_batches,
    stored_counters,
    stored_waits,
)
from tidings.model.delay_grid import EDGES_S
from tidings.model.system import System
from tidings.traces.window import HOUR_NS
from tidings.watching.certainty import LEAST_COUNT
from tidings.watching.counts import EventCounts, Stretch

ENOUGH_POLLS = 2 * BATCHES
BEFORE_NS = HOUR_NS
LAST_BATCHES = BATCHES // 4  # of a part: of a minute 15 s
_MIDDLES = (np.arange(20) + 0.5) / 20  # quantiles that stand for a distribution
NowAndBefore = tuple[Mapping[str, Counters], Mapping[str, Counters]]


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


def newest_waits(store: Path, part: StorePart) -> dict[str, float]:
    """Compute the mean wait in seconds, by broker, of what came in the last quarter of a part.

    Of a queue that grows the mean of the whole part would tell how long it was half a part ago. Of
    few events nothing is told.
    """
    waits = stored_waits(store, part, LAST_BATCHES) if "hops" in part.tables else {}
    return {broker: wait_s for broker, (wait_s, count) in waits.items() if count >= LEAST_COUNT}
