"""All readers that are installed hold the contract of readers; and it notices those that do not."""

from __future__ import annotations

import dataclasses
import json
from importlib.metadata import EntryPoint

import pytest
from pyspark.sql import functions as F

import span_samples as samples
from tidings.errors import InvalidInputError
from tidings.traces.quarantine import REASON
from tidings.traces.readers import lines, registry
from tidings.traces.readers.contract import check_reader
from tidings.traces.readers.mapping import parse_mapping
from tidings.traces.readers.reading import Asked, Reader, candidates
from tidings.traces.readers.registry import find_reader, reader_names

JSZ = {
    "now": "2023-11-14T22:13:20.5Z",
    "account_details": [{"name": "$G", "stream_detail": [{"name": "ORDERS", "consumer_detail": [{
        "stream_name": "ORDERS", "name": "billing", "num_ack_pending": 1, "num_pending": 2,
        "num_redelivered": 0, "delivered": {"consumer_seq": 9, "stream_seq": 9},
        "ack_floor": {"consumer_seq": 0, "stream_seq": 0}}]}]}],
}  # fmt: skip
RABBITMQ = {"polled_ns": 1_700_000_000_000_000_000, "page": [
    {"name": "orders", "vhost": "/", "messages": 3, "messages_ready": 2,
     "messages_unacknowledged": 1, "message_stats": {"publish": 10}}]}  # fmt: skip
BURROW = {"error": False, "status": {"cluster": "c", "group": "billing", "partitions": [
    {"topic": "orders", "partition": 0, "start": {"offset": 1, "timestamp": 1, "lag": 0},
     "end": {"offset": 7, "timestamp": 1_700_000_000_000, "lag": 3}}]}}  # fmt: skip
OMB = {"workload": "w", "driver": "d", "sampleRateMillis": 10_000, "publishRate": [5.0, 5.0],
       "consumeRate": [5.0, 5.0], "backlog": [0, 1],
       "aggregatedEndToEndLatencyQuantiles": {"50.0": 2.0, "99.0": 5.0}}  # fmt: skip
PROMETHEUS = """# TYPE queue_entered_total counter
queue_entered_total{queue="orders"} 10 1700000000000
queue_done_total{queue="orders"} 8 1700000000000
go_threads 7
"""
NATS = json.dumps({
    "server": {"name": "west", "id": "W"},
    "request": {"header": {"Nats-Msg-Id": ["m1"]}, "msgsize": 10},
    "events": [
        {"type": "in", "ts": "2023-11-14T22:13:20Z", "kind": 0, "cid": 5, "name": "sensor",
         "subj": "ev.temp"},
        {"type": "eg", "ts": "2023-11-14T22:13:20.00003Z", "kind": 0, "cid": 6, "name": "log",
         "sub": "ev.>"}],
}) + "\n"  # fmt: skip
MAPPING = """
mapping: 1
tables:
  deliveries:
    event: id
    subscriber: who
    broker: {constant: hub}
    received_ns: {column: at, unit: ms}
"""


def twice(document):
    return f"{json.dumps(document)}\n{json.dumps(document)}\n"


def old_spans(trace):
    """An export as of before scopes, by the messaging conventions of then."""
    document = samples.otlp(trace)
    for resource in document["resourceSpans"]:
        resource["instrumentationLibrarySpans"] = resource.pop("scopeSpans")
    return json.dumps(document).replace("messaging.destination.name", "messaging.destination")


# Of each format, files of it by name: the first is spoilt, all have to give rows.
SAMPLES = {
    "burrow": {"lag.json": twice(BURROW)},
    "connectivity": {"c.csv": "peer,connected,disconnected\nann,100,200\nbob,150,300\n"},
    "csv": {"levels.csv": "queue,at,entered,done\norders,100,10,8\norders,110,20,18\n"},
    "jsz": {"jsz.json": twice(JSZ)},
    "nats": {"nats.jsonl": NATS * 2},
    "omb": {"omb.json": twice(OMB)},
    "otlp": {
        "spans.jsonl": f"{json.dumps(samples.otlp('1'))}\n{old_spans('2')}\n",
        "old.json": f"{old_spans('3')}\n",
        "jaeger.json": json.dumps(samples.jaeger("4"), indent=2),
        "zipkin.json": json.dumps(samples.zipkin("5"), indent=2),
        "tempo.json": json.dumps(samples.tempo("6"), indent=2),
    },
    "probes": {"pings.csv": "source,target,sent,rtt_ms\nhub,east,100,4\nhub,west,101,5\n"},
    "prometheus": {"scrape.prom": PROMETHEUS},
    "rabbitmq": {"queues.json": twice(RABBITMQ)},
    "table": {"log.csv": "id,who,at\nm1,ann,1700000000000\nm2,bob,1700000000001\n"},
    "updown": {"states.tab": "node_id\tevent_type\tstart\tstop\nn1\t1\t100\t200\nn2\t0\t90\t95\n"},
}


def written(folder, texts):
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text)
    return [folder / name for name in texts]


def asked(**more):
    return Asked(keep=lambda frame, _: frame.localCheckpoint(), **more)


def test_there_is_a_sample_of_every_format():
    assert reader_names() == sorted(SAMPLES)


# Of formats that are read in one way, one is asked every time.
ALIKE = ("burrow", "connectivity", "omb", "probes", "rabbitmq", "table")


@pytest.mark.spark
@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[pytest.mark.nightly] * (each in ALIKE)) for each in SAMPLES],
)
def test_every_reader_holds_the_contract(spark, few_rows, tmp_path, name):
    mapping = parse_mapping(MAPPING) if name == "table" else None
    paths = written(tmp_path / "samples", SAMPLES[name])
    check_reader(spark, find_reader(name), paths, tmp_path, asked(mapping=mapping))


def credulous(records):
    """A probe of every record, whatever it is."""
    told = {"source": "a", "target": "b", "sent_ns": 1, "received_ns": 2}
    columns = [F.lit(value).alias(name) for name, value in told.items()]
    return candidates(records.select(*columns, *lines.ORIGIN), "probes", "records")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda reading: dataclasses.replace(reading, tables={"states": reading.tables["probes"]}),
         "fills states, which is not among its tables"),
        (lambda reading: dataclasses.replace(
            reading, records=reading.records.where(f"{REASON} is null")), "have vanished"),
        (lambda reading: dataclasses.replace(
            reading, tables={"probes": credulous(reading.records)}),
         "rows are made of lines that are none of the format"),
        (lambda reading: dataclasses.replace(
            reading, tables={"probes": reading.tables["probes"].where("false")}),
         "gives no row that can be used"),
        (lambda reading: dataclasses.replace(
            reading, records=reading.records.where("not file like '%.gz'")),
         "compressed, the sample has 0 records"),
    ],
)  # fmt: skip
def test_the_contract_notices_a_reader_that_breaks_it(spark, few_rows, tmp_path, spoil, says):
    good = find_reader("probes")
    bad = Reader(about="worse", tables=good.tables, read=lambda *words: spoil(good.read(*words)))
    paths = written(tmp_path / "samples", SAMPLES["probes"])
    with pytest.raises(AssertionError, match=says):
        check_reader(spark, bad, paths, tmp_path, asked())


# ---- plug-ins ------------------------------------------------------------------------------


def plug_in(monkeypatch, *values):
    """Have packages register these under the name 'mine'."""
    entries = [EntryPoint("mine", value, registry.GROUP) for value in values]

    def named(group, name=None):
        return [each for each in entries if name in (None, each.name)]

    monkeypatch.setattr(registry, "entry_points", named)


def test_a_reader_of_another_package_is_found(monkeypatch):
    plug_in(monkeypatch, "tidings.traces.readers.probes:READER")
    assert find_reader("mine").tables == ("probes",)
    with pytest.raises(InvalidInputError, match="no format 'probes'; wants one of mine"):
        find_reader("probes")


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (["a.b:READER", "c.d:READER"], "brought by a.b:READER and c.d:READER"),
        (["no.such.module:READER"], "mine.* cannot be loaded: No module named 'no'"),
        (["tidings.traces.readers.probes:NONE"], "cannot be loaded: AttributeError"),
        (["tidings.traces.readers.probes:read_probes"], "is function; wants a Reader"),
    ],
)
def test_a_plug_in_that_is_none_is_told_by_name(monkeypatch, values, says):
    plug_in(monkeypatch, *values)
    with pytest.raises(InvalidInputError, match=says):
        find_reader("mine")
