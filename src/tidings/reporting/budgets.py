"""What causes cost and which changes help, as tables for a terminal or a page."""

from __future__ import annotations

from tidings.reporting import wording
from tidings.reporting.terminal import (
    FittingTable,
    Row,
    cells,
    fitting,
    gains,
    name_column,
    names,
    number,
    shares,
    texts,
    times,
)


def cause_table(document: Row, limit: int) -> FittingTable:
    """List what each cause costs all events together, the dearest first."""
    return fitting(
        f"On time: {wording.percent(number(document, 'on_time'))}. What keeps the rest",
        document["causes"],
        texts("cause", "words"),
        gains("without it", "cost"),
        cells("error", error_text, spare=1),
        limit=limit,
        caption="each cause is taken away alone; causes overlap, so gains do not add up",
    )


def worst_table(document: Row) -> FittingTable:
    """List the worst subscribers, and what costs each of them most."""
    return fitting(
        "Worst subscribers",
        document["subscribers"],
        names("subscriber"),
        names("broker", "at", spare=3),
        shares("on time", "on_time"),
        cells("main cause", lambda row: _named(row, 0), left=True),
        cells("then", lambda row: _named(row, 1), left=True, spare=2),
        times("mean delay", "delay_mean_s", spare=1),
    )


def remedy_table(document: Row, limit: int) -> FittingTable:
    """List single changes, those that help most first."""
    target, rows = document["target"], document["remedies"]
    theory_alone = any(row["error"] is None for row in rows[:limit])
    aim = "" if target is None else f", as small as reaches {wording.percent(target)}"
    return fitting(
        f"Do: single changes that help most{aim}",
        rows,
        lambda shown: name_column([row["change"] for row in shown], "change", widest=200),
        shares("on time", "on_time"),
        gains("gain", "gain"),
        cells("error", error_text, spare=1),
        limit=limit,
        caption="without an error: by theory alone, not proven" if theory_alone else "",
    )


def _named(row: Row, rank: int) -> str:
    """Write one cause of a subscriber and what it costs; empty where there is none of this rank."""
    causes = row["causes"]
    if rank >= len(causes):
        return ""
    cost, error = (number(causes[rank], name) for name in ("cost", "error"))
    return f"{causes[rank]['words']} (+{wording.percent(cost, error)})"


def error_text(row: Row) -> str:
    """Write how far a row's share can be off, in percentage points; nothing where not known."""
    return "" if row["error"] is None else f"± {100 * number(row, 'error'):.2g} %"
