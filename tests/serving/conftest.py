"""Servers of made-up watched folders, and what asks them; nothing here waits without a limit."""

from __future__ import annotations

import http.client
from contextlib import ExitStack

import pytest

from tidings.serving.live import ServeSettings
from tidings.serving.server import serve
from watched_folders import made_state, write_state

PATIENCE_S = 30.0


class Asker:
    """Asks one server."""

    def __init__(self, served):
        self.served = served
        self.url = served.url

    def __call__(self, path="/", method="GET", **headers):
        """The answer to a request, and its text."""
        connection = http.client.HTTPConnection("127.0.0.1", self.served.port, timeout=PATIENCE_S)
        try:
            connection.request(
                method,
                path,
                headers={name.replace("_", "-"): each for name, each in headers.items()},
            )
            answer = connection.getresponse()
            return answer, answer.read().decode("utf-8")
        finally:
            connection.close()


@pytest.fixture
def served():
    """Serves folders until the test ends."""
    with ExitStack() as running:

        def start(folder, *, host="127.0.0.1", port=0, **settings):
            settings = ServeSettings(folder=folder, **settings)
            return Asker(running.enter_context(serve(settings, host=host, port=port)))

        yield start


FIVE = [f"client {index}" for index in range(5)]


@pytest.fixture
def folder(tmp_path):
    """The folder of a watched system with five subscribers, three of which are late."""
    write_state(tmp_path, made_state(FIVE))
    return tmp_path


@pytest.fixture(scope="module")
def asker(tmp_path_factory):
    """Asks one server of such a folder, for tests that change nothing."""
    folder = tmp_path_factory.mktemp("watched")
    write_state(folder, made_state(FIVE))
    with serve(ServeSettings(folder=folder), port=0) as running:
        yield Asker(running)


@pytest.fixture(scope="module")
def locked(tmp_path_factory):
    """The same, of a server that wants a token."""
    folder = tmp_path_factory.mktemp("locked")
    write_state(folder, made_state(FIVE))
    with serve(ServeSettings(folder=folder, token="a-token-of-its-own"), port=0) as running:
        yield Asker(running)
