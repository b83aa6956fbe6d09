"""Polls of brokers' counters and histograms: every page and line has a fate."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tidings.errors import InvalidTracesError
from tidings.traces.importing import Imported, import_traces
from tidings.traces.readers import pages, prometheus
from tidings.traces.readers.burrow import read_burrow
from tidings.traces.readers.jsz import read_jsz
from tidings.traces.readers.level_columns import read_level_columns
from tidings.traces.readers.omb import read_omb
from tidings.traces.readers.opening import NOT_CSV, NOT_JSON
from tidings.traces.readers.prometheus import read_prometheus
from tidings.traces.readers.rabbitmq import read_rabbitmq_polls
from tidings.traces.reading import read_traces

S = 10**9
EPOCH = 1_700_000_000 * S
USED, ASIDE, PASSED = "used", "set aside", "passed over"


@pytest.fixture(scope="module", autouse=True)
def _quick(few_rows: None) -> None:
    """All rows of this module are a handful."""


def account_of(imported: Imported) -> dict[tuple[str, str, str], int]:
    rows = imported.account.itertuples(index=False, name=None)
    return {(table, fate, reason): number for table, fate, reason, number in rows}


def rows_of(frame: DataFrame, *columns: str) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in frame.select(*columns).collect()}


def jsz(second: int, handed: int, pending: int, waiting: int, **more: Any) -> dict[str, Any]:
    consumer = {
        "stream_name": "ORDERS",
        "name": "billing",
        "delivered": {"consumer_seq": handed, "stream_seq": handed},
        "ack_floor": {"consumer_seq": 0, "stream_seq": 0},
        "num_ack_pending": waiting,
        "num_redelivered": 0,
        "num_pending": pending,
        **more,
    }
    streams = [{"name": "ORDERS", "consumer_detail": [consumer]}]
    now = f"2023-11-14T22:13:{20 + second:02d}.5Z"
    return {"now": now, "account_details": [{"name": "$G", "stream_detail": streams}]}


def test_pages_of_jetstream_are_read_indented_in_lines_and_gzipped(
    spark: SparkSession, tmp_path: Path
) -> None:
    whole = "\n".join(json.dumps(jsz(each, 10 * each, 5, 2), indent=2) for each in (1, 2))
    (tmp_path / "indented.json").write_text(f"\ufeff{whole}\n", encoding="utf-8")
    torn = json.dumps(jsz(4, 40, 5, 2))[:-20]
    bad = json.dumps(jsz(8, 9, 2**63 - 1, 0))
    more = jsz(9, 2**64 - 1, 0, 0)
    more["account_details"][0]["stream_detail"] += [7, {"consumer_detail": 5}]
    led = jsz(6, 60, 5, 2, cluster={"leader": "b"}) | {"server_name": "a"}
    named = jsz(6, 61, 5, 2, cluster={"leader": "a"}) | {"server_name": "a", "polled_ns": EPOCH}
    some = [json.dumps(jsz(3, 30, 5, 2)), torn, '{"now": 1}', "what is this", json.dumps(led), bad]
    with gzip.open(tmp_path / "lines.jsonl.gz", "wt") as file:
        some += [json.dumps(named), json.dumps(more)]
        file.write("\n".join([*some, json.dumps(jsz(7, 1, 0, 5)), "{}"]))
    (tmp_path / "empty.json").write_text("")
    files = [str(each) for each in sorted(tmp_path.iterdir())]
    to = str(tmp_path / "traces")  # text will do as well
    found = import_traces(spark, lambda _: read_jsz(spark, files), files, to)
    assert account_of(found) == {
        ("pages", USED, ""): 7,
        # A line that begins with no brace belongs to the page before it, and spoils it.
        ("pages", ASIDE, NOT_JSON): 2,
        ("pages", PASSED, pages.NOTHING_SAID): 2,
        ("levels", USED, ""): 4,
        ("levels", ASIDE, "done is negative"): 1,
        ("levels", ASIDE, "entered is not a whole number (digits only, below 2^63)"): 2,
    }
    levels = read_traces(spark, tmp_path / "traces").tables["levels"]
    half = S // 2
    assert rows_of(levels, "queue", "at_ns", "entered", "done", "in_flight") == {
        ("ORDERS-billing", EPOCH + S + half, 15, 8, 2),
        ("ORDERS-billing", EPOCH + 2 * S + half, 25, 18, 2),
        ("ORDERS-billing", EPOCH + 3 * S + half, 35, 28, 2),
        ("ORDERS-billing", EPOCH, 66, 59, 2),
    }
    aside = spark.read.parquet(str(tmp_path / "traces" / "quarantine" / "pages-levels"))
    assert {(Path(row.file).name, row.line) for row in aside.collect()} == {
        ("lines.jsonl.gz", 2),
        ("lines.jsonl.gz", 3),
    }


def test_consumers_of_two_accounts_are_kept_apart(spark: SparkSession, tmp_path: Path) -> None:
    polls = []
    for second in (1, 2):
        one, other = jsz(second, 10 * second, 0, 0), jsz(second, 500 + second, 0, 0)
        other["account_details"][0]["name"] = "shop"
        lone = one["account_details"][0]["stream_detail"][0]["consumer_detail"][0]
        other["account_details"][0]["stream_detail"].append(
            {"name": "ORDERS", "consumer_detail": [lone | {"name": "audit"}]}
        )
        polls.append(one | {"account_details": one["account_details"] + other["account_details"]})
    path = tmp_path / "jsz.jsonl"
    path.write_text("\n".join(map(json.dumps, polls)))
    reading = read_jsz(spark, [str(path)])
    assert rows_of(reading.tables["levels"], "queue", "entered") == {
        ("$G/ORDERS-billing", 10), ("$G/ORDERS-billing", 20),
        ("shop/ORDERS-billing", 501), ("shop/ORDERS-billing", 502),
        ("ORDERS-audit", 10), ("ORDERS-audit", 20),
    }  # fmt: skip
    assert "several accounts" in reading.notes[0]
    assert "ORDERS-billing" in reading.notes[0]


def test_nothing_of_use_is_told_and_nothing_written(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "jsz.json"
    path.write_text("\0\0\n{{{{\n" + "[" * 2000)
    files = [str(path)]
    with pytest.raises(InvalidTracesError, match="not one row"):
        import_traces(spark, lambda _: read_jsz(spark, files), files, tmp_path / "traces")
    assert not (tmp_path / "traces" / "levels").exists()


SCRAPE = """\
# HELP jetstream_consumer_num_pending to come
# TYPE jetstream_consumer_num_pending gauge
jetstream_consumer_delivered_consumer_seq{stream_name="S",consumer_name="c"} 40 1700000001000
jetstream_consumer_num_pending{stream_name="S",consumer_name="c"} 7 1700000001000
jetstream_consumer_num_ack_pending{consumer_name="c",stream_name="S",a="}"} 3 1700000001000
jetstream_consumer_num_pending{stream_name="S",consumer_name="c",is_consumer_leader="false"} 5
kafka_consumergroup_current_offset{consumergroup="g",topic="t",partition="0"} 100 1700000001.5
kafka_consumergroup_lag{consumergroup="g",topic="t",partition="0"} 9 1700000001.5
messaging_process_duration_seconds_bucket{queue="q",le="0.1"} 5 1700000001 # {id="x"} 0.05 1.0
messaging_process_duration_seconds_bucket{queue="q",le="+Inf"} 8 1700000001
delivery_ms_bucket{queue="q",le="250"} 4 1700000001
delivery_ms_bucket{queue="q",le="odd"} 4 1700000001
delivery_ms_bucket{queue="a \\"q\\", \\\\n # {x} \\n",le="250",} 4 1700000001
queue_entered_total{queue="much",part="1"} 9.2e18 1700000001
queue_entered_total{queue="much",part="2"} 9.2e18 1700000001
queue_done_total{queue="much"} 1 1700000001
queue_entered_total{queue="twin",vhost="/"} 5 1700000001
queue_done_total{queue="twin",vhost="/"} 4 1700000001
queue_entered_total{queue="twin",vhost="b"} 70 1700000001
queue_done_total{queue="twin",vhost="b"} 60 1700000001
go_goroutines 12
http_seconds_bucket{path="/",le="1"} 4
jetstream_consumer_num_pending{stream_name="S",consumer_name="c"
queue_entered_total{queue="late"} NaN 1700000001
# EOF
"""


def test_scrapes_become_levels_and_histograms(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "scrape.prom"
    path.write_text(SCRAPE)
    files = [str(path)]
    found = import_traces(
        spark, lambda keep: read_prometheus(spark, files, keep), files, tmp_path / "traces"
    )
    assert account_of(found) == {
        ("lines", USED, ""): 18,
        ("lines", ASIDE, prometheus.NOT_A_SAMPLE): 1,
        ("lines", PASSED, prometheus.A_COMMENT): 3,
        ("lines", PASSED, prometheus.A_COPY): 1,
        ("lines", PASSED, prometheus.ANOTHER): 2,
        ("levels", USED, ""): 4,
        ("levels", ASIDE, "no entered"): 1,
        ("levels", ASIDE, "entered is not a whole number (digits only, below 2^63)"): 1,
        ("histograms", USED, ""): 4,
        ("histograms", ASIDE, "no up_to_s"): 1,
    }
    tables = read_traces(spark, tmp_path / "traces").tables
    assert rows_of(tables["levels"], "queue", "part", "at_ns", "entered", "done", "in_flight") == {
        ("S-c", None, EPOCH + S, 47, 37, 3),
        ("g", "t/0", EPOCH + S + S // 2, 109, 100, None),
        ("//twin", None, EPOCH + S, 5, 4, None),
        ("b/twin", None, EPOCH + S, 70, 60, None),
    }
    assert rows_of(tables["histograms"], "name", "what", "up_to_s", "events") == {
        ("q", "service", 0.1, 5),
        ("q", "service", float("inf"), 8),
        ("q", "delay", 0.25, 4),
        ('a "q", \\n # {x} \n', "delay", 0.25, 4),
    }


def test_answers_of_the_query_api_are_read_too(spark: SparkSession, tmp_path: Path) -> None:
    def series(metric: str, *values: list[Any]) -> dict[str, Any]:
        return {"metric": {"__name__": metric, "queue": "q"}, "values": list(values)}

    result = [
        series("queue_entered_total", [1700000001.25, "10"], [1700000016.25, "30"]),
        series("queue_done_total", [1700000001.25, "9"], [1700000016.25, "NaN"]),
    ]
    good = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    bad = {"status": "error", "error": "timeout"}
    path = tmp_path / "range.json.gz"
    with gzip.open(path, "wt") as file:
        file.write(json.dumps(good) + "\n" + json.dumps(bad) + "\n")
    files = [str(path)]
    found = import_traces(
        spark, lambda keep: read_prometheus(spark, files, keep), files, tmp_path / "traces"
    )
    assert account_of(found) == {
        ("pages", USED, ""): 1,
        ("pages", ASIDE, prometheus.NO_RESULT): 1,
        ("levels", USED, ""): 1,
        ("levels", ASIDE, "no done"): 1,
        ("histograms", USED, ""): 0,
    }
    levels = read_traces(spark, tmp_path / "traces").tables["levels"]
    assert rows_of(levels, "queue", "at_ns", "entered", "done") == {
        ("q", EPOCH + S + S // 4, 10, 9)
    }


def stream_polls(folder: Path, *polls: tuple[int, ...], seen: int = 0) -> list[str]:
    """Polls of a consumer and its stream: first and last there, reached, handed, to come, open."""
    pages = []
    for second, (first, last, reached, handed, pending, waiting) in enumerate(polls):
        page = jsz(second, handed, pending, waiting, num_redelivered=seen)
        stream = page["account_details"][0]["stream_detail"][0]
        stream["state"] = {"first_seq": first, "last_seq": last}
        stream["consumer_detail"][0]["delivered"]["stream_seq"] = reached
        pages.append(json.dumps(page))
    path = folder / "jsz.jsonl"
    path.write_text("\n".join(pages))
    return [str(path)]


def test_a_consumer_of_a_whole_stream_tells_what_was_discarded_and_handed_out_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    polls = [
        (1, 97, 100, 100, 0, 0),  # three came between the stream and its consumer
        (151, 200, 100, 100, 50, 0),  # it is away, and 50 that it has not seen are discarded
        (251, 300, 300, 250, 0, 0),
        (251, 400, 400, 400, 0, 30),  # 150 hand-outs of 100 messages
    ]
    levels = read_jsz(spark, stream_polls(tmp_path, *polls)).tables["levels"]
    assert rows_of(levels, "entered", "done", "redelivered", "dropped") == {
        (100, 100, 0, '{"unhandled":0}'),
        (200, 150, 0, '{"unhandled":50}'),
        (300, 300, 0, '{"unhandled":50}'),
        (400, 370, 50, '{"unhandled":50}'),
    }


def test_a_consumer_of_some_subjects_tells_nothing_of_what_was_discarded(
    spark: SparkSession, tmp_path: Path
) -> None:
    polls = [(1, 100, 90, 40, 0, 0), (1, 200, 190, 100, 5, 20)]  # others have the rest
    levels = read_jsz(spark, stream_polls(tmp_path, *polls, seen=7)).tables["levels"]
    assert rows_of(levels, "entered", "done", "redelivered", "dropped") == {
        (40, 40, 7, None),
        (105, 80, 7, None),
    }


@pytest.mark.parametrize(("acked", "unhandled"), [(0.5, 400), (1.0, 0)])
def test_what_rabbitmq_lets_go_of_without_a_consumer_is_dropped_and_late_counters_are_not(
    spark: SparkSession, tmp_path: Path, acked: float, unhandled: int
) -> None:
    """Twenty a second, fifty there; every other page has counters of five seconds ago."""
    files = []
    for number in range(13):
        second = 5 * number
        known_s = max(second - 5 * (number % 2), 0)
        stats = {"publish": 100 + 20 * second, "ack": 50 + round(20 * acked * known_s)}
        page = [{"name": "q", "vhost": "/", "messages": 50, "message_stats": stats}]
        path = tmp_path / f"{number:02d}.json"
        path.write_text(json.dumps({"polled_ns": EPOCH + second * S, "page": page}))
        files.append(str(path))
    levels = read_rabbitmq_polls(spark, files).tables["levels"].collect()
    told = [
        json.loads(row["dropped"])["unhandled"] for row in sorted(levels, key=lambda r: r.at_ns)
    ]
    assert told == sorted(told)
    # Of sixty seconds those next to both ends tell of late counters at most.
    assert told[-1] == pytest.approx(unhandled, abs=100 if unhandled else 0)
    assert told[0] == 0


def test_pages_of_rabbitmq_and_burrow(spark: SparkSession, tmp_path: Path) -> None:
    stats = {"publish": 100, "redeliver": 4}
    queue = {"name": "q", "messages": 7, "messages_unacknowledged": 2, "message_stats": stats}
    new = {"name": "new", "messages": 3, "message_stats": 7}
    dated = {"polled_ns": EPOCH, "page": [queue, 5, new]}
    (tmp_path / "dated.json").write_text(json.dumps(dated) + "\n" + json.dumps({"polled_ns": 1}))
    (tmp_path / "plain.json").write_text(json.dumps([queue]))
    files = [str(tmp_path / "dated.json"), str(tmp_path / "plain.json")]
    reading = read_rabbitmq_polls(spark, files)
    found = import_traces(spark, lambda _: reading, files, tmp_path / "traces")
    assert account_of(found) == {
        ("pages", USED, ""): 2,
        ("pages", PASSED, pages.NOTHING_SAID): 1,
        ("levels", USED, ""): 3,
        ("levels", ASIDE, "no queue"): 1,
    }
    levels = reading.tables["levels"].where("queue is not null")
    rows = {(row.queue, row.at_ns): row for row in levels.collect()}
    one = rows["q", EPOCH]
    assert (one.entered - one.done, one.in_flight, one.redelivered) == (7, 2, 4)
    assert len(rows) == 3  # the plain page is of when its file was written
    assert rows["new", EPOCH].entered - rows["new", EPOCH].done == 3
    commits = {"start": {"offset": 10, "timestamp": 1700000000000, "lag": 2}, "end": None}
    partition = {"topic": "t", "partition": 3, **commits}
    burrow = {"error": False, "status": {"group": "g", "partitions": [partition]}}
    (tmp_path / "burrow.json").write_text(json.dumps(burrow, indent=1))
    levels = read_burrow(spark, [str(tmp_path / "burrow.json")]).tables["levels"]
    assert rows_of(levels, "queue", "part", "at_ns", "entered", "done") == {
        ("g", "t/3", EPOCH, 12, 10)
    }


# What came in and what is there, as RabbitMQ 3.10 refreshed them while a consumer stood still: the
# second lags behind at first. At the end the queue is declared anew.
REFRESHED = [(12535, 1), (12732, 80), (12900, 260), (13063, 416), (13236, 1), (30, 10)]
LEFT = [12534, 12652, 12652, 12652, 13235, 20]


def test_what_is_refreshed_later_is_no_restart(spark: SparkSession, tmp_path: Path) -> None:
    pages, lines = tmp_path / "pages", []
    pages.mkdir()
    for poll, (publish, messages) in enumerate(REFRESHED):
        at_s = 1700000000 + 5 * poll
        queue = {"name": "q", "messages": messages, "message_stats": {"publish": publish}}
        page = {"polled_ns": at_s * S, "page": [queue]}
        (pages / f"{poll}.json").write_text(json.dumps(page))
        for metric, value in (("messages_published_total", publish), ("messages", messages)):
            lines.append(f'rabbitmq_queue_{metric}{{queue="q"}} {value} {at_s * 1000}')
    (tmp_path / "scrape.txt").write_text("\n".join(lines) + "\n")
    polls = read_rabbitmq_polls(spark, [str(each) for each in pages.iterdir()])
    scrapes = read_prometheus(spark, [str(tmp_path / "scrape.txt")], lambda rows, _: rows)
    for reading in (polls, scrapes):
        rows = reading.tables["levels"].orderBy("at_ns").collect()
        ahead = rows[0].entered - REFRESHED[0][0]
        assert [row.entered - ahead for row in rows] == [each for each, _ in REFRESHED]
        assert [row.done - ahead for row in rows] == LEFT


def test_results_of_the_benchmark_become_levels_and_a_histogram(
    spark: SparkSession, tmp_path: Path
) -> None:
    quantiles = {"50.0": 2.0, "90.0": 5.0, "95.0": 5.0, "100.0": 40.0}
    result = {
        "workload": "w",
        "driver": "D",
        "publishRate": [100.0, 50.0],
        "consumeRate": [90.0, 60.0],
        "backlog": [-3, 20],
        "aggregatedEndToEndLatencyQuantiles": quantiles,
    }
    path = tmp_path / "run.json"
    path.write_text(json.dumps(result, indent=2))
    reading = read_omb(spark, [str(path)])
    levels = reading.tables["levels"].orderBy("at_ns").collect()
    assert [(row.queue, row.entered, row.done) for row in levels] == [
        ("D w", 1000, 1000),
        ("D w", 1500, 1480),
    ]
    assert levels[1].at_ns - levels[0].at_ns == 10 * S
    assert rows_of(reading.tables["histograms"], "name", "what", "up_to_s", "events") == {
        ("D w", "delay", 0.002, 750),
        ("D w", "delay", 0.005, 1425),
        ("D w", "delay", 0.04, 1500),
    }


def test_columns_are_found_by_name(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "lag.csv"
    text = "time_ms,group,partition,log_end_offset,lag\n1700000000000,g,0,20,5\n"
    path.write_text(text + "1700000001000,g,0,twenty,5\nnever,g,0,21,1\n1,2\n")
    files = [str(path)]
    found = import_traces(
        spark, lambda _: read_level_columns(spark, files), files, tmp_path / "traces"
    )
    assert account_of(found) == {
        ("lines", USED, ""): 3,
        ("lines", ASIDE, NOT_CSV): 1,
        ("levels", USED, ""): 1,
        ("levels", ASIDE, "no entered"): 1,
        ("levels", ASIDE, "time_ms is not a time in ms or ISO 8601"): 1,
    }
    levels = read_traces(spark, tmp_path / "traces").tables["levels"]
    assert rows_of(levels, "queue", "part", "at_ns", "entered", "done") == {
        ("g", "0", EPOCH, 20, 15)
    }
