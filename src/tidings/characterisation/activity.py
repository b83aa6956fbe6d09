"""How often events come, from how much was counted in slots of time: rates by antenna and slot.

The published mapping: N events in a slot of length |t| are a Poisson stream of rate N/|t| in it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.errors import InvalidTracesError
from tidings.model.behaviour import DailyRates

ACTIVITY_RATES = "antenna string, slot bigint, per_s double"


def activity_rates(activity: DataFrame, slot_s: float) -> DataFrame:
    """Events per second by antenna and slot, λ = N/|t|; slots are numbered from the first one.

    Reads ``antenna``, ``at_s`` (any moment in the slot) and ``events``. Slots in which nothing was
    counted are not there.
    """
    slot = F.floor(F.col("at_s") / F.lit(slot_s)).cast("bigint")
    counted = activity.groupBy("antenna", slot.alias("slot")).agg(F.sum("events").alias("events"))
    first = counted.agg(F.min("slot").alias("first"))
    return counted.join(F.broadcast(first)).select(
        "antenna",
        (F.col("slot") - F.col("first")).alias("slot"),
        (F.col("events") / F.lit(slot_s)).alias("per_s"),
    )


def daily_rates(rates: pd.DataFrame, slot_s: float) -> dict[str, DailyRates]:
    """Collected rates by antenna, slot after slot; 0 where nothing was counted.

    An antenna at which nothing ever was is left out. Raises :class:`InvalidTracesError` where no
    antenna is left.

    >>> rows = [("a", 0, 0.5), ("a", 2, 0.25)]
    >>> daily_rates(pd.DataFrame(rows, columns=["antenna", "slot", "per_s"]), 600.0)["a"].per_s
    (0.5, 0.0, 0.25)
    """
    busy = rates[rates.groupby("antenna")["per_s"].transform("sum") > 0.0]
    if busy.empty:
        raise InvalidTracesError("no activity: no antenna counted an event; wants one that did")
    count = int(rates["slot"].max()) + 1
    found = {}
    for antenna, rows in busy.groupby("antenna"):
        per_s = np.zeros(count)
        per_s[rows["slot"].to_numpy(np.int64)] = rows["per_s"].to_numpy(np.float64)
        found[str(antenna)] = DailyRates(slot_s=slot_s, per_s=tuple(per_s.tolist()))
    return found
