"""Post alarms to an address, one after the other, while the watch goes on."""

from __future__ import annotations

import http.client
import json
import queue
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Any, Self

from tidings.errors import InvalidInputError
from tidings.watching.state import Alarm
from tidings.watching.telling import alarm_document

_TIMEOUT_S = 5.0
_PAUSES_S = (1.0, 5.0, 25.0)  # before it is tried again
_MOST_WAITING = 1000  # alarms; more are told of as not posted
_PATIENCE_S = 10.0  # at the end, for what waits
_TRY_AGAIN = (429, 500, 502, 503, 504)


class Webhook:
    """An address that alarms are posted to as JSON, in their order, by a thread of its own.

    Who does not answer is tried again; in the end a failure is told and stops nothing.
    """

    def __init__(self, url: str, complain: Callable[[str], None]) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not _is_plain(url):
            raise InvalidInputError(
                "--webhook is not an address that can be posted to; wants http(s)://HOST/PATH"
            )
        self._url, self._complain = url, complain
        self._host = parts.hostname
        self._waiting: queue.Queue[Alarm] = queue.Queue(_MOST_WAITING)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._post_all, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        until = time.monotonic() + _PATIENCE_S
        while self._waiting.unfinished_tasks and time.monotonic() < until:
            time.sleep(0.05)
        self._ended.set()
        left = self._waiting.unfinished_tasks
        if left:
            self._complain(f"the webhook at {self._host} was not told of the last {left} alarms")

    def __call__(self, alarm: Alarm) -> None:
        """Have an alarm posted as soon as those before it are."""
        try:
            self._waiting.put_nowait(alarm)
        except queue.Full:
            self._complain(
                f"{_MOST_WAITING} alarms wait for the webhook at {self._host}: not told of "
                f"{alarm.name}"
            )

    def _post_all(self) -> None:
        while True:
            alarm = self._waiting.get()
            self._post(alarm)
            self._waiting.task_done()

    def _post(self, alarm: Alarm) -> None:
        body = json.dumps(alarm_document(alarm)).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "tidings"}
        problem = ""
        for pause_s in (0.0, *_PAUSES_S):
            if self._ended.wait(pause_s):
                return
            request = urllib.request.Request(self._url, data=body, headers=headers, method="POST")
            try:
                with _OPENER.open(request, timeout=_TIMEOUT_S) as answer:
                    answer.read(1)
                return
            except urllib.error.HTTPError as refusal:
                problem = f"answered {refusal.code}"
                if refusal.code not in _TRY_AGAIN:
                    break
            except (OSError, ValueError, http.client.HTTPException) as failure:
                problem = f"cannot be reached: {getattr(failure, 'reason', failure)}"
        self._complain(f"the webhook at {self._host} {problem}: not told of {alarm.name}")


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
