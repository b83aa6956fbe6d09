"""Latencies to subscribers: to the broker they are at, and over their own links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import sparse

from tidings.model.record_tables import column
from tidings.model.routes import Routes
from tidings.model.system import System
from tidings.model.system_workload import wanting_filters
from tidings.model.workload import Workload
from tidings.operational.analysing import Analysis


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryGroup:
    """Subscribers at one broker whose links take the same mean time."""

    broker: str
    link_mean_s: float = 0.0
    subscribers: int | None = None  # how many; None: not known
    flow: int | None = None  # of which they want events; None: of any


def audiences_of(system: System, routes: Routes, *, by: str = "type") -> Iterator[DeliveryGroup]:
    """Yield the audiences, one for each broker, mean time of the last link and flow they want.

    Flows are those of :func:`~tidings.model.system_workload.workload_of`.
    """
    homes, links = column(system.subscribers, "at"), column(system.subscribers, "link")
    counts = column(system.subscribers, "count")
    each = np.array(counts.values, dtype=np.int64)[counts.codes]
    pairs, member = np.unique(
        np.column_stack([homes.codes, links.codes]), axis=0, return_inverse=True
    )
    wanting = wanting_filters(system, routes, by=by)
    asking = sparse.coo_array(
        (each, (member.ravel(), routes.filter_of_subscriber)),
        shape=(len(pairs), wanting.shape[1]),
    )
    numbers = asking.tocsr() @ wanting.T.astype(np.int64)  # [pair, flow]
    by_audience: dict[tuple[str, float, int], int] = {}
    for pair, flow in np.argwhere(numbers > 0).tolist():
        home, link = pairs[pair]
        key = (str(homes.values[home]), float(links.values[link].delay.mean_s), flow)
        by_audience[key] = by_audience.get(key, 0) + int(numbers[pair, flow])
    for (broker, link_mean_s, flow), number in by_audience.items():
        yield DeliveryGroup(broker=broker, link_mean_s=link_mean_s, subscribers=number, flow=flow)


def audiences_behind(link_means_s: Mapping[str, float]) -> Iterator[DeliveryGroup]:
    """Yield the audiences where only the mean time of the last link of each broker is known."""
    for broker, mean_s in link_means_s.items():
        yield DeliveryGroup(broker=broker, link_mean_s=0.0 if np.isnan(mean_s) else mean_s)


def delivery_rows(analysis: Analysis, audiences: Iterable[DeliveryGroup] | None) -> pd.DataFrame:
    """List the deliveries of an analysis that somebody wants, with the time of the last link.

    Without audiences all nodes are given, and latencies end there.
    """
    rows = analysis.deliveries
    if audiences is None:
        return rows.assign(subscribers=None, link_mean_s=0.0)
    flows = range(len(analysis.workload.flows))
    behind = pd.DataFrame(
        [
            (*_names(analysis.workload, flow), each.broker, each.subscribers, each.link_mean_s)
            for each in audiences
            for flow in (flows if each.flow is None else (each.flow,))
        ],
        columns=["type", "publisher", "broker", "subscribers", "link_mean_s"],
    )
    both = rows.merge(behind, on=["type", "publisher", "broker"], how="inner", sort=False)
    return both.assign(latency_mean_s=both["latency_mean_s"] + both["link_mean_s"])


def _names(workload: Workload, flow: int) -> tuple[str, str]:
    wanted = workload.flows[flow]
    return wanted.event_type, workload.sources[wanted.source].name
