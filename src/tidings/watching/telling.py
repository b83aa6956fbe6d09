"""Alarms that last and that ended, and whoever is told of them when they begin and end."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tidings.errors import InvalidInputError
from tidings.model.json_text import plain
from tidings.watching.state import Alarm

ENDED_SHOWN = 20  # alarms that ended and are still shown, the latest
_TIMEOUT_S = 5.0

Tell = Callable[[Alarm], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What alarms there are after one look: all of them, those that began, those that ended."""

    alarms: tuple[Alarm, ...]
    begun: tuple[Alarm, ...]
    ended: tuple[Alarm, ...]


def turned(before: Sequence[Alarm], now: Iterable[Alarm], at_ns: int) -> Turn:
    """Put what is wrong now together with what was wrong before, by name.

    What lasts keeps its beginning, its cause and its advice; what is no longer wrong has ended.
    """
    lasting = {each.name: each for each in before if each.until_ns is None}
    old = [each for each in before if each.until_ns is not None]
    wrong = {each.name: each for each in now}
    begun = tuple(each for name, each in wrong.items() if name not in lasting)
    kept = tuple(
        replace(wrong[name], since_ns=each.since_ns, cause=each.cause, do=each.do)
        for name, each in lasting.items()
        if name in wrong
    )
    ended = tuple(
        replace(each, until_ns=at_ns) for name, each in lasting.items() if name not in wrong
    )
    return Turn(alarms=(*kept, *begun, *[*ended, *old][:ENDED_SHOWN]), begun=begun, ended=ended)


def alarm_document(alarm: Alarm) -> dict[str, Any]:
    """Give an alarm as plain data, with the sentence that says all of it."""
    document: dict[str, Any] = plain({**asdict(alarm), "sentence": alarm.sentence()})
    return document


class Webhook:
    """An address that alarms are posted to as JSON; a failure is told and stops nothing."""

    def __init__(self, url: str, complain: Callable[[str], None]) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
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
        except (OSError, ValueError) as problem:
            reason = getattr(problem, "reason", problem)
            self._complain(f"the webhook at {self._host} cannot be reached: {reason}")


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follow no redirection: an alarm goes where it was sent, and nowhere else."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_Stay)
