"""The measured outcome: what became of the events, counted, with standard errors from batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tidings.characterisation.statistics import BATCHES
from tidings.model.delay_grid import BINS, EDGES_S, Histogram
from tidings.model.outcome import QUANTILES, table
from tidings.model.standard_errors import batch_share_se, ratio_se

Reals = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """Who subscribes: names, home brokers, which of the distinct filters each has; who churns.

    Churners come and go: what they want was counted with what they received.
    """

    names: tuple[str, ...]
    homes: tuple[str, ...]
    filter_of: NDArray[np.int64]
    is_churner: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Events per subscriber and batch: wanted, delivered, on time, and their delays summed.

    ``lost_link`` is by subscriber only; whatever else is missing is unexplained.
    """

    wanted: Reals
    delivered: Reals
    on_time: Reals
    delay_s: Reals
    lost_link: Reals

    def plus(self, other: Tally) -> Tally:
        """Both together."""
        return Tally(
            wanted=self.wanted + other.wanted,
            delivered=self.delivered + other.delivered,
            on_time=self.on_time + other.on_time,
            delay_s=self.delay_s + other.delay_s,
            lost_link=self.lost_link + other.lost_link,
        )


def tallies(
    pairs: pd.DataFrame, wanted: Mapping[str, Reals], roster: Roster
) -> tuple[dict[str, Tally], dict[str, int]]:
    """What was wanted and delivered, by publisher; and who received how much more than it wants.

    What a subscriber received beyond what its filter wants counts as wanted: the traces know better
    than the filter.
    """
    number = {name: index for index, name in enumerate(roster.names)}
    known = pairs[pairs["subscriber"].isin(roster.names)]
    rows_of = {str(name): part for name, part in known.groupby("publisher")}
    found, unwanted = {}, np.zeros(len(roster.names))
    for publisher in sorted({*wanted, *rows_of}):
        sums = np.zeros((4, len(roster.names), BATCHES))
        part = rows_of.get(publisher)
        if part is not None:
            place = (
                part["subscriber"].map(number).to_numpy(dtype=np.int64),
                part["batch"].to_numpy(dtype=np.int64),
            )
            for index, column in enumerate(("delivered", "on_time", "delay_total_s", "wanted")):
                np.add.at(sums[index], place, part[column].fillna(0.0).to_numpy(dtype=np.float64))
        expected = wanted.get(publisher)
        asked = np.zeros_like(sums[0]) if expected is None else expected[roster.filter_of]
        asked = np.where(roster.is_churner[:, None], sums[3], asked)
        unwanted += np.maximum(sums[0] - asked, 0.0).sum(axis=1)
        found[publisher] = Tally(
            wanted=np.maximum(asked, sums[0]),
            delivered=sums[0],
            on_time=sums[1],
            delay_s=sums[2],
            lost_link=np.zeros(len(roster.names)),
        )
    extra = {roster.names[i]: int(unwanted[i]) for i in np.flatnonzero(unwanted)}
    return found, extra


def subscriber_table(
    tally: Tally, delays: pd.DataFrame, roster: Roster, window_s: float
) -> pd.DataFrame:
    """One row per subscriber: shares of what it wanted, delays of what it got, standard errors."""
    wanted = tally.wanted.sum(axis=1)
    counts = _histograms(delays, roster)
    found = [Histogram.between_edges(row).quantiles(list(QUANTILES.values())) for row in counts]
    columns = {
        "subscriber": list(roster.names),
        "broker": list(roster.homes),
        "count": np.ones(len(roster.names)),
        "wanted_per_s": wanted / window_s,
        "events": wanted,
        **_shares(tally),
        "delay_mean_se_s": ratio_se(tally.delay_s, tally.delivered),
        **{name: [row[i] for row in found] for i, name in enumerate(QUANTILES)},
    }
    return table("subscribers", columns)


def pair_table(found: Mapping[str, Tally], roster: Roster, window_s: float) -> pd.DataFrame:
    """One row per publisher and subscriber of whom the second wanted something of the first."""
    parts = []
    for publisher, tally in found.items():
        events = tally.wanted.sum(axis=1)
        asked = np.flatnonzero(events > 0)
        if asked.size:
            part = {
                "publisher": publisher,
                "subscriber": [roster.names[index] for index in asked],
                "wanted_per_s": events[asked] / window_s,
                "events": events[asked],
                **{name: values[asked] for name, values in _shares(tally).items()},
                "delay_mean_se_s": ratio_se(tally.delay_s, tally.delivered)[asked],
            }
            parts.append(pd.DataFrame(part))
    return table("pairs", pd.concat(parts).to_dict("list") if parts else ())


def delay_table(tally: Tally, delays: pd.DataFrame, roster: Roster) -> pd.DataFrame:
    """Share of wanted events that arrived within a delay, at every edge where it changes."""
    counts = _histograms(delays, roster)
    wanted = tally.wanted.sum(axis=1)
    parts = []
    for index, name in enumerate(roster.names):
        filled = np.flatnonzero(counts[index])
        if filled.size:
            arrived = np.cumsum(counts[index])[filled] / wanted[index]
            parts.append(
                pd.DataFrame({"subscriber": name, "delay_s": EDGES_S[filled], "arrived": arrived})
            )
    return table("delays", pd.concat(parts).to_dict("list") if parts else ())


def broker_table(
    batches: pd.DataFrame, servers: Mapping[str, int], window_s: float
) -> pd.DataFrame:
    """One row per broker in ``servers``: arrivals, utilisation, service, waiting, standard errors.

    Reads ``broker``, ``batch``, ``rows``, ``count``, ``total_s`` (of service), ``wait_total_s``.
    """
    rows = []
    for name in servers:
        part = batches[batches["broker"] == name]
        sums = np.zeros((4, BATCHES))
        place = part["batch"].to_numpy(dtype=np.int64)
        for index, column in enumerate(("rows", "count", "total_s", "wait_total_s")):
            np.add.at(sums[index], place, part[column].fillna(0.0).to_numpy(dtype=np.float64))
        arrivals, served, busy_s, wait_s = sums
        with np.errstate(invalid="ignore", divide="ignore"):
            # Rows without a start tell no service: those that do stand for all.
            all_busy_s = busy_s * np.where(served > 0, arrivals / served, 1.0)
            mean_s = np.divide(busy_s.sum(), served.sum())
            mean_wait_s = np.divide(wait_s.sum(), served.sum())
        capacity_s = window_s * servers[name]
        known = served.sum() > 0
        load = all_busy_s * BATCHES / capacity_s
        rows.append(
            {
                "broker": name,
                "arrivals_per_s": arrivals.sum() / window_s,
                "utilisation": all_busy_s.sum() / capacity_s if known else np.nan,
                "utilisation_se": load.std(ddof=1) / np.sqrt(BATCHES) if known else np.nan,
                "service_mean_s": mean_s,
                "wait_mean_s": mean_wait_s,
                "wait_mean_se_s": float(ratio_se(wait_s, served)),
            }
        )
    return table("brokers", rows)


def _shares(tally: Tally) -> dict[str, Reals]:
    wanted, delivered = tally.wanted.sum(axis=1), tally.delivered.sum(axis=1)
    on_time = tally.on_time.sum(axis=1)
    asked = wanted > 0
    whole = np.where(asked, wanted, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "on_time": on_time / whole,
            "on_time_se": batch_share_se(tally.on_time, tally.wanted),
            "delivered": delivered / whole,
            "late": (delivered - on_time) / whole,
            "lost_link": np.nan_to_num(tally.lost_link / whole),
            "lost_unexplained": np.nan_to_num((wanted - delivered - tally.lost_link) / whole),
            "delay_mean_s": tally.delay_s.sum(axis=1) / np.where(delivered > 0, delivered, np.nan),
        }


def _histograms(delays: pd.DataFrame, roster: Roster) -> Reals:
    number = {name: index for index, name in enumerate(roster.names)}
    known = delays[delays["subscriber"].isin(roster.names) & delays["bin"].notna()]
    counts = np.zeros((len(roster.names), BINS))
    place = (
        known["subscriber"].map(number).to_numpy(dtype=np.int64),
        known["bin"].to_numpy(dtype=np.int64),
    )
    np.add.at(counts, place, known["delivered"].to_numpy(dtype=np.float64))
    return counts
