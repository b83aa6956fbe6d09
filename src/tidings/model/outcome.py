"""One result, whatever its source: predicted, simulated or measured.

An :class:`Outcome` is a few flat tables with fixed columns, so that comparing two outcomes is a
join and a report needs no adapters. Shares are of the events *wanted*: published anywhere and
matching the subscriber's filter. For every subscriber ``delivered`` plus all ``lost_*`` is one, and
``delivered`` splits into ``on_time`` (delay ≤ lifetime) and ``late``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from tidings.model.remarks import Remark
from tidings.model.shown import Shown

SOURCES = ("predicted", "simulated", "measured")

# Why an event that was wanted did not reach its subscriber; the first cause in time counts.
CAUSES = {
    "link": "lost on a link",
    "overload": "stuck at an overloaded broker or peer",
    "overflow": "dropped because a buffer was full",
    "expired": "dropped on its path because it had expired",
    "broker_down": "its publisher's home broker was down, or crashed before forwarding it",
    "path_down": "a broker or link on its path was down, or failed while carrying it",
    "expired_in_buffer": "buffered until a repair, and too late after that",
    "not_restored": "a broker on its path had lost the subscription and not recovered it yet",
    "not_known": "its subscription had not reached that broker yet",
    "unsubscribed": "the subscriber had unsubscribed before it arrived",
    "dead_letter": "delivered as often as allowed, and never handled",
    "disconnected": "the peer was disconnected",
    "unexplained": "lost; the traces do not show why",
}
LOSSES = tuple(f"lost_{cause}" for cause in CAUSES)
QUANTILES = {"delay_p50_s": 0.50, "delay_p95_s": 0.95, "delay_p99_s": 0.99}

# Who answered a row: ``error`` is half the 95 % interval of the engine's own error of the on-time
# share, ``by`` the engine, ``why`` what speaks against the other one or against this answer.
ANSWERED = ("error", "by", "why")

# What redelivery makes of a consumer group's events, as shares of those wanted.
REDELIVERED = (
    "handled_again",  # handled more than once
    "dead_letters",  # given up after the deliveries allowed, whether handled by then or not
)

SUBSCRIBER_COLUMNS = (
    "subscriber",
    "broker",
    "count",  # identical subscribers this row stands for
    "wanted_per_s",  # rate of the events each of them wants
    "events",  # events counted (none when predicted)
    "on_time",
    "on_time_se",  # from the parameters (theory), over replications (simulation), of what was seen
    *ANSWERED,
    "delivered",
    "late",
    *LOSSES,
    *REDELIVERED,
    "delay_mean_s",  # of delivered events, as are the quantiles
    "delay_mean_se_s",
    *QUANTILES,
)
PAIR_COLUMNS = (
    "publisher",
    "subscriber",
    "wanted_per_s",
    "events",
    "on_time",
    "on_time_se",  # from the parameters (theory), over replications (simulation), of what was seen
    *ANSWERED,
    "delivered",
    "late",
    *LOSSES,
    "delay_mean_s",
    "delay_mean_se_s",
    *QUANTILES,  # not measured; simulated where the subscriber has but one publisher
)
BROKER_COLUMNS = (
    "broker",
    "arrivals_per_s",
    "utilisation",
    "utilisation_se",
    "service_mean_s",
    "wait_mean_s",
    "wait_mean_se_s",
)
# Between brokers; what the links of clients cost is in the losses and delays of subscribers.
LINK_COLUMNS = (
    "source",
    "target",
    "events_per_s",
    "lost",
    "lost_se",
    "delay_mean_s",
    "delay_mean_se_s",
    "utilisation",
)
# Share of the wanted events that arrived within ``delay_s``, on a grid: the delay law, defective.
DELAY_COLUMNS = ("subscriber", "delay_s", "arrived")
# What keeps events from being on time: the share that would be gained without it, dearest first,
# and half its 95 % interval.
CAUSE_COLUMNS = ("subscriber", "cause", "place", "cost", "error")

TABLES = {
    "subscribers": SUBSCRIBER_COLUMNS,
    "pairs": PAIR_COLUMNS,
    "brokers": BROKER_COLUMNS,
    "links": LINK_COLUMNS,
    "delays": DELAY_COLUMNS,
    "causes": CAUSE_COLUMNS,
}
TEXTS = frozenset(
    {"subscriber", "publisher", "broker", "source", "target", "by", "why", "cause", "place"}
)
# What a row of each table is found by; no two have the same.
KEYS = {
    "subscribers": ("subscriber",),
    "pairs": ("publisher", "subscriber"),
    "brokers": ("broker",),
    "links": ("source", "target"),
    "delays": ("subscriber", "delay_s"),
    "causes": ("subscriber", "cause", "place"),
}


def table(name: str, rows: Sequence[Mapping[str, Any]] | Mapping[str, Any] = ()) -> pd.DataFrame:
    """Make a result table with exactly its columns; unknown numbers are NaN, losses 0.

    Unknown is what a source cannot know.

    >>> list(table("delays").columns)
    ['subscriber', 'delay_s', 'arrived']
    """
    columns = TABLES[name]
    given = rows if isinstance(rows, Mapping) else pd.DataFrame(list(rows))
    unknown = [str(column) for column in given if column not in columns]
    if unknown:
        raise ValueError(f"the table '{name}' has no columns {', '.join(unknown)}")
    arrays = {str(column): np.atleast_1d(np.asarray(given[column])) for column in given}
    size = max((len(values) for values in arrays.values()), default=0)
    # One frame from finished columns: changing one column by column takes far longer.
    return pd.DataFrame({column: _filled(column, arrays.get(column), size) for column in columns})


def _filled(column: str, values: np.ndarray[Any, Any] | None, size: int) -> np.ndarray[Any, Any]:
    """Fill a column of ``size`` rows with texts or numbers.

    What is not given is an empty text, NaN, or 0 for losses.
    """
    if column in TEXTS:
        texts = np.full(size, "", dtype=object)
        if values is not None:
            texts[:] = values if values.dtype.kind == "U" else [str(value) for value in values]
        return texts
    numbers = np.full(size, np.nan)
    if values is not None:
        numbers[:] = values.astype(np.float64)
    return np.nan_to_num(numbers, nan=0.0) if column in LOSSES else numbers


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Outcome(Shown):
    """What became of the events, by subscriber, pair, broker and link.

    ``provenance`` says how it came about: version, input, seed, models, approximations, warnings;
    ``remarks`` are what its reader must know, as records.
    """

    _table = "subscribers"
    _columns = ("subscriber", "on_time", "error", "broker", "by", "late", "delay_mean_s")

    source: str
    subscribers: pd.DataFrame
    pairs: pd.DataFrame = field(default_factory=lambda: table("pairs"))
    brokers: pd.DataFrame = field(default_factory=lambda: table("brokers"))
    links: pd.DataFrame = field(default_factory=lambda: table("links"))
    delays: pd.DataFrame = field(default_factory=lambda: table("delays"))
    causes: pd.DataFrame = field(default_factory=lambda: table("causes"))
    provenance: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[Remark, ...] = ()

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise ValueError(f"source is '{self.source}'; wants one of {', '.join(SOURCES)}")
        for name, columns in TABLES.items():
            present = tuple(getattr(self, name).columns)
            if present != columns:
                raise ValueError(f"table '{name}' has columns {present}; wants {columns}")

    @property
    def on_time(self) -> float:
        """The on-time share over everything that everybody wants; NaN when that is nothing."""
        return self._share("on_time")

    @property
    def delivered(self) -> float:
        """The delivered share over everything that everybody wants."""
        return self._share("delivered")

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the reader of this result must know, as sentences."""
        remarks = (remark.sentence() for remark in self.remarks)
        return (*self.provenance.get("warnings", ()), *remarks)

    def _share(self, column: str) -> float:
        known = self.subscribers[self.subscribers[column].notna()]
        weight = known["wanted_per_s"] * known["count"]
        total = float(weight.sum())
        return float((known[column] * weight).sum()) / total if total > 0 else math.nan

    def headline(self) -> str:
        """Say which share of all wanted events arrives on time, in percent."""
        share = "unknown" if math.isnan(self.on_time) else f"{100 * self.on_time:.1f} %"
        return f"{self.source.capitalize()}: {share} of wanted events arrive on time"

    def _rows(self) -> pd.DataFrame:
        return by_share(self.subscribers)

    def worst(self, number: int = 5) -> pd.DataFrame:
        """List the subscribers with the lowest on-time shares."""
        return (
            by_share(self.subscribers.dropna(subset="on_time")).head(number).reset_index(drop=True)
        )


def by_share(rows: pd.DataFrame) -> pd.DataFrame:
    """Sort rows by on-time share, the lowest first; equal ones keep their order.

    Shares are equal if twelve digits are: further ones depend on how a processor adds up.
    """
    return rows.sort_values("on_time", kind="stable", key=lambda shares: shares.round(12))
