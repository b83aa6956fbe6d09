"""What of a system fails, and what its brokers do about it, compiled for the kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidings.errors import UnsupportedError
from tidings.kernels.records import make_records
from tidings.model.arrays import Ints
from tidings.model.behaviour import Failure
from tidings.model.laws import residual
from tidings.model.routes import Routes
from tidings.model.system import Recovery, System
from tidings.simulation import kernel_layout as layout

MOST_ENTRIES = 50_000_000  # entries of routing tables that are followed in one replication
SETTLING = 5.0  # times the slowest mean time that the state of tables and buffers hangs on


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What fails in a system, and the scheme of recovery."""

    failures: tuple[tuple[str, Failure, tuple[int, ...]], ...]  # name, laws, components
    recovery: Recovery
    lossy: bool = False  # whether links lose events by chance
    client_channels: tuple[int, ...] = ()  # of the last components, clients' links that fail

    @property
    def matter(self) -> bool:
        """Whether anything fails, is forgotten without a failure, or is repeated."""
        forgotten = self.recovery.timeout_s is not None
        return bool(self.failures) or forgotten or (self.lossy and self._keeps)

    @property
    def _keeps(self) -> bool:
        return self.recovery.scheme in ("buffering", "bypass-buffering")

    @property
    def buffering(self) -> bool:
        """Whether events are kept until they are acknowledged."""
        return self.matter and self._keeps

    @property
    def bypassing(self) -> bool:
        """Whether events go round what is down."""
        return self.matter and self.recovery.scheme in ("bypass", "bypass-buffering")

    @property
    def forgetting(self) -> bool:
        """Whether brokers lose subscriptions; those refreshed all the time are never missed."""
        return self.matter and (self.recovery.scheme == "none" or self.recovery.refresh_s > 0)

    @property
    def settling_s(self) -> float:
        """How long a run should go on before tables and buffers are as in the long run."""
        if not (self.buffering or self.recovery.refresh_s > 0):
            return 0.0
        longest = max((failure.down.mean_s for _, failure, _ in self.failures), default=0.0)
        return SETTLING * (longest + self.recovery.refresh_s)


def find_faults(system: System, receivers: Sequence[int] = ()) -> Faults:
    """Find all failures of a system.

    By position components are its brokers, its links, then clients' links that fail. ``receivers``
    are the subscribers that are followed on their own.
    """
    brokers = {broker.name: index for index, broker in enumerate(system.brokers)}
    links = {link.between: len(brokers) + index for index, link in enumerate(system.links)}
    component = brokers | {"--".join(ends): index for ends, index in links.items()}
    component |= {"--".join(reversed(ends)): index for ends, index in links.items()}
    own = [("broker", each.name, each.failure) for each in system.brokers]
    own += [("link", each.name, each.there.failure) for each in system.links]
    failures: list[tuple[str, Failure, tuple[int, ...]]] = [
        (f"{kind} {name}", failure, (component[name],))
        for kind, name, failure in own
        if failure is not None
    ]
    for group in system.failure_groups:
        members = tuple(dict.fromkeys(component[member] for member in group.members))
        failures.append((f"group {group.name}", group.failure, members))
    clients = [(f"publisher {each.name}", each.link.failure) for each in system.publishers]
    followed = (system.subscribers[index] for index in receivers)
    clients += [(f"subscriber {each.name}", each.link.failure) for each in followed]
    channels: list[int] = []
    for channel, (client, failure) in enumerate(clients, 2 * len(links)):
        if failure is not None:
            number = len(brokers) + len(links) + len(channels)
            failures.append((f"link of {client}", failure, (number,)))
            channels.append(channel)
    lossy = any(arc.reliability < 1.0 for each in system.links for arc in (each.there, each.back))
    return Faults(
        failures=tuple(failures),
        recovery=system.used_recovery,
        lossy=lossy,
        client_channels=tuple(channels),
    )


def fault_tables(
    faults: Faults,
    system: System,
    routes: Routes,
    laws: Callable[..., int],
    streams: Callable[..., int],
) -> dict[str, Any]:
    """Make the kernel's tables of failures and recovery; where nothing fails, all are empty."""
    brokers = len(system.brokers) if faults.matter else 0
    arcs = len(routes.arcs) if faults.matter else 0
    switches, members = _switches(faults, laws, streams)
    first, leaving = _leaving(system, routes)
    homes, bundles, classes, bundle_of = _bundles(faults, system, routes, streams)
    if len(bundles) * brokers > MOST_ENTRIES:
        raise UnsupportedError(
            f"recovery: {len(bundles):,} groups of subscriptions at {brokers:,} brokers "
            f"would have to be simulated; wants at most {MOST_ENTRIES:,} together. Set "
            "refresh: 0s"
        )
    entries, interest = _initial_entries(faults, routes, len(bundles), brokers)
    return {
        "switches": switches,
        "switch_members": members,
        "client_channels": np.array(faults.client_channels, dtype=np.int64),
        "arcs_first": first,
        "arcs_from": leaving,
        "interest": interest.ravel(),
        "full_interest": routes.interest.ravel() if faults.matter else np.zeros(0, dtype=np.int64),
        "homes": homes,
        "bundles": bundles,
        "bundle_classes": classes,
        "bundle_of": bundle_of,
        "components": np.zeros(
            brokers + arcs // 2 + len(faults.client_channels), dtype=layout.COMPONENT
        ),
        "entries": entries.ravel(),
        "buffers": make_records(layout.BUFFER, [(-1, -1)] * (arcs + brokers)),
        "first_arcs": np.full(brokers * brokers if faults.bypassing else 0, -1, dtype=np.int64),
        "paths_epoch": np.full(brokers, -1, dtype=np.int64),
        "walk": np.zeros(2 * brokers, dtype=layout.STEP),
        "search": np.zeros(brokers, dtype=np.int64),
    }


def fault_numbers(faults: Faults, tables: dict[str, Any], first_slot: int) -> dict[str, float]:
    """Give the kernel's numbers of failures and recovery, with their slots in the calendar."""
    recovery = faults.recovery
    notices = len(tables["components"]) if recovery.detection_s > 0 else 0
    rounds = len(tables["homes"])
    first_round = first_slot + len(tables["switches"]) + notices
    return {
        "cause_count": layout.FAILING_CAUSES if faults.matter else layout.PLAIN_CAUSES,
        "failing": faults.matter,
        "buffering": faults.buffering,
        "bypassing": faults.bypassing,
        "forgetting": faults.forgetting,
        "detection": recovery.detection_s,
        "refresh": recovery.refresh_s,
        "timeout": math.inf if recovery.timeout_s is None else recovery.timeout_s,
        "first_client": len(tables["components"]) - len(faults.client_channels),
        "first_switch": first_slot,
        "first_notice": first_slot + len(tables["switches"]),
        "first_round": first_round,
        "first_end": first_round + rounds,
    }


def _switches(
    faults: Faults, laws: Callable[..., int], streams: Callable[..., int]
) -> tuple[Any, Ints]:
    rows: list[tuple[float, ...]] = []
    members: list[int] = []
    for name, failure, components in faults.failures:
        rows.append(
            (
                failure.availability,
                laws(failure.up),
                laws(failure.down),
                laws(residual(failure.up)),
                laws(residual(failure.down)),
                streams(name, "failure"),
                len(members),
                len(members) + len(components),
                -1,  # no gate
            )
        )
        members += components
    return make_records(layout.SWITCH, rows), np.array(members, dtype=np.int64)


def _leaving(system: System, routes: Routes) -> tuple[Ints, Ints]:
    """List all arcs that leave each broker, in the order of their neighbours' names."""
    lists: list[list[tuple[str, int]]] = [[] for _ in system.brokers]
    for index, arc in enumerate(routes.arcs):
        lists[arc.source].append((system.brokers[arc.target].name, index))
    first = np.concatenate([[0], np.cumsum([len(each) for each in lists])]).astype(np.int64)
    return first, np.array([arc for each in lists for _, arc in sorted(each)], dtype=np.int64)


def _bundles(
    faults: Faults, system: System, routes: Routes, streams: Callable[..., int]
) -> tuple[Any, Any, Any, Ints]:
    """List homes, their bundles by tree, the classes wanted in each, and which bundle is where."""
    brokers, trees = len(system.brokers), len(routes.trees)
    if not faults.forgetting:
        home, bundle, wanted_class = (
            make_records(kind, []) for kind in (layout.HOME, layout.BUNDLE, layout.WANTED)
        )
        return home, bundle, wanted_class, np.zeros(0, dtype=np.int64)
    wanted = np.zeros((brokers, routes.class_count), dtype=np.int64)
    for index, subscriber in enumerate(system.subscribers):
        wanted[routes.home_of_subscriber[index]] += subscriber.count * routes.wanted_by(index)
    homes: list[tuple[int, ...]] = []
    bundles: list[tuple[int, ...]] = []
    classes: list[tuple[int, ...]] = []
    bundle_of = np.full((trees, brokers), -1, dtype=np.int64)
    for at in np.flatnonzero(wanted.any(axis=1)).tolist():
        first_bundle = len(bundles)
        for tree in range(trees):
            mine = np.flatnonzero((wanted[at] > 0) & (routes.tree_of_class == tree)).tolist()
            if mine:
                bundle_of[tree, at] = len(bundles)
                bundles.append((at, tree, len(classes), len(classes) + len(mine)))
                classes += [(each, int(wanted[at, each])) for each in mine]
        stream = streams(f"broker {system.brokers[at].name}", "refresh")
        homes.append((at, first_bundle, len(bundles), stream))
    rounds = homes if faults.recovery.refresh_s > 0 else []
    return (
        make_records(layout.HOME, rounds),
        make_records(layout.BUNDLE, bundles),
        make_records(layout.WANTED, classes),
        bundle_of.ravel(),
    )


def _initial_entries(
    faults: Faults, routes: Routes, bundles: int, brokers: int
) -> tuple[Ints, Ints]:
    """Make what brokers know in the beginning: without recovery, those that may crash know nothing.

    In the long run each of them has crashed, and nothing brings its subscriptions back.
    """
    entries = np.ones((bundles, brokers), dtype=np.int64)
    interest = routes.interest.copy()
    if faults.forgetting and faults.recovery.scheme == "none":
        failing = {each for _, _, parts in faults.failures for each in parts if each < brokers}
        entries[:, sorted(failing)] = 0
        interest[[arc.source in failing for arc in routes.arcs]] = 0
    return entries, interest
