"""Operational analyses and solved nets as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidings.reporting import wording
from tidings.reporting.terminal import Column, FittingTable

Row = Mapping[str, Any]


def centre_table(analysis: Mapping[str, Any], limit: int) -> FittingTable:
    """Every queue, the busiest first: how busy, how long events stay, how far load can grow."""
    rows = sorted(analysis["centres"], key=lambda row: -row["utilisation"])
    return _table(
        "Queues, by operational analysis",
        rows,
        limit,
        [
            ("queue", lambda row: str(row["centre"]), True, 0),
            ("busy", lambda row: wording.percent(row["utilisation"]), False, 0),
            ("arrivals", lambda row: wording.rate(row["arrivals_per_s"]), False, 1),
            ("mean response", lambda row: wording.seconds(row["response_mean_s"]), False, 0),
            ("servers", lambda row: str(row["servers"]), False, 3),
            ("discipline", lambda row: str(row["discipline"]), True, 2),
            ("headroom", lambda row: _times(row["headroom"]), False, 1),
        ],
    )


def connection_table(analysis: Mapping[str, Any], limit: int) -> FittingTable:
    """Every connection over a network: what is sent, and how busy that keeps its network."""
    rows = [row for row in analysis["connections"] if row["network"]]
    rows.sort(key=lambda row: -row["utilisation"])
    return _table(
        "Connections",
        rows,
        limit,
        [
            ("from", lambda row: str(row["source"]), True, 0),
            ("to", lambda row: str(row["target"]), True, 0),
            ("network", lambda row: str(row["network"]), True, 1),
            ("sent", lambda row: wording.rate(row["sent_per_s"]), False, 0),
            ("network busy", lambda row: wording.percent(row["utilisation"]), False, 0),
        ],
    )


def routing_table(measured: Mapping[str, Any], limit: int) -> FittingTable:
    """Measured routing probabilities, those of the most visited brokers first."""
    rows = sorted(measured["routing"], key=lambda row: -row["visits"])
    return _table(
        "Routing, measured",
        rows,
        limit,
        [
            *_flow_columns(rows),
            ("broker", lambda row: str(row["broker"]), True, 0),
            ("next", lambda row: str(row["next_broker"]), True, 0),
            ("visits", lambda row: f"{row['visits']:,}", False, 1),
            ("forwarded", _sent_on, False, 0),
        ],
    )


def _sent_on(row: Row) -> str:
    return wording.percent(row["probability"], row["probability_se"])


def service_table(measured: Mapping[str, Any], limit: int) -> FittingTable:
    """Measured service times, the longest first."""
    rows = sorted(measured["services"], key=lambda row: -row["service_mean_s"])
    columns: list[_Column] = [
        ("broker", lambda row: str(row["broker"]), True, 0),
        ("mean service", lambda row: _time(row, "service_mean"), False, 0),
        ("samples", lambda row: f"{row['count']:,}", False, 2),
    ]
    if any(row["type"] for row in rows):
        columns.insert(1, ("type", lambda row: str(row["type"]), True, 0))
    if any(row["resource"] for row in rows):
        columns.insert(1, ("resource", lambda row: str(row["resource"]), True, 0))
        columns += [
            ("explained", lambda row: wording.percent(row["explained"]), False, 3),
            ("background", lambda row: wording.percent(row["background"]), False, 1),
        ]
    return _table("Service times, measured", rows, limit, columns)


def _flow_columns(rows: Sequence[Row]) -> list[_Column]:
    columns: list[_Column] = [("publisher", lambda row: str(row["publisher"]), True, 0)]
    if any(row["type"] for row in rows):
        columns.insert(0, ("type", lambda row: str(row["type"]), True, 0))
    return columns


def delivery_table(analysis: Mapping[str, Any], limit: int) -> FittingTable:
    """Mean delivery latencies to brokers with subscribers, the longest first."""
    rows = sorted(analysis["deliveries"], key=lambda row: -row["latency_mean_s"])
    columns: list[_Column] = [
        *_flow_columns(rows),
        ("subscribers at", lambda row: str(row["broker"]), True, 0),
        ("mean latency", lambda row: wording.seconds(row["latency_mean_s"]), False, 0),
        ("arrivals", lambda row: wording.rate(row["arrivals_per_s"]), False, 1),
        ("hops", lambda row: str(row["hops"]), False, 2),
    ]
    if any(row["link_mean_s"] > 0.0 for row in rows):
        columns.append(("last link", lambda row: wording.seconds(row["link_mean_s"]), False, 1))
    return _table("Delivery latencies", rows, limit, columns)


def net_tables(outcome: Mapping[str, Any], limit: int) -> tuple[FittingTable, FittingTable]:
    """A solved net: its queues, the busiest first; its places and colours, longest stays first."""
    places = sorted(outcome["places"], key=lambda row: -row["utilisation"])
    cells = sorted(outcome["cells"], key=lambda row: -_known(row["residence_mean_s"]))
    queues = _table(
        "Places with a queue",
        places,
        limit,
        [
            ("place", lambda row: str(row["place"]), True, 0),
            ("busy", _utilisation, False, 0),
            ("throughput", lambda row: wording.rate(row["throughput_per_s"]), False, 0),
            ("population", lambda row: f"{row['population']:.4g}", False, 0),
            ("mean residence", lambda row: _time(row, "residence_mean"), False, 1),
            ("servers", lambda row: str(row["servers"]), False, 3),
            ("discipline", lambda row: str(row["discipline"]), True, 2),
        ],
    )
    tokens = _table(
        "Tokens, by place and colour",
        cells,
        limit,
        [
            ("place", lambda row: str(row["place"]), True, 0),
            ("colour", lambda row: str(row["colour"]), True, 0),
            ("throughput", lambda row: wording.rate(row["throughput_per_s"]), False, 2),
            ("population", lambda row: f"{row['population']:.4g}", False, 3),
            ("mean residence", lambda row: _time(row, "residence_mean"), False, 0),
            ("p95", lambda row: wording.seconds(row.get("residence_p95_s", math.nan)), False, 4),
            ("mean age", lambda row: _time(row, "age_mean"), False, 1),
        ],
    )
    return queues, tokens


_Column = tuple[str, Callable[[Row], str], bool, int]  # title, cell, stands left, how spare


def _table(title: str, rows: Sequence[Row], limit: int, columns: Sequence[_Column]) -> FittingTable:
    shown = rows[:limit]
    hidden = len(rows) - len(shown)
    return FittingTable(
        title=title,
        columns=[
            Column(title=name, cells=[write(row) for row in shown], left=left, spare=spare)
            for name, write, left, spare in columns
        ],
        caption=f"{hidden} more rows; --limit N shows them" if hidden else "",
    )


def _times(factor: float) -> str:
    return "any" if math.isinf(factor) else f"× {factor:.3g}"


def _utilisation(row: Row) -> str:
    if row["discipline"] == "infinite-server":
        return f"{row['utilisation']:.4g} servers"
    return wording.percent(row["utilisation"], _chance(row["utilisation_se"]))


def _time(row: Row, name: str) -> str:
    return wording.seconds(row[f"{name}_s"], _chance(row[f"{name}_se_s"]))


def _chance(standard_error: float) -> float:
    """A standard error to be shown; of what is exact there is none."""
    return standard_error if standard_error > 0.0 else math.nan


def _known(value: float) -> float:
    return 0.0 if math.isnan(value) else value
