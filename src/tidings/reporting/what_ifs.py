"""What-if comparisons as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tidings.model.outcome import CAUSES
from tidings.reporting import wording
from tidings.reporting.terminal import (
    FittingTable,
    Row,
    cells,
    fitting,
    gains,
    names,
    number,
    shares,
    texts,
    times,
)

_WHEN = ("before", "after")


def difference_table(document: Row, limit: int | None = None) -> FittingTable:
    """List subscribers before and after, those whose share changes most first."""
    total = document["total"]
    before, after = (wording.percent(number(total[when], "on_time")) for when in _WHEN)
    return fitting(
        f"On time ({document['source']}): before {before}, after {after}",
        sorted(document["subscribers"], key=_by_change),
        names("subscriber"),
        names("broker", "at", spare=3),
        *(shares(when, f"on_time_{when}") for when in _WHEN),
        gains("change", "change"),
        cells("error", _error, spare=1),
        *(times(f"delay {when}", f"delay_mean_s_{when}", spare=4) for when in _WHEN),
        texts("why", "why", spare=2),
        limit=limit,
        noun="subscribers",
    )


def causes_table(document: Row) -> FittingTable:
    """List what becomes of all events that are wanted, before and after."""
    total = document["total"]
    rows = [
        {"name": name, **{when: number(total[when], name) for when in _WHEN}}
        for name in total["before"]
        if any(number(total[when], name) > 0 for when in _WHEN)
    ]
    return fitting(
        "What happens to wanted events",
        [{**row, "change": row["after"] - row["before"]} for row in rows],
        cells("", lambda row: _said(row["name"]), left=True),
        shares("before", "before"),
        shares("after", "after"),
        gains("change", "change"),
    )


def scenario_table(rows: Sequence[Row], limit: int | None = None) -> FittingTable:
    """Show scenarios side by side, the worst first."""
    return fitting(
        "Scenarios",
        sorted(rows, key=lambda row: round(_last_if_unknown(number(row, "on_time")), 12)),
        names("scenario"),
        shares("on time", "on_time"),
        gains("change", "change"),
        names("worst", "worst subscriber", spare=2),
        shares("gets", "worst_on_time", spare=2),
        names("loser", "hurt most", spare=4),
        gains("loses", "most_loss", spare=4),
        names("bottleneck", "busiest", spare=3),
        shares("busy", "utilisation", spare=3),
        limit=limit,
        noun="scenarios, worst first",
    )


def _by_change(row: Row) -> float:
    change = number(row, "change")
    return 0.0 if math.isnan(change) else -round(abs(change), 12)


def _last_if_unknown(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _error(row: Row) -> str:
    """Write how far the change can be off: the errors of both shares, as of independent engines."""
    error = math.hypot(number(row, "error_before"), number(row, "error_after"))
    return wording.UNKNOWN if math.isnan(error) else f"± {100 * error:.2g} %"


def _said(name: str) -> str:
    return {"on_time": "on time", "late": "late"}.get(name) or CAUSES[name.removeprefix("lost_")]
