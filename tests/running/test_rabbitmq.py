"""What ``tidings init rabbitmq`` makes of documents as the management API 3.10 gives them."""

from __future__ import annotations

import copy
import http.server
import json
import math
import threading
from urllib.parse import urlsplit

import pytest

import tidings as td
from tidings.cli.commands import run
from tidings.model.filters import as_filter, matches
from tidings.running.network import assumptions, completed, file_text
from tidings.running.rabbitmq import rabbitmq_network
from tidings.running.rabbitmq_bindings import Binding, fits

NODE = "rabbit@one"


def stats(**rates):
    return {
        name: value
        for key, rate in rates.items()
        for name, value in ((key, 100), (f"{key}_details", {"rate": 0.0, "avg_rate": rate}))
    }


def queue(name, publish, **more):
    return {
        "name": name,
        "vhost": "/",
        "node": NODE,
        "messages": 3,
        "arguments": {},
        "message_stats": stats(publish=publish, ack=publish),
        **more,
    }


def binding(source, destination, key, **more):
    return {
        "source": source,
        "vhost": "/",
        "destination": destination,
        "destination_type": "queue",
        "routing_key": key,
        **more,
    }


def consumer(name, prefetch):
    return {"queue": {"name": name, "vhost": "/"}, "prefetch_count": prefetch}


def channel(connection, rate):
    return {
        "connection_details": {"name": connection},
        "vhost": "/",
        "node": NODE,
        "message_stats": stats(publish=rate),
    }


DOCUMENTS = {
    "overview": {"rabbitmq_version": "3.10.8"},
    "nodes": [{"name": NODE, "running": True}, {"name": "rabbit@gone", "running": False}],
    "exchanges": [
        {"name": "", "vhost": "/", "type": "direct", "message_stats": stats(publish_in=5.0)},
        {"name": "orders", "vhost": "/", "type": "topic", "message_stats": stats(publish_in=30.0)},
        {"name": "news", "vhost": "/", "type": "fanout", "message_stats": stats(publish_in=10.0)},
    ],
    "queues": [
        queue(
            "billing",
            12.0,
            arguments={"x-max-length": 1000, "x-message-ttl": 60000},
            messages_unacknowledged_details={"avg": 0.24},
        ),
        queue("audit", 30.0, arguments={"x-overflow": "reject-publish", "x-max-length": 50}),
        queue("screens", 10.0),
        queue("jobs", 5.0),
    ],
    "bindings": [
        *(binding("", name, name) for name in ("billing", "audit", "screens", "jobs")),
        binding("orders", "billing", "order.*.eu"),
        binding("orders", "audit", "order.#"),
        binding("news", "screens", ""),
    ],
    "consumers": [consumer("billing", 10), consumer("billing", 10), consumer("audit", 1)],
    "connections": [
        {"name": "1 -> 2", "client_properties": {"connection_name": "shop"}},
        {"name": "3 -> 2", "user_provided_name": "desk"},
    ],
    "channels": [channel("1 -> 2", 20.0), channel("1 -> 2", 10.0), channel("3 -> 2", 15.0)],
}


@pytest.fixture
def network():
    return rabbitmq_network(copy.deepcopy(DOCUMENTS))


def test_the_file_is_a_system_whose_queues_get_what_they_got(network):
    system = td.loads(file_text(network))
    wanted = {
        each.name: sum(
            publisher.rate_per_s * entry.probability
            for publisher in system.publishers
            for entry in publisher.content.rows()
            if matches(each.wants, entry.event)
        )
        for each in system.subscribers
    }
    assert wanted == pytest.approx(
        {"billing": 12.0, "audit": 30.0, "screens": 10.0, "jobs": 5.0}, rel=0.001
    )
    outcome = td.predict(system, seconds=10.0)
    assert outcome.subscribers["on_time"].between(0.9, 1.0).all()


def test_channels_of_a_connection_are_one_publisher(network):
    rates = {each.name: each.every.value for each in network.publishers}
    assert rates == {"shop": "{rate: 30/s}", "desk": "{rate: 15/s}"}


def test_limits_and_consumers_are_taken_over(network):
    system = td.loads(file_text(network))
    by_name = {each.name: each for each in system.subscribers}
    billing, audit = by_name["billing"], by_name["audit"]
    assert (billing.consumers.count, billing.consumers.prefetch) == (2, 10)
    assert (billing.consumers.buffer, billing.consumers.when_full) == (1000, "drop old")
    assert (audit.consumers.buffer, audit.consumers.when_full) == (50, "drop new")
    assert billing.lifetime.mean_s == 60.0
    load = 0.12 / (0.5 + math.sqrt(0.25 + 0.0144))  # M/M/2: 2 load/(1 - load²) are there, .24
    assert billing.processing.mean_s == pytest.approx(2 * load / 12.0, rel=5e-3)


def test_what_is_not_known_is_said(network):
    places = {each["where"] for each in assumptions(network)}
    assert {"publishers.shop.content", "subscribers.jobs.consumers.count"} <= places
    assert any("'jobs' has no consumer" in note for note in network.notes)


def test_rates_kept_in_detail_say_who_publishes_to_which_exchange():
    documents = copy.deepcopy(DOCUMENTS)
    documents["channels"][2]["publishes"] = [
        {"exchange": {"name": "news", "vhost": "/"}, "stats": stats(publish=10.0)},
        {"exchange": {"name": "", "vhost": "/"}, "stats": stats(publish=5.0)},
    ]
    desk = rabbitmq_network(documents).publishers[1]
    shares = {event["exchange"]: share for share, event in desk.events}
    assert shares == pytest.approx({"news": 2 / 3, "(default)": 1 / 3})


@pytest.mark.parametrize("without", ["channels", "queues", "both"])
def test_where_nobody_publishes_or_subscribes_a_marked_placeholder_does(without):
    documents = copy.deepcopy(DOCUMENTS)
    for name in ("channels", "queues") if without == "both" else (without,):
        documents[name] = []
    network = completed(rabbitmq_network(documents))
    system = td.loads(file_text(network))
    gone = {"channels": ["publishers"], "queues": ["subscribers"]}.get(
        without, ["publishers", "subscribers"]
    )
    for kind in gone:
        assert [each.name for each in getattr(system, kind)] == ["placeholder"]
        assert any(f"placeholder for {kind}" in note for note in network.notes)
    assert "# assumed: a placeholder" in file_text(network)
    rates = td.predict(system, seconds=5.0).subscribers["wanted_per_s"]
    assert (rates > 0).all() or "publishers" not in gone


def test_virtual_hosts_are_kept_apart():
    documents = copy.deepcopy(DOCUMENTS)
    other = copy.deepcopy(DOCUMENTS["queues"][3]) | {"vhost": "test"}
    documents["queues"].append(other)
    system = td.loads(file_text(rabbitmq_network(documents)))
    assert {"test/jobs", "//jobs", "billing"} <= {each.name for each in system.subscribers}
    outcome = td.predict(system, seconds=10.0)
    wanted = outcome.subscribers.set_index("subscriber")["wanted_per_s"]
    assert wanted["test/jobs"] == 0.0


def test_exchanges_bound_to_exchanges_are_named():
    documents = copy.deepcopy(DOCUMENTS)
    documents["bindings"].append(binding("orders", "news", "#", destination_type="exchange"))
    documents["bindings"].append(binding("orders", "jobs", "a.#.b"))
    notes = rabbitmq_network(documents).notes
    assert any("between exchanges" in note and "orders" in note for note in notes)
    assert any("'jobs'" in note and "more than it gets" in note for note in notes)


@pytest.mark.parametrize(
    ("pattern", "key", "fit"),
    [
        ("#", "", True),
        ("#", "a.b", True),
        ("a.#", "a", True),
        ("a.#", "ab", False),
        ("#.b", "b", True),
        ("#.b", "x.b", True),
        ("#.b", "xb", False),
        ("*", "", True),  # the empty key is one empty word
        ("*.b", "b", False),
        ("a.*.#", "a", False),
    ],
)
def test_patterns_take_what_the_broker_takes(pattern, key, fit):
    assert fits(pattern.split("."), key.split(".")) is fit


@pytest.mark.parametrize(
    "pattern", ["order", "order.*", "*.eu", "order.*.eu", "order.#", "*.#", "#"]
)
@pytest.mark.parametrize("key", ["order", "order.1", "order.1.eu", "x.eu", "x"])
def test_filters_want_what_the_binding_takes(pattern, key):
    bound = Binding(exchange="e", kind="topic", key=pattern)
    wants = [as_filter(each) for each in bound.wants()]
    event = {"exchange": "e", "key": key}
    assert any(matches(each, event) for each in wants) is bound.takes("e", key)


def test_the_command_asks_and_writes(tmp_path, capsys):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            name = urlsplit(self.path).path.removeprefix("/api/")
            body = json.dumps(DOCUMENTS[name]).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://me:secret@127.0.0.1:{server.server_port}/"
        file = tmp_path / "rabbit.yaml"
        assert run(["init", "rabbitmq", url, "--to", str(file)]) == 0
        server.shutdown()
    shown = capsys.readouterr()
    assert "secret" not in shown.err + shown.out + file.read_text()
    assert len(td.load(file).subscribers) == 4


@pytest.mark.parametrize(
    "words", [["rabbitmq"], ["rabbitmq", "nats://x"], ["rabbitmq", "http://a", "http://b"]]
)
def test_what_is_no_address_of_the_api_is_refused(words):
    assert run(["init", *words]) == 2
