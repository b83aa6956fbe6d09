"""Rows that cannot be true, and copies, change no statistic; those that count rows count them."""

from __future__ import annotations

import pytest

from tidings.characterisation.count.links import (
    loss_run_statistics,
    probe_statistics,
)
from tidings.characterisation.count.periods import peer_periods, state_periods, stay_periods
from tidings.characterisation.count.routing import sample_counts, usage_statistics
from tidings.model.trace_tables import TRACE_TABLES
from tidings.traces.window import TraceWindow

S = 1_000_000_000
WINDOW = TraceWindow(from_ns=0, until_ns=32 * S)  # a batch a second

GOOD = {
    "publications": [("e1", "p", "hub", S, "{}", None, None)],
    "hops": [("e1", "hub", "p", S, S, 2 * S, [])],
    "probes": [("a", "b", n * S // 3, None if n % 3 else n * S // 3 + 7) for n in range(12)],
    "states": [("hub", "down" if n % 2 else "up", n * n * S) for n in range(5)],
    "sessions": [("bob", "disconnected" if n % 2 else "connected", n * n * S) for n in range(5)],
    "subscriptions": [
        ("s", "ann", "hub", "unsubscribe" if n % 2 else "subscribe", n * n * S + 1, "{}")
        for n in range(5)
    ],
    "utilisation": [("hub", "cpu", 3 * S, 2 * S, 0.5), ("hub", "cpu", 9 * S, S, 0.25)],
}
BAD = {
    "publications": [("", "p", "hub", S, "{}", None, None), ("e1", "", "hub", S, "{}", None, None)],
    "hops": [("e1", "", "p", S, S, 2 * S, []), ("e1", "hub", "p", S, S, S // 2, [])],
    "probes": [("", "b", S, 2 * S), ("a", "b", None, S), ("a", "b", -S, None)],
    "states": [
        ("", "down", S), ("hub", "dn", S), (None, "down", S), ("hub", "down", None),
        ("hub", "down", -1), ("hub", "down", 99 * S),
    ],
    "sessions": [
        ("", "disconnected", S), ("bob", "off", S), ("bob", "disconnected", None),
        ("bob", "disconnected", -1), ("bob", "disconnected", 99 * S),
    ],
    "subscriptions": [
        ("s", "ann", "hub", "subscribe", S, None), ("s", "", "hub", "unsubscribe", S, None),
        ("s", "ann", "hub", "leave", S, "{}"), ("s", "ann", "hub", "unsubscribe", None, "{}"),
        ("s", "ann", "hub", "unsubscribe", -1, "{}"),
    ],
    "utilisation": [
        ("hub", "cpu", 2 * S, S, 1.5), ("hub", "cpu", 2 * S, 0, 0.5), ("hub", "", 2 * S, S, 0.5),
        ("hub", "cpu", -1, S, 0.5), ("hub", "cpu", S, S, float("nan")), ("hub", "cpu", S, S, None),
    ],
}  # fmt: skip
STATISTICS = {
    "delays and clocks": ("probes", lambda t: probe_statistics(t["probes"])),
    "losses in a row": ("probes", lambda t: loss_run_statistics(t["probes"], WINDOW)),
    "up and down": ("states", lambda t: state_periods(t["states"], WINDOW)),
    "connected": ("sessions", lambda t: peer_periods(t["sessions"], WINDOW)),
    "stays": ("subscriptions", lambda t: stay_periods(t["subscriptions"], WINDOW)),
    "samples": ("utilisation", lambda t: sample_counts(t["utilisation"])),
    "usage": (
        "utilisation",
        lambda t: usage_statistics(t["utilisation"], t["hops"], t["publications"], WINDOW),
    ),
}


# Copies change these by themselves; where some are seen, the probes are brought to one row each.
NEEDS_EACH_ONCE = ("delays and clocks",)


@pytest.fixture(scope="module")
def tables(frame, few_rows):
    """The good rows of every table; bad ones too; or all but hops twice, the first thrice."""
    ddl = {name: TRACE_TABLES[name].ddl.replace(" NOT NULL", "") for name in GOOD}
    dirty = {name: BAD[name][:1] + rows + BAD[name][1:] for name, rows in GOOD.items()}
    copied = {name: rows[:1] + rows + rows for name, rows in GOOD.items()} | {"hops": GOOD["hops"]}
    kinds = {"clean": GOOD, "dirty": dirty, "copied": copied}
    return {
        kind: {name: frame(rows[name], ddl[name]) for name in GOOD} for kind, rows in kinds.items()
    }


def found(tables, name):
    return [row.asDict() for row in STATISTICS[name][1](tables).collect()]


@pytest.mark.parametrize("name", STATISTICS)
def test_rows_that_cannot_be_true_change_nothing(tables, name):
    table = STATISTICS[name][0]
    clean, dirty = (found(tables[kind], name) for kind in ("clean", "dirty"))
    used = [row for row in dirty if row.get("reason") is None]
    assert sorted(map(repr, used)) == sorted(map(repr, clean))
    assert clean
    if "reason" in dirty[0]:
        good, read = (sum(row["rows"] or 0 for row in rows) for rows in (used, dirty))
        assert (good, read) == (len(GOOD[table]), len(GOOD[table]) + len(BAD[table]))


@pytest.mark.parametrize("name", [name for name in STATISTICS if name not in NEEDS_EACH_ONCE])
def test_copies_change_nothing_and_are_counted(tables, name):
    table = STATISTICS[name][0]
    clean, copied = both = [found(tables[kind], name) for kind in ("clean", "copied")]
    told = [sorted(repr(_told(row)) for row in rows if row.get("count") != 0) for rows in both]
    assert told[0] == told[1]
    if "duplicates" in clean[0]:
        assert sum(row["duplicates"] or 0 for row in clean) == 0
        assert sum(row["duplicates"] or 0 for row in copied) == len(GOOD[table]) + 1


def _told(row):
    """What a row tells, but for how many rows it stands for."""
    return {key: value for key, value in row.items() if key not in ("rows", "duplicates")}
