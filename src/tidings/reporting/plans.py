"""Plans as tables for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tidings.reporting.terminal import Column, FittingTable

Row = Mapping[str, Any]


def scheme_table(advice: Mapping[str, Any]) -> FittingTable:
    """All recovery schemes side by side: what subscribers get, what it costs, who is content."""
    rows = advice["schemes"]

    def column(title: str, write: Callable[[Row], str], **how: Any) -> Column:
        return Column(title=title, cells=[write(row) for row in rows], **how)

    chosen = advice["choice"]
    return FittingTable(
        title="On-time shares and messages under each recovery scheme",
        columns=[
            column("scheme", lambda row: str(row["scheme"]), left=True),
            column("on time", lambda row: f"{row['on_time']['mean']:.4f}"),
            column("worst", lambda row: f"{row['on_time']['worst']:.4f}"),
            column("5 % below", lambda row: f"{row['on_time']['p05']:.4f}", spare=3),
            column("half below", lambda row: f"{row['on_time']['p50']:.4f}", spare=4),
            column("simulated", lambda row: f"{row['simulated']:.4f}", spare=2),
            column("content", lambda row: f"{100 * row['satisfied']:.1f} %"),
            column("messages", _cost),
            column("duplicates", lambda row: f"{row['duplicates']:.3f}", spare=1),
            column("", lambda row: "◀" if row["scheme"] == chosen else "", left=True),
        ],
        caption="on time: predicted, mean over events; worst, 5 %, half below: over subscribers; "
        "content: subscribers that get their target; messages between brokers (events, their "
        "acknowledgements, subscriptions; with standard error) and duplicates: for each delivery, "
        "simulated",
    )


def _cost(row: Row) -> str:
    error = row["cost_se"]
    return f"{row['cost']:.3f}" + (f" ± {error:.3f}" if error is not None else "")
