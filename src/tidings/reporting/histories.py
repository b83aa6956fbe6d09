"""A checked history as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tidings.model.units import exact_seconds, moment
from tidings.reporting.terminal import Column, FittingTable
from tidings.reporting.wording import UNKNOWN, plural

_WORDS = {
    "legality": "notified of an event that it was not subscribed to at that time",
    "validity": "notified of an event that had not been published",
    "liveness": "not notified of an event that it was guaranteed",
}


def history_tables(audit: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield what was violated how often, whom it hit most, and the first violations with proof."""
    kinds = audit["violations"]
    totals = audit["totals"]
    broken = sum(kinds.values())
    title = f"{plural(broken, 'violation')} in {plural(totals['notifications'], 'notification')}"
    yield FittingTable(
        title=title,
        columns=[
            Column(title="property", cells=list(kinds), left=True),
            Column(title="violations", cells=[f"{rows:,}" for rows in kinds.values()]),
            Column(title="meaning", cells=[_WORDS[kind] for kind in kinds], left=True, spare=1),
        ],
        caption=f"Guaranteed notifications: {totals['guaranteed']:,}, of which {totals['lost']:,} "
        "are missing.",
    )
    if audit["subscribers"]:
        yield _table("Subscribers, worst first", audit["subscribers"], spare=("invalid",))
    if audit["examples"]:
        yield Text("First violations, with evidence")
        yield _proofs(audit["examples"], audit["from_ns"])
    if audit["set_aside"]:
        yield _table("Rows set aside", audit["set_aside"])


def _proofs(rows: Sequence[Mapping[str, Any]], from_ns: int) -> RenderableType:
    """Write a line for each violation, as long as it takes, with all that proves it."""
    lines = Table.grid(padding=(0, 2))
    lines.add_column(no_wrap=True)
    lines.add_column()
    for row in rows:
        lines.add_row(Text(row["kind"]), Text(_cell(_proof(row, from_ns))))
    return Group(lines, Text(f"Times are seconds after {moment(from_ns)}.", style="dim"))


def _proof(row: Mapping[str, Any], from_ns: int) -> str:
    """Write the rows that prove a violation, as one sentence."""

    def at(name: str) -> str:
        return exact_seconds(row[name] - from_ns)

    content = "" if row["content"] is None else f" {row['content']}"
    known = row["published_ns"] is not None
    parts = [f"published at {at('published_ns')}" if known else "never published"]
    if row["subscribed_ns"] is not None:
        ends = "never unsubscribed"
        if row["unsubscribed_ns"] is not None:
            ends = f"unsubscribed at {at('unsubscribed_ns')}"
        parts += [f"{row['subscription']} subscribed at {at('subscribed_ns')}, {ends}"]
    notified = row["notified_ns"] is not None
    parts += [f"notified at {at('notified_ns')}" if notified else "not notified"]
    times = f" (recorded {row['rows']} times)" if row["rows"] > 1 else ""
    return f"{row['subscriber']}, event {row['event']}{content}: {'; '.join(parts)}{times}"


def _table(
    title: str, rows: Sequence[Mapping[str, Any]], spare: Sequence[str] = ()
) -> FittingTable:
    columns = []
    for name in rows[0]:
        values = [row[name] for row in rows]
        text = any(isinstance(value, str) for value in values)
        cells = [UNKNOWN if value is None else _cell(value) for value in values]
        columns.append(
            Column(
                title=name,
                cells=cells,
                left=text,
                spare=1 + list(spare).index(name) if name in spare else 0,
            )
        )
    return FittingTable(title=title, columns=columns)


def _cell(value: object) -> str:
    if not isinstance(value, str):
        return str(value)
    return "".join(letter if letter.isprintable() else "�" for letter in value)
