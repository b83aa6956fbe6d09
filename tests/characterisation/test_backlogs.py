"""What waits as traces end, counted by hand; and catching up from there."""

from __future__ import annotations

import contextlib
import json

import pytest

from tidings.characterisation.count.backlogs import backlogs, choose_backlog
from tidings.cli import spark as commands_spark
from tidings.cli.commands import run
from tidings.errors import InvalidInputError
from tidings.model.reading import loads
from tidings.model.trace_tables import TRACE_TABLES
from tidings.traces.actions import bring_here
from tidings.traces.reading import read_rows
from tidings.traces.window import TraceWindow

pytestmark = pytest.mark.usefixtures("few_rows")

END = 100
WINDOW = TraceWindow(from_ns=0, until_ns=END)
POLLS = [
    ("orders", "a", 90, 50, 20),
    ("orders", "a", 99, 70, 30),  # the last one before the end
    ("orders", "a", 101, 90, 90),
    ("orders", "b", 99, 8, 5),
    ("mail", None, 99, 8, 8),
    ("torn", None, 99, 1, 8),  # more done than entered
]
HOPS = [
    ("e1", "hub", "p", 90, 95, 99),
    ("e2", "hub", "p", 91, 99, 103),
    ("e2", "hub", "p", 91, 99, 103),  # the same row again
    ("e3", "hub", "p", 98, None, 120),
    ("e4", "hub", "p", 102, 103, 104),
]
DELIVERIES = [
    ("e1", "desk", "hub", 130),  # left the hub before the end
    ("e1", "fast", "hub", 99),
    ("e2", "desk", "hub", 140),
]


@pytest.fixture(scope="module")
def tables(frame):
    rows = {
        "levels": (POLLS, "queue string, part string, at_ns bigint, entered bigint, done bigint"),
        "hops": (
            HOPS,
            "event string, broker string, came_from string, arrived_ns bigint, "
            "started_ns bigint, left_ns bigint",
        ),
        "deliveries": (
            DELIVERIES,
            "event string, subscriber string, broker string, received_ns bigint",
        ),
    }
    return {
        name: read_rows(frame(given, ddl), TRACE_TABLES[name])
        for name, (given, ddl) in rows.items()
    }


def test_what_is_in_queues_as_the_window_ends(tables):
    found = bring_here(backlogs(tables, WINDOW), "backlogs")
    assert sorted(found.itertuples(index=False, name=None)) == [
        ("desk", 1, "deliveries"),
        ("hub", 2, "hops"),
        ("orders", 43, "levels"),
    ]


SHOP = """
tidings: 1
lifetime: 1s
brokers: {hub: {}}
publishers: {shop: {at: hub, every: {deterministic: 13ms}, content: {event: {topic: orders}}}}
subscribers:
  orders: {at: hub, wants: {topic: orders}, processing: {deterministic: 10ms}, consumers: 1}
  desk: {at: hub, wants: {topic: none}}
"""


def test_a_queue_is_named_where_several_hold_events(tables):
    rows, system = bring_here(backlogs(tables, WINDOW), "backlogs"), loads(SHOP)
    assert choose_backlog(rows, system, "orders") == ("orders", 43)
    with pytest.raises(InvalidInputError, match=r"desk \(1\), hub \(2\), orders \(43\); name one"):
        choose_backlog(rows, system, None)
    with pytest.raises(InvalidInputError, match="nothing was in 'mail'"):
        choose_backlog(rows, system, "mail")
    with pytest.raises(InvalidInputError, match="any queue of the system"):
        choose_backlog(rows[:0], system, None)


def test_catching_up_from_counters_is_catching_up_from_what_they_count(
    spark, tmp_path, capsys, monkeypatch
):
    (tmp_path / "shop.yaml").write_text(SHOP)
    traces = tmp_path / "traces"
    traces.mkdir()
    lines = [{"queue": "orders", "at_ns": t, "entered": 9 * t, "done": 0} for t in (1, 4, 9)]
    (traces / "levels.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    given = contextlib.nullcontext(spark)
    monkeypatch.setattr(commands_spark, "started", lambda *_, **__: given)
    told = []
    for words in (["--traces", str(traces)], ["--backlog", "orders=80"]):  # one is being handled
        asked = ["catchup", str(tmp_path / "shop.yaml"), *words, "--replications", "2", "--json"]
        assert run(asked) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1]
    assert told[0]["catch_up"]["backlog"] == 80
    assert run(["catchup", str(tmp_path / "shop.yaml"), "--queue", "orders"]) == 2
