"""A system as notebooks show it: how many there are of everything, and what is published."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from itertools import islice

from tidings.model.record_tables import names
from tidings.model.system import System

MOST_NAMES = 6  # of a kind that are written out
MOST_LETTERS = 40  # of a name


def summary_html(system: System) -> str:
    """Write a small table: brokers, links, publishers with their rates per second, subscribers."""
    rows = "".join(
        f"<tr><th>{kind}</th><td>{count:,}</td><td>{html.escape(text)}</td></tr>"
        for kind, count, text in _rows(system)
    )
    title = html.escape(system.description or "System")
    return f"<p><b>{title}</b></p><table><tbody>{rows}</tbody></table>"


def _rows(system: System) -> Iterator[tuple[str, int, str]]:
    """Give a kind, how many there are of it, and their names or rates."""
    yield "brokers", len(system.brokers), _names(names(system.brokers))
    yield "links", len(system.links), _names([link.name for link in system.links])
    rates = [f"{_cut(each.name)} {each.rate_per_s:.4g}/s" for each in system.publishers]
    total = sum(each.rate_per_s for each in system.publishers)
    yield "publishers", len(rates), f"{total:.4g} events/s: {_named(rates)}"
    yield "subscribers", system.stored_subscriptions, _names(names(system.subscribers))


def _names(every: Sequence[str]) -> str:
    return _named([_cut(each) for each in every[: MOST_NAMES + 1]])


def _named(texts: Sequence[str]) -> str:
    shown = ", ".join(islice(texts, MOST_NAMES))
    return f"{shown}, …" if len(texts) > MOST_NAMES else shown


def _cut(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"
