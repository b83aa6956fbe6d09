"""Set aside what contradicts the rest, by what most rows say: one bad row costs one row.

Brokers hang together over the links that events came by. A few rows that say otherwise (a name that
is a broker's and a client's, a broker that nothing leads to, a link that closes a cycle) would be
no system; they are left out of the statistics, and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import pandas as pd

from tidings.characterisation.fit.channels import crossed_links
from tidings.characterisation.fit.collected import Statistics
from tidings.characterisation.statistics import Direction
from tidings.model import topology
from tidings.model.naming import few
from tidings.model.system import System

FEW = 0.01  # of all rows of a kind: more than that may be meant
NOT_A_BROKER = "its broker has the name of a client"
NOT_A_CLIENT = "its client has the name of a broker"
UNREACHED = "its broker is linked to no other"
CLOSES_A_CYCLE = "it closes a cycle of links that hardly anything else used"
Counts = Mapping[tuple[str, str], int]  # rows by table and reason


@dataclass(slots=True)
class _Aside:
    """What is set aside: rows by table and reason, and names by reason."""

    rows: dict[tuple[str, str], int] = field(default_factory=dict)
    names: dict[str, set[str]] = field(default_factory=dict)
    homeless: dict[str, int] = field(default_factory=dict)  # publications, by the broker they name

    def add(self, table: str, reason: str, rows: int, names: Iterable[str]) -> None:
        if rows:
            self.rows[table, reason] = self.rows.get((table, reason), 0) + rows
            self.names.setdefault(reason, set()).update(names)

    def notes(self) -> tuple[str, ...]:
        counts: dict[str, int] = {}
        for (_, reason), rows in self.rows.items():
            counts[reason] = counts.get(reason, 0) + rows
        return (
            tuple(
                f"{rows} rows contradict most others and were set aside, of "
                f"{few(sorted(self.names[reason]))}: {reason}. Correct them if they are right"
                for reason, rows in counts.items()
            )
            + self._of_homeless()
        )

    def _of_homeless(self) -> tuple[str, ...]:
        if not self.homeless:
            return ()
        return (
            f"{sum(self.homeless.values())} publications name {few(sorted(self.homeless))} as "
            "their broker, which no other rows know: they are counted as published, and are at "
            "home where their publishers' other rows say. Correct the name if it is right",
        )


def without_contradictions(
    seen: Statistics, base: System | None
) -> tuple[Statistics, Counts, tuple[str, ...]]:
    """Drop rows that most others contradict; count these, and give notes."""
    aside = _Aside()
    seen = _of_one_kind(seen, base, aside)
    if base is None or base.routing is None:
        seen = _without_cycles(seen, aside)
    seen = _hanging_together(seen, base, aside)
    return seen, aside.rows, aside.notes()


def _of_one_kind(seen: Statistics, base: System | None, aside: _Aside) -> Statistics:
    """Decide whether a name is a broker's or a client's, as more rows say; drop the others."""
    served = seen.hops_by("arrivals").groupby("broker")["rows"].sum()
    brokers = {str(name): int(rows) for name, rows in served.items()}
    brokers |= (
        {each.name: max(brokers.values(), default=1) for each in base.brokers} if base else {}
    )
    clients = _client_rows(seen)
    both = brokers.keys() & clients.keys()
    wrong = {name for name in both if brokers[name] >= clients[name]}
    seen = _without_clients(seen, wrong, NOT_A_CLIENT, aside)
    return _without_brokers(seen, both - wrong, NOT_A_BROKER, aside)


def _client_rows(seen: Statistics) -> dict[str, int]:
    """Count the rows that say of a name that it publishes, subscribes or receives."""
    published = seen.publications_by("publishers").groupby("publisher")["rows"].sum()
    received = seen.deliveries_by("pairs").groupby("subscriber")["delivered"].sum()
    counts = {str(name): int(rows) for name, rows in published.items()}
    for name, rows in received.items():
        counts[str(name)] = counts.get(str(name), 0) + int(rows)
    for name, rows in _subscribed(seen).groupby("subscriber")["rows"].sum().items():
        counts[str(name)] = counts.get(str(name), 0) + int(rows)
    return counts


def _subscribed(seen: Statistics) -> pd.DataFrame:
    """Select the good steps of subscriptions; none where there is no such table."""
    if seen.subscriptions is None:
        return pd.DataFrame({"subscriber": [], "broker": [], "rows": []})
    return seen.subscriptions[seen.subscriptions["reason"].isna()]


def _without_cycles(seen: Statistics, aside: _Aside) -> Statistics:
    """Drop the links that close a cycle and that next to nothing came over."""
    arrivals = seen.hops_by("arrivals")
    brokers = set(arrivals["broker"])
    pairs: dict[tuple[str, str], int] = {}
    for (source, target), rows in crossed_links(seen.hops).items():
        if source in brokers:
            ends = (min(source, target), max(source, target))
            pairs[ends] = pairs.get(ends, 0) + rows
    heaviest = sorted(pairs, key=lambda ends: (-pairs[ends], ends))
    kept: list[tuple[str, str]] = []
    for ends in heaviest:
        most = pairs[heaviest[0]]
        is_few = pairs[ends] <= max(1.0, FEW * most) and pairs[ends] < most
        if not is_few or topology.find_cycle([*kept, ends]) is None:
            kept.append(ends)
    dropped = {frozenset(ends) for ends in pairs.keys() - set(kept)}
    if not dropped:
        return seen
    rows = sum(pairs[ends] for ends in pairs if frozenset(ends) in dropped)
    aside.add("hops", CLOSES_A_CYCLE, rows, ("--".join(sorted(ends)) for ends in dropped))
    arcs = {(a, b) for ends in dropped for a in ends for b in ends - {a}}
    return replace(
        seen,
        hops=_left(seen.hops, ("came_from", "broker"), arcs),
        crossings=_left(seen.crossings, ("source", "target"), arcs),
        sightings=_left(seen.sightings, ("source", "target"), arcs),
    )


def _hanging_together(seen: Statistics, base: System | None, aside: _Aside) -> Statistics:
    """Drop the brokers that nothing leads to, where these are few rows of all."""
    arrivals, published = seen.hops_by("arrivals"), seen.publications_by("publishers")
    weight: dict[str, int] = {}
    for frame in (arrivals, published, _subscribed(seen)):
        for name, rows in frame.groupby("broker")["rows"].sum().items():
            weight[str(name)] = weight.get(str(name), 0) + int(rows)
    links: set[Direction] = {link.between for link in base.links} if base else set()
    links |= set(crossed_links(seen.hops))
    if seen.probes is not None:
        links |= set(seen.probes[["source", "target"]].dropna().itertuples(index=False, name=None))
    names = sorted(weight.keys() | ({each.name for each in base.brokers} if base else set()))
    known = set(names)
    inner = [(a, b) for a, b in links if {a, b} <= known and a != b]
    parts = topology.components(names, inner)
    if len(parts) < 2:
        return seen
    total = sum(weight.values())
    sizes = [sum(weight.get(name, 0) for name in part) for part in parts]
    heaviest = parts[sizes.index(max(sizes))]
    strangers = {
        name
        for part, size in zip(parts, sizes, strict=True)
        if part is not heaviest and size <= max(1.0, FEW * total)
        for name in part
        if base is None or name not in {each.name for each in base.brokers}
    }
    return _without_brokers(seen, strangers, UNREACHED, aside)


def _without_brokers(seen: Statistics, names: set[str], reason: str, aside: _Aside) -> Statistics:
    """Drop from the statistics what is said to have happened at some brokers."""
    if not names:
        return seen
    hops = seen.hops[seen.hops["broker"].isin(names)]
    gone = hops.loc[hops["statistic"] == "arrivals", "rows"].sum()
    aside.add("hops", reason, int(gone), hops["broker"])
    steps = _subscribed(seen)
    steps = steps[steps["broker"].isin(names)]
    aside.add("subscriptions", reason, int(steps["rows"].sum()), steps["broker"])
    published = seen.publications_by("publishers")
    homes = published[published["broker"].isin(names)]
    # A publication there is one all the same: its home is what its other rows say.
    elsewhere = published.loc[~published["broker"].isin(names), "publisher"]
    lone = set(homes["publisher"]) - set(elsewhere)
    kept = homes[~homes["publisher"].isin(lone)]
    for name, rows in kept.groupby("broker")["rows"].sum().items():
        aside.homeless[str(name)] = aside.homeless.get(str(name), 0) + int(rows)
    seen = replace(
        seen,
        hops=seen.hops[~seen.hops["broker"].isin(names)],
        publications=_homeless(seen.publications, names),
        subscriptions=None
        if seen.subscriptions is None
        else seen.subscriptions[~seen.subscriptions["broker"].isin(names)],
    )
    return _without_clients(seen, lone, reason, aside)


def _homeless(publications: pd.DataFrame, names: set[str]) -> pd.DataFrame:
    wrong = publications["broker"].isin(names)
    return publications.assign(broker=publications["broker"].where(~wrong, None))


def _without_clients(seen: Statistics, names: set[str], reason: str, aside: _Aside) -> Statistics:
    """Drop from the statistics what some publishers and subscribers are said to have done."""
    if not names:
        return seen
    published = seen.publications_by("publishers")
    published = published[published["publisher"].isin(names)]
    aside.add("publications", reason, int(published["rows"].sum()), published["publisher"])
    steps = _subscribed(seen)
    steps = steps[steps["subscriber"].isin(names)]
    aside.add("subscriptions", reason, int(steps["rows"].sum()), steps["subscriber"])
    subscriptions = seen.subscriptions
    return replace(
        seen,
        publications=seen.publications[~seen.publications["publisher"].isin(names)],
        intervals=seen.intervals[~seen.intervals["publisher"].isin(names)],
        sightings=seen.sightings[~seen.sightings["publisher"].isin(names)],
        subscriptions=None
        if subscriptions is None
        else subscriptions[~subscriptions["subscriber"].isin(names)],
    )


def _left(rows: pd.DataFrame, ends: tuple[str, str], arcs: set[Direction]) -> pd.DataFrame:
    """Select the rows of a statistic that are of none of these directions of links."""
    theirs = pd.MultiIndex.from_frame(rows[list(ends)]).isin(list(arcs))
    return rows[~theirs]
