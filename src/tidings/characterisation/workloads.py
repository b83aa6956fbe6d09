"""A workload measured in traces: routing probabilities, joint forwarding, rates, service times."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tidings.characterisation.fitting import fit_law
from tidings.characterisation.routing import routing_statistics, source_statistics
from tidings.characterisation.samples import sample_from_rows
from tidings.errors import InvalidTracesError
from tidings.model.laws import Exponential, Law
from tidings.model.workload import (
    MOST_SETS,
    Centre,
    Connection,
    Flow,
    JointForwarding,
    Node,
    Source,
    Workload,
)
from tidings.traces.actions import bring_here
from tidings.traces.reading import Traces, require_tables

FLOW = ["type", "publisher"]


@dataclass(frozen=True, kw_only=True)
class MeasuredWorkload:
    """The workload of some traces, and how sure its routing probabilities are.

    ``routing``: for (type, publisher, broker, next broker) how many events visited the broker, how
    many were forwarded, their share and its standard error. ``paths``: the dissemination tree of
    each flow, as the brokers on the way to each broker it was seen at.
    """

    workload: Workload
    routing: pd.DataFrame
    paths: pd.DataFrame


def measure_workload(traces: Traces, *, event_type: str | None = None) -> MeasuredWorkload:
    """The workload of traces; ``event_type`` names the attribute that is an event's type.

    Publishers are taken as Poisson, links as without delay: what is measured here is routing, rates
    and service times, as in the performance-methodology paper.
    """
    require_tables(traces.source, ("publications", "hops"), traces.tables)
    hops, publications = traces.tables["hops"], traces.tables["publications"]
    named = f"the tables hops and publications of {traces.source}"
    cells = bring_here(routing_statistics(hops, publications, traces.window, event_type), named)
    sources = bring_here(source_statistics(publications, traces.window, event_type), named)
    return workload_from_cells(cells, sources, traces.window.seconds)


def workload_from_cells(
    cells: pd.DataFrame, sources: pd.DataFrame, window_s: float
) -> MeasuredWorkload:
    """The same from statistics that have been collected: everything here is model-sized."""
    if cells.empty:
        raise InvalidTracesError("no hop belongs to a publication of these traces")
    if cells["sent_to"].isna().any():
        raise InvalidTracesError(
            "some hops do not say to whom the event was sent on; record 'sent_to' (an empty list "
            "where it went no further)"
        )
    cells = cells.assign(sent_to=[tuple(each) for each in cells["sent_to"]])
    routing = routing_table(cells)
    brokers = sorted(set(cells["broker"]) | set(routing["next_broker"]))
    ways = sorted(set(zip(routing["broker"], routing["next_broker"], strict=True)))
    workload = Workload(
        nodes=tuple(Node(name=name, centres=(at,)) for at, name in enumerate(brokers)),
        centres=tuple(Centre(name=name) for name in brokers),
        connections=tuple(_connections(cells, routing, ways, brokers)),
        sources=tuple(_sources(cells, sources, brokers, window_s)),
        flows=tuple(_flows(cells, sources, routing, ways, brokers)),
    )
    return MeasuredWorkload(workload=workload, routing=routing, paths=dissemination(cells))


def routing_table(cells: pd.DataFrame) -> pd.DataFrame:
    """Routing probabilities for (type, publisher, broker, next broker), with standard errors."""
    visits = cells.groupby([*FLOW, "broker"])["rows"].sum().rename("visits").reset_index()
    sent = cells[[*FLOW, "broker", "sent_to", "rows"]].explode("sent_to").dropna()
    sent = sent.rename(columns={"sent_to": "next_broker"})
    keys = [*FLOW, "broker", "next_broker"]
    found = sent.groupby(keys)["rows"].sum().rename("forwarded").reset_index()
    found = found.merge(visits, on=[*FLOW, "broker"])
    share = found["forwarded"] / found["visits"]
    error = np.sqrt(share * (1.0 - share) / found["visits"])
    return found.assign(probability=share, probability_se=error)


def dissemination(cells: pd.DataFrame) -> pd.DataFrame:
    """The way to every broker at which events of a flow were seen, with how many came that way.

    Where a broker is reached by several ways there is a row for each, without repetitions.
    """
    rows = []
    for (kind, publisher), group in cells.groupby(FLOW):
        counts = group.groupby(["came_from", "broker"])["rows"].sum()
        inward: dict[str, list[str]] = {}
        for came_from, broker in counts.index:
            inward.setdefault(str(broker), []).append(str(came_from))
        for broker in sorted(inward):
            for origin, path in _ways_to(broker, inward, (broker,)):
                came = counts[path[-2] if len(path) > 1 else origin, broker]
                rows.append((kind, publisher, broker, path, int(came)))
    return pd.DataFrame(rows, columns=[*FLOW, "broker", "path", "events"])


def _ways_to(
    broker: str, inward: dict[str, list[str]], path: tuple[str, ...]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Who published it, and the brokers on the way."""
    for came_from in inward.get(broker, []):
        if came_from not in inward:  # not a broker: the publisher
            yield came_from, path
        elif came_from not in path:
            yield from _ways_to(came_from, inward, (came_from, *path))


def _connections(
    cells: pd.DataFrame,
    routing: pd.DataFrame,
    ways: Sequence[tuple[str, str]],
    brokers: Sequence[str],
) -> Iterator[Connection]:
    """Each with its reliability: what came of what was sent."""
    sent = routing.groupby(["broker", "next_broker"])["forwarded"].sum()
    came = cells.groupby(["came_from", "broker"])["rows"].sum()
    for source, target in ways:
        share = float(came.get((source, target), 0)) / float(sent[source, target])
        yield Connection(
            source=brokers.index(source),
            target=brokers.index(target),
            reliability=min(share, 1.0),
        )


def _sources(
    cells: pd.DataFrame, sources: pd.DataFrame, brokers: Sequence[str], window_s: float
) -> Iterator[Source]:
    first = cells[cells["came_from"] == cells["publisher"]]
    came = first.groupby(["publisher", "broker"])["rows"].sum()
    for publisher, rows in sources.groupby("publisher"):
        published = int(rows["rows"].sum())
        arrived = came[publisher] if publisher in came.index.get_level_values(0) else None
        if arrived is None:
            raise InvalidTracesError(f"no event of {publisher} came to a broker straight from it")
        yield Source(
            name=str(publisher),
            home=brokers.index(str(arrived.idxmax())),
            every=Exponential(mean_s=window_s / published),
            reliability=min(float(arrived.sum()) / published, 1.0),
        )


def _flows(
    cells: pd.DataFrame,
    sources: pd.DataFrame,
    routing: pd.DataFrame,
    ways: Sequence[tuple[str, str]],
    brokers: Sequence[str],
) -> Iterator[Flow]:
    publishers = [str(name) for name, _ in sources.groupby("publisher")]
    totals = sources.groupby("publisher")["rows"].sum()
    counts = sources.groupby(FLOW)["rows"].sum()
    laws = dict(_services(cells, brokers))
    for (kind, publisher), published in counts.items():
        mine = routing[(routing["type"] == kind) & (routing["publisher"] == publisher)]
        seen = cells[(cells["type"] == kind) & (cells["publisher"] == publisher)]
        yield Flow(
            source=publishers.index(str(publisher)),
            event_type=str(kind),
            share=min(float(published) / float(totals[publisher]), 1.0),
            forwarding=tuple(
                (ways.index((row.broker, row.next_broker)), float(row.probability))
                for row in mine.itertuples()
            ),
            services=tuple(
                (at, laws[str(kind), at]) for at in range(len(brokers)) if (str(kind), at) in laws
            ),
            joint=tuple(_joint(seen, ways, brokers)),
        )


def _joint(
    cells: pd.DataFrame, ways: Sequence[tuple[str, str]], brokers: Sequence[str]
) -> Iterator[JointForwarding]:
    for broker, rows in cells.groupby("broker"):
        sets = rows.groupby("sent_to")["rows"].sum()
        targets = {target for chosen in sets.index for target in chosen}
        if len(targets) < 2 or len(sets) > MOST_SETS:
            continue
        total = float(sets.sum())
        yield JointForwarding(
            node=brokers.index(str(broker)),
            sets=tuple(
                (tuple(ways.index((str(broker), each)) for each in chosen), float(count) / total)
                for chosen, count in sets.items()
            ),
        )


def _services(cells: pd.DataFrame, brokers: Sequence[str]) -> Iterator[tuple[tuple[str, int], Law]]:
    """The fitted law of service of each type at each broker, straight from hop spans."""
    for (kind, broker), rows in cells.groupby(["type", "broker"]):
        sample = sample_from_rows(rows)
        if sample.count == 0 or math.isnan(sample.mean_s):
            raise InvalidTracesError(
                f"nothing is known of service times at {broker}: hops have no 'started_ns'"
            )
        yield (str(kind), brokers.index(str(broker))), fit_law(sample).law
