"""Alarms are posted in their order, beside the watch; a webhook that fails stops nothing."""

from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tidings.errors import InvalidInputError
from tidings.watching import webhook
from tidings.watching.state import Alarm
from tidings.watching.webhook import Webhook

SLOW = Alarm(
    name="changed brokers.hub.service", kind="changed", where=("hub",), what="broker hub is slower",
    size=1.3, unit="times the service time", since_ns=100,
)  # fmt: skip
LATE = replace(SLOW, name="target ann", kind="target", where=("ann",), what="events are late")


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Tries follow each other at once."""
    monkeypatch.setattr(webhook, "_PAUSES_S", (0.01, 0.01, 0.01))
    monkeypatch.setattr(webhook, "_PATIENCE_S", 2.0)


@pytest.fixture
def post(tmp_path):
    """Post alarms, and wait until it is known what came of them."""

    def posted(url, told, *alarms):
        with Webhook(url, tmp_path / "unposted.jsonl", told.append) as hook:
            for alarm in alarms:
                hook(alarm)

    return posted


@contextmanager
def server(*codes):
    """Somebody who is posted to, and answers with one code after the other, the last for ever."""
    got, codes = [], list(codes)

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers["Content-Length"])
            got.append((self.path, json.loads(self.rfile.read(length))))
            self.send_response(codes.pop(0) if len(codes) > 1 else codes[0])
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST  # noqa: N815 - so the server asks for it

        def log_message(self, *_):
            pass

    answering = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=answering.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{answering.server_port}/alarms", got
    finally:
        answering.shutdown()
        answering.server_close()
        thread.join(timeout=10)


def test_a_webhook_gets_the_alarm_as_json(post, tmp_path):
    told = []
    with server(200) as (url, got):
        post(url, told, SLOW)
    ((path, document),) = got
    assert path == "/alarms"
    assert (document["name"], document["since_ns"]) == (SLOW.name, 100)
    assert document["sentence"] == SLOW.sentence()
    assert told == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", [404, 302])
def test_a_webhook_that_refuses_is_told_of_and_not_followed_elsewhere(post, code):
    told = []
    with server(code) as (url, got):
        post(url, told, SLOW)
    assert [path for path, _ in got] == ["/alarms"]
    assert [str(code) in text for text in told] == [True]


def test_a_webhook_that_is_not_there_is_told_of_once_and_what_waits_comes_later(post):
    told = []
    post("http://127.0.0.1:9/", told, SLOW, LATE)
    assert len(told) == 2
    assert "cannot be reached" in told[0]
    assert "has not taken the last 2 alarms; the next watch with this state posts them" in told[1]
    with server(200) as (url, got):
        post(url, told, replace(SLOW, name="newer"))
    assert [document["name"] for _, document in got] == [SLOW.name, LATE.name, "newer"]
    assert len(told) == 2


def test_a_run_that_is_killed_leaves_what_was_not_taken_to_the_next(post, tmp_path):
    told = []
    hook = Webhook("http://127.0.0.1:9/", tmp_path / "unposted.jsonl", told.append)
    hook(SLOW)  # and nothing follows: no end that tidies up
    with (tmp_path / "unposted.jsonl").open("a") as file:
        file.write('{"torn')
    with server(200) as (url, got):
        post(url, told)
    assert [document["name"] for _, document in got] == [SLOW.name]


def test_what_is_no_address_is_refused(tmp_path):
    for bad in (
        "ftp://host/", "file:///etc/passwd", "nonsense", "http://host:abc/", "http://host/a b",
    ):  # fmt: skip
        with pytest.raises(InvalidInputError, match="wants http"):
            Webhook(bad, tmp_path / "unposted.jsonl", print)


def test_a_webhook_that_does_not_speak_http_is_told_of(post):
    told = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer():
            for _ in range(webhook._TRIES_BEFORE_WARNING):
                there, _ = listening.accept()
                with there:
                    there.recv(65536)
                    there.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        post(f"http://127.0.0.1:{listening.getsockname()[1]}/", told, SLOW)
        thread.join(timeout=10)
    assert "cannot be reached" in told[0]


def test_what_fails_for_now_is_tried_again_and_alarms_come_in_their_order(post):
    told = []
    with server(503, 429, 200) as (url, got):
        post(url, told, SLOW, LATE)
    assert [document["name"] for _, document in got] == [SLOW.name] * 3 + [LATE.name]
    assert told == []


def test_what_is_told_does_not_hold_up_the_watch(monkeypatch, tmp_path):
    """Somebody who takes the alarm and never answers."""
    told = []
    monkeypatch.setattr(webhook, "_PATIENCE_S", 0.5)
    monkeypatch.setattr(webhook, "_MOST_WAITING", 3)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        begun = time.monotonic()
        with Webhook(url, tmp_path / "unposted.jsonl", told.append) as hook:
            for _ in range(20):
                hook(SLOW)
            assert time.monotonic() - begun < webhook._TIMEOUT_S
    assert "3 alarms wait for the webhook at 127.0.0.1" in told[0]
    assert "has not taken the last 3 alarms" in told[-1]
