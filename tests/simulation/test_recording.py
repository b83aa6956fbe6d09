from __future__ import annotations

import json
import math

import pandas as pd
import pyarrow.parquet as pq
import pytest

from tidings.errors import InvalidInputError, UnsupportedError
from tidings.model.events import parse_event
from tidings.model.filters import as_filter, matches
from tidings.model.reading import loads
from tidings.model.trace_tables import TRACE_TABLES
from tidings.simulation.recording import record, write_traces
from tidings.simulation.run import replicate
from tidings.simulation.trace_rows import EPOCH_NS, ROWS_AT_ONCE

SYSTEM = """
tidings: 1
lifetime: 40ms
brokers:
  hub: {service: {exponential: 7ms}}
  east: {service: {uniform: [0ms, 8ms]}}
  west: {}
links:
  - {between: [hub, east], delay: {exponential: 5ms}, reliability: 0.95}
  - {between: [hub, west], delay: 4ms}
publishers:
  p:
    at: east
    every: {exponential: 16ms}
    content:
      - {p: 0.5, event: {k: 1, note: x}}
      - {p: 0.2, event: {k: 1, note: y}}
      - {p: 0.3, event: {k: 2}, lifetime: 25ms, size: 64B}
  q: {at: west, every: {exponential: 20ms}, content: {event: {k: 1}}, link: {delay: 1ms}}
subscribers:
  a: {at: west, wants: {k: 1}}
  a-too: {at: west, wants: {k: 1}}
  b: {at: east, wants: {}}
  c: {at: hub, wants: {k: 2}, link: {reliability: 0.9, delay: {exponential: 3ms}}}
  d: {at: hub, wants: {k: 2}}
  e: {at: hub, wants: {k: 2}, link: {delay: 1ms}}
"""


@pytest.fixture(scope="module")
def recording():
    return record(loads(SYSTEM), seed=3, duration_s=400.0, probes_per_s=2.0)


@pytest.fixture(scope="module")
def tables(recording):
    return {name: table.to_pandas() for name, table in recording.tables.items()}


def test_tables_have_exactly_the_canonical_columns(recording):
    assert set(recording.tables) == {
        "publications", "hops", "deliveries", "probes", "subscriptions",
    }  # fmt: skip
    for name, table in recording.tables.items():
        wanted = TRACE_TABLES[name].columns
        assert table.schema.names == [column.name for column in wanted]
        for column in wanted:
            field = table.schema.field(column.name)
            assert field.nullable == column.nullable
            assert column.nullable or table[column.name].null_count == 0
            words = {
                "string": "string",
                "int64": "bigint",
                "list<element: string>": "array<string>",
            }
            words["list<item: string>"] = "array<string>"
            assert words[str(field.type)] == column.type


def test_the_traces_tell_what_the_simulator_counted(recording, tables):
    published = tables["publications"].set_index("event")[["published_ns", "lifetime_ns"]]
    arrived = tables["deliveries"].join(published, on="event")
    delay_ns = arrived["received_ns"] - arrived["published_ns"]
    arrived["on_time"] = delay_ns <= arrived["lifetime_ns"]
    found = arrived.groupby("subscriber").agg(
        delivered=("event", "size"), on_time=("on_time", "sum")
    )
    counted = recording.outcome.subscribers.set_index("subscriber")
    for name in ("a", "a-too", "b", "c", "d", "e"):
        row = counted.loc[name]
        assert found.loc[name, "delivered"] == round(row["delivered"] * row["events"])
        # Nanoseconds may tip over an event whose delay is its lifetime to the nanosecond.
        assert abs(found.loc[name, "on_time"] - row["on_time"] * row["events"]) < 2.5
        assert row["events"] > 5_000
        mean_s = delay_ns[arrived["subscriber"] == name].mean() / 1e9
        assert mean_s == pytest.approx(row["delay_mean_s"], abs=1e-9)


def test_the_recorded_run_is_replication_0(recording):
    provenance = recording.outcome.provenance
    counts = replicate(
        loads(SYSTEM),
        seed=3,
        replication=0,
        warmup_s=provenance["warmup_s"],
        duration_s=provenance["duration_s"],
    )
    pairs = recording.outcome.pairs
    plain = pairs[pairs["subscriber"] != "a-too"]  # it shares its counts with a
    assert (plain["on_time"] * plain["events"]).sum() == pytest.approx(counts.on_time.sum())
    assert recording.tables["publications"].num_rows == counts.published.sum()


def test_every_event_is_followed_from_hop_to_hop(tables):
    hops = tables["hops"]
    assert (hops["arrived_ns"] <= hops["started_ns"]).all()
    assert (hops["started_ns"] <= hops["left_ns"]).all()
    assert not hops.duplicated(["event", "broker"]).any()
    published = tables["publications"].set_index("event")
    first = hops[hops["came_from"].isin(["p", "q"])].set_index("event")
    assert set(first.index) == set(published.index)  # publishers' links lose nothing here
    waited_ns = first["arrived_ns"] - published["published_ns"]
    assert waited_ns[first["came_from"] == "p"].eq(0).all()
    # Rounded to the nanosecond at both ends.
    assert waited_ns[first["came_from"] == "q"].between(999_999, 1_000_001).all()
    sent = hops.explode("sent_to").dropna(subset=["sent_to"])
    arrived = hops[~hops["came_from"].isin(["p", "q"])]
    both = sent.merge(
        arrived, left_on=["event", "broker", "sent_to"], right_on=["event", "came_from", "broker"]
    )
    assert len(both) == len(arrived)  # what arrived had been sent
    lossless = sent[(sent["broker"] == "west") | (sent["sent_to"] == "west")]
    assert len(lossless) == len(both[(both["broker_x"] == "west") | (both["sent_to_x"] == "west")])
    lossy = sent[(sent["broker"] == "east") | (sent["sent_to"] == "east")]
    lost = len(sent) - len(both)
    assert lost == pytest.approx(0.05 * len(lossy), abs=4.5 * math.sqrt(0.0475 * len(lossy)))


def test_deliveries_go_to_whom_wants_them(tables):
    filters = {
        row.subscriber: as_filter(json.loads(row.filter))
        for row in tables["subscriptions"].itertuples()
    }
    assert set(filters) == {"a", "a-too", "b", "c", "d", "e"}
    contents = tables["publications"].set_index("event")["content"].map(parse_event)
    sample = tables["deliveries"].sample(2_000, random_state=1)
    assert all(matches(filters[r.subscriber], contents[r.event]) for r in sample.itertuples())
    last = tables["hops"].set_index(["event", "broker"])["left_ns"]
    plain = tables["deliveries"][tables["deliveries"]["subscriber"].isin(["a", "b", "d"])]
    left = last.loc[pd.MultiIndex.from_frame(plain[["event", "broker"]])]
    assert (left.to_numpy() == plain["received_ns"].to_numpy()).all()


def test_contents_that_no_filter_tells_apart_are_told_apart_in_traces(tables):
    found = tables["publications"]
    p = found[found["publisher"] == "p"]
    shares = p["content"].value_counts(normalize=True)
    for text, share in (
        ('{"k":1,"note":"x"}', 0.5),
        ('{"k":1,"note":"y"}', 0.2),
        ('{"k":2}', 0.3),
    ):
        assert shares[text] == pytest.approx(
            share, abs=4.5 * math.sqrt(share * (1 - share) / len(p))
        )
    special = p["content"] == '{"k":2}'
    assert p.loc[special, "lifetime_ns"].eq(25_000_000).all()
    assert p.loc[~special, "lifetime_ns"].eq(40_000_000).all()
    assert p.loc[special, "size_bytes"].eq(64).all()
    assert p.loc[~special, "size_bytes"].isna().all()


def test_probes_meet_the_delay_and_loss_of_every_link(tables):
    probes = tables["probes"].assign(
        delay_s=lambda d: (d["received_ns"] - d["sent_ns"]) / 1e9,
        lost=lambda d: d["received_ns"].isna(),
    )
    by_link = probes.groupby(["source", "target"])
    assert set(by_link.groups) == {
        ("hub", "east"), ("east", "hub"), ("hub", "west"), ("west", "hub"), ("p", "east"),
        ("q", "west"), ("west", "a"), ("west", "a-too"), ("east", "b"), ("hub", "c"),
        ("hub", "d"), ("hub", "e"),
    }  # fmt: skip
    assert by_link.size().eq(800).all()
    assert by_link["lost"].mean()["hub", "east"] == pytest.approx(0.05, abs=4.5 * 0.0077)
    assert by_link["delay_s"].mean()["hub", "east"] == pytest.approx(0.005, abs=4.5 * 0.005 / 27)
    assert by_link["delay_s"].mean()["west", "hub"] == pytest.approx(0.004, abs=1e-9)
    assert by_link["delay_s"].mean()["west", "a"] == 0.0


def test_times_lie_in_the_window(recording, tables):
    assert recording.from_ns == EPOCH_NS
    assert recording.until_ns - recording.from_ns == 400 * 10**9
    for name, column in (("publications", "published_ns"), ("probes", "sent_ns")):
        assert tables[name][column].between(recording.from_ns, recording.until_ns).all()


def test_more_rows_than_the_tape_holds_are_all_there():
    # About 1.3 million rows of deliveries pass a tape of 65 536.
    system = loads(
        """
        tidings: 1
        brokers: {hub: {}}
        publishers: {p: {at: hub, every: {rate: 1000/s}, content: {event: {k: 1}}}}
        subscribers: {s: {at: hub, wants: {}}}
        """
    )
    found = record(system, duration_s=2.5 * ROWS_AT_ONCE / 1000, probes_per_s=0.01)
    count = found.tables["publications"].num_rows
    assert count > 2 * ROWS_AT_ONCE
    for name in ("hops", "deliveries"):
        assert found.tables[name].num_rows == count
    assert len(set(found.tables["hops"]["event"].to_pylist())) == count
    assert found.tables["publications"]["lifetime_ns"].null_count == count


def test_traces_are_written_whole_and_not_over_others(recording, tmp_path):
    folder = tmp_path / "deep" / "traces"
    write_traces(recording, folder)
    manifest = json.loads((folder / "traces.json").read_text())
    assert manifest == {
        "version": 1,
        "source": "simulated",
        "from_ns": recording.from_ns,
        "until_ns": recording.until_ns,
        "seed": 3,
    }
    for name, table in recording.tables.items():
        assert pq.read_table(folder / name).equals(table)
    with pytest.raises(InvalidInputError, match="exists already"):
        write_traces(recording, folder)
    (folder / "mark").touch()
    write_traces(recording, folder, overwrite=True)
    assert not (folder / "mark").exists()
    assert [path.name for path in folder.parent.iterdir()] == ["traces"]


@pytest.mark.parametrize(
    ("plain", "untold"),
    [
        ("{exponential: 7ms}", "{exponential: 7ms}, servers: 2"),
        ("{exponential: 7ms}", "{exponential: 7ms}, cpu: {service: 1ms}"),
        ("d: {at: hub, wants: {k: 2}", "d: {at: hub, wants: {k: 2}, lifetime: 15ms"),
    ],
)
def test_what_traces_could_not_tell_is_not_recorded(plain, untold):
    assert plain in SYSTEM
    with pytest.raises(UnsupportedError, match="recording as traces does not handle"):
        record(loads(SYSTEM.replace(plain, untold)), events=10)


WAITS = """
tidings: 1
lifetime: 40ms
size: 1kB
brokers: {a: {}, b: {service: {exponential: 10ms}, BLOCKING}}
links: [{between: [a, b], delay: 2ms, LINK}]
publishers: {p: {at: a, every: {rate: 60/s}, content: {event: {k: 1}}, PUBLISHER}}
subscribers: {s: {at: b, wants: {}, SUBSCRIBER}}
"""


@pytest.mark.parametrize(
    ("place", "waits", "told", "subscribers"),
    [
        ("LINK", "bandwidth: 100kB/s", "bandwidth", 1),
        ("BLOCKING", "buffer: 2, when_full: block", "blocked publishers", 1),
        ("PUBLISHER", "batch: {size: 3, linger: 20ms}", "publishers that send in batches", 1),
        ("SUBSCRIBER", "count: 2, link: {bandwidth: 100kB/s}", "bandwidth", 2),
        ("SUBSCRIBER", "count: 3, link: {delay: {exponential: 5ms}}", None, 3),
    ],
)
def test_rows_tell_of_everyone_when_it_came_and_a_remark_what_they_do_not(
    place, waits, told, subscribers
):
    text = WAITS.replace(place, waits)
    for other in ("LINK", "BLOCKING", "PUBLISHER", "SUBSCRIBER"):
        text = text.replace(f", {other}", "")
    found = record(loads(text), events=2_000, seed=4)
    published, came = (found.tables[name].to_pandas() for name in ("publications", "deliveries"))
    rows = found.outcome.subscribers.set_index("subscriber")
    assert len(rows) == subscribers
    came = came.merge(published, on="event")
    delay_ns = came["received_ns"] - came["published_ns"]
    on_time = (delay_ns <= came["lifetime_ns"]).groupby(came["subscriber"]).sum()
    for name, row in rows.iterrows():
        assert on_time[name] == round(row["on_time"] * row["events"])
        mine = delay_ns[came["subscriber"] == name].mean() / 1e9
        assert mine == pytest.approx(row["delay_mean_s"], abs=1e-8)
    kinds = [each.what for each in found.outcome.remarks if each.kind == "not in traces"]
    assert [told in each for each in kinds] == ([True] if told else [])
