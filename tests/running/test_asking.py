"""Pages that are not what they should be end with a clear error, and never show a password."""

from __future__ import annotations

import http.server
import threading

import pytest
from typer.testing import CliRunner

import tidings as td
from tidings.cli.commands import app, run
from tidings.errors import EngineError, InvalidInputError
from tidings.running.asking import Pages, hidden
from tidings.running.nats_network import nats_network
from tidings.running.nats_pages import NatsRound, two_rounds
from tidings.running.network import file_text
from tidings.running.subject_shares import subject_rates


@pytest.fixture
def page():
    """A server whose page can be set."""

    class Handler(http.server.BaseHTTPRequestHandler):
        body, code, seen = b"{}", 200, None

        def do_GET(self):
            Handler.seen = self.headers.get("Authorization")
            self.send_response(Handler.code)
            self.send_header("Content-Length", str(len(Handler.body)))
            self.end_headers()
            self.wfile.write(Handler.body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        Handler.url = f"http://me:se%40cret@127.0.0.1:{server.server_port}"
        yield Handler
        server.shutdown()


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        (b"{", 200, "not JSON"),
        (b"[" * 100_000, 200, "not JSON"),
        (b"\xff\xfe\x00", 200, "not JSON"),
        (b"{}", 404, "answered 404"),
        (b"[]", 200, "no monitoring page"),
        (b'{"server_name": "x"}', 200, "no monitoring page"),
    ],
)
def test_what_is_no_page_of_a_server_is_refused(page, body, code, words):
    page.body, page.code = body, code
    with pytest.raises(EngineError, match=words) as caught:
        two_rounds([page.url], 0.1)
    assert "cret" not in str(caught.value)


def test_a_server_that_tells_little_is_no_fault_of_ours(page, tmp_path):
    page.body = (
        b'{"server_id": "X", "now": "2026-01-01T00:00:00.123456789Z", "connections": [7, null]}'
    )
    code = run(["init", page.url, "--for", "0.1", "--to", str(tmp_path / "x.yaml")])
    assert code == EngineError.exit_code  # its clock stands still


def test_a_page_without_end_is_cut_off(page, monkeypatch):
    monkeypatch.setattr("tidings.running.asking._MOST_BYTES", 2**20)
    page.body = b" " * (2**20 + 1)
    with pytest.raises(EngineError, match="longer than 1 MiB"):
        Pages(page.url, []).read("varz")


def test_users_are_told_to_the_server_and_to_nobody_else(page):
    asked: list[str] = []
    Pages(page.url, asked).read("varz", limit=3)
    assert page.seen == "Basic bWU6c2VAY3JldA=="
    assert asked == [f"GET {hidden(page.url)}/varz?limit=3"]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://", "ftp://me:secret@host"])
def test_only_pages_are_read(url):
    with pytest.raises(InvalidInputError) as caught:
        Pages(url, [])
    assert "secret" not in str(caught.value)


def test_nobody_there_is_said(tmp_path):
    result = CliRunner().invoke(app, ["init", "http://127.0.0.1:1", "--for", "0.1"])
    assert isinstance(result.exception, EngineError)
    assert "http://127.0.0.1:1/varz cannot be read" in str(result.exception)


def test_the_starter_predicts(tmp_path):
    file = tmp_path / "mine.yaml"
    assert run(["init", "--empty", "--to", str(file)]) == 0
    outcome = td.predict(td.load(file))
    assert outcome.subscribers["on_time"].between(0.99, 1.0).all()


def test_a_graph_begins_a_system(tmp_path):
    graph = tmp_path / "three.gml"
    graph.write_text(
        'graph [ node [ id 0 label "a" ] node [ id 1 label "b" ] node [ id 2 label "c" ] '
        'edge [ source 0 target 1 delay "5ms" ] edge [ source 1 target 2 delay "7ms" ] ]'
    )
    file = tmp_path / "three.yaml"
    assert run(["init", "--from", str(graph), "--to", str(file)]) == 0
    system = td.load(file)
    assert [broker.name for broker in system.brokers] == ["a", "b", "c"]


@pytest.mark.parametrize("words", [[], ["--empty", "--from", "x.gml"], ["redis://me:secret@x"]])
def test_what_to_begin_from_is_said_once(words, capsys):
    assert run(["init", *words]) == 2
    assert "secret" not in capsys.readouterr().err


def test_overlapping_patterns_are_not_counted_twice():
    rates = subject_rates({"a.>": 30.0, "a.*": 20.0, "a.b": 5.0, "c": 0.0})
    assert sum(rates.values()) == pytest.approx(30.0, rel=0.35)
    assert rates["a.b"] == pytest.approx(5.0, abs=2.5)
    assert "c" not in rates


def _document(name, others):
    """The pages of a server of a cluster, as few words as will do."""
    return {
        "varz": {"server_id": name.upper(), "server_name": name, "now": "2026-01-01T00:00:0%sZ"},
        "routez": {"routes": [{"remote_id": o.upper(), "rtt": "2ms"} for o in others]},
        "leafz": {},
        "gatewayz": {},
        "jsz": {},
        "connz": [],
    }


def test_events_of_a_full_mesh_go_straight_to_each_server():
    names = ("a", "b", "c")

    def taken(second):
        servers = {}
        for name in names:
            pages = _document(name, [each for each in names if each != name])
            pages["varz"]["now"] %= second
            subscription = {"subject": "x", "sid": "1", "msgs": 10 * second}
            reader = {"cid": 1, "name": "reader", "subscriptions_list_detail": [subscription]}
            writer = {"cid": 2, "name": "writer", "in_msgs": 10 * second, "in_bytes": 90 * second}
            pages["connz"] = [reader] if name == "c" else [writer] if name == "b" else []
            servers[name.upper()] = pages
        return NatsRound(servers=servers, asked=())

    system = td.loads(file_text(nats_network(taken(1), taken(5))))
    (writer,) = system.publishers
    assert writer.rate_per_s == pytest.approx(10.0)
    (pair,) = td.predict(system, pairs=True).pairs.to_dict("records")
    assert pair["delay_mean_s"] == pytest.approx(0.0011, abs=1e-5)  # one link, two servers
