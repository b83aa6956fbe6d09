"""Rows fetched from a stream or a web server are there once, whoever is killed when."""

from __future__ import annotations

import asyncio
import functools
import http.server
import os
import threading
from pathlib import Path

import nats
import pytest

from jetstream import jetstream_server, publish
from tidings.errors import EngineError, InvalidInputError
from tidings.running import fetching as module
from tidings.running import inbox as inbox_module
from tidings.running.fetching import FetchedSource, WebFiles, fetching
from tidings.running.inbox import Inbox
from tidings.testbed.runs import HOST


def rows_in(inbox, file):
    """All lines of a table, in the order of the pieces."""
    pieces = [inbox.folder / name for name in inbox.pieces()]
    return [
        line
        for piece in pieces
        if (piece / file).exists()
        for line in (piece / file).read_text().splitlines()
    ]


class Killed(BaseException):
    """As if the process were no more."""


def test_a_piece_and_its_offset_appear_in_one_step(tmp_path, monkeypatch):
    inbox = Inbox(tmp_path / "in")
    assert inbox.reached("stream") == 0
    inbox.put("stream", 1, 4, {"hops.jsonl": b"{}\n"})
    with monkeypatch.context() as patch:
        patch.setattr(inbox_module.os, "rename", lambda *_: (_ for _ in ()).throw(Killed()))
        with pytest.raises(Killed):
            inbox.put("stream", 4, 9, {"hops.jsonl": b"{}\n{}\n"})
    again = Inbox(tmp_path / "in")
    assert (again.reached("stream"), again.reached("hops")) == (4, 0)
    again.put("stream", 4, 9, {"hops.jsonl": b"{}\n{}\n"})
    assert [each.name for each in (tmp_path / "in").iterdir() if each.name.startswith(".")] == []
    again.clear(again.pieces())
    assert again.pieces() == [f"stream-{4:020d}-{9:020d}"]  # which says how far


# ---- a stream ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with JetStream; gives its address."""
    with jetstream_server(tmp_path_factory.mktemp("nats")) as url:
        yield url


def test_a_stream_is_fetched_piece_by_piece_and_once(server, tmp_path, monkeypatch):
    """Several rows a message, other subjects, a kill before a piece is in place."""
    monkeypatch.setattr(module, "_MOST_MESSAGES", 4)
    monkeypatch.setattr(module, "_AT_A_TIME", 2)
    numbered = [("hops", f'{{"event":"{number}"}}'.encode()) for number in range(10)]
    publish(server, "ONE", ("hops", b'{"event":"a"}\n{"event":"b"}\n'), ("notes", b"!"), *numbered)
    source = fetching(f"{server}/ONE")
    usual, calls = os.rename, []

    def dies(*names):
        calls.append(names)
        if len(calls) == 3:  # after when it was created, and the first messages
            raise Killed
        usual(*names)

    inbox = Inbox(tmp_path / "in")
    with monkeypatch.context() as patch:
        patch.setattr(inbox_module.os, "rename", dies)
        with pytest.raises(Killed):
            source.fetch(inbox)
    inbox = Inbox(tmp_path / "in")
    assert inbox.reached("stream") == 5
    for _ in range(2):
        assert source.fetch(inbox) == ""
    assert inbox.reached("stream") == 13
    wanted = [f'{{"event":"{name}"}}' for name in ("a", "b", *range(10))]
    assert rows_in(inbox, "hops.jsonl") == wanted
    assert len(inbox.pieces()) == 4
    feed = FetchedSource(source, inbox)
    publish(server, "ONE", ("deliveries", b'{"event":"c"}'))
    feed.fetch()
    feed.clear()
    assert len(inbox.pieces()) == 2
    assert rows_in(inbox, "deliveries.jsonl") == ['{"event":"c"}']
    feed.fetch()
    assert inbox.reached("stream") == 14


def test_what_a_stream_has_dropped_is_told(server, tmp_path):
    inbox, source = Inbox(tmp_path / "in"), fetching(f"{server}/SHORT")
    rows = [("hops", b"{}")] * 3
    publish(server, "SHORT", *rows, max_msgs=3)
    assert source.fetch(inbox) == ""
    publish(server, "SHORT", *rows, *rows)
    assert source.fetch(inbox) == "3 messages of the stream SHORT were gone before they were read"
    assert len(rows_in(inbox, "hops.jsonl")) == 6
    assert source.fetch(inbox) == ""
    with pytest.raises(EngineError, match=r"the stream NONE at nats://.* cannot be read"):
        fetching(f"{server}/NONE").fetch(inbox)


def jetstream(server, do):
    """What is done to the streams of a server, by whoever keeps it."""

    async def done():
        client = await nats.connect(server, connect_timeout=10)
        try:
            await do(client.jetstream(timeout=10))
        finally:
            await client.close()

    asyncio.run(asyncio.wait_for(done(), 60.0))


def test_messages_that_were_deleted_keep_no_others_back(server, tmp_path):
    """The last ones, of which others have come before; and all that are new."""
    inbox, source = Inbox(tmp_path / "in"), fetching(f"{server}/GAPS")
    publish(server, "GAPS", *[("hops", f'{{"event":"{n}"}}'.encode()) for n in range(4)])
    jetstream(server, lambda streams: streams.delete_msg("GAPS", 4))
    assert source.fetch(inbox) == ""
    assert len(rows_in(inbox, "hops.jsonl")) == 3
    publish(server, "GAPS", ("hops", b"{}"))
    jetstream(server, lambda streams: streams.delete_msg("GAPS", 5))
    assert source.fetch(inbox) == ""
    publish(server, "GAPS", ("hops", b"{}"))
    assert source.fetch(inbox) == ""
    assert len(rows_in(inbox, "hops.jsonl")) == 4


@pytest.mark.parametrize("more", [1, 5], ids=["shorter", "longer"])
def test_a_stream_that_begins_anew_is_read_from_its_beginning(server, tmp_path, more):
    """Also where it has grown beyond what was read of the old one before anybody looks."""
    inbox, name = Inbox(tmp_path / "in"), f"ANEW{more}"
    feed = FetchedSource(fetching(f"{server}/{name}"), inbox)
    publish(server, name, *[("hops", b'{"event":"old"}')] * 3)
    assert feed.fetch() == ""
    feed.clear()
    jetstream(server, lambda streams: streams.delete_stream(name))
    publish(server, name, *[("hops", b'{"event":"new"}')] * more)
    told = feed.fetch()
    assert f"the stream {name} has begun anew" in told
    assert "lost" in told
    assert rows_in(inbox, "hops.jsonl")[3:] == ['{"event":"new"}'] * more
    feed.clear()
    publish(server, name, ("hops", b'{"event":"newest"}'))
    inbox = Inbox(tmp_path / "in")
    assert FetchedSource(fetching(f"{server}/{name}"), inbox).fetch() == ""
    assert rows_in(inbox, "hops.jsonl")[-1] == '{"event":"newest"}'
    assert inbox.reached("stream") == more + 2


# ---- files on a web server -----------------------------------------------------------------------


class Ranges(http.server.SimpleHTTPRequestHandler):
    """Gives parts of files, as web servers do; ``whole``: only whole files."""

    whole = False

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        data = path.read_bytes() if path.is_file() else b""
        wanted = self.headers["Range"].removeprefix("bytes=")
        begin, end = (int(each) for each in wanted.split("-"))
        part, code = (data, 200) if self.whole else (data[begin : end + 1], 206)
        code = 416 if not part and begin else code
        code = code if path.is_file() else 404
        self.send_response(code)
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("whole", [False, True])
def test_files_that_grow_are_fetched_line_by_line_and_once(tmp_path, monkeypatch, whole):
    monkeypatch.setattr(module, "_MOST_BYTES", 64)
    monkeypatch.setattr(Ranges, "whole", whole)
    (tmp_path / "web").mkdir()
    file = tmp_path / "web" / "hops.jsonl"
    handler = functools.partial(Ranges, directory=tmp_path / "web")
    with http.server.ThreadingHTTPServer((HOST, 0), handler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        inbox, source = Inbox(tmp_path / "in"), WebFiles(f"http://{HOST}:{web.server_port}/")
        assert "none of the files" in source.fetch(inbox)
        lines = [f'{{"event":"{number}"}}' for number in range(20)]
        file.write_text("\n".join(lines[:10]) + '\n{"ev')
        assert source.fetch(inbox) == ""
        assert rows_in(inbox, "hops.jsonl") == lines[:10]
        assert not (inbox.folder / "traces.json").exists()
        (tmp_path / "web" / "traces.json").write_text('{"sampled": 0.25}')
        file.write_text("\n".join(lines) + "\n")
        for _ in range(2):
            inbox = Inbox(tmp_path / "in")
            source.fetch(inbox)
        assert rows_in(inbox, "hops.jsonl") == lines
        assert (inbox.folder / "traces.json").read_text() == '{"sampled": 0.25}'
        web.shutdown()
    with pytest.raises(EngineError, match="cannot be read"):
        source.fetch(inbox)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("lines", [1, 9], ids=["shorter", "longer"])
def test_a_file_that_begins_anew_is_read_from_its_beginning(tmp_path, monkeypatch, whole, lines):
    """As after a rotation of logs: shorter than before, or by now longer."""
    monkeypatch.setattr(Ranges, "whole", whole)
    (tmp_path / "web").mkdir()
    file = tmp_path / "web" / "hops.jsonl"
    file.write_text('{"event":"old"}\n' * 3)
    handler = functools.partial(Ranges, directory=tmp_path / "web")
    with http.server.ThreadingHTTPServer((HOST, 0), handler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        inbox = Inbox(tmp_path / "in")
        feed = FetchedSource(WebFiles(f"http://{HOST}:{web.server_port}/"), inbox)
        assert feed.fetch() == ""
        feed.clear()
        new = [f'{{"event":"newer {number}"}}' for number in range(lines)]
        file.write_text("\n".join(new) + "\n")
        told = feed.fetch()
        assert "hops.jsonl of http" in told
        assert "began anew" in told
        assert rows_in(inbox, "hops.jsonl")[3:] == new
        feed.clear()
        with file.open("a") as stream:
            stream.write('{"event":"newest"}\n')
        for _ in range(2):
            assert feed.fetch() == ""
        assert rows_in(inbox, "hops.jsonl")[-1] == '{"event":"newest"}'
        assert inbox.reached("hops") == file.stat().st_size
        web.shutdown()


def test_an_address_that_is_no_source_is_refused_without_its_password():
    for url in ("nats://host", "ftp://u:secret@host/x", "nats://u:secret@host:1/a/b", "http:///x"):
        with pytest.raises(InvalidInputError, match="wants a folder, nats://") as refused:
            fetching(url)
        assert "secret" not in str(refused.value)
