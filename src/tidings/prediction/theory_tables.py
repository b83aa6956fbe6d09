"""The tables of an outcome, from streams that were followed to their subscribers."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from tidings.model.arrays import Floats, Ints
from tidings.model.outcome import QUANTILES, table
from tidings.model.record_tables import column, names
from tidings.model.system import System
from tidings.prediction.following import Result
from tidings.prediction.network import Network
from tidings.prediction.regimes import FEATURES, OF_SHARES


def subscribers_table(system: System, results: list[Result]) -> pd.DataFrame:
    """Make the table of subscribers: shares, losses by cause, delays."""
    everyone = system.subscribers
    columns: dict[str, object] = {"subscriber": names(everyone)}
    for name, field in (("broker", "at"), ("count", "count")):
        own = column(everyone, field)
        columns[name] = np.array(own.values)[own.codes]
    numbers: dict[str, Floats] = {}

    def put(name: str, result: Result, by_filter: Floats, empty: float = math.nan) -> None:
        values = numbers.setdefault(name, np.full(len(everyone), empty))
        values[result.audience.subscribers] = by_filter[result.audience.filter_of]

    for result in results:
        total = result.wanted.sum(axis=1)
        rate = np.where(total > 0.0, total, np.nan)
        delays = result.delays
        delivered = result.wanted @ delays.survival / rate
        on_time = result.wanted @ result.on_time / rate
        put("wanted_per_s", result, total, 0.0)
        put("on_time", result, on_time)
        put("delivered", result, delivered)
        put("late", result, np.maximum(delivered - on_time, 0.0))
        for cause, lost in delays.lost.items():
            put(f"lost_{cause}", result, np.nan_to_num(result.wanted @ lost / rate), 0.0)
        spent_s = result.wanted @ (delays.survival * (delays.shift_s + delays.mean_s)) / rate
        put("delay_mean_s", result, spent_s / np.where(delivered > 0.0, delivered, np.nan))
        for index, name in enumerate(QUANTILES):
            put(name, result, result.quantiles_s[:, index])
    return table("subscribers", {**columns, **numbers})


def regimes_table(system: System, results: list[Result]) -> pd.DataFrame:
    """Features of every subscriber: means over what it wants."""
    found = np.zeros((len(system.subscribers), len(FEATURES) + len(OF_SHARES)))
    for result in results:
        total = result.wanted.sum(axis=1)
        shares = result.wanted / np.where(total > 0.0, total, 1.0)[:, None]
        on_time = shares @ result.on_time
        moved = np.abs(on_time - shares @ result.if_longer)
        distance = np.minimum(on_time, 1.0 - on_time)
        rows = np.column_stack([shares @ result.regimes, moved, distance])
        found[result.audience.subscribers] = rows[result.audience.filter_of]
    return pd.DataFrame(found, columns=[*FEATURES, *OF_SHARES])


def pairs_table(system: System, network: Network, results: list[Result]) -> pd.DataFrame:
    """A row for every publisher and subscriber of whom the second wants something of the first."""
    publishers = np.array(names(system.publishers), dtype=object)
    subscribers = np.array(names(system.subscribers), dtype=object)
    parts = []
    for result in results:
        source = result.streams.publishers[result.used]
        for publisher in np.unique(source):
            chosen = np.flatnonzero(source == publisher)
            parts.append(_pair_rows(result, chosen, str(publishers[publisher]), subscribers))
    return table("pairs", pd.concat(parts).to_dict("list") if parts else ())


def _pair_rows(result: Result, chosen: Ints, publisher: str, subscribers: object) -> pd.DataFrame:
    wanted = result.wanted[:, chosen]
    total = wanted.sum(axis=1)
    rate = np.where(total > 0.0, total, np.nan)
    delays = result.delays.take(chosen)
    delivered = wanted @ delays.survival / rate
    on_time = wanted @ result.on_time[chosen] / rate
    spent_s = wanted @ (delays.survival * (delays.shift_s + delays.mean_s)) / rate
    quantiles_s = delays.quantiles(wanted, list(QUANTILES.values()))
    columns: dict[str, Floats] = {
        "wanted_per_s": total,
        "on_time": on_time,
        "delivered": delivered,
        "late": np.maximum(delivered - on_time, 0.0),
        "delay_mean_s": spent_s / np.where(delivered > 0.0, delivered, np.nan),
        **{f"lost_{cause}": wanted @ lost / rate for cause, lost in delays.lost.items()},
        **{name: quantiles_s[:, index] for index, name in enumerate(QUANTILES)},
    }
    of_filter = result.audience.filter_of
    present = total[of_filter] > 0.0
    frame = pd.DataFrame({name: values[of_filter][present] for name, values in columns.items()})
    frame.insert(0, "subscriber", np.asarray(subscribers)[result.audience.subscribers[present]])
    frame.insert(0, "publisher", publisher)
    return frame


def brokers_table(system: System, network: Network) -> pd.DataFrame:
    """Make the table of brokers: rates, loads, services and waits."""
    rates = network.rates
    columns = {
        "broker": names(system.brokers),
        "arrivals_per_s": rates.arrivals,
        "utilisation": np.minimum(rates.loads, 1.0),
        "service_mean_s": [sum(law.mean_s for law in laws) for laws in rates.services],
        "wait_mean_s": network.mean_waits_s,
    }
    return table("brokers", columns)


def links_table(system: System, network: Network) -> pd.DataFrame:
    """Make the table of links between brokers, a row for each direction."""
    arcs = network.routes.arcs
    brokers = names(system.brokers)
    columns = {
        "source": [brokers[arc.source] for arc in arcs],
        "target": [brokers[arc.target] for arc in arcs],
        "events_per_s": network.rates.offered.sum(axis=1),
        "lost": [1.0 - arc.channel.reliability for arc in arcs],
        "delay_mean_s": [arc.channel.delay.mean_s for arc in arcs],
    }
    return table("links", columns)


def delays_table(system: System, results: list[Result]) -> pd.DataFrame:
    """The delay distribution of every subscriber, as rows."""
    rows: dict[str, list[object]] = {"subscriber": [], "delay_s": [], "arrived": []}
    for result in results:
        if not result.laws:
            continue
        members = zip(result.audience.subscribers, result.audience.filter_of, strict=True)
        for subscriber, which in members:
            times_s, arrived = result.laws[int(which)]
            rows["subscriber"].extend([system.subscribers[int(subscriber)].name] * times_s.size)
            rows["delay_s"].extend(times_s.tolist())
            rows["arrived"].extend(arrived.tolist())
    return table("delays", rows)
