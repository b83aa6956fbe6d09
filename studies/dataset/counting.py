"""What became of the events of a recorded run, counted in the plainest way, without Spark.

It is the truth that a sample comes with, so it shares nothing with how traces are characterised.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from tidings.model.arrays import Floats
from tidings.model.filters import matches
from tidings.model.outcome import QUANTILES, Outcome, table
from tidings.model.system import Subscriber, System

PARTS = 20  # of a run, equally long, whose differences tell standard errors


def counted(
    system: System,
    tables: Mapping[str, pd.DataFrame],
    window_ns: tuple[int, int],
    provenance: Mapping[str, Any],
) -> Outcome:
    """Count for each subscriber which share of the events that it wanted came in time.

    An event counts for whoever is subscribed when it is published; of one that came or was handled
    several times the first time counts. Standard errors are told by parts of the run, as if these
    were independent: where outages or absences last as long as a part they are too small.
    """
    rows = [_row(system, each, tables, window_ns) for each in system.subscribers]
    return Outcome(source="measured", subscribers=table("subscribers", rows), provenance=provenance)


def _row(
    system: System,
    one: Subscriber,
    tables: Mapping[str, pd.DataFrame],
    window_ns: tuple[int, int],
) -> dict[str, Any]:
    begin_ns, end_ns = window_ns
    published = tables["publications"]
    contents = {
        text: matches(one.wants, json.loads(text)) for text in published["content"].unique()
    }
    wanted = published[published["content"].map(contents) & _subscribed(one, tables)]
    came = tables["deliveries"]
    first_ns = came[came["subscriber"] == one.name].groupby("event")["received_ns"].min()
    times = came[came["subscriber"] == one.name].groupby("event").size()
    delay_ns = wanted["event"].map(first_ns) - wanted["published_ns"]
    delay_s = delay_ns.to_numpy(np.float64) / 1e9
    life_s = wanted["lifetime_ns"].astype("float64").fillna(np.inf).to_numpy() / 1e9
    part = (wanted["published_ns"].to_numpy() - begin_ns) * PARTS // (end_ns - begin_ns)
    in_time = delay_s <= life_s  # what never came has no delay, and is not
    arrived = ~np.isnan(delay_s)
    shares = {"on_time": in_time, "delivered": arrived, "late": arrived & ~in_time}
    quantiles = np.quantile(delay_s[arrived], list(QUANTILES.values()))
    handled = {"handled_again": float((wanted["event"].map(times) > 1).mean())}
    return {
        "subscriber": one.name,
        "broker": one.at,
        "count": 1,
        "wanted_per_s": len(wanted) * 1e9 / (end_ns - begin_ns),
        "events": len(wanted),
        **{name: float(flags.mean()) for name, flags in shares.items()},
        "on_time_se": _ratio_se(in_time, np.ones(len(wanted)), part),
        "lost_unexplained": float(1.0 - arrived.mean()),
        **(handled if one.consumers is not None else {}),
        "delay_mean_s": float(delay_s[arrived].mean()),
        "delay_mean_se_s": _ratio_se(delay_s[arrived], np.ones(arrived.sum()), part[arrived]),
        **dict(zip(QUANTILES, quantiles.tolist(), strict=True)),
    }


def _subscribed(one: Subscriber, tables: Mapping[str, pd.DataFrame]) -> pd.Series:
    """Test which events were published while somebody was subscribed."""
    at_ns = tables["publications"]["published_ns"]
    steps = tables["subscriptions"]
    mine = steps[steps["subscriber"] == one.name]
    begin_ns = mine[mine["action"] == "subscribe"].set_index("subscription")["at_ns"]
    end_ns = mine[mine["action"] == "unsubscribe"].set_index("subscription")["at_ns"]
    inside = pd.Series(data=False, index=at_ns.index)
    for stay, since_ns in begin_ns.items():
        inside |= (at_ns >= since_ns) & (at_ns < end_ns.get(stay, np.iinfo(np.int64).max))
    return inside


def _ratio_se(values: Floats, weights: Floats, part: Floats) -> float:
    """Compute the standard error of Σ values / Σ weights, from sums over the parts of a run."""
    above, below = (
        np.bincount(part.astype(np.int64), each, minlength=PARTS) for each in (values, weights)
    )
    off = above - above.sum() / below.sum() * below
    return float(np.sqrt((off**2).sum() * PARTS / (PARTS - 1)) / below.sum())
