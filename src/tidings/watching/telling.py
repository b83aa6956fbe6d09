"""Alarms that last and that ended, what is told of them when they begin and end, and as what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tidings.model.json_text import plain
from tidings.planning.change_search import Remedy
from tidings.watching.state import CHANGED, Alarm

ENDED_SHOWN = 20  # alarms that ended and are still shown, the latest
_ANYWHERE = (f"{CHANGED} share ", f"{CHANGED} publishers.")  # of no place that can be changed
_OF_LINK = ".link."  # that of a publisher can be

Tell = Callable[[Alarm], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What alarms there are after one look: all of them, those that began, those that ended."""

    alarms: tuple[Alarm, ...]
    begun: tuple[Alarm, ...]
    ended: tuple[Alarm, ...]


def turned(before: Sequence[Alarm], now: Iterable[Alarm], at_ns: int) -> Turn:
    """Put what is wrong now together with what was wrong before, by name.

    What lasts keeps its beginning and its advice, and its cause until there is a newer one; what is
    no longer wrong has ended.
    """
    lasting = {each.name: each for each in before if each.until_ns is None}
    old = [each for each in before if each.until_ns is not None]
    wrong = {each.name: each for each in now}
    begun = tuple(each for name, each in wrong.items() if name not in lasting)
    kept = tuple(
        replace(
            wrong[name], since_ns=each.since_ns, cause=wrong[name].cause or each.cause, do=each.do
        )
        for name, each in lasting.items()
        if name in wrong
    )
    ended = tuple(
        replace(each, until_ns=at_ns) for name, each in lasting.items() if name not in wrong
    )
    return Turn(alarms=(*kept, *begun, *[*ended, *old][:ENDED_SHOWN]), begun=begun, ended=ended)


def advice(alarm: Alarm, remedies: Iterable[Remedy]) -> str:
    """Choose the change that helps most against an alarm; nothing where none acts on it.

    What has changed at a broker, a link or a subscriber is answered there. What is late or waits,
    and what more events bring about, whatever helps most answers; not a longer lifetime, which is
    what was promised.
    """
    anywhere = alarm.kind != CHANGED or (
        alarm.name.startswith(_ANYWHERE) and _OF_LINK not in alarm.name
    )
    places = {*alarm.where, *(_other_way(name) for name in alarm.where)}
    for remedy in remedies:
        acts_there = any(change.target in places for change in remedy.changes)
        moves_promise = any(change.verb == "lifetime" for change in remedy.changes)
        if remedy.gain > 0 and not moves_promise and (anywhere or acts_there):
            return f"best single change: {remedy.change}"
    return ""


def _other_way(name: str) -> str:
    """Turn the name of a link round; other names stay as they are."""
    return "--".join(reversed(name.split("--")))


def alarm_document(alarm: Alarm) -> dict[str, Any]:
    """Give an alarm as plain data, with the sentence that says all of it."""
    document: dict[str, Any] = plain({**asdict(alarm), "sentence": alarm.sentence()})
    return document
