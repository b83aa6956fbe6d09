"""Assemble a workload: routing, joint forwarding, rates, service times, networks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from tidings.characterisation.fit.channels import (
    FittedChannel,
    by_clocks,
    early_notes,
    fit_channels,
)
from tidings.characterisation.fit.clocks import clock_notes, read_clocks
from tidings.characterisation.fit.publishers import fit_interval, interval_samples
from tidings.characterisation.fit.resources import (
    SERVICES,
    Bandwidths,
    LearntWires,
    Resources,
    find_wires,
    sampled_resources,
    spanned_resources,
    transfers,
)
from tidings.characterisation.fit.samples import sample_from_rows
from tidings.characterisation.statistics import Direction
from tidings.errors import InvalidInputError, InvalidTracesError
from tidings.model.laws import Law
from tidings.model.units import format_seconds
from tidings.model.workload import (
    MOST_SETS,
    NO_TIME,
    Connection,
    Flow,
    JointForwarding,
    Node,
    Source,
    Workload,
)

FLOW = ["type", "publisher"]


def routing_table(cells: pd.DataFrame) -> pd.DataFrame:
    """Compute routing probabilities for (type, publisher, broker, next broker).

    Standard errors come with them.
    """
    visits = cells.groupby([*FLOW, "broker"])["rows"].sum().rename("visits").reset_index()
    sent = cells[[*FLOW, "broker", "sent_to", "rows"]].explode("sent_to").dropna()
    sent = sent.rename(columns={"sent_to": "next_broker"})
    keys = [*FLOW, "broker", "next_broker"]
    forwarded = sent.groupby(keys)["rows"].sum().rename("forwarded").reset_index()
    forwarded = forwarded.merge(visits, on=[*FLOW, "broker"])
    share = forwarded["forwarded"] / forwarded["visits"]
    error = np.sqrt(share * (1.0 - share) / forwarded["visits"])
    return forwarded.assign(probability=share, probability_se=error)


def dissemination(cells: pd.DataFrame) -> pd.DataFrame:
    """List the path to every broker at which events of a flow were seen, with how many came by it.

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
    """Yield who published it, and the brokers on the path, for every path to a broker."""
    for came_from in inward.get(broker, []):
        if came_from not in inward:  # not a broker: the publisher
            yield came_from, path
        elif came_from not in path:
            yield from _ways_to(came_from, inward, (came_from, *path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measuring:
    """What is to be measured how: the attribute that is an event's type, where service times come
    from, and how fast wires are.
    """

    event_type: str | None = None
    services: str = SERVICES[0]
    bandwidths: Bandwidths = field(default_factory=Bandwidths)

    def __post_init__(self) -> None:
        if self.services not in SERVICES:
            raise InvalidInputError(
                f"services from '{self.services}'; wants one of {', '.join(SERVICES)}"
            )

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of traces without which it cannot be."""
        more = ("utilisation",) if self.services == "utilisation" else ()
        return ("publications", "hops", *more)


@dataclass(frozen=True, kw_only=True)
class WorkloadStatistics:
    """What is collected of traces for a workload; all of it is model-sized."""

    cells: pd.DataFrame
    sources: pd.DataFrame
    links: pd.DataFrame
    intervals: pd.DataFrame
    window_s: float
    clients: pd.DataFrame | None = None
    usage: pd.DataFrame | None = None
    copies: int = 0  # of hops, which are left out


@dataclass(frozen=True, kw_only=True)
class MeasuredWorkload:
    """The workload of some traces, and how sure it is.

    ``routing``: for (type, publisher, broker, next broker) how many events visited the broker, how
    many were forwarded, their share and its standard error. ``paths``: the dissemination tree of
    each flow, as the brokers on the way to each broker it was seen at. ``services``: mean service
    times with standard errors. ``client_links_s``: mean time from a broker to subscribers there;
    None where traces tell of no deliveries.
    """

    workload: Workload
    routing: pd.DataFrame
    paths: pd.DataFrame
    services: pd.DataFrame
    client_links_s: Mapping[str, float] | None
    notes: tuple[str, ...]


def workload_from_statistics(seen: WorkloadStatistics, how: Measuring) -> MeasuredWorkload:
    """Measure a workload from statistics that have been collected."""
    cells = seen.cells
    if cells.empty:
        raise InvalidTracesError(
            "no hop matches a publication of these traces; check that event ids agree"
        )
    if cells["sent_to"].isna().any():
        raise InvalidTracesError(
            "some hops do not record where the event was forwarded to; record 'sent_to' "
            "(an empty list at the last broker)"
        )
    return _Builder(seen, how).measured()


class _Builder:
    """Puts a workload together; brokers and directions between them are known by position."""

    def __init__(self, seen: WorkloadStatistics, how: Measuring) -> None:
        self.seen = seen
        self.cells = seen.cells.assign(sent_to=[tuple(each) for each in seen.cells["sent_to"]])
        self.routing = routing_table(self.cells)
        next_brokers = self.routing["next_broker"]
        self.brokers = sorted(set(self.cells["broker"]) | set(next_brokers))
        self.directions: list[Direction] = sorted(
            set(zip(self.routing["broker"], next_brokers, strict=True))
        )
        clocks = read_clocks(None, seen.links)
        self.channels = by_clocks(fit_channels(seen.links), clocks.crossed, clocks.offsets)
        self.wires: LearntWires = find_wires(how.bandwidths, self.directions)
        self.resources: Resources = (
            spanned_resources(self.cells, self.brokers)
            if seen.usage is None
            else sampled_resources(seen.usage, self.brokers)
        )
        self.notes: list[str] = list(self.resources.notes)
        self.notes += [*clock_notes(clocks.offsets), *early_notes(self.channels)]
        if seen.copies:
            self.notes.append(f"{seen.copies:,} duplicate hops are left out")

    def measured(self) -> MeasuredWorkload:
        workload = Workload(
            nodes=tuple(
                Node(name=name, centres=self.resources.of_broker[name]) for name in self.brokers
            ),
            centres=self.resources.centres + self.wires.centres,
            connections=tuple(self._connection(arc) for arc in self.directions),
            sources=tuple(self._sources()),
            flows=tuple(self._flows()),
        )
        return MeasuredWorkload(
            workload=workload,
            routing=self.routing,
            paths=dissemination(self.cells),
            services=self.resources.table,
            client_links_s=self._client_links_s(),
            notes=tuple(self.notes),
        )

    def _connection(self, arc: Direction) -> Connection:
        """Make a connection with what was lost on it and how long it took.

        It takes no time where its wire is a queue.
        """
        fitted = self.channels.get(arc)
        at = self.wires.centre_of.get(arc)
        delay = NO_TIME if fitted is None or fitted.delay is None else fitted.delay.law
        if at is not None and delay.mean_s > 0.0:
            self.notes.append(
                f"from {arc[0]} to {arc[1]} events took {format_seconds(delay.mean_s)} on "
                "average; this is ignored, because the link is modelled as a queue"
            )
            delay = NO_TIME
        return Connection(
            source=self.brokers.index(arc[0]),
            target=self.brokers.index(arc[1]),
            centre=None if at is None else len(self.resources.centres) + at,
            delay=delay,
            reliability=_reliability(fitted),
        )

    def _sources(self) -> Iterator[Source]:
        first = self.cells[self.cells["came_from"] == self.cells["publisher"]]
        came = first.groupby(["publisher", "broker"])["rows"].sum()
        samples = interval_samples(self.seen.intervals)
        for key, rows in self.seen.sources.groupby("publisher"):
            name, published = str(key), int(rows["rows"].sum())
            if name not in came.index.get_level_values(0):
                raise InvalidTracesError(
                    f"no event of {name} arrived at a broker directly from it; check "
                    "came_from in hops"
                )
            home = str(came[name].idxmax())
            every, _ = fit_interval(
                name, published, samples.get(name), self.seen.window_s, self.notes
            )
            fitted = self.channels.get((name, home))
            yield Source(
                name=name,
                home=self.brokers.index(home),
                every=every,
                delay=NO_TIME if fitted is None or fitted.delay is None else fitted.delay.law,
                reliability=min(float(came[name].sum()) / published, 1.0),
            )

    def _flows(self) -> Iterator[Flow]:
        sources, routing, cells = self.seen.sources, self.routing, self.cells
        publishers = [str(name) for name, _ in sources.groupby("publisher")]
        totals = sources.groupby("publisher")["rows"].sum()
        place = {arc: at for at, arc in enumerate(self.directions)}
        for (kind, publisher), sizes in sources.groupby(FLOW):
            mine = routing[(routing["type"] == kind) & (routing["publisher"] == publisher)]
            here = cells[(cells["type"] == kind) & (cells["publisher"] == publisher)]
            forwarding = tuple(
                (place[row.broker, row.next_broker], float(row.probability))
                for row in mine.itertuples()
            )
            used = [at for at, _ in forwarding]
            named = f"{kind} of {publisher}" if kind else str(publisher)
            yield Flow(
                source=publishers.index(str(publisher)),
                event_type=str(kind),
                share=min(float(sizes["rows"].sum()) / float(totals[publisher]), 1.0),
                forwarding=forwarding,
                services=tuple(self._services(str(kind), set(map(str, here["broker"])), named)),
                transfers=tuple(transfers(self.wires, self.directions, used, sizes, named)),
                joint=tuple(_joint(here, place, self.brokers)),
            )

    def _services(self, kind: str, visited: set[str], flow: str) -> Iterator[tuple[int, Law]]:
        for broker in sorted(visited):
            for at in self.resources.of_broker[broker]:
                if (kind, at) not in self.resources.laws:
                    raise InvalidTracesError(
                        f"no utilisation sample of '{self.resources.centres[at].name}' covers a "
                        f"time when {flow} arrived at {broker}; sample for longer, or use "
                        "--services spans"
                    )
                yield at, self.resources.laws[kind, at]

    def _client_links_s(self) -> dict[str, float] | None:
        if self.seen.clients is None:
            return None
        means_s = {}
        for broker, rows in self.seen.clients.groupby("broker"):
            means_s[str(broker)] = sample_from_rows(rows).mean_s
            if early := int(rows["early"].sum()):
                self.notes.append(
                    f"{early} of {early + int(rows['count'].sum())} events reached "
                    f"subscribers at {broker} before they left it, according to the two "
                    "clocks: they are left out, and the mean time to subscribers there "
                    "is not reliable. Synchronise the clocks"
                )
        return means_s


def _reliability(fitted: FittedChannel | None) -> float:
    known = None if fitted is None else fitted.reliability
    return 1.0 if known is None else known


def _joint(
    cells: pd.DataFrame, place: Mapping[Direction, int], brokers: Sequence[str]
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
                (tuple(place[str(broker), each] for each in chosen), float(count) / total)
                for chosen, count in sets.items()
            ),
        )
