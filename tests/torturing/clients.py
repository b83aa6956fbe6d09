"""A server of ours started by a client, which ends it when it has what it wants."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

PATIENCE_S = 60.0
ENGINE = 5  # what commands end with that miss a server
ENDED = 130  # what a server that was asked to end ends with


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def serving(*words: str) -> Iterator[str]:
    """Give the address of a server, which is asked to end with the block; exits where it fails."""
    command = [sys.executable, "-m", "torturing.stepping", *words, "--port", "0", "--json"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    text = ""
    for line in server.stdout:
        text += line
        if line == "}\n":
            break
    failed = ""
    try:
        if text:
            yield json.loads(text)["url"]
    except (OSError, http.client.HTTPException) as problem:
        failed = f"{type(problem).__name__}: {problem}"
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(PATIENCE_S)
    if failed or code != ENDED or not text:
        say(f"the server ended with {code} {failed}")
        sys.exit(code if code > 0 and code != ENDED else ENGINE)


def ask(url: str, body: bytes | None = None, path: str | None = None) -> tuple[int, str]:
    """Ask a server, with a body or without; gives the status and what it answered."""
    address = urlsplit(url)
    assert address.port is not None
    connection = http.client.HTTPConnection("127.0.0.1", address.port, timeout=PATIENCE_S)
    with contextlib.closing(connection):
        kind = {"Content-Type": "application/json"} if body is not None else {}
        connection.request("GET" if body is None else "POST", path or address.path, body, kind)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
