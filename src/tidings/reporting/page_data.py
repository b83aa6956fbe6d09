"""What the page draws, as plain data: rounded, columnar, and small enough to open quickly."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tidings.model.filters import Filter, filter_document
from tidings.model.outcome import CAUSES, LOSSES, SOURCES, Outcome, by_share
from tidings.model.record_tables import column
from tidings.model.system import System
from tidings.reporting.headline import comparisons, main_source, reason
from tidings.reporting.layout import MapLayout, lay_out
from tidings.reporting.reasons import Explanation, Reasons
from tidings.validation.parameters import parameter_z

MOST_CURVES = 300  # subscribers whose delay curves are kept: the worst, if there are more
MOST_POINTS = 64  # of one curve
MOST_PARTS = 12  # of a subscriber's mean delay
WIDEST_FILTER = 160  # characters
ENDLESS = 1e308  # stands for infinity, which JSON does not have
_COLUMNS = (
    "wanted_per_s",
    "on_time",
    "on_time_se",
    "error",
    "late",
    *LOSSES,
    "delay_mean_s",
    "delay_p50_s",
    "delay_p95_s",
    "delay_p99_s",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageData:
    """The data of the page and what had to be left out of it."""

    document: dict[str, Any]
    omissions: tuple[str, ...]


def page_data(
    system: System,
    outcomes: Mapping[str, Outcome],
    reasons: Reasons,
    parameters: pd.DataFrame | None,
) -> PageData:
    """Collect everything the page draws, by broker, link and subscriber."""
    main = outcomes[main_source(outcomes)]
    names = _subscriber_names(outcomes, main)
    rows = {
        source: outcomes[source].subscribers.set_index("subscriber").reindex(names)
        for source in SOURCES
        if source in outcomes
    }
    detailed = _worst(rows[main.source], MOST_CURVES)
    omissions = []
    if len(detailed) < len(names):
        omissions.append(
            f"Delay curves are shown only for the {len(detailed)} subscribers with the "
            f"lowest on-time shares, of {len(names)}."
        )
    layout = lay_out([b.name for b in system.brokers], [link.between for link in system.links])
    topic = _topic(system)
    document = {
        "sources": list(rows),
        "main": main.source,
        "causes": CAUSES,
        "brokers": _brokers(system, outcomes, reasons, layout),
        "rows": layout.rows,
        "columns": layout.columns,
        "links": _links(system, main),
        "costs": [
            [cause.kind, cause.words, number(cost), number(error)]
            for cause, cost, error in reasons.totals
        ],
        "topic": topic,
        "subscribers": _subscribers(system, rows[main.source], reasons, set(detailed), topic),
        "curves_of": len(detailed),
        "outcomes": {source: _columns(each) for source, each in rows.items()},
        "answers": {
            source: {name: list(each[name].fillna("")) for name in ("by", "why")}
            for source, each in rows.items()
            if each["by"].fillna("").any()
        },
        "delays": {
            source: _curves(outcomes[source].delays, names, set(detailed)) for source in rows
        },
        "agreement": _agreement(outcomes),
        "parameters": [] if parameters is None else _parameters(parameters),
    }
    return PageData(document=document, omissions=tuple(omissions))


def to_script(document: Mapping[str, Any]) -> str:
    r"""Write JSON that is safe inside a script element, whatever the names in it are.

    >>> print(to_script({"name": "</script>"}))
    {"name":"\u003c/script>"}
    """
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def number(value: Any) -> float | int | None:
    """Round a number to five significant digits; None where there is none.

    >>> number(0.123456789), number(3.0), number(math.nan), number(math.inf)
    (0.12346, 3, None, 1e+308)
    """
    if value is None or math.isnan(value):
        return None
    if abs(value) > ENDLESS:
        return math.copysign(ENDLESS, value)
    rounded = float(f"{value:.5g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def reduce_curve(
    times: np.ndarray, arrived: np.ndarray, most: int = MOST_POINTS
) -> tuple[list[float], list[float]]:
    """Reduce a curve to at most about ``most`` points; every steep piece keeps both its ends.

    A point stays when the curve has risen by 1/``most`` of its height since the last that stayed,
    and with it the point before, so that no jump becomes a slope.
    """
    if not len(times):
        return [], []
    step = 2.0 * float(arrived[-1]) / most
    keep = {0, len(times) - 1}
    last = 0
    for index in range(1, len(times)):
        if arrived[index] - arrived[last] >= step:
            keep.update((index - 1, index))
            last = index
    chosen = sorted(keep)
    return [float(times[i]) for i in chosen], [float(arrived[i]) for i in chosen]


def _agreement(outcomes: Mapping[str, Outcome]) -> list[dict[str, Any]]:
    return [
        {
            "source": each.source_a,
            "mean_absolute": number(each.summary.mean_absolute),
            "maximum": number(each.summary.maximum),
            "within_2se": number(each.summary.within_2se),
        }
        for each in comparisons(outcomes)
    ]


def _subscriber_names(outcomes: Mapping[str, Outcome], main: Outcome) -> list[str]:
    ordered = [main, *(each for each in outcomes.values() if each is not main)]
    return list(dict.fromkeys(name for each in ordered for name in each.subscribers["subscriber"]))


def _worst(rows: pd.DataFrame, most: int) -> list[int]:
    order = by_share(rows.reset_index(drop=True)).index
    return [int(index) for index in order[:most]]


def _brokers(
    system: System, outcomes: Mapping[str, Outcome], reasons: Reasons, layout: MapLayout
) -> list[dict[str, Any]]:
    places = layout.positions
    loads = {
        source: outcome.brokers.set_index("broker").to_dict("index")
        for source, outcome in outcomes.items()
    }
    return [
        {
            "name": broker.name,
            "x": number(places[broker.name][0]),
            "y": number(places[broker.name][1]),
            "publishers": sum(1 for each in system.publishers if each.at == broker.name),
            "subscribers": sum(each.count for each in system.subscribers if each.at == broker.name),
            "load": {
                source: {key: number(value) for key, value in table[broker.name].items()}
                for source, table in loads.items()
                if broker.name in table
            },
            "late_through": number(reasons.late_through.get(broker.name, math.nan)),
        }
        for broker in system.brokers
    ]


def _links(system: System, main: Outcome) -> list[dict[str, Any]]:
    index = system.broker_index
    seen = main.links.set_index(["source", "target"]).to_dict("index")
    rows = []
    for link in system.links:
        directions = []
        for ends, channel in ((link.between, link.there), (link.between[::-1], link.back)):
            row = {"lost": 1 - channel.reliability, "delay_mean_s": channel.delay.mean_s}
            known = {k: v for k, v in seen.get(ends, {}).items() if not math.isnan(v)}
            if known.get("events_per_s") == 0.0:  # what carries nothing loses nothing
                known["lost"] = math.nan
            directions.append({key: number(value) for key, value in (row | known).items()})
        rows.append({"ends": [index[end] for end in link.between], "ways": directions})
    return rows


def _topic(system: System) -> str:
    """Find the attribute that most filters ask one value of; empty where none does."""
    filters = column(system.subscribers, "wants")
    counts: Counter[str] = Counter()
    for wants, times in zip(filters.values, np.bincount(filters.codes), strict=True):
        counts.update(dict.fromkeys(_fixed(wants), int(times)))
    return max(counts, key=lambda name: (counts[name], name == "topic"), default="")


def _fixed(wants: Filter) -> dict[str, Any]:
    """Map each attribute of which a filter wants one value to that value."""
    document = filter_document(wants)
    if isinstance(document, list):
        return {}
    return {name: test for name, test in document.items() if not isinstance(test, dict | list)}


def _subscribers(
    system: System, rows: pd.DataFrame, reasons: Reasons, detailed: set[int], topic: str
) -> list[dict[str, Any]]:
    known = {subscriber.name: subscriber for subscriber in system.subscribers}
    homes = rows["broker"].fillna("").to_dict()
    counts = rows["count"].to_dict()
    entries = []
    for index, (name, row) in enumerate(zip(rows.index, rows.to_dict("records"), strict=True)):
        explanation = reasons.subscribers.get(name)
        entry: dict[str, Any] = {
            "name": name,
            "broker": homes[name] or (known[name].at if name in known else ""),
            "count": number(counts[name]) or 1,
            "reason": reason(row, explanation, reasons.causes.get(name, ())),
            "deadlines": _deadlines(explanation),
        }
        if name in known:
            subscriber = known[name]
            entry["wants"] = _shortened(_filter_text(subscriber.wants))
            if subscriber.group:
                entry["group"] = subscriber.group
            if topic in (fixed := _fixed(subscriber.wants)):
                entry["topic"] = str(fixed[topic])
        if index in detailed and explanation is not None:
            entry["parts"] = [
                [part.kind, part.place, number(part.mean_s)]
                for part in explanation.parts[:MOST_PARTS]
            ]
        entries.append(entry)
    return entries


def _deadlines(explanation: Explanation | None) -> list[list[Any]]:
    if explanation is None:
        return []
    return [
        [number(each.lifetime_s), number(each.share), each.random] for each in explanation.deadlines
    ]


def _filter_text(wants: Filter) -> str:
    """Write a filter as JSON, numbers in six digits."""
    exact = json.dumps(filter_document(wants), ensure_ascii=False)
    return json.dumps(
        json.loads(exact, parse_float=lambda digits: float(f"{float(digits):.6g}")),
        ensure_ascii=False,
    )


def _shortened(text: str) -> str:
    return text if len(text) <= WIDEST_FILTER else text[: WIDEST_FILTER - 1] + "…"


def _columns(rows: pd.DataFrame) -> dict[str, list[float | int | None]]:
    return {
        column: [number(value) for value in rows[column]]
        for column in _COLUMNS
        if column not in LOSSES or (rows[column] > 0).any()
    }


def _curves(
    delays: pd.DataFrame, names: Sequence[str], detailed: set[int]
) -> dict[str, list[list[float | int | None]]]:
    position = {names[index]: index for index in detailed}
    mine = delays[delays["subscriber"].isin(position)].sort_values("delay_s", kind="stable")
    curves = {}
    for name, curve in mine.groupby("subscriber", sort=False):
        points = reduce_curve(curve["delay_s"].to_numpy(), curve["arrived"].to_numpy())
        curves[str(position[str(name)])] = [[number(value) for value in axis] for axis in points]
    return curves


def _parameters(parameters: pd.DataFrame) -> list[dict[str, Any]]:
    table = parameters.copy()
    if "truth" in table:
        table["z"] = parameter_z(table)
    texts = ("path", "family", "unit", "verdict", "source")
    return [
        {
            str(key): ("" if pd.isna(value) else str(value)) if key in texts else number(value)
            for key, value in row.items()
        }
        for row in table.to_dict("records")
    ]
