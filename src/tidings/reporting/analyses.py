"""Operational analyses and solved nets as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tidings.reporting import wording
from tidings.reporting.terminal import (
    FittingTable,
    Head,
    Row,
    cells,
    fitting,
    formatted,
    rates,
    shares,
    texts,
    times,
)


def centre_table(analysis: Row, limit: int) -> FittingTable:
    """List queues, the busiest first: how busy, how long events stay, how far load can grow."""
    return _table(
        "Queues, by operational analysis",
        sorted(analysis["centres"], key=lambda row: -row["utilisation"]),
        limit,
        texts("queue", "centre"),
        shares("busy", "utilisation"),
        rates("arrivals", "arrivals_per_s", spare=1),
        times("mean response", "response_mean_s"),
        formatted("servers", "servers", "", spare=3),
        texts("discipline", "discipline", spare=2),
        cells("headroom", lambda row: _times(row["headroom"]), spare=1),
    )


def connection_table(analysis: Row, limit: int) -> FittingTable:
    """List every connection over a network: what is sent, and how busy that keeps its network."""
    rows = [row for row in analysis["connections"] if row["network"]]
    return _table(
        "Connections",
        sorted(rows, key=lambda row: -row["utilisation"]),
        limit,
        texts("from", "source"),
        texts("to", "target"),
        texts("network", "network", spare=1),
        rates("sent", "sent_per_s"),
        shares("network busy", "utilisation"),
    )


def routing_table(measured: Row, limit: int) -> FittingTable:
    """List measured routing probabilities, those of the most visited brokers first."""
    rows = sorted(measured["routing"], key=lambda row: -row["visits"])
    return _table(
        "Routing, measured",
        rows,
        limit,
        *_flow_heads(rows),
        texts("broker", "broker"),
        texts("next", "next_broker"),
        formatted("visits", "visits", ",", spare=1),
        cells("forwarded", lambda row: wording.percent(row["probability"], row["probability_se"])),
    )


def service_table(measured: Row, limit: int) -> FittingTable:
    """List measured service times, the longest first."""
    rows = sorted(measured["services"], key=lambda row: -row["service_mean_s"])
    resources = any(row["resource"] for row in rows)
    heads = [
        texts("broker", "broker"),
        *([texts("resource", "resource")] if resources else []),
        *([texts("type", "type")] if any(row["type"] for row in rows) else []),
        cells("mean service", lambda row: _time(row, "service_mean")),
        formatted("samples", "count", ",", spare=2),
    ]
    if resources:
        heads += [
            shares("explained", "explained", spare=3),
            shares("background", "background", spare=1),
        ]
    return _table("Service times, measured", rows, limit, *heads)


def _flow_heads(rows: Sequence[Row]) -> list[Head]:
    typed = [texts("type", "type")] if any(row["type"] for row in rows) else []
    return [*typed, texts("publisher", "publisher")]


def delivery_table(analysis: Row, limit: int) -> FittingTable:
    """List mean delivery latencies to brokers with subscribers, the longest first."""
    rows = sorted(analysis["deliveries"], key=lambda row: -row["latency_mean_s"])
    heads = [
        *_flow_heads(rows),
        texts("subscribers at", "broker"),
        times("mean latency", "latency_mean_s"),
        rates("arrivals", "arrivals_per_s", spare=1),
        formatted("hops", "hops", "", spare=2),
    ]
    if any(row["link_mean_s"] > 0.0 for row in rows):
        heads.append(times("last link", "link_mean_s", spare=1))
    return _table("Delivery latencies", rows, limit, *heads)


def net_tables(outcome: Row, limit: int) -> tuple[FittingTable, FittingTable]:
    """Show a solved net: queues, the busiest first; places and colours, the longest stays first."""
    queues = _table(
        "Places with a queue",
        sorted(outcome["places"], key=lambda row: -row["utilisation"]),
        limit,
        texts("place", "place"),
        cells("busy", _utilisation),
        rates("throughput", "throughput_per_s"),
        formatted("population", "population", ".4g"),
        cells("mean residence", lambda row: _time(row, "residence_mean"), spare=1),
        formatted("servers", "servers", "", spare=3),
        texts("discipline", "discipline", spare=2),
    )
    tokens = _table(
        "Tokens, by place and colour",
        sorted(outcome["cells"], key=lambda row: -_known(row["residence_mean_s"])),
        limit,
        texts("place", "place"),
        texts("colour", "colour"),
        rates("throughput", "throughput_per_s", spare=2),
        formatted("population", "population", ".4g", spare=3),
        cells("mean residence", lambda row: _time(row, "residence_mean")),
        cells("p95", lambda row: wording.seconds(row.get("residence_p95_s", math.nan)), spare=4),
        cells("mean age", lambda row: _time(row, "age_mean"), spare=1),
    )
    return queues, tokens


def _table(title: str, rows: Sequence[Row], limit: int, *heads: Head) -> FittingTable:
    more = len(rows) - len(rows[:limit])
    caption = f"{more} more rows; --limit N shows them" if more else ""
    return fitting(title, rows, *heads, limit=limit, caption=caption)


def _times(factor: float) -> str:
    return "any" if math.isinf(factor) else f"× {factor:.3g}"


def _utilisation(row: Row) -> str:
    if row["discipline"] == "infinite-server":
        return f"{row['utilisation']:.4g} servers"
    return wording.percent(row["utilisation"], _chance(row["utilisation_se"]))


def _time(row: Row, name: str) -> str:
    return wording.seconds(row[f"{name}_s"], _chance(row[f"{name}_se_s"]))


def _chance(standard_error: float) -> float:
    """Give a standard error to show; NaN for what is exact, which has none."""
    return standard_error if standard_error > 0.0 else math.nan


def _known(value: float) -> float:
    return 0.0 if math.isnan(value) else value
