"""The server of a watched folder: its page, events and metrics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tidings.serving.app import make_app
from tidings.serving.listening import HOST, Served, listen
from tidings.serving.live import Live, ServeSettings

PORT = 8765


@contextmanager
def serve(settings: ServeSettings, *, host: str = HOST, port: int = PORT) -> Iterator[Served]:
    """Serve a watched folder from a thread of this process while the block runs.

    Anywhere but on loopback a token is needed. Port 0 takes a free one.
    """
    live = Live(settings)
    with listen(
        make_app(live), host=host, port=port, token=settings.token, ending=live.end
    ) as served:
        yield served
