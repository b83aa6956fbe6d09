"""What the server answers: the page, its events, searches, the past, metrics, the page saved."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from tidings.model.json_text import plain
from tidings.serving.folder import to_line
from tidings.serving.guard import Guard
from tidings.serving.live import Live
from tidings.serving.metrics import CONTENT_TYPE, metrics_text
from tidings.serving.page import policy, render
from tidings.serving.view import found, one
from tidings.watching.state import EVERYBODY

SAVED = {"Content-Disposition": 'attachment; filename="tidings.html"'}


def make_app(live: Live) -> Guard:
    """Make the application that answers requests."""

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await run_in_threadpool(live.renew)
        looking = asyncio.create_task(live.look())
        yield
        looking.cancel()

    answers = _Answers(live)
    routes = [
        Route("/", answers.page),
        Route("/events", answers.events),
        Route("/subscribers", answers.subscribers),
        Route("/past", answers.past),
        Route("/save", answers.saved),
        Route("/metrics", answers.metrics),
    ]
    app = Starlette(routes=routes, lifespan=lifespan)
    return Guard(app, token=live.settings.token, policy=policy(live=True))


class _Answers:
    """One function for each address; what takes long is done beside the loop."""

    def __init__(self, live: Live) -> None:
        self._live = live

    async def page(self, _: Request) -> Response:
        return HTMLResponse(await run_in_threadpool(self._page, alive=True))

    async def saved(self, _: Request) -> Response:
        return HTMLResponse(await run_in_threadpool(self._page, alive=False), headers=SAVED)

    async def events(self, request: Request) -> Response:
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        return StreamingResponse(self._live.events(), media_type="text/event-stream")

    async def subscribers(self, request: Request) -> Response:
        asked, live = request.query_params, self._live
        if "name" in asked:
            row = await run_in_threadpool(one, live.folder.state, live.map, asked["name"])
            return _json({"row": row})
        text = asked.get("find", "")
        return _json({"rows": await run_in_threadpool(found, live.folder.state, live.map, text)})

    async def past(self, request: Request) -> Response:
        name = request.query_params.get("name", EVERYBODY)
        return _json(await run_in_threadpool(self._live.past.series, name))

    async def metrics(self, _: Request) -> Response:
        most = self._live.settings.most_labels
        text = await run_in_threadpool(metrics_text, self._live.folder.state, most)
        return Response(text, headers={"Content-Type": CONTENT_TYPE})

    def _page(self, *, alive: bool) -> bytes:
        live = self._live
        shown = live.view() if alive else live.view(most=None)
        text = render(shown, live.past.series(EVERYBODY), title=live.title(), live=alive)
        # A lone half of a surrogate pair may come in with a name; UTF-8 has no place for it.
        return text.encode("utf-8", errors="replace")


def _json(document: Any) -> Response:
    return Response(to_line(plain(document)), media_type="application/json")
