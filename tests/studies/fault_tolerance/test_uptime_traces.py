from __future__ import annotations

import pandas as pd
import pytest

from studies.fault_tolerance.uptime_traces import (
    LEAST_PERIODS,
    Uptimes,
    read_uptimes,
    together,
)
from tidings.errors import InvalidInputError

BEGIN = pd.Timestamp("2024-01-01", tz="UTC")


def checks_of(site, states, *, monitor="m", every_s=600):
    """One check after another; 'u', 'd' and 'g' are up, down and degraded."""
    words = {"u": "up", "d": "down", "g": "degraded"}
    return pd.DataFrame(
        {
            "monitor": monitor,
            "site_id": site,
            "ts": [BEGIN + pd.Timedelta(seconds=every_s * n) for n in range(len(states))],
            "status": [words[state] for state in states],
        }
    )


def nodes(rows):
    columns = ("node_id", "event_type", "event_start_time", "event_stop_time")
    return pd.DataFrame(rows, columns=list(columns))


def test_nodes_have_whole_periods_but_for_what_the_end_cuts_off(tmp_path):
    rows = [(1, number % 2, 100 * number, 100 * number + 100) for number in range(60)]
    rows += [(2, 0, 50, 50), (2, 0, 5000, 6000)]
    nodes(rows).to_parquet(tmp_path / "mine_events.parquet")
    (trace,) = read_uptimes(tmp_path)
    assert (trace.name, trace.components, trace.empty) == ("mine", 2, 1)
    up_s, up_ended = trace.lengths(up=True)
    assert up_s.tolist() == [100.0] * 30
    assert up_ended.sum() == 29  # the last one reaches the end of the trace
    down_s, down_ended = trace.lengths(up=False)
    assert (down_s.max(), down_ended.sum()) == (1000.0, 30)


def test_checks_become_periods_and_what_was_not_seen_whole_is_known(tmp_path):
    busy = checks_of("a", "uu" + "dug" * LEAST_PERIODS + "d")
    busy.to_parquet(tmp_path / "events.parquet")
    (trace,) = read_uptimes(tmp_path / "events.parquet")
    first = trace.periods.iloc[0]
    assert (first["up"], first["begun"], first["ended"], first["length_s"]) == (
        True, False, True, 1200.0
    )  # fmt: skip
    up_s, ended = trace.lengths(up=True)
    assert up_s.tolist() == [1200.0] * LEAST_PERIODS  # degraded is up; the first is left out
    assert ended.all()
    down_s, _ = trace.lengths(up=False)
    assert down_s.tolist() == [600.0] * LEAST_PERIODS
    assert trace.empty == 1  # the last "down" was seen for no time at all


def test_a_last_period_is_cut_off(tmp_path):
    checks_of("a", "du" * LEAST_PERIODS + "dduuu").to_parquet(tmp_path / "events.parquet")
    (trace,) = read_uptimes(tmp_path)
    up_s, ended = trace.lengths(up=True)
    assert (up_s[-1], ended[-1]) == (1200.0, False)
    assert ended[:-1].all()


def test_sites_broken_on_purpose_and_monitors_not_wanted_are_left_out(tmp_path):
    good = "ud" * (LEAST_PERIODS + 2)
    parts = [checks_of("a", good), checks_of("b", good), checks_of("a", good, monitor="other")]
    pd.concat(parts).to_parquet(tmp_path / "events.parquet")
    sites = {"monitor": ["m", "m", "other"], "site_id": list("aba"), "test_target": [0, 1, 0]}
    pd.DataFrame(sites).astype({"test_target": bool}).to_parquet(tmp_path / "sites.parquet")
    (trace,) = read_uptimes(tmp_path, ["other"])
    assert set(zip(trace.periods["scope"], trace.periods["component"], strict=True)) == {("m", "a")}
    assert read_uptimes(tmp_path)[0].components == 2


def test_outages_together_are_those_of_others_in_the_same_scope():
    rows = [  # scope, component, begin of an outage
        ("x", "a", 0.0),
        ("x", "b", 600.0),  # just together with a's
        ("x", "b", 700.0),  # its own neighbour does not count, and a's is too far
        ("y", "c", 0.0),  # another scope
        ("x", "a", 90_000.0),
    ]
    periods = pd.DataFrame(rows, columns=["scope", "component", "begin_s"])
    full = periods.assign(up=False, begun=True, ended=True, length_s=1.0)
    found = together(Uptimes(name="t", periods=full))
    assert (found.outages, found.share) == (5, pytest.approx(2 / 5))
    # a and b each have two outages of the other in 90,000 s, c has nobody.
    chance = 1 - 2.718281828459045 ** (-2 * 600 * 2 / 90_000)
    assert found.by_chance == pytest.approx(4 / 5 * chance, rel=1e-12)


def test_what_is_no_trace_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="holds no times up and down; wants Parquet"):
        read_uptimes(tmp_path)
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(InvalidInputError, match="holds no times up and down"):
        read_uptimes(tmp_path / "other.parquet")
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_uptimes(tmp_path / "missing.parquet")
    for name, row, problem in (
        ("backwards", (1, 0, 10, 5), "event_stop_time is not at or after"),
        ("third", (1, 2, 0, 5), "event_type is not 0"),
        ("short", (1, 1, 0, 5), "short has 0 whole times up; wants 20 or more"),
    ):
        nodes([row]).to_parquet(tmp_path / f"{name}.parquet")
        with pytest.raises(InvalidInputError, match=problem):
            read_uptimes(tmp_path / f"{name}.parquet")
