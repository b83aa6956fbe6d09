"""The tables of an outcome, from streams that were followed to their subscribers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tidings.model.arrays import Floats, Ints
from tidings.model.outcome import by_share, table
from tidings.model.record_tables import column, names
from tidings.model.system import System
from tidings.theory.feature_names import FEATURES, OF_SHARES

if TYPE_CHECKING:
    from tidings.theory.network.following import Followed, Result
    from tidings.theory.network.network import Network


def subscribers_table(system: System, results: list[Result]) -> pd.DataFrame:
    """Make the table of subscribers: shares, losses by cause, delays."""
    everyone = system.subscribers
    columns: dict[str, object] = {"subscriber": names(everyone)}
    for name, field in (("broker", "at"), ("count", "count")):
        own = column(everyone, field)
        columns[name] = np.array(own.values)[own.codes]
    numbers: dict[str, Floats] = {}
    for result in results:
        for name, by_filter in result.numbers.items():
            if name not in numbers:
                none = 0.0 if name == "wanted_per_s" or name.startswith("lost_") else math.nan
                numbers[name] = np.full(len(everyone), none)
            numbers[name][result.audience.subscribers] = by_filter[result.audience.filter_of]
    return table("subscribers", {**columns, **numbers})


def regimes_table(system: System, results: list[Result]) -> pd.DataFrame:
    """Tabulate the features of every subscriber: means over what it wants."""
    rows = np.zeros((len(system.subscribers), len(FEATURES) + len(OF_SHARES)))
    for result in results:
        rows[result.audience.subscribers] = result.regimes[result.audience.filter_of]
    return pd.DataFrame(rows, columns=[*FEATURES, *OF_SHARES])


def by_subscriber(system: System, results: list[Result], of: str) -> Floats:
    """Give a number of results that is known of filters, such as roughness, [subscriber]."""
    number: Floats = np.zeros(len(system.subscribers))
    for result in results:
        number[result.audience.subscribers] = getattr(result, of)[result.audience.filter_of]
    return number


def pairs_table(system: System, network: Network, results: list[Result]) -> pd.DataFrame:
    """Make a row for every publisher and every subscriber that wants something of it."""
    publishers = np.array(names(system.publishers), dtype=object)
    subscribers = np.array(names(system.subscribers), dtype=object)
    parts = []
    for followed in (result.followed for result in results if result.followed is not None):
        source = followed.publishers
        for publisher in np.unique(source):
            chosen = np.flatnonzero(source == publisher)
            parts.append(_pair_rows(followed, chosen, str(publishers[publisher]), subscribers))
    return table("pairs", pd.concat(parts).to_dict("list") if parts else ())


def _pair_rows(
    followed: Followed, chosen: Ints, publisher: str, subscribers: object
) -> pd.DataFrame:
    columns = followed.numbers(chosen)
    of_filter = followed.audience.filter_of
    present = columns["wanted_per_s"][of_filter] > 0.0
    frame = pd.DataFrame({name: values[of_filter][present] for name, values in columns.items()})
    frame.insert(0, "subscriber", np.asarray(subscribers)[followed.audience.subscribers[present]])
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


def delays_table(subscribers: pd.DataFrame, results: list[Result], most: int) -> pd.DataFrame:
    """Tabulate the delay distributions of so many subscribers, those with the lowest shares."""
    if not any(result.laws for result in results):
        return table("delays")
    rows: dict[str, list[object]] = {"subscriber": [], "delay_s": [], "arrived": []}
    kept = set(by_share(subscribers).index[:most])
    names = subscribers["subscriber"].to_numpy()
    for result in results:
        members = zip(result.audience.subscribers, result.audience.filter_of, strict=True)
        for subscriber, which in members:
            if which not in result.laws or subscriber not in kept:
                continue
            times_s, arrived = result.laws[int(which)]
            rows["subscriber"].extend([names[subscriber]] * times_s.size)
            rows["delay_s"].extend(times_s.tolist())
            rows["arrived"].extend(arrived.tolist())
    return table("delays", rows)
