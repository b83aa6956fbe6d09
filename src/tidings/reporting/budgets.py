"""What causes cost and which changes help, as tables for a terminal or a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidings.reporting import wording
from tidings.reporting.terminal import Column, FittingTable, name_column, points
from tidings.reporting.what_ifs import number

Row = Mapping[str, Any]
_SHOWN = 2  # causes of one subscriber


def cause_table(document: Row, limit: int) -> FittingTable:
    """What each cause costs all events together, the dearest first."""
    rows = document["causes"][:limit]
    return FittingTable(
        title=f"On time: {wording.percent(number(document, 'on_time'))}. What keeps the rest",
        columns=[
            Column(title="cause", cells=[str(row["words"]) for row in rows], left=True),
            Column(title="without it", cells=[points(number(row, "cost")) for row in rows]),
        ],
        caption="each cause is taken away alone; causes overlap, so gains do not add up",
    )


def worst_table(document: Row) -> FittingTable:
    """The worst subscribers, and what costs each of them most."""
    rows = document["subscribers"]
    return FittingTable(
        title="Worst subscribers",
        columns=[
            name_column([row["subscriber"] for row in rows], "subscriber"),
            name_column([row["broker"] for row in rows], "at", spare=3),
            Column(
                title="on time", cells=[wording.percent(number(row, "on_time")) for row in rows]
            ),
            *(
                Column(
                    title="main cause" if rank == 0 else "then",
                    cells=[_named(row, rank) for row in rows],
                    left=True,
                    spare=2 * rank,
                )
                for rank in range(_SHOWN)
            ),
            Column(
                title="mean delay",
                cells=[wording.seconds(number(row, "delay_mean_s")) for row in rows],
                spare=1,
            ),
        ],
    )


def remedy_table(document: Row, limit: int) -> FittingTable:
    """Single changes, those that help most first."""
    rows = document["remedies"][:limit]
    target = document["target"]
    aim = "" if target is None else f", as small as reaches {wording.percent(target)}"
    return FittingTable(
        title=f"Do: single changes that help most{aim}",
        columns=[
            name_column([row["change"] for row in rows], "change", widest=200),
            Column(
                title="on time", cells=[wording.percent(number(row, "on_time")) for row in rows]
            ),
            Column(title="gain", cells=[points(number(row, "gain")) for row in rows]),
            Column(title="error", cells=[_error(row) for row in rows], spare=1),
        ],
        caption="without an error: by theory alone, not proven",
    )


def _named(row: Row, rank: int) -> str:
    """One cause of a subscriber and what it costs, if there is one."""
    causes = row["causes"]
    if rank >= len(causes):
        return ""
    return f"{causes[rank]['words']} ({points(number(causes[rank], 'cost'))})"


def _error(row: Row) -> str:
    return "" if row["error"] is None else f"± {100 * number(row, 'error'):.2g} %"
