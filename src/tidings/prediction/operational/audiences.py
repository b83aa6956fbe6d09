"""Latencies to subscribers: to the broker they are at, and over their own links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tidings.model.record_tables import column
from tidings.model.system import System
from tidings.prediction.operational.analysing import Analysis


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """Subscribers at one broker whose links take the same mean time."""

    broker: str
    link_mean_s: float = 0.0
    subscribers: int | None = None  # how many; None: not known


def audiences_of(system: System) -> Iterator[Audience]:
    """The audiences of a system: one for each broker and mean time of the last link."""
    homes, links = column(system.subscribers, "at"), column(system.subscribers, "link")
    counts = column(system.subscribers, "count")
    each = np.array(counts.values, dtype=np.int64)[counts.codes]
    pairs, member = np.unique(
        np.column_stack([homes.codes, links.codes]), axis=0, return_inverse=True
    )
    found: dict[tuple[str, float], int] = {}
    numbers = np.bincount(member.ravel(), weights=each, minlength=len(pairs))
    for (home, link), number in zip(pairs, numbers, strict=True):
        key = (str(homes.values[home]), float(links.values[link].delay.mean_s))
        found[key] = found.get(key, 0) + int(number)
    for (broker, link_mean_s), number in found.items():
        yield Audience(broker=broker, link_mean_s=link_mean_s, subscribers=number)


def audiences_behind(link_means_s: Mapping[str, float]) -> Iterator[Audience]:
    """The audiences where only the mean time of the last link of each broker is known."""
    for broker, mean_s in link_means_s.items():
        yield Audience(broker=broker, link_mean_s=0.0 if np.isnan(mean_s) else mean_s)


def delivery_rows(analysis: Analysis, audiences: Iterable[Audience] | None) -> pd.DataFrame:
    """The deliveries of an analysis that have an audience, with the time of the last link.

    Without audiences all nodes are given, and latencies end there.
    """
    rows = analysis.deliveries
    if audiences is None:
        return rows.assign(subscribers=None, link_mean_s=0.0)
    behind = pd.DataFrame(
        [(each.broker, each.subscribers, each.link_mean_s) for each in audiences],
        columns=["broker", "subscribers", "link_mean_s"],
    )
    both = rows.merge(behind, on="broker", how="inner", sort=False)
    return both.assign(latency_mean_s=both["latency_mean_s"] + both["link_mean_s"])
