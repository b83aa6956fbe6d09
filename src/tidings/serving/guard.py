"""Who may ask a server what: by certain methods, from this machine or with a token.

Without a token the server listens on loopback alone and answers only to loopback's own names: a
page elsewhere that has its name resolve to 127.0.0.1 is refused. With a token, every request bears
it: as ``Authorization: Bearer``, or as the cookie that the address with ``?token=`` sets.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

READS = ("GET", "HEAD")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def is_loopback(host: str) -> bool:
    """Tell whether a host, by name or address, is this machine's loopback.

    >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("::1")
    (True, True, True)
    >>> is_loopback("0.0.0.0"), is_loopback("127.0.0.1.evil.example"), is_loopback("")
    (False, False, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def token_for(host: str, given: str | None) -> str:
    """Give the token that is asked for: as given, none on loopback, elsewhere one made up."""
    if given is None and not is_loopback(host):
        return secrets.token_urlsafe(24)
    return given or ""


class Guard:
    """Refuse what may not be asked; set headers that keep browsers careful on all answers."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str,
        policy: str = "default-src 'none'",
        methods: tuple[str, ...] = READS,
    ) -> None:
        self._app = app
        self._token = token
        self._methods = methods
        self._headers = {
            **HEADERS,
            "Content-Security-Policy": f"{policy}; frame-ancestors 'none'",
        }
        digest = hashlib.sha256(token.encode()).hexdigest()
        self._cookie = f"tidings-{digest[:8]}"  # servers on other ports have other ones

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # a web socket
            await send({"type": "websocket.close", "code": 1008})
            return

        async def careful(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        await (self._refusal(scope) or self._app)(scope, receive, careful)

    def _refusal(self, scope: Scope) -> Response | None:
        if scope["method"] not in self._methods:
            allowed = ", ".join(self._methods)
            return PlainTextResponse(
                f"This server answers to {allowed} only.\n", 405, headers={"Allow": allowed}
            )
        headers = Headers(scope=scope)
        if not self._token:
            if is_loopback(_host(headers.get("host", ""))):
                return None
            return PlainTextResponse(
                "Without a token this server answers only to localhost.\n", 403
            )
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if given and scope["method"] in READS and self._is_token(given):
            # The token leaves the address, so that it is neither shown nor kept in the history.
            answer = RedirectResponse("." + scope["path"], 303)
            # Lax, as a link in a message must open the page; there is nothing to do here but read.
            answer.set_cookie(self._cookie, self._token, httponly=True, samesite="lax")
            return answer
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(bearer.strip()):
            return None
        if self._is_token(_cookies(headers).get(self._cookie, "")):
            return None
        return PlainTextResponse(
            "A token is needed: open the address that the server printed.\n",
            401,
            headers={"WWW-Authenticate": "Bearer"},
        )

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())


def _host(header: str) -> str:
    """Give the host of a Host header, without its port and the brackets of an IPv6 address."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


def _cookies(headers: Headers) -> dict[str, str]:
    pairs = (each.partition("=") for each in headers.get("cookie", "").split(";"))
    return {name.strip(): value.strip().strip('"') for name, _, value in pairs}
