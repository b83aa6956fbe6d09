"""The outcome of a simulation: totals of counts as the tables that every source shares.

With how it came about, what it cost, and what its reader must know.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tidings.model import delay_grid
from tidings.model.arrays import Floats
from tidings.model.outcome import QUANTILES, REDELIVERED, Outcome, table
from tidings.model.reading import fingerprint
from tidings.model.remarks import BLOCKED, COLLAPSE, Remark, of_system
from tidings.simulation.hot_partitions import hot_partitions
from tidings.simulation.kernel_layout import AT_MEMBER, KERNEL_CAUSES
from tidings.simulation.settling import start_errors
from tidings.simulation.totals import COSTS

if TYPE_CHECKING:
    from tidings.simulation.totals import Totals
    from tidings.simulation.world import Window

MOST_PAIRS = 100_000  # rows of pairs that are given unasked
MOST_DELAY_LAWS = 2_000  # subscribers up to which whole delay laws are given
WORST_DELAY_LAWS = 300  # of more, those with the lowest on-time shares
NOTHING = 0.001  # share on time of all runs together; in more, some of them had not collapsed yet


def outcome_of(
    totals: Totals,
    provenance: Mapping[str, Any],
    remarks: Sequence[Remark],
    unsteady: Mapping[int, Remark],
    window: Window,
) -> Outcome:
    """Make the outcome of everything counted so far; ``unsteady`` units may be anything below."""
    by_start, slow = start_errors(totals.compiled, totals.units, window)
    widths = _with_unsteady(totals.half_widths + by_start, totals.on_time.value, unsteady)
    if slow:  # by name, and by more than pilot runs can see
        remarks = [each for each in remarks if each.kind != slow[0].kind]
    quantiles = _quantiles(totals)
    return Outcome(
        source="simulated",
        subscribers=_subscribers(totals, quantiles, widths),
        pairs=_pairs(totals, quantiles),
        brokers=_brokers(totals),
        links=_links(totals),
        delays=_delays(totals),
        provenance=provenance,
        remarks=(*remarks, *slow, *unsteady.values()),
    )


def _with_unsteady(widths: Floats, shares: Floats, unsteady: Mapping[int, Remark]) -> Floats:
    """Widen half-widths so that they reach from the shares of these units to nothing."""
    units = list(unsteady)
    widths, reached = widths.copy(), shares[units]
    least = np.where(reached <= NOTHING, NOTHING, widths[units])
    widths[units] = np.fmax(least, reached)
    return widths


def _shares(x: Floats, w: Floats) -> Floats:
    shares: Floats = np.divide(x, w, out=np.full(x.shape, np.nan), where=w > 0)
    return shares


def _quantiles(totals: Totals) -> Floats:
    """Compute the delay quantiles of each unit, [unit, quantile], in seconds."""
    shares = list(QUANTILES.values())
    times_s = [totals.delays(unit).quantiles(shares) for unit in range(totals.units.count)]
    return np.array(times_s).reshape(-1, len(shares))


def _subscribers(totals: Totals, quantiles: Floats, widths: Floats) -> pd.DataFrame:
    everyone = totals.compiled.asked.subscribers
    wanted = totals.on_time.w
    delivered = wanted - totals.lost.sum(axis=1)
    by_unit = {
        "wanted_per_s": wanted / totals.units.followed / totals.measured_s,
        "events": wanted,
        "on_time": totals.on_time.value,
        "on_time_se": totals.standard_errors,
        "error": widths,
        "delivered": _shares(delivered, wanted),
        "late": _shares(delivered - totals.on_time.x, wanted),
        "delay_mean_s": totals.delay.value,
        "delay_mean_se_s": totals.delay.standard_error,
    }
    by_unit |= {
        f"lost_{cause}": np.nan_to_num(_shares(totals.lost[:, index], wanted))
        for index, cause in enumerate(KERNEL_CAUSES)
    }
    grouped = np.isin(totals.units.receiver, [each.receiver for each in totals.compiled.groups])
    by_unit |= {
        name: np.where(grouped, _shares(totals.redelivered[:, index], wanted), np.nan)
        for index, name in enumerate(REDELIVERED)
    }
    by_unit |= {name: quantiles[:, index] for index, name in enumerate(QUANTILES)}
    columns: dict[str, Any] = {
        "subscriber": [each.name for each in everyone],
        "broker": [each.at for each in everyone],
        "count": [each.count for each in everyone],
        "by": ["simulation"] * len(everyone),
    }
    unit = totals.units.of_subscriber
    return table("subscribers", columns | {key: each[unit] for key, each in by_unit.items()})


def _pairs(totals: Totals, quantiles: Floats) -> pd.DataFrame:
    """Tabulate the pairs of a publisher and a subscriber.

    Delays are counted by subscriber, so quantiles are known where it has but one publisher.
    """
    units = totals.units
    members = np.bincount(units.of_subscriber, minlength=units.count)
    if int(members[units.pair_unit].sum()) > MOST_PAIRS:
        return table("pairs")
    order = np.argsort(units.of_subscriber, kind="stable")
    first = np.concatenate([[0], np.cumsum(members)])
    pair = np.repeat(np.arange(units.pair_unit.size), members[units.pair_unit])
    inside = np.arange(pair.size) - np.searchsorted(pair, pair)
    subscriber = order[first[units.pair_unit[pair]] + inside]
    ranked = np.lexsort((units.pair_publisher[pair], subscriber))
    pair, subscriber = pair[ranked], subscriber[ranked]
    system = totals.compiled.system
    publishers = np.array([each.name for each in system.publishers], dtype=object)
    everyone = totals.compiled.asked.subscribers
    names = np.array([each.name for each in everyone], dtype=object)
    wanted, on_time = totals.pair_on_time.w[pair], totals.pair_on_time.x[pair]
    delivered = wanted - totals.pair_lost[pair].sum(axis=1)
    only = np.bincount(units.pair_unit, minlength=units.count)[units.pair_unit[pair]] == 1
    known = np.where(only[:, None], quantiles[units.pair_unit[pair]], np.nan)
    columns = {
        "publisher": publishers[units.pair_publisher[pair]],
        "subscriber": names[subscriber],
        "wanted_per_s": wanted / units.followed[units.pair_unit[pair]] / totals.measured_s,
        "events": wanted,
        "on_time": _shares(on_time, wanted),
        "on_time_se": totals.pair_on_time.share_standard_error[pair],
        "error": totals.pair_on_time.half_widths()[pair],
        "by": np.full(pair.size, "simulation", dtype=object),
        "delivered": _shares(delivered, wanted),
        "late": _shares(delivered - on_time, wanted),
        "delay_mean_s": totals.pair_delay.value[pair],
        "delay_mean_se_s": totals.pair_delay.standard_error[pair],
    }
    columns |= {name: known[:, index] for index, name in enumerate(QUANTILES)}
    columns |= {
        f"lost_{cause}": np.nan_to_num(_shares(totals.pair_lost[pair, index], wanted))
        for index, cause in enumerate(KERNEL_CAUSES)
    }
    return table("pairs", columns)


def _brokers(totals: Totals) -> pd.DataFrame:
    """Tabulate how busy brokers are, with mean waits and services, in seconds.

    A broker of several stations is as busy as the busiest; its waits and services add up.
    """
    system = totals.compiled.system
    seconds = totals.replications * totals.length_s
    channels = totals.compiled.tables["channels"]
    into = np.asarray(channels["target"])
    bound = into >= 0
    came = totals.delay_on.w[bound]
    arrivals = np.bincount(into[bound], weights=came, minlength=len(system.brokers)) / seconds
    rows = []
    for index, broker in enumerate(system.brokers):
        record = totals.compiled.tables["places"][index]
        own = np.arange(record["first_station"], record["last_station"])
        row = {"broker": broker.name, "arrivals_per_s": arrivals[index]}
        if own.size:
            busiest = own[np.argmax(totals.utilisation.value[own])]
            row |= {
                "utilisation": totals.utilisation.value[busiest],
                "utilisation_se": totals.utilisation.standard_error[busiest],
                "service_mean_s": totals.service.value[own].sum(),
                "wait_mean_s": totals.wait.value[own].sum(),
                "wait_mean_se_s": np.sqrt((totals.wait.standard_error[own] ** 2).sum()),
            }
        else:
            row |= {"utilisation": 0.0, "service_mean_s": 0.0, "wait_mean_s": 0.0}
        rows.append(row)
    return table("brokers", rows)


def _links(totals: Totals) -> pd.DataFrame:
    names = [broker.name for broker in totals.compiled.system.brokers]
    arcs = totals.compiled.routes.arcs
    between = slice(len(arcs))  # clients' links come after those of brokers
    columns = {
        "source": [names[arc.source] for arc in arcs],
        "target": [names[arc.target] for arc in arcs],
        "events_per_s": totals.sent[between] / (totals.replications * totals.length_s),
        "lost": totals.lost_on.value[between],
        "lost_se": totals.lost_on.share_standard_error[between],
        "delay_mean_s": totals.delay_on.value[between],
        "delay_mean_se_s": totals.delay_on.standard_error[between],
    }
    return table("links", columns)


def _delays(totals: Totals) -> pd.DataFrame:
    """Compute the share of wanted events that arrived within a delay.

    There is a row for each bin of delays where it changes.
    """
    everyone, units = totals.compiled.asked.subscribers, totals.units.of_subscriber
    kept = np.arange(len(everyone))
    if len(everyone) > MOST_DELAY_LAWS:
        worst = np.argsort(totals.on_time.value[units].round(12), kind="stable")[:WORST_DELAY_LAWS]
        kept = np.sort(worst)
    parts = []
    for subscriber, unit in ((everyone[int(each)], units[each]) for each in kept):
        seen = totals.delays(unit)
        used = np.flatnonzero(seen.counts)
        if used.size:
            edges = np.arange(max(used[0] - 1, 0), used[-1] + 1)
            arrived = np.cumsum(seen.counts)[edges] / totals.on_time.w[unit]
            # All that a bin holds has arrived by its greatest delay, which may be well below its
            # upper edge where delays are constant.
            by_s = np.where(seen.counts > 0, seen.highest_s, delay_grid.EDGES_S)[edges]
            parts.append((subscriber.name, by_s, arrived))
    columns = {
        "subscriber": [name for name, edges, _ in parts for _ in edges],
        "delay_s": np.concatenate([edges for _, edges, _ in parts] or [np.zeros(0)]),
        "arrived": np.concatenate([arrived for *_, arrived in parts] or [np.zeros(0)]),
    }
    return table("delays", columns)


NOTABLE = 0.001  # share of a group's events handled more than once from which it is said
COLLAPSED = 0.98  # share of time that members are busy from which they do nothing else


def remarks_of(totals: Totals) -> list[Remark]:
    """List what the reader of a simulated outcome must know of the system and of its tables."""
    remarks = of_system(totals.compiled.system)
    idle = totals.on_time.w[totals.units.of_subscriber] == 0
    names = [
        s.name for s, none in zip(totals.compiled.asked.subscribers, idle, strict=True) if none
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
    remarks += hot_partitions(totals.compiled)
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
                what="no publisher-subscriber pairs are listed, as there are too many",
                size=float(MOST_PAIRS),
                unit="pairs is the limit",
                do="simulate a part of the system to see them",
            )
        )
    return remarks


def _redelivery(totals: Totals) -> list[Remark]:
    """Say which groups handle events twice, and which of them can do nothing else any more."""
    compiled, remarks = totals.compiled, []
    for number, group in enumerate(compiled.groups):
        units = np.flatnonzero(totals.units.receiver == group.receiver)
        if not units.size:  # one of several whose counts are added up to those of the first
            continue
        unit = int(units[0])
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
        if busy >= COLLAPSED > once:
            kind = COLLAPSE
            what = (
                f"{COLLAPSE}: redeliveries keep this consumer group fully busy, although it "
                "could handle every event once"
            )
        else:
            kind = "redelivery"
            what = (
                "this consumer group handles events more than once, because they are acknowledged "
                "too late"
            )
        remarks.append(
            Remark(
                kind=kind,
                what=what,
                where=(group.subscriber.name,),
                size=float(again),
                unit="of its events are handled more than once",
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
                kind=BLOCKED,
                what="publishers are blocked while this buffer is full; their events wait "
                f"{seconds / events:.3g} s on average before they are sent",
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
        "system": fingerprint(totals.compiled.asked),
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
    """Count what deliveries cost: messages over links between brokers, all replications together.

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
