"""What the page shows of a state, as plain data: words, alarms, the worst, the map, health."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from tidings.model.json_text import plain
from tidings.serving import words
from tidings.serving.network_map import NetworkMap, placed
from tidings.watching.state import Alarm, Share, Standing, State

MOST_ROWS = 300  # subscribers that every page is sent: the worst; others are looked up by name
MOST_FOUND = 100  # answers to one search
MOST_BACKLOGS = 100  # queues that are listed: the longest


def view(
    state: State | None, drawn: NetworkMap, problem: str = "", *, most: int | None = MOST_ROWS
) -> dict[str, Any]:
    """Give all that the page shows; of the subscribers, ``most`` or everybody."""
    if state is None:
        return {"known": False, **_words(None, problem)}
    people, homes = words.subscribers(state), drawn.homes
    backlogs = sorted(state.backlogs.items(), key=lambda each: -each[1])
    document: dict[str, Any] = plain(
        {
            "known": True,
            **_words(state, problem),
            "at_s": state.at_ns / 1e9,
            "system": state.system,
            "window_s": state.window_s,
            "everybody": row(words.everybody(state)),
            "rows": [row(each, r, homes) for r, each in enumerate(people[:most], start=1)],
            "total": len(people),
            "alarms": [_alarm(each) for each in state.alarms],
            "backlogs": backlogs[:MOST_BACKLOGS],
            "health": {**asdict(state.health), "fitted_s": state.health.fitted_ns / 1e9},
            "map": placed(drawn, state),
            "map_problem": drawn.problem,
        }
    )
    return document


def found(state: State | None, drawn: NetworkMap, text: str) -> list[dict[str, Any]]:
    """Give the worst subscribers whose name, broker or cause has all words of a text."""
    people = [] if state is None else words.subscribers(state)
    sought = text.lower().split()
    rows = []
    for rank, each in enumerate(people, start=1):
        said = f"{each.name} {drawn.homes.get(each.name, '')} {each.cause}".lower()
        if all(word in said for word in sought):
            rows.append(plain(row(each, rank, drawn.homes)))
        if len(rows) == MOST_FOUND:
            break
    return rows


def one(state: State | None, drawn: NetworkMap, name: str) -> dict[str, Any] | None:
    """Give how the subscriber of exactly this name stands; None where there is none."""
    people = [] if state is None else words.subscribers(state)
    for rank, each in enumerate(people, start=1):
        if each.name == name:
            document: dict[str, Any] = plain(row(each, rank, drawn.homes))
            return document
    return None


def row(
    standing: Standing, rank: int = 0, homes: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Give one subscriber's row of the table; the worst has rank 1."""
    return {
        "rank": rank,
        "name": standing.name,
        "broker": homes.get(standing.name, ""),
        "promised": standing.promised,
        "measured": _share(standing.measured),
        "predicted": _share(standing.predicted),
        "wanted": standing.wanted,
        "burn_rates": standing.burn_rates or {},
        "median_s": standing.median_s,
        "p99_s": standing.p99_s,
        "cause": standing.cause,
        "below": words.is_below(standing),
    }


def _words(state: State | None, problem: str) -> dict[str, Any]:
    return {
        "lead": words.lead(state),
        "sentences": [asdict(each) for each in words.sentences(state)],
        "figures": [asdict(each) for each in words.figures(state)],
        "warnings": words.warnings(state, problem),
    }


def _alarm(alarm: Alarm) -> dict[str, Any]:
    return {
        "name": alarm.name,
        "kind": alarm.kind,
        "where": alarm.where,
        "what": alarm.what,
        "size": words.size(alarm),
        "since_s": alarm.since_ns / 1e9,
        "until_s": None if alarm.until_ns is None else alarm.until_ns / 1e9,
        "cause": alarm.cause,
        "do": alarm.do,
    }


def _share(share: Share | None) -> list[float] | None:
    return None if share is None else [share.share, share.low, share.high]
