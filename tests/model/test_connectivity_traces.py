from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidings.errors import InvalidInputError, InvalidSystemError
from tidings.model.behaviour import Connectivity
from tidings.model.connectivity_traces import periods_of
from tidings.model.reading import loads

TOLD = [  # ON 0–1, OFF 1–3, ON 3–6, OFF 6–8, ON 8–12; some states told again while they last
    ("x", "connected", 0),
    ("x", "disconnected", 1),
    ("x", "disconnected", 2),
    ("x", "connected", 3),
    ("x", "connected", 5),
    ("x", "disconnected", 6),
    ("x", "connected", 8),
    ("x", "connected", 12),
]


def table(tmp_path, rows, name="sessions.parquet"):
    peers, states, seconds = zip(*rows, strict=True)
    at_ns = [10**9 * each for each in seconds]
    found = pa.table({"peer": peers, "state": states, "at_ns": at_ns})
    pq.write_table(found, tmp_path / name)
    return str(tmp_path / name)


def test_resampled_are_whole_periods_only(tmp_path):
    found = periods_of(Connectivity(trace=table(tmp_path, TOLD)), "x")
    assert found.on.edges_s == (3.0, 3.0)  # its first and its last time ON were cut off
    assert found.off.edges_s == (2.0, 2.0)
    assert found.loop_s == ()
    assert found.connected == pytest.approx(3.0 / 5.0, rel=1e-15)


def test_a_loop_is_all_that_was_seen_and_its_end_goes_on_with_its_beginning(tmp_path):
    found = periods_of(Connectivity(trace=table(tmp_path, TOLD), replay="loop"), "x")
    assert found.loop_s == (3.0, 2.0, 5.0, 2.0)  # the last 4 s and the first 1 s are one time ON
    assert found.connected == pytest.approx(8.0 / 12.0, rel=1e-15)


def test_a_loop_that_begins_off_and_ends_off_or_on_is_turned(tmp_path):
    begins_off = [("x", "disconnected", -2), *TOLD[:-2]]  # OFF, ON, OFF, ON, and OFF no time at all
    found = periods_of(Connectivity(trace=table(tmp_path, begins_off), replay="loop"), "x")
    assert found.loop_s == (1.0, 2.0, 3.0, 2.0)
    ends_off = [*begins_off, ("x", "disconnected", 7)]
    found = periods_of(Connectivity(trace=table(tmp_path, ends_off, "o"), replay="loop"), "x")
    assert found.loop_s == (1.0, 2.0, 3.0, 3.0)


def test_a_peers_own_rows_count_or_else_all(tmp_path):
    other = [("y", state, 10 * second) for _, state, second in TOLD]
    trace = table(tmp_path, TOLD + other)
    assert periods_of(Connectivity(trace=trace), "y").on.edges_s == (30.0, 30.0)
    pooled = periods_of(Connectivity(trace=trace), "somebody else")
    assert pooled.on.cdf([3.0, 29.9, 30.0]).tolist() == [0.5, 0.5, 1.0]
    with pytest.raises(InvalidInputError, match="2 peers and none of them 'z'"):
        periods_of(Connectivity(trace=trace, replay="loop"), "z")


def test_a_csv_needs_no_peer(tmp_path):
    file = tmp_path / "one.csv"
    lines = [f"{state},{10**9 * second}" for _, state, second in TOLD]
    file.write_text("\n".join(["state,at_ns", *lines]) + "\n")
    found = periods_of(Connectivity(trace=str(file)), "anybody")
    assert found == periods_of(Connectivity(trace=table(tmp_path, TOLD)), "x")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("state,at_ns\nup,1\n", "the state 'up' in row 1; wants connected or disconnected"),
        ("state,at_ns\nconnected,1.5\n", "at_ns 1.5 in row 1; wants whole nanoseconds"),
        ("state,when\nconnected,1\n", "no column 'at_ns'"),
        ("state,at_ns\n", "no rows"),
        ("state,at_ns\nconnected,1\ndisconnected,5\n", "0 complete periods connected"),
    ],
)
def test_what_is_wrong_with_a_trace_is_told(tmp_path, text, said):
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(InvalidInputError, match=r"connectivity trace .*bad\.csv: got ") as error:
        periods_of(Connectivity(trace=str(file)), "p")
    assert said in str(error.value)


def test_a_trace_that_is_not_there_is_told(tmp_path):
    with pytest.raises(InvalidInputError, match=r"nowhere\.csv: got .*; wants a file"):
        periods_of(Connectivity(trace=str(tmp_path / "nowhere.csv")), "p")


SYSTEM = """
tidings: 1
brokers: {{hub: {{}}}}
publishers: {{p: {{at: hub, {publisher}, content: {{event: {{k: 1}}}}}}}}
subscribers: {{s: {{at: hub, wants: {{}}}}}}
"""


@pytest.mark.parametrize(
    ("publisher", "said"),
    [
        ("every: 1s, connectivity: {on: 1s, off: 1s, replay: loop}", "wants a 'trace'"),
        ("rates: {slot: 1h, per_s: [0, 0]}", "wants at least one rate above 0"),
    ],
)
def test_fields_that_would_mean_nothing_are_refused(publisher, said):
    with pytest.raises(InvalidSystemError, match=said):
        loads(SYSTEM.format(publisher=publisher))


@pytest.mark.parametrize("pair", [("connected", "disconnected"), ("disconnected", "connected")])
@pytest.mark.parametrize("at", [2, 4, 0, 12])  # while OFF, while ON, at either end
def test_both_states_told_at_once_change_nothing(tmp_path, pair, at):
    plain = [row for row in TOLD if row[2] != at]
    if at in (0, 12):  # what is left of the ends: the state next to them
        plain.append(("x", "connected", 5 if at == 0 else 9))
    told = [*plain, *(("x", state, at) for state in pair)]
    for replay in ("loop", "resample"):
        found, expected = (
            periods_of(
                Connectivity(trace=table(tmp_path, rows, f"{i}{replay}"), replay=replay), "x"
            )
            for i, rows in enumerate((told, _ending(plain, at)))
        )
        assert found.loop_s == expected.loop_s
        assert (found.on, found.off) == (expected.on, expected.off)


def _ending(rows, at):
    """The rows, with the last state told again at a moment after them all."""
    last = max(rows, key=lambda row: row[2])
    return [*rows, ("x", last[1], at)] if at > last[2] else rows


def test_a_trace_of_contradictions_alone_is_refused(tmp_path):
    both = [("x", state, at) for at in range(4) for state in ("connected", "disconnected")]
    with pytest.raises(InvalidInputError, match="0 complete periods connected and 0 disconnected"):
        periods_of(Connectivity(trace=table(tmp_path, both)), "x")
