"""The outcome of a simulation: totals of counts as the tables that every source shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tidings.model import delay_grid
from tidings.model.arrays import Floats
from tidings.model.outcome import QUANTILES, REDELIVERED, Outcome, table
from tidings.model.remarks import Remark
from tidings.simulation.kernel_layout import KERNEL_CAUSES
from tidings.simulation.totals import Totals

MOST_PAIRS = 100_000  # rows of pairs that are given unasked
MOST_DELAY_LAWS = 2_000  # subscribers up to which whole delay laws are given
WORST_DELAY_LAWS = 300  # of more, those with the lowest on-time shares


def outcome_of(
    totals: Totals, provenance: Mapping[str, Any], remarks: Sequence[Remark] = ()
) -> Outcome:
    """The outcome of everything counted so far."""
    quantiles = _quantiles(totals)
    return Outcome(
        source="simulated",
        subscribers=_subscribers(totals, quantiles),
        pairs=_pairs(totals, quantiles),
        brokers=_brokers(totals),
        links=_links(totals),
        delays=_delays(totals),
        provenance=provenance,
        remarks=tuple(remarks),
    )


def _shares(x: Floats, w: Floats) -> Floats:
    shares: Floats = np.divide(x, w, out=np.full(x.shape, np.nan), where=w > 0)
    return shares


def _quantiles(totals: Totals) -> Floats:
    """Delay quantiles of each unit, [unit, quantile], in seconds."""
    shares = list(QUANTILES.values())
    times_s = [totals.delays(unit).quantiles(shares) for unit in range(totals.units.count)]
    return np.array(times_s).reshape(-1, len(shares))


def _subscribers(totals: Totals, quantiles: Floats) -> pd.DataFrame:
    everyone = totals.compiled.system.subscribers
    wanted = totals.on_time.w
    delivered = wanted - totals.lost.sum(axis=1)
    by_unit = {
        "wanted_per_s": wanted / (totals.replications * totals.length_s),
        "events": wanted,
        "on_time": totals.on_time.value,
        "on_time_se": totals.standard_errors,
        "error": totals.half_widths,
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
    """Delays are counted by subscriber, so quantiles are known where it has but one publisher."""
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
    names = np.array([each.name for each in system.subscribers], dtype=object)
    wanted, on_time = totals.pair_on_time.w[pair], totals.pair_on_time.x[pair]
    delivered = wanted - totals.pair_lost[pair].sum(axis=1)
    only = np.bincount(units.pair_unit, minlength=units.count)[units.pair_unit[pair]] == 1
    known = np.where(only[:, None], quantiles[units.pair_unit[pair]], np.nan)
    columns = {
        "publisher": publishers[units.pair_publisher[pair]],
        "subscriber": names[subscriber],
        "wanted_per_s": wanted / (totals.replications * totals.length_s),
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
    """A broker of several stations is as busy as the busiest; its waits and services add up."""
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
    """The share of wanted events that arrived within a delay of each bin, where it changes."""
    everyone, units = totals.compiled.system.subscribers, totals.units.of_subscriber
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
