"""Post alarms to an address, one after the other, while the watch goes on.

What has not been taken is kept in a file: a run that is killed, or that ends while nobody answers,
leaves it to the next one.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from tidings.errors import InvalidInputError, TidingsError
from tidings.model.writing import write_file
from tidings.watching.state import Alarm
from tidings.watching.telling import alarm_document

UNPOSTED_FILE = "unposted.jsonl"
_TIMEOUT_S = 5.0
_PAUSES_S = (1.0, 5.0, 25.0, 60.0)  # before it is tried again; the last for as long as it takes
_TRIES_BEFORE_WARNING = 3  # of one alarm, before it is told that they fail
_MOST_WAITING = 1000  # alarms; more are told of as not posted
_PATIENCE_S = 10.0  # at the end, for what waits
_TRY_AGAIN = (429, 500, 502, 503, 504)


class Webhook:
    """An address that alarms are posted to as JSON, in their order, by a thread of its own.

    Who cannot be reached is tried again until he can; who refuses an alarm is told of.
    """

    def __init__(self, url: str, kept: Path, complain: Callable[[str], None]) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not _is_plain(url):
            raise InvalidInputError(
                "--webhook is not an address that can be posted to; wants http(s)://HOST/PATH"
            )
        self._url, self._kept, self._complain = url, kept, complain
        self._host = parts.hostname
        self._waiting: deque[dict[str, Any]] = deque()
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._post_all, daemon=True)

    def __enter__(self) -> Self:
        self._waiting.extend(_read(self._kept)[:_MOST_WAITING])
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting, timeout=_PATIENCE_S)
            self._ended.set()
            left = len(self._waiting)
            self._changed.notify_all()
        if left:
            self._complain(
                f"the webhook at {self._host} has not taken the last {left} alarms; the next "
                "watch with this state posts them"
            )

    def __call__(self, alarm: Alarm) -> None:
        """Have an alarm posted as soon as those before it are."""
        with self._changed:
            if len(self._waiting) >= _MOST_WAITING:
                self._complain(
                    f"{_MOST_WAITING} alarms wait for the webhook at {self._host}: it is not told "
                    f"of {alarm.name}"
                )
                return
            self._waiting.append(alarm_document(alarm))
            self._keep()
            self._changed.notify_all()

    def _keep(self) -> None:
        """Write what waits to its file, at once or not at all."""
        try:
            if self._waiting:
                write_file(self._kept, (f"{json.dumps(each)}\n".encode() for each in self._waiting))
            else:
                self._kept.unlink(missing_ok=True)
        except (OSError, TidingsError) as problem:
            self._complain(f"alarms that wait for the webhook cannot be kept: {problem}")

    def _post_all(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended.is_set())
                if self._ended.is_set():
                    return
                document = self._waiting[0]
            self._post(document)
            with self._changed:
                if self._ended.is_set():
                    return
                self._waiting.popleft()
                self._keep()
                self._changed.notify_all()

    def _post(self, document: dict[str, Any]) -> None:
        """Post an alarm until it is taken or refused, or until all ends."""
        for attempt in itertools.count(1):
            problem, final = self._try(document)
            if not problem:
                return
            if final:
                self._complain(
                    f"the webhook at {self._host} {problem}: not told of {document['name']}"
                )
                return
            if attempt == _TRIES_BEFORE_WARNING:
                self._complain(
                    f"the webhook at {self._host} {problem}: {document['name']} and later alarms "
                    "wait until it can"
                )
            if self._ended.wait(_PAUSES_S[min(attempt, len(_PAUSES_S)) - 1]):
                return

    def _try(self, document: dict[str, Any]) -> tuple[str, bool]:
        """Post an alarm once; gives what went wrong, if anything, and whether that is final."""
        body = json.dumps(document).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "tidings"}
        request = urllib.request.Request(self._url, data=body, headers=headers, method="POST")
        try:
            with _OPENER.open(request, timeout=_TIMEOUT_S) as answer:
                answer.read(1)
        except urllib.error.HTTPError as refusal:
            return f"answered {refusal.code}", refusal.code not in _TRY_AGAIN
        except (OSError, ValueError, http.client.HTTPException) as failure:
            return f"cannot be reached: {getattr(failure, 'reason', failure)}", False
        return "", False


def _read(path: Path) -> list[dict[str, Any]]:
    """Read alarms that an earlier run left; what is no alarm is left out."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []
    documents = []
    for line in lines:
        with contextlib.suppress(ValueError):
            document = json.loads(line)
            if isinstance(document, dict) and "name" in document:
                documents.append(document)
    return documents


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
