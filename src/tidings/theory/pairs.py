"""A row for every publisher and subscriber of whom the second wants something of the first.

There may be as many as publishers × subscribers, so they are made on demand only.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from tidings.model.outcome import QUANTILES, table
from tidings.model.system import System
from tidings.theory.audiences import Floats, Ints
from tidings.theory.delay_tables import Tables, mixtures
from tidings.theory.shares import Shares


def pair_table(system: System, results: list[Shares], tables: Tables) -> pd.DataFrame:
    """The predicted pairs: rates, shares, losses by cause, delays and their quantiles.

    The streams of the results must tell publishers apart.
    """
    publishers = np.array([each.name for each in system.publishers], dtype=object)
    names = np.array([each.name for each in system.subscribers], dtype=object)
    parts = []
    for result in results:
        source = np.array([stream.publisher for stream in result.streams], dtype=np.int64)
        present, position = np.unique(source, return_inverse=True)
        wanted, columns = _by_filter(result, position, present.size)
        quantiles_s = _quantiles_s(result, position, present.size, tables)
        which, whose = np.nonzero(wanted[result.audience.filter_of])
        of_filter = result.audience.filter_of[which]
        part: dict[str, object] = {
            "publisher": publishers[present[whose]],
            "subscriber": names[result.audience.subscribers[which]],
        }
        part |= {name: values[of_filter, whose] for name, values in columns.items()}
        for index, name in enumerate(QUANTILES):
            part[name] = quantiles_s[of_filter, whose, index]
        parts.append(pd.DataFrame(part))
    return table("pairs", pd.concat(parts).to_dict("list") if parts else ())


def _by_filter(result: Shares, position: Ints, count: int) -> tuple[Floats, dict[str, Floats]]:
    """What each filter wants of each publisher per second, and the numbers of these pairs."""
    sums = np.zeros((position.size, count))
    sums[np.arange(position.size), position] = 1.0

    def total(per_stream: Floats) -> Floats:
        found: Floats = result.wanted @ (sums * per_stream[:, None])
        return found

    wanted = total(np.ones(position.size))
    delivered = total(result.delivered)
    rate = np.where(wanted > 0, wanted, np.nan)
    columns = {
        "wanted_per_s": wanted,
        "on_time": total(result.on_time) / rate,
        "delivered": delivered / rate,
        "late": total(result.delivered - result.on_time) / rate,
        "delay_mean_s": total(_of_delivered(result)) / np.where(delivered > 0, delivered, np.nan),
    }
    columns |= {f"lost_{cause}": total(lost) / rate for cause, lost in result.lost.items()}
    return wanted, columns


def _of_delivered(result: Shares) -> Floats:
    """Mean delay times what is delivered, of each stream; nothing where nothing is delivered."""
    reaching = result.delivered > 0
    found: Floats = np.where(reaching, result.delivered * result.means_s, 0.0)
    return found


def _quantiles_s(result: Shares, position: Ints, count: int, tables: Tables) -> Floats:
    """Quantiles of what is delivered, [filter, publisher, quantile]; NaN where nothing is."""
    asked = list(QUANTILES.values())
    found = np.full((result.wanted.shape[0], count, len(asked)), np.nan)
    every = result.stages
    for publisher in range(count):
        mine = np.flatnonzero((position == publisher) & (result.delivered > 0))
        # Streams that differ in their lifetime only share their way.
        ways = list(dict.fromkeys(every[index] for index in mine))
        merged = np.zeros((mine.size, len(ways)))
        merged[np.arange(mine.size), [ways.index(every[index]) for index in mine]] = 1.0
        weights = result.wanted[:, mine] @ (result.delivered[mine][:, None] * merged)
        rows = np.flatnonzero(weights.any(axis=1))
        if rows.size:
            found[rows, publisher] = mixtures(tables, ways, weights[rows]).quantiles(asked)
    return found
