"""Alarms that last and that ended, and whoever is told of them when they begin and end."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tidings.errors import InvalidInputError
from tidings.model.json_text import plain
from tidings.planning.change_search import Remedy
from tidings.watching.state import CHANGED, Alarm

ENDED_SHOWN = 20  # alarms that ended and are still shown, the latest
_TIMEOUT_S = 5.0
_ANYWHERE = (f"{CHANGED} share ", f"{CHANGED} publishers.")  # of no place that can be changed

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
    anywhere = alarm.kind != CHANGED or alarm.name.startswith(_ANYWHERE)
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


class Webhook:
    """An address that alarms are posted to as JSON; a failure is told and stops nothing."""

    def __init__(self, url: str, complain: Callable[[str], None]) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not _is_plain(url):
            raise InvalidInputError(
                "--webhook is not an address that can be posted to; wants http(s)://HOST/PATH"
            )
        self._url, self._complain = url, complain
        self._host = parts.hostname

    def __call__(self, alarm: Alarm) -> None:
        """Post an alarm, and wait a few seconds at most."""
        body = json.dumps(alarm_document(alarm)).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "tidings"}
        request = urllib.request.Request(self._url, data=body, headers=headers, method="POST")
        try:
            with _OPENER.open(request, timeout=_TIMEOUT_S) as answer:
                answer.read(1)
        except urllib.error.HTTPError as problem:
            self._complain(f"the webhook at {self._host} answered {problem.code}: not told")
        except (OSError, ValueError, http.client.HTTPException) as problem:
            reason = getattr(problem, "reason", problem)
            self._complain(f"the webhook at {self._host} cannot be reached: {reason}")


def _is_plain(url: str) -> bool:
    """Test whether an address has a port that can be, and nothing that would end a line."""
    try:
        urllib.parse.urlsplit(url).port  # noqa: B018 - to read it is to check it
    except ValueError:
        return False
    return url.isprintable() and " " not in url


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follow no redirection: an alarm goes where it was sent, and nowhere else."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_Stay)
