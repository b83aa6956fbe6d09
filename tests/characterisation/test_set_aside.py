"""Every row that was set aside is found again, with the reason that the account has for it."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from tidings.characterisation.count.set_aside import (
    EXAMPLE_COLUMNS,
    MOST_EXAMPLES,
    SetAside,
    look_at,
    rows_set_aside,
)
from tidings.characterisation.fit.exhibits import quality_sections
from tidings.characterisation.fit.quality import QUALITY_COLUMNS, SET_ASIDE, BadTexts
from tidings.characterisation.job import counted_only
from tidings.traces.reading import read_traces

S = 10**9
EVENTS = 40
TOPIC = '"{""topic"":""a""}"'
TORN = "it does not have as many columns as the header"
# what is wrong: the table, the line or row, why
PLANTED = {
    ("publications", 5, TORN),
    ("publications", 9, "a different publication has the same id"),
    ("publications", 42, "content is not an event in JSON"),
    ("publications", 43, "a different publication has the same id"),
    ("publications", 44, "published outside the observed window"),
    ("hops", 4, "not one object in JSON"),
    ("hops", 42, "it left before it arrived"),
    *(("hops", line, "arrived_ns is negative") for line in range(43, 53)),
    ("deliveries", 4, "its publication is missing or was set aside"),  # the torn one
    ("deliveries", 8, "its publication is missing or was set aside"),  # nobody knows which
    ("deliveries", 41, "its publication is missing or was set aside"),
    ("deliveries", 42, "it was received before it was published"),
    ("subscriptions", 3, "filter is not a filter in JSON"),
    ("subscriptions", 4, "action is unknown"),
    ("states", 2, "changed outside the observed window"),
    ("sessions", 4, "changed after the observed window"),
}


def at_ns(n):
    return n * S // 10 + n * 7919 % 97 * 10**6


def write(folder):
    """Tables in three formats, with what is planted."""
    sent = [f"e{n},p,hub,{at_ns(n)},{TOPIC},{S}" for n in range(EVENTS)]
    sent[3] = sent[3].removesuffix(f",{S}")
    sent += ["e90,p,hub,5,nonsense,5", f"e7,p,hub,12,{TOPIC},5", f"e91,p,hub,{9 * S},{TOPIC},5"]
    head = "event,publisher,broker,published_ns,content,lifetime_ns"
    (folder / "publications.csv").write_text("\n".join([head, *sent]))
    hop = {"event": "e1", "broker": "hub", "came_from": "p"}
    seen = [
        json.dumps({**hop, "event": f"e{n}", "arrived_ns": at, "started_ns": at, "left_ns": at + 9})
        for n in range(EVENTS)
        for at in [at_ns(n)]
    ]
    seen.insert(3, "{} {}")
    seen.append(json.dumps({**hop, "arrived_ns": 5, "left_ns": 2}))
    seen += [json.dumps({**hop, "arrived_ns": -5, "left_ns": 2})] * 10
    (folder / "hops.jsonl").write_text("\n".join(seen))
    got = [(f"e{n}", "s", "hub", at_ns(n) + 5 * 10**6) for n in range(EVENTS)]
    got += [("ghost", "s", "hub", 77), ("e12", "s", "hub", 1)]
    columns = ["event", "subscriber", "broker", "received_ns"]
    pd.DataFrame(got, columns=columns).to_parquet(folder / "deliveries.parquet")
    (folder / "subscriptions.csv").write_text(
        "subscription,subscriber,broker,action,at_ns,filter\n"
        'q,s,hub,subscribe,0,"{""topic"":""a""}"\nr,s,hub,subscribe,0,x\nt,s,hub,dance,0,{}\n'
    )
    (folder / "states.csv").write_text(f"component,state,at_ns\nhub,down,{9 * S}\n")
    (folder / "sessions.csv").write_text(
        f"peer,state,at_ns\ns,connected,0\n\ns,disconnected,{9 * S}\n"
    )
    (folder / "traces.json").write_text(json.dumps({"version": 1, "from_ns": 0, "until_ns": 4 * S}))


ACCOUNT = pd.DataFrame(
    [(table, SET_ASIDE, why, 1) for table, _, why in PLANTED], columns=list(QUALITY_COLUMNS)
)


@pytest.fixture(scope="module")
def found(spark, few_rows, tmp_path_factory):
    """What was found again, and the folder with all of it."""
    folder = tmp_path_factory.mktemp("traces")
    write(folder)
    traces = read_traces(spark, folder)
    bad = BadTexts(contents=("nonsense",), filters=("x",))
    rows = rows_set_aside(traces, ACCOUNT, traces.window, bad)
    to = folder.parent / "aside"
    return look_at(rows, to), to


@pytest.mark.slow
def test_every_row_set_aside_is_written_with_its_reason_and_line(found):
    aside, to = found
    written = [
        (place.name, row.line, row.reason)
        for place in to.iterdir()
        for row in pd.read_parquet(place).itertuples()
    ]
    assert sorted(written) == sorted(PLANTED)
    assert aside.rows == len(PLANTED)
    texts = pd.read_parquet(to / "hops").set_index("line")["text"]
    assert texts[4] == "{} {}"
    assert json.loads(pd.read_parquet(to / "deliveries").set_index("line")["text"][41]) == {
        "event": "ghost", "subscriber": "s", "broker": "hub", "received_ns": 77,
    }  # fmt: skip


@pytest.mark.slow
def test_a_few_of_each_reason_are_shown(found):
    examples = found[0].examples
    assert tuple(examples.columns) == EXAMPLE_COLUMNS
    assert {(row.table, row.line, row.reason) for row in examples.itertuples()} <= PLANTED
    few = examples.groupby(["table", "reason"]).size()
    assert 1 < few.max() <= MOST_EXAMPLES
    assert set(few.index) == {(table, why) for table, _, why in PLANTED}
    nothing = pd.DataFrame({"what": [], "number": [], "of": [], "share": []})
    first = quality_sections(ACCOUNT, nothing, {}, pd.DataFrame(), examples=examples)[0]
    (grid,) = [each for each in first.exhibits if "set aside" in each.title]
    assert len(grid.rows) == len(examples)
    assert any("publications.csv:5" in cell for row in grid.rows for cell in row)


def test_what_cannot_be_found_again_is_told():
    quality = pd.DataFrame(
        [("hops", "used", "", 9), ("hops", "set aside", "why", 5)],
        columns=["table", "fate", "reason", "rows"],
    )
    nothing = pd.DataFrame(columns=list(EXAMPLE_COLUMNS))
    assert list(counted_only(quality, SetAside(examples=nothing, rows=5))) == []
    (said,) = counted_only(quality, SetAside(examples=nothing, rows=3))
    assert said.startswith("2 of 5 rows set aside are counted, but not written")
