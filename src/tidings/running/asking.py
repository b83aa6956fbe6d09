"""Questions to a broker's own pages over HTTP: read only, bounded, and every one remembered."""

from __future__ import annotations

import base64
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from tidings.errors import EngineError, InvalidInputError
from tidings.model import json_text

_TIMEOUT_S = 5.0
_MOST_BYTES = 64 * 2**20  # a page of ten thousand connections is some ten million


class Pages:
    """The JSON pages of one server; every address that is read is added to ``asked``."""

    def __init__(self, url: str, asked: list[str]) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInputError(
                f"'{hidden(url)}' is not an address of pages; wants http://HOST:PORT"
            )
        where = parts.hostname if ":" not in parts.hostname else f"[{parts.hostname}]"
        port = f":{parts.port}" if parts.port else ""
        self.base = f"{parts.scheme}://{where}{port}{parts.path.rstrip('/')}"
        self._asked = asked
        self._headers = {"Accept": "application/json", "User-Agent": "tidings"}
        if parts.username is not None:
            user = urllib.parse.unquote(parts.username)
            password = urllib.parse.unquote(parts.password or "")
            code = base64.b64encode(f"{user}:{password}".encode()).decode()
            self._headers["Authorization"] = f"Basic {code}"

    def read(self, page: str, **options: str | int) -> Any:
        """Read the JSON document of a page; raises EngineError where there is none."""
        query = f"?{urllib.parse.urlencode(options)}" if options else ""
        address = f"{self.base}/{page}{query}"
        self._asked.append(f"GET {address}")
        request = urllib.request.Request(address, headers=self._headers)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                body = answer.read(_MOST_BYTES + 1)
        except urllib.error.HTTPError as problem:
            raise EngineError(f"{address} answered {problem.code} {problem.reason}") from None
        except (OSError, ValueError) as problem:
            reason = getattr(problem, "reason", problem)
            raise EngineError(f"{address} cannot be read: {reason}") from None
        if len(body) > _MOST_BYTES:
            raise EngineError(f"{address} is longer than {_MOST_BYTES >> 20} MiB")
        try:
            return json_text.parse(body)
        except ValueError as problem:
            raise EngineError(f"{address} is not JSON: {problem}") from None


def hidden(url: str) -> str:
    """Remove user and password from an address, for messages.

    >>> hidden("nats://me:secret@host:4222")
    'nats://host:4222'
    """
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if rest else url.rpartition("@")[2]
