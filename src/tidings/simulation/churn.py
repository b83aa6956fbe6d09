"""Subscribers whose subscriptions come and go, and which subscription covers which, compiled.

Brokers pass subscriptions on piece by piece: one for each tree that a filter wants anything of.
Those who are there for ever and share home and filter are one piece. Of a subscriber with a
``count`` everyone comes and goes on its own; the first is watched.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tidings.errors import UnsupportedError
from tidings.kernels.records import make_records, more_records
from tidings.model.arrays import Bools, Ints
from tidings.model.covering import covers
from tidings.model.laws import Deterministic, Law, residual
from tidings.model.record_tables import column
from tidings.model.routes import Routes
from tidings.model.system import Subscriber, System
from tidings.simulation import kernel_layout as layout

if TYPE_CHECKING:
    from tidings.simulation.cells import RouteCells

MOST_ENTRIES = 50_000_000  # of routing tables, followed in one replication
SPARE_MESSAGES = 256  # room for messages under way in the beginning, beside what one step can send
SETTLING = 5.0  # cycles of coming and going before who covers whom is as in the long run
_AT_ONCE = Deterministic(value_s=0.0)


@dataclass(frozen=True, kw_only=True)
class SystemChurners:
    """The churners of a system, those watched first, and all pieces of subscriptions."""

    churners: tuple[tuple[int, int], ...]  # subscriber, receiver (−1: not watched)
    watched: int
    pieces: tuple[tuple[int, int, int, int], ...]  # home, tree, filter, churner (−1: for ever)
    system: System
    routes: Routes

    @property
    def matters(self) -> bool:
        """Whether any subscription comes and goes."""
        return bool(self.churners)

    @property
    def settling_s(self) -> float:
        """How long a run should go on before what is measured, in seconds."""
        cycles = (stays.mean_s + away.mean_s for stays, away in map(_periods, self._subscribers))
        return SETTLING * max(cycles, default=0.0)

    @property
    def _subscribers(self) -> list[Subscriber]:
        return [self.system.subscribers[index] for index, _ in self.churners]

    @cached_property
    def subjects(self) -> dict[tuple[int, int], int]:
        """The subjects, trees with filters, by their number."""
        distinct = dict.fromkeys((tree, wanted) for _, tree, wanted, _ in self.pieces)
        return {subject: number for number, subject in enumerate(distinct)}

    def name_of(self, churner: int) -> str:
        """Give the name of a churner: of a subscriber with a count, the others have numbers."""
        index, receiver = self.churners[churner]
        name = self.system.subscribers[index].name
        if receiver >= 0:
            return name
        before = self.churners[self.watched : churner]
        return f"{name} {2 + sum(other == index for other, _ in before)}"


def find_churn(system: System, routes: Routes, representatives: Sequence[int]) -> SystemChurners:
    """Find who comes and goes, and every piece of a subscription; nothing at all if nobody does."""
    followed = [system.subscribers[index] for index in representatives]
    watched = [
        (representatives[receiver], receiver)
        for receiver, each in enumerate(followed)
        if each.stays is not None
    ]
    others = [(i, -1) for i, _ in watched for _ in range(system.subscribers[i].count - 1)]
    churners = tuple(watched + others)
    return SystemChurners(
        churners=churners,
        watched=len(watched),
        pieces=tuple(_pieces(system, routes, churners)) if churners else (),
        system=system,
        routes=routes,
    )


def _pieces(
    system: System, routes: Routes, churners: Sequence[tuple[int, int]]
) -> list[tuple[int, int, int, int]]:
    stays = column(system.subscribers, "stays")
    lasting = np.array([law is None for law in stays.values])[stays.codes]
    homes, filters = routes.home_of_subscriber, routes.filter_of_subscriber
    pairs = zip(homes[lasting].tolist(), filters[lasting].tolist(), strict=True)
    owners = [(home, wanted, -1) for home, wanted in dict.fromkeys(pairs)]
    owners += [(int(homes[i]), int(filters[i]), number) for number, (i, _) in enumerate(churners)]
    trees = [
        [tree for tree in range(len(routes.trees)) if _wants_any(routes, wanted, tree)]
        for wanted in range(routes.wants.shape[1])
    ]
    return [(home, tree, wanted, g) for home, wanted, g in owners for tree in trees[wanted]]


def _wants_any(routes: Routes, wanted: int, tree: int) -> bool:
    mine = routes.tree_of_class == tree
    return len(routes.trees) == 1 or bool(routes.wants[mine, wanted].any())


def _periods(subscriber: Subscriber) -> tuple[Law, Law]:
    """Give the distributions of how long a churner stays, and how long it is away."""
    assert subscriber.stays is not None
    return subscriber.stays, subscriber.away or _AT_ONCE


def churn_tables(
    churn: SystemChurners,
    before: Mapping[str, Any],
    cells: RouteCells,
    laws: Callable[..., int],
    streams: Callable[..., int],
) -> dict[str, Any]:
    """Make all the kernel's tables of churners and pieces; all empty where nobody comes."""
    subjects, brokers = churn.subjects, len(churn.system.brokers) if churn.matters else 0
    arcs = len(churn.routes.arcs) if churn.matters else 0
    _refuse_too_many(churn, brokers + arcs)
    classes = [
        np.flatnonzero(churn.routes.wants[:, wanted] & (churn.routes.tree_of_class == tree))
        for tree, wanted in subjects
    ]
    ends = np.concatenate([[0], np.cumsum([each.size for each in classes])]).astype(np.int64)
    pieces = []
    for home, tree, wanted, churner in churn.pieces:
        subject = subjects[tree, wanted]
        pieces.append((home, tree, subject, ends[subject], ends[subject + 1], churner))
    arc_names = [
        f"link {churn.system.brokers[arc.source].name}--{churn.system.brokers[arc.target].name}"
        for arc in churn.routes.arcs[:arcs]
    ]
    came_from = np.where(cells.parent >= 0, cells.broker[cells.parent], -1)
    of_subject = np.array([piece[2] for piece in pieces], dtype=np.int64)
    return {
        **_churner_tables(churn, before, laws, streams),
        **_covering_tables(churn),
        "pieces": make_records(layout.PIECE, pieces),
        "piece_classes": np.concatenate([np.zeros(0, dtype=np.int64), *classes]),
        **_listed("pieces", of_subject, np.arange(len(pieces)), len(subjects)),
        **_pieces_by_bundle(churn, before),
        "message_streams": np.array(
            [streams(name, "subscription delay") for name in arc_names], dtype=np.int64
        ),
        "came_from": came_from if churn.matters else np.zeros(0, dtype=np.int64),
        "known": np.zeros(len(pieces) * brokers, dtype=np.int32),
        "sent": np.zeros(len(pieces) * arcs, dtype=np.int8),
        "sent_subjects": np.zeros(arcs * len(subjects), dtype=np.int32),
        "latest": np.zeros(arcs, dtype=np.float64),
        "interest": np.zeros_like(before["interest"]) if churn.matters else before["interest"],
    }


def _pieces_by_bundle(churn: SystemChurners, before: Mapping[str, Any]) -> dict[str, Ints]:
    """List the pieces of each bundle, brought by a round of its home; none where nobody forgets."""
    bundles = len(before["bundles"])
    if not bundles:
        return _listed("bundle_pieces", np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 0)
    bundle_of = before["bundle_of"].reshape(len(churn.routes.trees), -1)
    keys = np.array([bundle_of[tree, home] for home, tree, _, _ in churn.pieces], dtype=np.int64)
    wanted = np.flatnonzero(keys >= 0)  # of a tree on which nothing that it wants is published
    return _listed("bundle_pieces", keys[wanted], wanted, bundles)


def _refuse_too_many(churn: SystemChurners, places: int) -> None:
    most = max(len(churn.pieces), len(churn.subjects))
    if most * max(places, len(churn.subjects)) > MOST_ENTRIES:
        raise UnsupportedError(
            f"subscribers with 'stays': {len(churn.pieces):,} subscriptions with "
            f"{len(churn.subjects):,} filters at {len(churn.system.brokers):,} brokers "
            f"would have to be simulated; wants at most {MOST_ENTRIES:,} routing table "
            "entries. Use theory (tidings predict --by theory), or simulate a part of "
            "the system"
        )


def _churner_tables(
    churn: SystemChurners,
    before: Mapping[str, Any],
    laws: Callable[..., int],
    streams: Callable[..., int],
) -> dict[str, Any]:
    """Make tables of churners, their switches, and places where events reach those watched."""
    first_station = len(before["stations"])
    receivers = before["receivers"].copy()
    churners: list[tuple[Any, ...]] = []
    switches: list[tuple[Any, ...]] = []
    places: list[tuple[Any, ...]] = []
    owner = [churner for _, _, _, churner in churn.pieces]
    rest: Any = cache(residual)  # many churners share their laws
    firsts = np.searchsorted(owner, np.arange(len(churn.churners) + 1)).tolist()
    for number, subscriber in enumerate(churn._subscribers):
        index, receiver = churn.churners[number]
        name = f"subscriber {churn.name_of(number)}"
        stays, away = _periods(subscriber)
        present = stays.mean_s / (stays.mean_s + away.mean_s)
        all_four = laws(stays), laws(away), laws(rest(stays)), laws(rest(away))
        switches.append((present, *all_four, streams(name, "subscription"), 0, 0, -1))
        home, delay = churn.routes.home_of_subscriber[index], laws(subscriber.link.delay)
        stream = streams(name, "subscription delay")
        churners.append((home, firsts[number], firsts[number + 1], delay, stream, receiver))
        if receiver >= 0:
            receivers["churner"][receiver] = number
            if receivers["taken_in_at"][receiver] < 0:
                receivers["taken_in_at"][receiver] = len(before["places"]) + len(places)
                places.append((first_station, first_station, layout.AT_SUBSCRIBER, receiver))
    wanted = [np.flatnonzero(churn.routes.wanted_by(i)) for i, _ in churn.churners[: churn.watched]]
    classes = np.concatenate([np.zeros(0, dtype=np.int64), *wanted])
    who = np.repeat(np.arange(len(wanted)), [each.size for each in wanted])
    return {
        "churners": make_records(layout.CHURNER, churners),
        **_listed("churners", classes, who, churn.routes.class_count),
        "switches": more_records(before["switches"], layout.SWITCH, switches),
        "places": more_records(before["places"], layout.PLACE, places),
        "receivers": receivers,
    }


def _listed(name: str, keys: Ints, values: Ints, count: int) -> dict[str, Ints]:
    """List values by key, one list after the other, in their order."""
    first = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=count))])
    order = np.argsort(keys, kind="stable")
    return {f"{name}_first": first.astype(np.int64), f"{name}_of": values[order].astype(np.int64)}


def _covering_tables(churn: SystemChurners) -> dict[str, Ints]:
    """List which subjects cover which; those covered in order, the widest first."""
    covering = _covering(churn)
    wide, narrow = np.nonzero(covering)
    # Whoever contains another contains all that the other does, so that the widest have the most.
    widest = np.lexsort((narrow, -covering.sum(axis=1)[narrow]))
    count = len(covering)
    return {
        **_listed("wider", narrow, wide, count),
        **_listed("narrower", wide[widest], narrow[widest], count),
    }


def _covering(churn: SystemChurners) -> Bools:
    """Test whether each [subject, other subject] of one tree covers the other; equal ones do."""
    filters = column(churn.system.subscribers, "wants").values
    routes, subjects = churn.routes, list(churn.subjects)
    tree = np.array([tree for tree, _ in subjects], dtype=np.int64)
    wanted = np.array([wanted for _, wanted in subjects], dtype=np.int64)
    selected = routes.wants[:, wanted].astype(np.int64) if subjects else np.zeros((0, 0))
    # What contains a filter wants all classes of contents that it wants: most cannot.
    covering: Bools = (tree[:, None] == tree[None, :]) & ((1 - selected).T @ selected == 0)
    for wide, narrow in itertools.product(range(len(subjects)), repeat=2):
        if wide != narrow and covering[wide, narrow]:
            one, other = filters[int(wanted[wide])], filters[int(wanted[narrow])]
            covering[wide, narrow] = covers(one, other)
    return covering


def churn_numbers(churn: SystemChurners, tables: Mapping[str, Any]) -> dict[str, float]:
    """Give the kernel's numbers of churners and messages."""
    if not churn.matters:
        return {"churning": 0}
    degree = int(np.diff(tables["out_first"]).max(initial=0))
    uncovered = int(np.diff(tables["narrower_first"]).max(initial=0))
    at_once = max(degree * (1 + uncovered), len(churn.routes.trees))
    return {
        "churning": 1,
        "first_churner": len(tables["switches"]) - len(churn.churners),
        "watched_count": churn.watched,
        "subject_count": len(churn.subjects),
        "messages_at_once": at_once,
        "held_head": -1,
        "held_tail": -1,
        "free_messages": at_once + len(churn.system.brokers) + SPARE_MESSAGES,
    }
