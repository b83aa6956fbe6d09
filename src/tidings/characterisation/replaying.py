"""Keep the recorded publishing times beside a fitted system, which replays them."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from tidings.characterisation.count.publications import checked_publications
from tidings.characterisation.fit.blocks import MOST_PART, block_batches
from tidings.characterisation.fit.fitted import Characterisation
from tidings.characterisation.fit.traffic import BY_DAY, Traffic
from tidings.characterisation.fit.traffic_notes import KEEP
from tidings.errors import InvalidTracesError
from tidings.model.arrays import Floats
from tidings.model.publishing import Publishing
from tidings.model.writing import write_file
from tidings.traces.actions import bring_here
from tidings.traces.quarantine import REASON
from tidings.traces.reading import Traces

MOST_TIMES = 50_000_000  # that are kept in one file, and in the memory of whoever replays them
DAY_S, WEEK_S = 86_400.0, 604_800.0
LEAST_CYCLES = 4  # weeks from which some can stand for others
SPREAD = (
    "recorded times are replayed in blocks of {block:.3g} s; events per second differ by "
    "{spread:.0%} (standard deviation) between eighths of the record, beyond what hours explain: "
    "predictions take another time to differ from the record as much"
)


def times_file(system: Path) -> Path:
    """Name the file of recorded times beside a system file.

    >>> times_file(Path("out/fitted.yaml")).as_posix()
    'out/fitted-times.parquet'
    """
    return system.with_name(f"{system.stem}-times.parquet")


def keep_times(fitted: Characterisation, traces: Traces, to: Path) -> Characterisation:
    """Write all publishing times to a file, and give the system that replays them from there.

    Publishers are resampled together, in blocks that are long enough to tell nothing of the next
    and, where they follow the time of day, of whole days.
    """
    good = checked_publications(traces.tables["publications"], traces.window)
    rows = good.where(good[REASON].isNull()).select("event", "publisher", "published_ns")
    named = f"{traces.source}: the table publications"
    once = rows.dropDuplicates(["event"]).select("publisher", "published_ns")
    times = bring_here(once.limit(MOST_TIMES + 1), named)
    if len(times) > MOST_TIMES:
        raise InvalidTracesError(
            f"{traces.source}: more than {MOST_TIMES:,} publications; --replay keeps no more: "
            "characterise a part of the time, or leave it out"
        )
    if traces.sampled < 1:
        raise InvalidTracesError(
            f"{traces.source}: {traces.sampled:.3g} of all events were recorded; --replay needs "
            "the times of all: leave it out"
        )
    target = io.BytesIO()
    times.sort_values(["publisher", "published_ns"]).to_parquet(target, index=False)
    write_file(to, target.getvalue())
    window_s = traces.window.seconds
    publishes, spread = replayed(fitted.kinds, window_s, str(to))
    known = set(times["publisher"])
    publishers = tuple(
        replace(each, every=None, rates=None, publishes=publishes) if each.name in known else each
        for each in fitted.system.publishers
    )
    system = replace(fitted.system, publishers=publishers, remarks=())
    notes = tuple(note for note in fitted.notes if not note.endswith(KEEP))
    said = SPREAD.format(block=publishes.block_s, spread=spread)
    return replace(fitted, system=system, notes=(*notes, said))


def replayed(kinds: Mapping[str, Traffic], window_s: float, file: str) -> tuple[Publishing, float]:
    """Choose how to replay a record of so many seconds; compute how far its eighths' rates differ.

    What counts is how far all publishers together are from what their hours make usual.
    """
    counts = np.sum([each.counts for each in kinds.values()], axis=0)
    usual = np.sum([each.usual for each in kinds.values()], axis=0)
    together = counts / np.maximum(usual, 1e-300)
    block_s, cycle_s = block_batches(together) * window_s / len(together), None
    if any(each.kind in BY_DAY for each in kinds.values()):
        cycle_s = WEEK_S if window_s >= LEAST_CYCLES * WEEK_S else DAY_S
        most = max(window_s // (MOST_PART * cycle_s), 1.0)
        block_s = min(math.ceil(block_s / cycle_s), most) * cycle_s
    publishes = Publishing(recorded=file, length_s=window_s, block_s=block_s, cycle_s=cycle_s)
    return publishes, _spread(together)


def _spread(per_s: Floats) -> float:
    """Compute the standard deviation of a rate between eighths of the time, relative to the rate.

    >>> round(_spread(np.repeat([1.0, 3.0], 16)), 3)
    0.535
    """
    eighths = per_s[: len(per_s) // 8 * 8].reshape(8, -1).mean(axis=1)
    return float(eighths.std(ddof=1) / eighths.mean())
