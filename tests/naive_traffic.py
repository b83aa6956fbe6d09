"""The statistic of intervals counted plainly, in NumPy, from publishing times."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tidings.characterisation.fit.samples import sample_of
from tidings.characterisation.statistics import (
    BATCHES,
    SCALE_SUMS,
    SCALES_NS,
    WEEK_HOURS,
    WHOLE_NS,
)

HOUR_NS = 3600 * 10**9


def squares(at_ns, length_ns):
    """Sum over windows of the number of events in each, squared."""
    _, counts = np.unique(at_ns // length_ns, return_counts=True)
    return int((counts**2).sum())


def interval_rows(times_ns, from_ns, until_ns):
    """The rows that Spark counts of publishers' times (int64, by name), less those by bin."""
    width = -(-(until_ns - from_ns) // BATCHES)
    rows = []
    for publisher, every_ns in times_ns.items():
        at_ns = np.sort(np.asarray(every_ns, dtype=np.int64))
        batch = np.minimum((at_ns - from_ns) // width, BATCHES - 1)
        for number in np.unique(batch):
            own = at_ns[batch == number]
            gaps_s = np.diff(own) / 1e9
            rows.append(
                {
                    "statistic": "ends",
                    "publisher": publisher,
                    "batch": number,
                    "count": len(gaps_s),
                    "total_s": gaps_s.sum(),
                    "squares": (gaps_s**2).sum(),
                    "first_ns": own[0],
                    "last_ns": own[-1],
                    "events": len(own),
                    "instants": len(np.unique(own)),
                    **{name: int((own % unit == 0).sum()) for name, unit in WHOLE_NS.items()},
                }
            )
            rows.append(
                {
                    "statistic": "scales",
                    "publisher": publisher,
                    "batch": number,
                    "first_ns": own[0],
                    "last_ns": own[-1],
                    "events": len(own),
                }
                | {
                    name: squares(own, length)
                    for name, length in zip(SCALE_SUMS, SCALES_NS, strict=True)
                }
            )
        hours, counts = np.unique(at_ns // HOUR_NS % WEEK_HOURS, return_counts=True)
        rows += [
            {"statistic": "hours", "publisher": publisher, "bin": hour, "events": count}
            for hour, count in zip(hours, counts, strict=True)
        ]
    return pd.DataFrame(rows)


def samples(times_ns):
    """The intervals of every publisher, as a sample."""
    return {
        name: sample_of(np.diff(np.sort(np.asarray(at_ns))) / 1e9)
        for name, at_ns in times_ns.items()
    }
