"""Tabulate the measured outcome, with standard errors from batches; and waits at brokers.

Waits are not assumptions of a system but what comes of it, so that they are reported and not part
of the fitted system: predicted waits can be held against them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tidings.characterisation.fit.laws import fit_law
from tidings.characterisation.fit.parameters import Parameter, law_parameter
from tidings.characterisation.fit.samples import sample_from_rows
from tidings.characterisation.statistics import BATCHES, WAITING, sums_at
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

    @classmethod
    def total(cls, tallies: Collection[Tally], subscribers: int) -> Tally:
        """Add up all tallies."""
        nothing = np.zeros((subscribers, BATCHES))
        none = cls(
            wanted=nothing, delivered=nothing, on_time=nothing, delay_s=nothing,
            lost_link=np.zeros(subscribers),
        )  # fmt: skip
        names = [each.name for each in fields(cls)]
        every = (none, *tallies)
        return cls(**{name: sum(getattr(each, name) for each in every) for name in names})


def tallies(
    pairs: pd.DataFrame, wanted: Mapping[str, Reals], roster: Roster
) -> tuple[dict[str, Tally], dict[str, int]]:
    """Count what was wanted and delivered, by publisher, and what each received beyond its wants.

    What a subscriber received beyond what its filter wants counts as wanted: the traces know better
    than the filter.
    """
    number = {name: index for index, name in enumerate(roster.names)}
    known = pairs[pairs["subscriber"].isin(roster.names)]
    rows_of = {str(name): part for name, part in known.groupby("publisher")}
    by_publisher, unwanted = {}, np.zeros(len(roster.names))
    for publisher in sorted({*wanted, *rows_of}):
        part = rows_of.get(publisher, known.head(0))
        places = (part["subscriber"].map(number), part["batch"])
        delivered, on_time, delay_s, by_stays = (
            sums_at(part, column, (len(roster.names), BATCHES), *places)
            for column in ("delivered", "on_time", "delay_total_s", "wanted")
        )
        expected = wanted.get(publisher)
        asked = np.zeros_like(delivered) if expected is None else expected[roster.filter_of]
        asked = np.where(roster.is_churner[:, None], by_stays, asked)
        unwanted += np.maximum(delivered - asked, 0.0).sum(axis=1)
        by_publisher[publisher] = Tally(
            wanted=np.maximum(asked, delivered),
            delivered=delivered,
            on_time=on_time,
            delay_s=delay_s,
            lost_link=np.zeros(len(roster.names)),
        )
    extra = {roster.names[i]: int(unwanted[i]) for i in np.flatnonzero(unwanted)}
    return by_publisher, extra


def subscriber_table(
    tally: Tally, delays: pd.DataFrame, roster: Roster, window_s: float
) -> pd.DataFrame:
    """Make a row per subscriber: shares of what it wanted, delays of what it got.

    Standard errors come with them.
    """
    wanted = tally.wanted.sum(axis=1)
    counts = _histograms(delays, roster)
    quantiles = [Histogram.between_edges(row).quantiles(list(QUANTILES.values())) for row in counts]
    columns = {
        "subscriber": list(roster.names),
        "broker": list(roster.homes),
        "count": np.ones(len(roster.names)),
        "wanted_per_s": wanted / window_s,
        "events": wanted,
        **_shares(tally),
        "delay_mean_se_s": ratio_se(tally.delay_s, tally.delivered),
        **{name: [row[i] for row in quantiles] for i, name in enumerate(QUANTILES)},
    }
    return table("subscribers", columns)


def pair_table(by_publisher: Mapping[str, Tally], roster: Roster, window_s: float) -> pd.DataFrame:
    """Make a row per publisher and subscriber of whom the second wanted something of the first."""
    parts = []
    for publisher, tally in by_publisher.items():
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
    """Compute the share of wanted events that arrived within a delay, wherever it changes.

    Delays are edges of the delay grid, in seconds.
    """
    counts = _histograms(delays, roster)
    wanted = tally.wanted.sum(axis=1)
    subscribers, filled = np.nonzero(counts)
    arrived = np.cumsum(counts, axis=1)[subscribers, filled] / wanted[subscribers]
    columns = {
        "subscriber": np.array(roster.names, dtype=object)[subscribers],
        "delay_s": EDGES_S[filled],
        "arrived": arrived,
    }
    return table("delays", columns if subscribers.size else ())


def broker_table(
    batches: pd.DataFrame, servers: Mapping[str, int], window_s: float
) -> pd.DataFrame:
    """Make a row per broker in ``servers``: arrivals, utilisation, service, waiting.

    Standard errors come with them. Reads ``broker``, ``batch``, ``rows``, ``count``, ``total_s``
    (of service), ``wait_total_s``.
    """
    rows = []
    for name in servers:
        part = batches[batches["broker"] == name]
        arrivals, served, busy_s, wait_s = (
            sums_at(part, column, (BATCHES,), part["batch"])
            for column in ("rows", "count", "total_s", "wait_total_s")
        )
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
    places = (known["subscriber"].map(number), known["bin"])
    return sums_at(known, "delivered", (len(roster.names), BINS), *places)


def waiting_parameters(broker: str, hops: pd.DataFrame) -> list[Parameter]:
    """Estimate the share of events that wait at a broker, and the mean wait of these, in seconds.

    Waits of events that follow each other are alike: standard errors come from batches, and the law
    is judged by as many independent times as would tell the mean as well.
    """
    mine = hops[hops["broker"] == broker]
    batches = mine[mine["statistic"] == "batches"]
    served, waited, wait_s = (
        sums_at(batches, column, (BATCHES,), batches["batch"])
        for column in ("count", "waited", "wait_total_s")
    )
    if served.sum() == 0:
        return []
    share = Parameter(
        path=f"brokers.{broker}.waiting.share",
        estimate=float(waited.sum() / served.sum()),
        standard_error=float(batch_share_se(waited, served)),
        count=int(served.sum()),
        unit="share",
    )
    sample = sample_from_rows(mine[mine["statistic"] == WAITING])
    if sample.count == 0:
        return [share]
    error_s = float(ratio_se(wait_s, waited))
    told_by = _as_good_as(sample.variance_s2, error_s, sample.count)
    fitted = fit_law(sample, as_good_as=told_by, near=1.0)
    mean = law_parameter(f"brokers.{broker}.waiting", fitted)
    return [replace(mean, standard_error=error_s), share]


def _as_good_as(variance_s2: float, error_s: float, count: int) -> int:
    """Compute how many independent times would tell the mean as well: variance by squared error.

    >>> _as_good_as(4.0, 0.2, 1000)
    100
    """
    if not (math.isfinite(error_s) and error_s > 0 and math.isfinite(variance_s2)):
        return count
    return max(2, min(count, round(variance_s2 / error_s**2)))
