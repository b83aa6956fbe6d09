"""Pages polled into a folder: every poll a file, those that fail told and left out."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidings.cli.commands import run
from tidings.errors import EngineError
from tidings.running.polling import poll


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers in turn: what is no text is a code."""

    answers: list[object]
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        self.send_response(answer if isinstance(answer, int) else 200)
        self.end_headers()
        self.wfile.write(b"" if isinstance(answer, int) else json.dumps(answer).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[type[Answers]]:
    class Fresh(Answers):
        answers, asked = [{}], []
        url = ""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Fresh) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        Fresh.url = f"http://127.0.0.1:{listening.server_port}"
        yield Fresh
        listening.shutdown()


def test_every_poll_is_a_file_and_failures_are_told(server: type[Answers], tmp_path: Path) -> None:
    server.answers = [{"now": "x"}, 503, [{"name": "q"}]]
    polled = poll(server.url, "jsz", tmp_path / "polls", every_s=0.05, for_s=0.1)  # type: ignore[attr-defined]
    assert polled.polls == 2
    assert len(polled.problems) == 1
    assert "503" in polled.problems[0]
    assert server.asked == ["/jsz?consumers=true&stream-leader-only=true"] * 3
    files = sorted((tmp_path / "polls").iterdir())
    documents = [json.loads(each.read_text()) for each in files]
    assert [each["polled_ns"] for each in documents] == [int(each.stem) for each in files]
    assert documents[0]["now"] == "x"
    assert documents[1]["page"] == [{"name": "q"}]


def test_a_first_poll_that_fails_is_an_error_at_once(server: type[Answers], tmp_path: Path) -> None:
    server.answers = [404]
    with pytest.raises(EngineError, match=r"the first poll .* 404"):
        poll(server.url, "rabbitmq", tmp_path / "polls", every_s=60.0, for_s=600.0)  # type: ignore[attr-defined]


def test_only_pages_that_are_known_are_polled(tmp_path: Path) -> None:
    to = ["--to", str(tmp_path / "traces")]
    assert run(["import", "omb", str(tmp_path), "--poll", "http://127.0.0.1:1", *to]) == 2
