"""Spans followed as they come in: rows and numbers are those of importing all of them at once."""

from __future__ import annotations

import json
import os
import random
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import tidings as td
from tidings.characterisation.count.store import read_catalogue
from tidings.characterisation.stored import characterise_store
from tidings.cli.commands import run
from tidings.errors import EngineError, InvalidTracesError
from tidings.running import inbox as inbox_module
from tidings.running.fetching import FetchedSource
from tidings.running.inbox import Inbox
from tidings.serving import appending as appending_module
from tidings.serving.appending import Appending
from tidings.serving.receiver import ReceiveSettings, SpanReceiver
from tidings.traces.importing import import_traces, with_black_box
from tidings.traces.readers.lifetimes import parse_lifetimes
from tidings.traces.readers.otlp import NO_PUBLICATION, READER
from tidings.traces.readers.reading import Asked
from tidings.traces.reading import read_traces
from tidings.traces.span_folders import is_of_spans, span_files, written_since_ns
from tidings.traces.window import TraceWindow
from tidings.watching.closing import Closing
from tidings.watching.rounds import WatchPlan, watching
from tidings.watching.spans import STATE, Followed, SpanFolder

SECOND_NS = 1_000_000_000
EPOCH_NS = 1_700_000_000 * SECOND_NS
MARGIN_S, SLICE_S, SLICES = 2.0, 12.0, 4
MARGIN_NS = 2 * SECOND_NS
RULES = parse_lifetimes(["orders=60ms"])
LINK = "{delay: {exponential: 40ms}, reliability: 0.95}"
SYSTEM = td.loads(
    """
tidings: 1
brokers: {broker: {service: 0s}}
publishers:
  shop: {at: broker, every: {exponential: 50ms}, content: {event: {topic: orders}}}
  till: {at: broker, every: {exponential: 100ms}, content: {event: {topic: sales}}}
subscribers:
  billing: {at: broker, wants: {topic: orders}, link: LINK}
  ledger: {at: broker, wants: {topic: sales}, link: LINK}
  audit: {at: broker, wants: [{topic: orders}, {topic: sales}], link: LINK}
""".replace("LINK", LINK)
)
TOPICS = {"shop": "orders", "till": "sales"}
PRODUCER, CONSUMER, SERVER = 4, 5, 2

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("few_rows")]


class Killed(BaseException):
    """As if the process were no more."""


# ---- spans ---------------------------------------------------------------------------------------


def span(service, kind, at_ns, *, trace, own, parent="", links=(), topic=None, message=None):
    """One span, with when it happened, as a line of OTLP JSON."""
    named = {"messaging.destination.name": topic, "messaging.message.id": message}
    document = {
        "traceId": f"{trace:032x}",
        "spanId": f"{own:016x}",
        "parentSpanId": parent and f"{parent:016x}",
        "kind": kind,
        "startTimeUnixNano": str(at_ns),
        "endTimeUnixNano": str(at_ns + 1000),
        "links": [{"traceId": f"{a:032x}", "spanId": f"{b:016x}"} for a, b in links],
        "attributes": [
            {"key": key, "value": {"stringValue": value}} for key, value in named.items() if value
        ],
    }  # fmt: skip
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    whole = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [document]}]}]}
    return at_ns, json.dumps(whole)


def spans_of_messages(seconds, seed):
    """Spans of messages that find their publications in every way there is; some get lost."""
    rng, number, spans = np.random.default_rng(seed), 0, []
    for publisher in SYSTEM.publishers:
        topic = TOPICS[publisher.name]
        gaps_s = rng.exponential(1.0 / publisher.rate_per_s, round(2 * seconds * 20))
        times_s = np.cumsum(gaps_s)
        for at_s in times_s[times_s < seconds]:
            number += 1
            at_ns, trace, sent = EPOCH_NS + round(at_s * 1e9), number, 10 * number
            with_id = {"topic": topic, "message": f"m{number}"}
            spans.append(span(publisher.name, PRODUCER, at_ns, trace=trace, own=sent, **with_id))
            spans.append(span("broker", SERVER, at_ns + 1, trace=trace, own=sent + 1, parent=sent))
            for n, subscriber in enumerate(SYSTEM.subscribers):
                wants = topic in str(subscriber.wants)
                if not wants or rng.random() > 0.95:
                    continue
                got_ns, own = at_ns + round(rng.exponential(0.04) * 1e9), sent + 2 + n
                how = (
                    {"trace": trace, "parent": sent},
                    {"trace": trace, "parent": sent + 1},
                    {"trace": 10**9 + own, "links": [(trace, sent)]},
                    {"trace": 10**9 + own, "message": f"m{number}"},
                )[number % 4]
                spans.append(span(subscriber.name, CONSUMER, got_ns, own=own, topic=topic, **how))
    return spans


def slices_of(spans, seed, slices=SLICES):
    """The same spans as they come in: up to a margin late, out of order, a few of them twice."""
    chance, coming = random.Random(seed), [[] for _ in range(slices)]
    for at_ns, line in spans:
        for _ in range(1 + (chance.random() < 0.02)):
            late_s = chance.uniform(0.0, 0.9 * MARGIN_S)
            number = int(((at_ns - EPOCH_NS) / 1e9 + late_s) // SLICE_S)
            coming[min(number, slices - 1)].append(line)
    for each in coming:
        chance.shuffle(each)
    return coming


def receive(folder, lines, files=2):
    """Lines in as many files, as a receiver leaves them."""
    for number in range(files):
        appending = Appending(folder, most_s=1000.0)
        for line in lines[number::files]:
            appending.append(f"{line}\n".encode())
        appending.close()


def imported(spark, folder, to):
    """All spans of a folder, imported at once."""
    files = [str(each) for each in span_files(folder).values()]

    def read(keep):
        reading = READER.read(spark, files, Asked(keep=keep, lifetimes=RULES))
        return with_black_box(reading, "broker")

    import_traces(spark, read, files, to)
    return read_traces(spark, to)


# ---- rows ----------------------------------------------------------------------------------------

TIMES = {"publications": "published_ns", "hops": "arrived_ns", "deliveries": "received_ns"}


def rows_of(inbox, table):
    files = sorted(inbox.folder.glob(f"spans-*/{table}/*.parquet"))
    return pd.concat([pd.read_parquet(each) for each in files], ignore_index=True)


def following(spark, tmp_path, **changes):
    given = {"margin_s": MARGIN_S, "lifetimes": RULES, **changes}
    return SpanFolder(spark, tmp_path / "spans", given.pop("system", SYSTEM), **given)


@pytest.fixture
def inbox(tmp_path):
    (tmp_path / "spans").mkdir()
    return Inbox(tmp_path / "in")


@pytest.mark.nightly
def test_rows_are_those_of_all_spans_at_once_and_each_is_there_once(
    spark, tmp_path, inbox, monkeypatch
):
    """Whoever is killed before a piece is in place, or after it, begins again; done files go."""
    spans = spans_of_messages(SLICES * SLICE_S, 1)
    whole, usual, told = tmp_path / "whole", os.rename, []
    whole.mkdir()

    def dies(source, target):
        if "spans-" in str(target) and "/in/" in str(target):
            raise Killed
        usual(source, target)

    for number, lines in enumerate(slices_of(spans, 1)):
        receive(tmp_path / "spans", lines)
        for each in span_files(tmp_path / "spans").values():
            if not (whole / each.name).exists():
                os.link(each, whole / each.name)
        if number == 1:
            with monkeypatch.context() as patch:
                patch.setattr(inbox_module.os, "rename", dies)
                with pytest.raises(Killed):
                    following(spark, tmp_path).fetch(inbox)
        told += [following(spark, tmp_path).fetch(inbox) for _ in range(2)]  # then nothing is new
        if number == 2:  # of the first two slices all has been imported
            known = Followed.read(inbox.newest("spans"))
            old_ns = known.until_ns - MARGIN_NS
            done = [name for name, latest_ns in known.files.items() if latest_ns < old_ns]
            assert len(done) == 4
            for name in done:
                (tmp_path / "spans" / name).unlink()
    assert len(inbox.pieces()) == SLICES
    assert set(told) == {""}
    known = Followed.read(inbox.newest("spans"))
    assert len(known.files) == 2 * SLICES - 4
    assert known.subscriptions == {}  # all are the system's
    batch = imported(spark, whole, tmp_path / "batch")
    newest_ns = max(at_ns for at_ns, line in spans if f'"kind": {PRODUCER}' in line)
    assert known.until_ns == newest_ns - MARGIN_NS
    for table, at_ns in TIMES.items():
        found, wanted = rows_of(inbox, table), batch.tables[table].toPandas()
        wanted = wanted[wanted[at_ns] < known.until_ns]
        assert len(found) == len(wanted) > 1000
        keys = sorted({"event", "subscriber", at_ns} & set(found.columns))
        assert not found.duplicated(keys).any()
        order = [each.sort_values(keys).reset_index(drop=True) for each in (found, wanted)]
        pd.testing.assert_frame_equal(order[0][keys], order[1][keys])


def test_what_comes_later_than_the_margin_is_imported_late_and_told_of_where_it_leads_nowhere(
    spark, tmp_path, inbox
):
    def at(second):
        return EPOCH_NS + round(second * 1e9)

    def look(*spans):
        receive(tmp_path / "spans", [line for _, line in spans], files=1)
        return following(spark, tmp_path).fetch(inbox)

    first = span("shop", PRODUCER, at(0), trace=1, own=1, topic="orders")
    assert look(first, span("shop", PRODUCER, at(20), trace=2, own=2, topic="orders")) == ""
    assert rows_of(inbox, "publications")["published_ns"].tolist() == [at(0)]
    late = span("shop", PRODUCER, at(5), trace=3, own=3, topic="orders")
    lost = span("billing", CONSUMER, at(1), trace=1, own=4, parent=1, topic="orders")
    assert look(late, lost, span("shop", PRODUCER, at(30), trace=4, own=5, topic="orders")) == ""
    found = rows_of(inbox, "publications")["published_ns"]
    assert sorted(found) == [at(0), at(5), at(20)]
    assert rows_of(inbox, "deliveries")["received_ns"].tolist() == [at(1)]
    gone = span("billing", CONSUMER, at(2), trace=1, own=6, parent=1, topic="orders")
    told = look(gone, span("shop", PRODUCER, at(60), trace=5, own=7, topic="orders"))
    assert told == f"1 deliveries were set aside: {NO_PUBLICATION}"  # its file is done with


def test_spans_of_times_to_come_hold_nothing_up(spark, tmp_path, inbox):
    """A clock that is wrong: what others send is imported as ever, and the file is let go."""
    ahead = span("shop", PRODUCER, EPOCH_NS * 2, trace=1, own=1, topic="orders")
    usual = [
        span("till", PRODUCER, EPOCH_NS + n * SECOND_NS, trace=n, own=n, topic="sales")
        for n in (2, 30, 60)
    ]
    receive(tmp_path / "spans", [ahead[1], *(line for _, line in usual)], files=1)
    told = following(spark, tmp_path).fetch(inbox)
    assert told.startswith("1 spans are dated more than a margin ahead")
    assert len(rows_of(inbox, "publications")) == 2
    (latest_ns,) = Followed.read(inbox.newest("spans")).files.values()
    assert latest_ns == usual[-1][0] + 1000


def test_a_consumer_that_the_system_does_not_have_subscribes_once(spark, tmp_path, inbox):
    """Since a moment that no period before it has been counted at; the system's from ever."""
    for number in range(3):
        begin_ns = EPOCH_NS + 60 * number * SECOND_NS
        lines = []
        for n, second in enumerate((1, 20, 50)):
            own = 100 * number + 10 * n + 1
            at_ns = begin_ns + second * SECOND_NS
            lines.append(span("shop", PRODUCER, at_ns, trace=own, own=own, topic="orders")[1])
            for m, name in enumerate(("billing", "robot")[: number + 1]):
                got = {"trace": own, "own": own + 1 + m, "parent": own, "topic": "orders"}
                lines.append(span(name, CONSUMER, at_ns + 5, **got)[1])
        receive(tmp_path / "spans", lines, files=1)
        following(spark, tmp_path).fetch(inbox)
        if number == 0:
            until_ns = Followed.read(inbox.newest("spans")).until_ns
    rows = rows_of(inbox, "subscriptions")
    assert sorted(rows["subscriber"]) == ["audit", "billing", "ledger", "robot"]
    robot = rows.set_index("subscriber").loc["robot"]
    assert (robot["filter"], robot["at_ns"]) == ('{"topic":"orders"}', until_ns - MARGIN_NS)
    assert (rows.loc[rows["subscriber"] != "robot", "at_ns"] == 0).all()


def test_files_that_cannot_be_read_are_asked_for_again(spark, tmp_path, inbox):
    feed = following(spark, tmp_path)
    line = span("shop", PRODUCER, EPOCH_NS, trace=1, own=1, topic="orders")[1]
    receive(tmp_path / "spans", [line], files=1)
    (file,) = span_files(tmp_path / "spans").values()
    text = file.read_bytes()
    file.unlink()
    file.symlink_to(tmp_path / "elsewhere" / "spans-1.jsonl")
    with pytest.raises((EngineError, InvalidTracesError)):
        feed.fetch(inbox)
    file.unlink()
    file.write_bytes(text)
    assert feed.fetch(inbox) == ""
    assert inbox.reached("spans") == 1
    assert [each.name for each in inbox.folder.iterdir() if each.name[0] == "."] == []


# ---- numbers -------------------------------------------------------------------------------------


def test_a_watch_of_spans_gives_the_numbers_of_importing_and_batch(spark, tmp_path):
    """Started anew before every look; once it is killed between importing and taking in."""
    source, store = tmp_path / "spans", tmp_path / "store"
    source.mkdir()
    folder, told = store / "watch", []

    def feed():
        inbox = Inbox(folder / "incoming")
        return FetchedSource(following(spark, tmp_path), inbox)

    def look():
        closing = Closing(
            source=Inbox(folder / "incoming").folder, store=store, base=SYSTEM, period_s=10.0,
            margin_s=MARGIN_S,
        )  # fmt: skip
        plan = WatchPlan(closing=closing, system=SYSTEM, name="spans", folder=folder, feed=feed())
        with watching(plan, spark, told.append, lambda _: None) as watcher:
            return watcher.round()

    for number, lines in enumerate(slices_of(spans_of_messages(3 * SLICE_S, 2), 2, 3)):
        receive(source, lines)
        if number == 1:
            feed().fetch()
        state = look()
        assert state.health.problem == ""
    assert told == []
    assert (state.health.late_rows, state.health.set_aside_rows) == (0, 0)
    traces = imported(spark, source, tmp_path / "batch")
    parts = read_catalogue(store).parts
    window = TraceWindow(from_ns=parts[0].from_ns, until_ns=parts[-1].until_ns)
    assert window.seconds > 25.0
    counted = {
        name: frame.where(f"{TIMES[name]} < {window.until_ns}") if name in TIMES else frame
        for name, frame in traces.tables.items()
    }
    batch = td.characterise(replace(traces, tables=counted, window=window), base=SYSTEM)
    found = characterise_store(store, SYSTEM)
    paths = [each.parameters.set_index("path")["estimate"].sort_index() for each in (found, batch)]
    assert len(paths[1]) >= 8
    pd.testing.assert_series_equal(*paths, rtol=1e-9)
    columns = ["subscriber", "events", "wanted_per_s", "delivered", "on_time", "late"]
    outcomes = [each.measured.subscribers[columns] for each in (found, batch)]
    pd.testing.assert_frame_equal(*outcomes, rtol=1e-9)
    assert 0.1 < outcomes[0]["on_time"].min() < 0.9  # by the rule's lifetime
    late = span("shop", PRODUCER, EPOCH_NS + 1, trace=10**8, own=10**8, topic="orders")
    receive(source, [late[1]], files=1)
    state = look()
    assert state.health.late_rows == 2  # a publication, and that it passed the broker
    again = characterise_store(store, SYSTEM).measured.subscribers[columns]
    pd.testing.assert_frame_equal(again, outcomes[0])


# ---- folders -------------------------------------------------------------------------------------


def test_what_comes_into_a_file_that_is_being_written_is_waited_for(
    spark, tmp_path, inbox, monkeypatch
):
    """Until it has its name; of one whose receiver was killed nothing comes any more."""
    monkeypatch.setattr(appending_module.time, "time_ns", lambda: EPOCH_NS + 10 * SECOND_NS)
    lines = [
        span("shop", PRODUCER, EPOCH_NS + n * SECOND_NS, trace=n, own=n, topic="orders")[1]
        for n in (1, 11, 12, 60)
    ]
    slow = Appending(tmp_path / "spans", most_s=1000.0)
    slow.append(f"{lines[1]}\n".encode())
    receive(tmp_path / "spans", [lines[0], *lines[2:]], files=1)
    assert written_since_ns(tmp_path / "spans") == EPOCH_NS + 10 * SECOND_NS
    feed = following(spark, tmp_path)
    for _ in range(2):
        feed.fetch(inbox)
    assert len(rows_of(inbox, "publications")) == 1
    slow.close()
    assert written_since_ns(tmp_path / "spans") is None
    feed.fetch(inbox)
    assert len(rows_of(inbox, "publications")) == 3
    abandoned = next(iter(span_files(tmp_path / "spans").values()))
    abandoned.rename(abandoned.with_name(f".{abandoned.name}.part"))
    assert written_since_ns(tmp_path / "spans") is None


def test_a_folder_has_spans_or_trace_tables(tmp_path):
    def folder(name, *files):
        for each in files:
            path = tmp_path / name / each
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        (tmp_path / name).mkdir(exist_ok=True)
        return tmp_path / name

    for number, files in enumerate(
        (["spans-1.jsonl"], ["spans-1.jsonl.gz", "notes.txt"], [".spans-1.jsonl.part"], [".spans"])
    ):
        assert is_of_spans(folder(f"spans {number}", *files))
    for number, files in enumerate(
        (
            [],
            ["traces.json"],
            ["hops/1.parquet"],
            ["2026/hops.jsonl.gz"],
            ["hops.csv", "a.txt"],
            ["a.txt"],
        )
    ):
        assert not is_of_spans(folder(f"tables {number}", *files))
    assert not is_of_spans(tmp_path / "nowhere")
    with pytest.raises(InvalidTracesError, match=r"both spans \(spans-1\.jsonl\) and trace tables"):
        is_of_spans(folder("both", "spans-1.jsonl", "day/hops/1.parquet"))
    with pytest.raises(InvalidTracesError, match=r"got a\.jsonl; wants files of trace tab"):
        is_of_spans(folder("neither", "a.jsonl", "b.txt"))
    SpanReceiver(ReceiveSettings(folder=tmp_path / "receiver"))
    assert is_of_spans(tmp_path / "receiver")


def test_what_spans_cannot_be_watched_with_is_refused_before_spark_starts(tmp_path, capsys):
    source, known = tmp_path / "spans", tmp_path / "system.yaml"
    source.mkdir()
    (tmp_path / "tables").mkdir()
    td.save(SYSTEM, known)
    options = ["--system", str(known), "--store", str(tmp_path / "store"), "--once"]
    assert run(["watch", str(tmp_path / "tables"), *options, "--lifetime", "5s"]) == 2
    assert "--lifetime is for spans" in capsys.readouterr().err
    (source / "spans-1.jsonl").touch()
    links = "links: [{between: [broker, second]}]"
    text = known.read_text().replace(
        "\nbrokers:\n", f"\n{links}\nbrokers:\n  second: {{service: 0s}}\n"
    )
    known.write_text(text)
    assert run(["watch", str(source), *options]) == 2
    assert "wants a system with one" in capsys.readouterr().err
    (source / "hops.csv").touch()
    assert run(["watch", str(source), *options]) == 2
    assert "got both spans" in " ".join(capsys.readouterr().err.split())
    assert STATE not in {each.name for each in (tmp_path / "store").rglob("*")}
