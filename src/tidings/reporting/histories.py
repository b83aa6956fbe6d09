"""A checked history as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType

from tidings.reporting.terminal import Column, FittingTable
from tidings.reporting.wording import UNKNOWN, plural

_WORDS = {
    "legality": "told of what it had not subscribed to just then",
    "validity": "told of what had not been published before",
    "liveness": "not told of what was due to it",
}
_TIMES = ("published_ns", "notified_ns", "subscribed_ns", "unsubscribed_ns")


def history_tables(found: Mapping[str, Any]) -> Iterator[RenderableType]:
    """What was violated how often, whom it hit most, and the first violations with their proof."""
    kinds = found["violations"]
    totals = found["totals"]
    broken = sum(kinds.values())
    title = f"{plural(broken, 'violation')} in {plural(totals['notifications'], 'notification')}"
    yield FittingTable(
        title=title,
        columns=[
            Column(title="property", cells=list(kinds), left=True),
            Column(title="violated", cells=[f"{rows:,}" for rows in kinds.values()]),
            Column(title="meaning", cells=[_WORDS[kind] for kind in kinds], left=True, spare=1),
        ],
        caption=f"Guaranteed: {totals['guaranteed']:,}, of which {totals['lost']:,} are missing.",
    )
    if found["subscribers"]:
        yield _table("Subscribers, the worst first", found["subscribers"], spare=("invalid",))
    if found["examples"]:
        yield _table("The first violations and what proves them", found["examples"], spare=_TIMES)
    if found["set_aside"]:
        yield _table("Rows set aside", found["set_aside"])


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
