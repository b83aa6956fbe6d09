"""A system from its fitted parts, or why they are none."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from tidings.characterisation.fit.channels import FittedChannel
from tidings.characterisation.fit.failures import FittedFailure
from tidings.characterisation.fit.laws import fit_law
from tidings.characterisation.fit.parameters import Parameter, law_parameter
from tidings.characterisation.fit.samples import sample_from_rows
from tidings.characterisation.statistics import Direction
from tidings.errors import InvalidSystemError, InvalidTracesError, UnsupportedError
from tidings.model import topology
from tidings.model.behaviour import PERFECT, Channel, Failure, Service
from tidings.model.laws import Law
from tidings.model.naming import few
from tidings.model.reading import from_document, system_document
from tidings.model.system import (
    FORMAT_VERSION,
    Broker,
    FailureGroup,
    Link,
    Publisher,
    Routing,
    Subscriber,
    System,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedNetwork:
    """Brokers and links, their parameters, and what must be said of them."""

    brokers: tuple[Broker, ...]
    links: tuple[Link, ...]
    used: frozenset[Direction]  # directions of links that events came over
    parameters: tuple[Parameter, ...]
    notes: tuple[str, ...]
    failure_groups: tuple[FailureGroup, ...] = ()


def fit_network(
    hops: pd.DataFrame,
    channels: Mapping[Direction, FittedChannel],
    homes: Iterable[str],
    base: System | None,
) -> FittedNetwork:
    """Fit the brokers where anything happened or anybody lives, and the links between them."""
    arrivals = hops[(hops["statistic"] == "arrivals") & hops["broker"].notna()]
    names = {str(name) for name in arrivals["broker"]} | set(homes)
    names |= {broker.name for broker in base.brokers} if base else set()
    parameters: list[Parameter] = []
    notes: list[str] = []
    brokers = _brokers(sorted(names), hops, base, parameters, notes)
    used = {
        (str(row.came_from), str(row.broker))
        for row in arrivals.itertuples()
        if row.came_from in names
    }
    probed = {pair for pair in channels if set(pair) <= names}
    links = _links(used | probed, channels, base, parameters, notes)
    return FittedNetwork(
        brokers=brokers,
        links=links,
        used=frozenset(used),
        parameters=tuple(parameters),
        notes=tuple(notes),
        failure_groups=base.failure_groups if base else (),
    )


def only_probed(probed: Iterable[Direction], seen: Iterable[str]) -> list[str]:
    """Note whoever stands at the end of a link that was probed, and nowhere else."""
    unknown = sorted({end for arc in probed for end in arc} - set(seen))
    if not unknown:
        return []
    return [
        f"{few(unknown)} appear in probes only, without hops, publications or subscriptions; "
        "they are left out of the system"
    ]


def assemble(
    network: FittedNetwork,
    publishers: Sequence[Publisher],
    subscribers: Sequence[Subscriber],
    parameters: Sequence[Parameter],
    base: System | None,
) -> tuple[System, list[str]]:
    """Make the fitted system, which is valid, and say what its reader must know of how it was made.

    Raises :class:`InvalidTracesError` where the parts do not make a valid system.
    """
    lifetime = _common([publisher.lifetime for publisher in publishers])
    if lifetime is not None:
        publishers = [replace(publisher, lifetime=None) for publisher in publishers]
    errors = {
        each.path: each.standard_error
        for each in parameters
        if math.isfinite(each.standard_error) and not _only_reported(each.path)
    }
    parts: dict[str, Any] = {
        "lifetime": lifetime,
        "brokers": network.brokers,
        "links": network.links,
        "failure_groups": network.failure_groups,
        "publishers": tuple(publishers),
        "subscribers": tuple(subscribers),
        "standard_errors": tuple(sorted(errors.items())),
    }
    system = replace(base, **parts) if base else System(version=FORMAT_VERSION, **parts)
    notes = []
    if system.routing is None and topology.find_cycle(link.between for link in system.links):
        system = replace(system, routing=_routing(network))
        notes.append("the links form a cycle; routing uses the links on which events were seen")
    return _checked(system, base), notes


def with_failures(
    network: FittedNetwork,
    failures: Mapping[str, FittedFailure],
    together: Iterable[tuple[str, ...]] = (),
) -> FittedNetwork:
    """Make brokers and links of a network fail as was seen; others stay as they are.

    Components that were only ever down ``together`` become a failure group. States tell all that a
    component fails by, so groups that a base system has of such components are left out.
    """
    network, grouped = _with_groups(network, failures, together)
    failures = {name: each for name, each in failures.items() if name not in grouped}
    parameters: list[Parameter] = []
    brokers = []
    for broker in network.brokers:
        fitted = failures.get(broker.name)
        if broker.name in grouped:  # by nothing else, as was seen
            broker = replace(broker, failure=None)
        elif fitted is not None:
            parameters += fitted.parameters(f"brokers.{broker.name}")
            broker = replace(broker, failure=fitted.failure)
        brokers.append(broker)
    links = []
    for link in network.links:
        there, back = link.between
        fitted = failures.get(f"{there}--{back}") or failures.get(f"{back}--{there}")
        if not grouped.isdisjoint((f"{there}--{back}", f"{back}--{there}")):
            link = _failing(link, None)
        elif fitted is not None:
            parameters += fitted.parameters(f"links.{link.name}")
            link = _failing(link, fitted.failure)
        links.append(link)
    strangers = sorted(set(failures) - _components(network))
    notes = (
        [
            f"up and down states of {few(strangers)} are ignored: {len(strangers)} components of "
            "the table states appear nowhere else"
        ]
        if strangers
        else []
    )
    return replace(
        network,
        brokers=tuple(brokers),
        links=tuple(links),
        parameters=(*network.parameters, *parameters),
        notes=(*network.notes, *notes),
    )


def _failing(link: Link, failure: Failure | None) -> Link:
    """Make both directions of a link fail together."""
    there, back = (replace(each, failure=failure) for each in (link.there, link.back))
    return replace(link, there=there, back=back)


def _components(network: FittedNetwork) -> set[str]:
    """List the names of brokers and links, these in both directions."""
    return {broker.name for broker in network.brokers} | {
        f"{a}--{b}" for link in network.links for a, b in (link.between, link.between[::-1])
    }


def _with_groups(
    network: FittedNetwork,
    failures: Mapping[str, FittedFailure],
    together: Iterable[tuple[str, ...]],
) -> tuple[FittedNetwork, set[str]]:
    """Add the failure groups that were seen to a network; list the components in them."""
    names, parameters = _components(network), []
    before = {
        frozenset(_either_way(each) for each in group.members): group.name
        for group in network.failure_groups
    }
    groups = []
    for members in together:
        if not names.issuperset(members):
            continue
        key = frozenset(map(_either_way, members))
        name = before.get(key, " and ".join(members))
        failure = failures[members[0]]
        groups.append(FailureGroup(name=name, members=members, failure=failure.failure))
        parameters += failure.parameters(f"failure_groups.{name}")
    seen = {_either_way(name) for name in failures}
    kept = [
        each for each in network.failure_groups if seen.isdisjoint(map(_either_way, each.members))
    ]
    named = {group.name for group in groups} | {group.name for group in kept}
    notes = [
        f"failure_groups.{group.name}: its members were not always down at the same time; "
        "each is fitted as failing independently"
        for group in network.failure_groups
        if group.name not in named
    ]
    changed = replace(
        network,
        failure_groups=(*kept, *groups),
        parameters=(*network.parameters, *parameters),
        notes=(*network.notes, *notes),
    )
    return changed, {name for group in groups for name in group.members}


def _either_way(component: str) -> frozenset[str]:
    """Identify a broker, or a link whichever way round it is written."""
    return frozenset(component.split("--"))


def _only_reported(path: str) -> bool:
    """Test whether a parameter is one whose uncertainty predictions cannot carry on."""
    parts = (".content.", ".consumers.", ".delay_by_time.")
    return path.endswith((".processing", ".loss_burst")) or any(part in path for part in parts)


def check_base(base: System) -> None:
    """Raise :class:`UnsupportedError` where a base system's brokers are more than one queue each.

    Traces tell when an event arrived at a broker, when its service began and when it left: with
    several servers or stations, service cannot be told apart from the waits inside.
    """
    for broker in base.brokers:
        inner = [name for name in ("cpu", "disk", "out") if getattr(broker, name) is not None]
        if broker.servers > 1 or inner:
            saw = f"stations ({', '.join(inner)})" if inner else f"{broker.servers} servers"
            raise UnsupportedError(
                f"the base system's broker '{broker.name}' has {saw}; characterisation "
                "treats a broker as one queue with one server, because hops do not show "
                "the waits inside. Give a base system whose brokers have at most a "
                "'service'"
            )


def _routing(network: FittedNetwork) -> Routing:
    """Find the tree of the links that events used; raise where it is no tree over all brokers."""
    pairs = {frozenset(arc) for arc in network.used}
    tree = [link.between for link in network.links if frozenset(link.between) in pairs]
    names = [broker.name for broker in network.brokers]
    cycle = topology.find_cycle(tree)
    if cycle:
        saw = f"events were seen on all links of a cycle through {', '.join(cycle[:8])}"
    elif len(parts := topology.components(names, tree)) > 1:
        saw = (
            "the links form a cycle, and those that events were seen to use do not reach "
            f"{', '.join(name for part in parts[1:] for name in part[:8])}"
        )
    else:
        return Routing(tree=tuple(tree))
    raise InvalidTracesError(
        f"{saw}, so the tree that events follow is unknown; give a base system (--base) "
        "with routing: {root: BROKER} or {tree: [[a, b], ...]}"
    )


def _checked(system: System, base: System | None) -> System:
    """Give the system as it will be read back from its file, or raise with all that is wrong."""
    try:
        return from_document(system_document(system))
    except InvalidSystemError as problem:
        advice = (
            "record more, or give a base system (--base) with what is missing"
            if base is None
            else "correct the traces, or the base system"
        )
        raise InvalidTracesError(
            f"the traces do not contain a complete system; {advice}", problem.problems
        ) from None


def _brokers(
    names: Sequence[str],
    hops: pd.DataFrame,
    base: System | None,
    parameters: list[Parameter],
    notes: list[str],
) -> tuple[Broker, ...]:
    rows_of = dict(list(hops[hops["statistic"] == "service"].groupby("broker")))
    known = {broker.name: broker for broker in base.brokers} if base else {}
    brokers = []
    for name in names:
        broker = known.get(name, Broker(name=name))
        rows = rows_of.get(name)
        sample = sample_from_rows(rows) if rows is not None else None
        if sample is None or sample.count == 0:
            said = "taken from the base system" if broker.service else "assumed to be 0"
            notes.append(f"broker '{name}': its service time was not recorded; it is {said}")
        else:
            assert rows is not None
            fitted = fit_law(sample)
            parameters.append(law_parameter(f"brokers.{name}.service", fitted))
            broker = replace(broker, service=Service(law=fitted.law))
            without = int(rows["rows"].sum()) - sample.count
            if without:
                notes.append(
                    f"broker '{name}': {without} hops have no usable service time; they are "
                    "ignored for it"
                )
        brokers.append(broker)
    return tuple(brokers)


def _links(
    directions: Iterable[Direction],
    channels: Mapping[Direction, FittedChannel],
    base: System | None,
    parameters: list[Parameter],
    notes: list[str],
) -> tuple[Link, ...]:
    known = {frozenset(link.between): link for link in base.links} if base else {}
    pairs = {(min(pair), max(pair)) for pair in directions} | {
        link.between for link in known.values()
    }
    distinct = {frozenset(pair): pair for pair in sorted(pairs)}
    distinct |= {ends: link.between for ends, link in known.items()}
    links = []
    for ends, (a, b) in sorted(distinct.items(), key=lambda item: item[1]):
        old = known.get(ends, Link(between=(a, b)))
        name = f"{a}--{b}"
        there = _direction((a, b), name, old.there, channels, parameters)
        back = _direction((b, a), f"{name}.back", old.back, channels, parameters)
        if there is None or back is None:
            known_way = (
                "taken from the base system" if ends in known else "taken from the other direction"
            )
            missing = [arc for arc, one in (((a, b), there), ((b, a), back)) if one is None]
            shown = " and ".join(f"{source} to {target}" for source, target in missing)
            said = (
                known_way
                if there or back or ends in known
                else "assumed to have no delay and no loss"
            )
            notes.append(f"link {name}: nothing crossed it from {shown}; this direction is {said}")
        if ends in known:
            there, back = there or old.there, back or old.back
        else:
            there, back = there or back or PERFECT, back or there or PERFECT
        links.append(Link(between=(a, b), there=there, back=back))
        notes += _cannot_tell(name, [channels.get((a, b)), channels.get((b, a))])
    return tuple(links)


def _direction(
    arc: Direction,
    name: str,
    base: Channel,
    channels: Mapping[Direction, FittedChannel],
    parameters: list[Parameter],
) -> Channel | None:
    fitted = channels.get(arc)
    if fitted is None:
        return None
    parameters += fitted.parameters(f"links.{name}")
    return fitted.channel(base)


def _cannot_tell(name: str, directions: Sequence[FittedChannel | None]) -> list[str]:
    if any(arc is not None and arc.lost is None for arc in directions):
        return [f"link {name}: the traces do not show how much it loses"]
    return []


def _common(laws: Sequence[Law | None]) -> Law | None:
    """Give the distribution that all of them are, if there is one."""
    return laws[0] if laws and all(law == laws[0] for law in laws) else None
