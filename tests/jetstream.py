"""A real server with JetStream, and messages into its streams."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tidings.testbed.runs import HOST
from tidings.testbed.servers import free_ports

pytest.importorskip("nats")


@contextlib.contextmanager
def jetstream_server(folder: Path) -> Iterator[str]:
    """A server, stopped at the end; gives its address."""
    with jetstream_and_pages(folder) as (url, _):
        yield url


@contextlib.contextmanager
def jetstream_and_pages(folder: Path) -> Iterator[tuple[str, str]]:
    """A server, stopped at the end; gives its address and that of its monitoring pages."""
    port, page = free_ports(2)
    program = Path(sys.executable).parent / "nats-server"
    command = [program, "-a", HOST, "-p", str(port), "-m", str(page), "-js", "-sd", folder]
    process = subprocess.Popen([*command, "-l", folder / "log"])
    try:
        deadline = time.monotonic() + 60.0
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://{HOST}:{page}/healthz", timeout=5).read()
                break
            time.sleep(0.02)
        yield f"nats://{HOST}:{port}", f"http://{HOST}:{page}"
    finally:
        process.terminate()
        process.wait(20)


def publish(url: str, stream: str, *messages: tuple[str, bytes], **options: Any) -> None:
    """Messages, each with its table, into a stream, which is made where there is none."""
    import nats
    from nats.js.errors import BadRequestError

    async def send() -> None:
        client = await nats.connect(url, connect_timeout=10)
        try:
            jetstream = client.jetstream(timeout=10)
            with contextlib.suppress(BadRequestError):
                await jetstream.add_stream(name=stream, subjects=[f"{stream}.>"], **options)
            for subject, data in messages:
                await jetstream.publish(f"{stream}.{subject}", data)
        finally:
            await client.close()

    asyncio.run(asyncio.wait_for(send(), 60.0))
