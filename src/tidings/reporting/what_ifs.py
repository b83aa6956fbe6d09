"""What-if comparisons as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from tidings.model.outcome import CAUSES
from tidings.reporting import wording
from tidings.reporting.terminal import Column, FittingTable, hidden, name_column, points

Row = Mapping[str, Any]


def difference_table(document: Row, limit: int | None = None) -> FittingTable:
    """Subscribers before and after, those whose share changes most first."""
    rows = sorted(document["subscribers"], key=_by_change)
    shown = rows if limit is None else rows[:limit]
    total = document["total"]
    before, after = (wording.percent(number(total[when], "on_time")) for when in _WHEN)
    return FittingTable(
        title=f"On time ({document['source']}): before {before}, after {after}",
        columns=[
            name_column([row["subscriber"] for row in shown], "subscriber"),
            name_column([row["broker"] for row in shown], "at", spare=3),
            *(_shares(shown, "on_time", when) for when in _WHEN),
            Column(title="change", cells=[points(number(row, "change")) for row in shown]),
            Column(title="error", cells=[_error(row) for row in shown], spare=1),
            *(_times(shown, when) for when in _WHEN),
            Column(title="why", cells=[str(row["why"]) for row in shown], left=True, spare=2),
        ],
        caption=hidden(len(shown), len(rows)),
    )


def causes_table(document: Row) -> FittingTable:
    """What becomes of all events that are wanted, before and after."""
    total = document["total"]
    rows = [
        (name, *(number(total[when], name) for when in _WHEN))
        for name in total["before"]
        if any(number(total[when], name) > 0 for when in _WHEN)
    ]
    return FittingTable(
        title="What happens to wanted events",
        columns=[
            Column(title="", cells=[_said(name) for name, *_ in rows], left=True),
            Column(title="before", cells=[wording.percent(each) for _, each, _ in rows]),
            Column(title="after", cells=[wording.percent(each) for _, _, each in rows]),
            Column(title="change", cells=[points(new - old) for _, old, new in rows]),
        ],
    )


def scenario_table(rows: Sequence[Row], limit: int | None = None) -> FittingTable:
    """Scenarios side by side, the worst first."""
    ordered = sorted(rows, key=lambda row: round(_last_if_unknown(number(row, "on_time")), 12))
    shown = ordered if limit is None else ordered[:limit]

    def shares(title: str, name: str, **how: Any) -> Column:
        return Column(
            title=title, cells=[wording.percent(number(row, name)) for row in shown], **how
        )

    return FittingTable(
        title="Scenarios",
        columns=[
            name_column([row["scenario"] for row in shown], "scenario"),
            shares("on time", "on_time"),
            Column(title="change", cells=[points(number(row, "change")) for row in shown]),
            name_column([row["worst"] for row in shown], "worst subscriber", spare=2),
            shares("gets", "worst_on_time", spare=2),
            name_column([row["loser"] for row in shown], "hurt most", spare=4),
            Column(
                title="loses", cells=[points(number(row, "most_loss")) for row in shown], spare=4
            ),
            name_column([row["bottleneck"] for row in shown], "busiest", spare=3),
            shares("busy", "utilisation", spare=3),
        ],
        caption=hidden(len(shown), len(rows), "scenarios, worst first"),
    )


_WHEN = ("before", "after")


def number(row: Row, name: str) -> float:
    """A number of a row; NaN where JSON has none."""
    value = row[name]
    return math.nan if value is None else float(value)


def _by_change(row: Row) -> float:
    change = number(row, "change")
    return 0.0 if math.isnan(change) else -round(abs(change), 12)


def _last_if_unknown(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _shares(rows: Sequence[Row], name: str, when: str) -> Column:
    cells = [wording.percent(number(row, f"{name}_{when}")) for row in rows]
    return Column(title=when, cells=cells)


def _error(row: Row) -> str:
    """How far the change can be off: the errors of both shares, as of independent engines."""
    error = math.hypot(number(row, "error_before"), number(row, "error_after"))
    return wording.UNKNOWN if math.isnan(error) else f"± {100 * error:.2g} %"


def _times(rows: Sequence[Row], when: str) -> Column:
    cells = [wording.seconds(number(row, f"delay_mean_s_{when}")) for row in rows]
    return Column(title=f"delay {when}", cells=cells, spare=4)


def _said(name: str) -> str:
    return {"on_time": "on time", "late": "late"}.get(name) or CAUSES[name.removeprefix("lost_")]
