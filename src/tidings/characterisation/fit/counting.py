"""The measured outcome of a fitted system: what was wanted against what was delivered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tidings.characterisation.fit.channels import FittedChannel
from tidings.characterisation.fit.collected import Statistics
from tidings.characterisation.fit.contents import wanted_by_batch
from tidings.characterisation.fit.failures import ever_down
from tidings.characterisation.fit.losses import (
    OwnLosses,
    Reach,
    certain_clients,
    lost_on_links,
    own_losses,
    reach_by_publisher,
)
from tidings.characterisation.fit.measured import (
    Roster,
    Tally,
    broker_table,
    delay_table,
    pair_table,
    subscriber_table,
    tallies,
)
from tidings.characterisation.fit.subscribers import changed_subscribers
from tidings.characterisation.statistics import BATCHES, Direction, ObservedWindow
from tidings.model.outcome import Outcome, table
from tidings.model.system import System


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What must be known of traces besides their statistics: what was there, and when."""

    tables: Collection[str]
    window: ObservedWindow
    source: str
    notes: tuple[str, ...] = ()
    sampled: float = 1.0  # share of all events that were recorded, chosen at random
    reported: frozenset[str] = frozenset()  # queues and brokers of which there are counters


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The tables of a measured outcome, what must be said of them, and what own links lost."""

    tables: Mapping[str, pd.DataFrame]
    notes: tuple[str, ...]
    own: OwnLosses


def count(
    seen: Statistics,
    system: System,
    channels: Mapping[Direction, FittedChannel],
    traces: Observed,
    measured: ObservedWindow,
    nameless: float = 0.0,
) -> Count:
    """Count what became of events published in ``measured``, by subscriber, pair, broker and link.

    ``nameless`` is the share of hops that do not say of which event they are.
    """
    changed = changed_subscribers(seen.subscriptions, traces.window)
    filters = list(dict.fromkeys(each.wants for each in system.subscribers))
    number = {wants: index for index, wants in enumerate(filters)}
    roster = Roster(
        names=tuple(each.name for each in system.subscribers),
        homes=tuple(each.at for each in system.subscribers),
        filter_of=np.array([number[each.wants] for each in system.subscribers], dtype=np.int64),
        is_churner=np.isin([each.name for each in system.subscribers], changed),
    )
    wanted = wanted_by_batch(seen.publications_by("batches"), seen.contents, filters, BATCHES)
    pairs, delays = seen.deliveries_by("pairs"), seen.deliveries_by("delays")
    by_publisher, unwanted = tallies(pairs, wanted, roster)
    failed = ever_down(seen.states)
    reach = reach_by_publisher(seen.sightings, seen.contents, system, failed, nameless)
    certain = certain_clients(system, traces.tables, failed)
    by_publisher = _with_losses(by_publisher, reach, certain, roster.is_churner)
    total = Tally.total(by_publisher.values(), len(roster.names))
    servers = {broker.name: broker.servers for broker in system.brokers}
    # So long would all events have to be recorded to give as many as these.
    recorded_s = traces.window.seconds * traces.sampled
    return Count(
        tables={
            "subscribers": subscriber_table(
                total, delays, roster, measured.seconds * traces.sampled
            ),
            "pairs": pair_table(by_publisher, roster, measured.seconds * traces.sampled),
            "brokers": broker_table(seen.hops_by("batches"), servers, recorded_s),
            "links": _link_table(seen.hops_by("arrivals"), system, channels, recorded_s),
            "delays": delay_table(total, delays, roster),
        },
        notes=tuple(_said(pairs, roster, unwanted) + _own_lifetimes(system)),
        own=own_losses(system, by_publisher, reach, roster.is_churner),
    )


def measured_outcome(
    counted: Count, traces: Observed, measured: ObservedWindow, notes: tuple[str, ...]
) -> Outcome:
    """Make the outcome, with where it comes from and what its reader must know."""
    provenance: dict[str, Any] = {
        "version": metadata.version("tidings"),
        "engine": "characterisation",
        "traces": traces.source,
        "from_ns": traces.window.from_ns,
        "until_ns": traces.window.until_ns,
        "settle_s": (traces.window.until_ns - measured.until_ns) / 1e9,
        "batches": BATCHES,
        "warnings": notes,
    }
    return Outcome(source="measured", **counted.tables, provenance=provenance)


def _link_table(
    arrivals: pd.DataFrame,
    system: System,
    channels: Mapping[Direction, FittedChannel],
    window_s: float,
) -> pd.DataFrame:
    """List both directions of every link.

    What was sent is what arrived and what must have been lost.
    """
    arrived = arrivals.groupby(["came_from", "broker"])["rows"].sum().to_dict()
    rows = []
    for link in system.links:
        for arc in (link.between, link.between[::-1]):
            fitted = channels.get(arc)
            kept = fitted.reliability if fitted else None
            delay = fitted.delay if fitted else None
            rows.append(
                {
                    "source": arc[0],
                    "target": arc[1],
                    "events_per_s": arrived.get(arc, 0) / (kept or 1.0) / window_s,
                    "lost": np.nan if kept is None else 1.0 - kept,
                    "lost_se": np.nan if fitted is None else fitted.lost_se,
                    "delay_mean_s": np.nan if delay is None else delay.law.mean_s,
                    "delay_mean_se_s": np.nan if delay is None else delay.mean_se_s,
                }
            )
    return table("links", rows)


def _with_losses(
    by_publisher: Mapping[str, Tally],
    reach: Mapping[str, Reach],
    certain: Sequence[bool],
    is_churner: NDArray[np.bool_],
) -> dict[str, Tally]:
    """Add to tallies how many events of each publisher links lost, as far as that is known.

    Where events got lost is counted of all of them, not of those that churners wanted: of these
    nothing is known.
    """
    with_losses = {}
    for name, tally in by_publisher.items():
        delivered, wanted = tally.delivered.sum(axis=1), tally.wanted.sum(axis=1)
        lost = lost_on_links(reach[name], delivered, wanted, certain) if name in reach else 0.0
        with_losses[name] = replace(
            tally, lost_link=tally.lost_link + np.where(is_churner, 0.0, lost)
        )
    return with_losses


def _own_lifetimes(system: System) -> list[str]:
    names = [each.name for each in system.subscribers if each.lifetime is not None]
    if not names:
        return []
    return [
        f"{len(names)} subscribers, such as '{names[0]}', have a lifetime of their own, "
        "which traces do not contain; measured on-time shares use the lifetimes of "
        "events only"
    ]


def _said(pairs: pd.DataFrame, roster: Roster, unwanted: Mapping[str, int]) -> list[str]:
    notes = []
    strangers = sorted(set(pairs["subscriber"]) - set(roster.names))
    if strangers:
        number = int(pairs.loc[pairs["subscriber"].isin(strangers), "delivered"].sum())
        notes.append(
            f"{number} deliveries to {len(strangers)} peers that never subscribed, such "
            f"as '{strangers[0]}', are not counted"
        )
    if unwanted:
        name, number = max(unwanted.items(), key=lambda item: item[1])
        notes.append(
            f"{len(unwanted)} subscribers received events that their filters do not "
            f"match, most of all '{name}' ({number}); these events count as wanted"
        )
    return notes
