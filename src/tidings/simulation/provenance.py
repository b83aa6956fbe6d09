"""How a simulated outcome came about, what it cost, and what its reader must know."""

from __future__ import annotations

import math
from importlib import metadata
from typing import Any

import numpy as np

from tidings.model.reading import fingerprint
from tidings.model.remarks import Remark, of_system
from tidings.simulation.results import MOST_PAIRS
from tidings.simulation.totals import COSTS, Totals
from tidings.simulation.world import Window


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
