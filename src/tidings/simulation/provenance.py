"""How a simulated outcome came about, what it cost, and what its reader must know."""

from __future__ import annotations

import math
from importlib import metadata
from typing import Any

import numpy as np

from tidings.model.reading import fingerprint
from tidings.model.remarks import Remark, of_system
from tidings.simulation.kernel_layout import AT_MEMBER
from tidings.simulation.results import MOST_PAIRS
from tidings.simulation.totals import COSTS, Totals
from tidings.simulation.world import Window

NOTABLE = 0.001  # share of a group's events handled more than once from which it is said
COLLAPSED = 0.98  # share of time that members are busy from which they do nothing else


def remarks_of(totals: Totals) -> list[Remark]:
    """List what the reader of a simulated outcome must know of the system and of its tables."""
    remarks = of_system(totals.compiled.system)
    idle = totals.on_time.w[totals.units.of_subscriber] == 0
    names = [
        s.name for s, none in zip(totals.compiled.system.subscribers, idle, strict=True) if none
    ]
    if names:
        remarks.append(
            Remark(
                kind="nothing wanted",
                what="nothing that matches the filters of these subscribers was published, so "
                "they have no on-time shares",
                where=tuple(names),
                size=float(len(names)),
                unit="subscribers",
                do="check their filters, or simulate for longer",
            )
        )
    remarks += _redelivery(totals)
    remarks += _blocking(totals)
    routes = totals.compiled.routes
    if routes.sampled:
        publishers = totals.compiled.system.publishers
        remarks.append(
            Remark(
                kind="contents drawn",
                what="these publishers have too many contents to list: a random sample of "
                "each stands for all of them",
                where=tuple(publishers[each].name for each in sorted(routes.sampled)),
                size=float(routes.sampling.draws),
                unit="sampled contents each",
            )
        )
    members = np.bincount(totals.units.of_subscriber, minlength=totals.units.count)
    if int(members[totals.units.pair_unit].sum()) > MOST_PAIRS:
        remarks.append(
            Remark(
                kind="pairs left out",
                what="there are too many publisher-subscriber pairs to list all",
                size=float(MOST_PAIRS),
                unit="pairs are listed at most",
                do="simulate a part of the system to see them",
            )
        )
    return remarks


def _redelivery(totals: Totals) -> list[Remark]:
    """Say which groups handle events twice, and which of them can do nothing else any more."""
    compiled, remarks = totals.compiled, []
    for number, group in enumerate(compiled.groups):
        unit = int(np.flatnonzero(totals.units.receiver == group.receiver)[0])
        wanted = totals.on_time.w[unit]
        again = totals.redelivered[unit, 0] / wanted if wanted > 0 else 0.0
        if again < NOTABLE:
            continue
        owners = np.asarray(compiled.tables["places"]["owner"])
        kinds = np.asarray(compiled.tables["places"]["kind"])
        mine = np.flatnonzero((owners == group.receiver) & (kinds == AT_MEMBER))
        stations = np.isin(compiled.tables["stations"]["place"], mine)
        busy = float(np.nanmean(totals.utilisation.value[stations]))
        once = compiled.group_arrivals[number] / group.capacity_per_s
        most = once * (group.consumers.deliveries or np.inf)
        if busy >= COLLAPSED > once:
            kind = "redelivery collapse"
            what = (
                "redelivery collapse: what is delivered again keeps this consumer group busy all "
                "the time, though it could handle every event once"
            )
        else:
            kind = "redelivery"
            what = (
                "this consumer group handles events more than once, because they are acknowledged "
                "too late"
            )
            if most >= 1.0:  # a simulation need not have met the backlog that begins it
                what += ", and a backlog can make that all it does"
        remarks.append(
            Remark(
                kind=kind,
                what=what,
                where=(group.subscriber.name,),
                size=float(again),
                unit="of its events handled more than once",
                do="make 'ack_wait' longer than 'prefetch' times the processing, or 'prefetch' "
                "smaller ('tidings plan consumers' finds both)",
            )
        )
    return remarks


def _blocking(totals: Totals) -> list[Remark]:
    """Say which full buffers block publishers, how many events that delays, and how long."""
    remarks = []
    senders, groups = totals.compiled.senders, totals.compiled.groups
    for number, (events, seconds) in enumerate(totals.blocked):
        if events < NOTABLE * totals.published:
            continue
        remarks.append(
            Remark(
                kind="blocked publishers",
                what="publishers are blocked while this buffer is full, and their events wait "
                f"{seconds / events:.3g} s in the mean before they can be sent",
                where=(senders.name_of(number, groups),),
                size=float(events / totals.published),
                unit="of all events waited",
                do="make it faster or its buffer larger, or let it drop events instead",
            )
        )
    return remarks


def provenance_of(totals: Totals, window: Window, seed: int) -> dict[str, Any]:
    """Describe how a simulated outcome came about, as plain data."""
    story: dict[str, Any] = {
        "version": metadata.version("tidings"),
        "engine": "simulation",
        "system": fingerprint(totals.compiled.system),
        "seed": seed,
        "replications": totals.replications,
        "warmup_s": window.warmup_s,
        "duration_s": window.length_s,
        "events_published": totals.published,
        "messages": _messages(totals),
        "warnings": [],
    }
    widths = totals.on_time.half_widths(errors=totals.standard_errors)
    if np.any(~np.isnan(widths)):
        story["half_width"] = float(np.nanmax(widths))
    if totals.splitting is not None:
        story["splitting"] = str(totals.splitting)  # by which misses were counted
    return story


def _messages(totals: Totals) -> dict[str, Any]:
    """What the deliveries cost: messages over links between brokers, all replications together.

    ``transmissions`` of events (again where they are repeated), ``acknowledgements`` of brokers
    that have taken one over, ``refreshes`` of subscriptions (a home's for one tree over one link),
    ``subscribes`` and ``unsubscribes`` of those that come and go, ``messages`` all of these, and
    ``duplicates`` that a subscriber's broker filtered out. And each of
    them for one delivery, with its standard error (None if there was one replication).
    """
    costs = totals.costs
    each = zip(COSTS, costs.value, costs.standard_error, strict=True)
    return {
        "deliveries": round(float(costs.w[0])),
        **{name: round(float(count)) for name, count in zip(COSTS, costs.x, strict=True)},
        "per_delivery": {
            name: {
                "value": None if math.isnan(value) else float(value),
                "se": None if math.isnan(se) else float(se),
            }
            for name, value, se in each
        },
    }
