"""Counters of queues: delays from the two curves, with bounds; rates, services, resets."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from exact_levels import Served, with_outages
from tidings.characterisation.count.reported import count_ends
from tidings.characterisation.fit.fitted import Characterisation
from tidings.characterisation.fit.queues import Counters, coarser_ends, read_counters
from tidings.characterisation.fit.sojourns import mean_sojourn_s, service_of_sojourn_s
from tidings.characterisation.job import characterise
from tidings.model.reading import from_document
from tidings.model.system import System
from tidings.model.trace_files import trace_table
from tidings.model.trace_tables import LEVELS
from tidings.traces.reading import Traces, read_rows
from tidings.traces.window import TraceWindow

pytestmark = pytest.mark.usefixtures("few_rows")

SECOND = 10**9
EPOCH = 1_700_000_000 * SECOND
COUNTERS = ["queue", "at_s", "entered", "done"]


def polled(name: str, served: Served, every_s: float, until_s: float) -> pd.DataFrame:
    """Polls of an exact queue."""
    at_s = np.arange(0.0, until_s, every_s)
    entered, done = served.polled(at_s)
    return pd.DataFrame({"queue": name, "at_s": at_s, "entered": entered, "done": done})


def written(name: str, rows: list[tuple[float, int, int]]) -> pd.DataFrame:
    """Polls written down: second, entered, done."""
    return pd.DataFrame([(name, *row) for row in rows], columns=COUNTERS)


def system(lifetimes_s: dict[str, float]) -> System:
    """A subscriber for every queue, with how long its events are of use."""
    handled = {"exponential": "1ms"}
    return from_document(
        {
            "tidings": 1,
            "brokers": {"hub": {}},
            "publishers": {
                "pub": {"at": "hub", "every": {"rate": "10/s"}, "content": {"event": {"a": 1}}}
            },
            "subscribers": {
                name: {
                    "at": "hub",
                    "wants": {"a": 1},
                    "lifetime": f"{each}s",
                    "processing": handled,
                }
                for name, each in lifetimes_s.items()
            },
        }
    )


def traces_of(spark: SparkSession, rows: pd.DataFrame) -> Traces:
    """Traces of nothing but levels."""

    def column(name: str, kind: pa.DataType) -> Any:
        values = rows[name] if name in rows else pd.Series(None, index=rows.index, dtype=object)
        return pa.array([None if pd.isna(each) else each for each in values], kind)

    columns = {
        "queue": column("queue", pa.string()),
        "part": column("part", pa.string()),
        "at_ns": [EPOCH + round(each * SECOND) for each in rows["at_s"]],
        "entered": column("entered", pa.int64()),
        "done": column("done", pa.int64()),
        "in_flight": column("in_flight", pa.int64()),
        "redelivered": column("redelivered", pa.int64()),
        "dropped": column("dropped", pa.string()),
    }
    frame = spark.createDataFrame(trace_table("levels", columns))
    end_ns = EPOCH + round(rows["at_s"].max() * SECOND) + 1
    return Traces(
        tables={"levels": read_rows(frame, LEVELS)},
        window=TraceWindow(from_ns=EPOCH, until_ns=end_ns),
    )


@pytest.fixture(scope="module")
def served() -> Served:
    """One server with outages, of which a third of the events see something."""
    return with_outages(
        np.random.default_rng(7), events=60_000, rate=10.0, service_s=0.05, up_s=600.0, down_s=60.0
    )


@pytest.fixture(scope="module")
def light() -> Served:
    """One server without outages, half busy, Poisson arrivals."""
    rng = np.random.default_rng(3)
    entered = np.cumsum(rng.exponential(0.1, 40_000))
    left, free = np.empty(40_000), 0.0
    for index, service in enumerate(rng.exponential(0.05, 40_000)):
        free = max(entered[index], free) + service
        left[index] = free
    return Served(entered_s=entered, left_s=left)


@pytest.fixture(scope="module")
def odd_polls(served: Served) -> pd.DataFrame:
    """Some polls of the queue with outages missing, some twice, all out of order."""
    rows = polled("odd", served, 15.0, 3000.0)
    some = rows[rows["at_s"] % 150 != 60.0]
    return pd.concat([some[::-1], some[::7]])


@pytest.fixture(scope="module")
def fitted(
    spark: SparkSession, served: Served, light: Served, odd_polls: pd.DataFrame
) -> Characterisation:
    """All queues at once: one pass over one table tells them apart."""
    stuck = written("stuck", [(t, t, min(t, 50)) for t in range(101)])
    # Ten a second enter, and are worked off at 60; polled amid two outages, of 25 and of 40 s.
    halting = written(
        "halting",
        [(0, 0, 0), (15, 150, 150), (30, 300, 200), (45, 450, 200), (60, 600, 560), (75, 750, 750)],
    )
    halting2 = written(
        "halting",
        [(90, 900, 790), (105, 1050, 790), (120, 1200, 790), (135, 1350, 800), (150, 1500, 1300)],
    )
    halting = pd.concat([halting, halting2])
    steps = written("steps", [(t, min(t, 4), min(t // 2, 4)) for t in range(10)])
    reset = pd.concat(
        [
            written("reset", [(t, 100 + t, 95 + t) for t in range(10)]),
            written("reset", [(t, t - 10, max(t - 15, 0)) for t in range(10, 20)]),
        ]
    )
    parts = pd.concat(
        written("parts", [(t, 10 * t, max(10 * t - waiting, 0)) for t in range(50)]).assign(
            part=part
        )
        for part, waiting in (("a", 20), ("b", 60))
    )
    dropping = written("dropping", [(t, 10 * t, 10 * t) for t in range(11)])
    dropping["dropped"] = [f'{{"expired":{t},"odd":{2 * t}}}' for t in range(11)]
    dropping["redelivered"] = [3 * t for t in range(11)]
    bad = pd.concat(
        [
            written("bad", [(3.5, 5, 9)]),
            written("", [(4.5, 1, 1)]),
            written("bad", [(5.5, 55, 55)]).assign(dropped="{"),
        ]
    )
    rows = [
        polled("outages", served, 15.0, 6000.0), polled("short", served, 15.0, 2000.0),
        polled("plain", served, 15.0, 3000.0), polled("light", light, 2.0, 3900.0),
        odd_polls, halting, stuck, steps, reset, parts, dropping, bad,
    ]  # fmt: skip
    lifetimes_s = {
        "outages": 30.0, "short": 1.0, "plain": 30.0, "odd": 30.0, "light": 30.0, "stuck": 10.0,
        "steps": 2.5, "reset": 60.0, "parts": 4.0, "dropping": 10.0, "halting": 30.0,
    }  # fmt: skip
    table = pd.concat(rows, ignore_index=True)
    return characterise(traces_of(spark, table), base=system(lifetimes_s))


def row_of(fitted: Characterisation, name: str) -> pd.Series:
    return fitted.measured.subscribers.set_index("subscriber").loc[name]


def number(fitted: Characterisation, path: str) -> pd.Series:
    return fitted.parameters.set_index("path").loc[path]


def test_on_time_share_of_a_queue_with_outages_is_within_a_hundredth(
    fitted: Characterisation, served: Served
) -> None:
    row, truth = row_of(fitted, "outages"), served.in_time(30.0, 6000.0)
    assert 0.6 < truth < 0.95  # a share that tells: many are late
    assert row["on_time"] == pytest.approx(truth, abs=0.01)
    assert abs(row["on_time"] - truth) <= row["error"] < 0.05
    assert row["by"] == "levels"
    assert row["why"] == "polled every 15 s; holds if events leave in the order they came"
    mean_s = np.mean((served.left_s - served.entered_s)[served.left_s <= 6000.0])
    assert row["delay_mean_s"] == pytest.approx(mean_s, rel=0.02)
    handled = number(fitted, "subscribers.outages.processing")
    assert handled["estimate"] == pytest.approx(0.05, rel=0.05)
    assert handled["verdict"] == "by how fast it is worked off"
    assert set(fitted.parameters["source"]) == {"levels"}
    assert any("'outages' stood still" in note for note in fitted.notes)


def test_a_lifetime_below_the_polls_is_said_to_be_too_short(
    fitted: Characterisation, served: Served
) -> None:
    row = row_of(fitted, "short")
    assert "polls are further apart than the lifetime: poll more often" in row["why"]
    assert abs(row["on_time"] - served.in_time(1.0, 2000.0)) <= row["error"]


def test_curves_that_are_known_at_every_event_give_every_delay(fitted: Characterisation) -> None:
    # Events enter at 1, 2, 3, 4 and leave at 2, 4, 6, 8: they take 1, 2, 3 and 4 seconds.
    row = row_of(fitted, "steps")
    assert row["on_time"] == pytest.approx(0.5)
    assert row["delay_mean_s"] == pytest.approx(2.5)
    assert row["events"] == pytest.approx(4)


def test_counters_that_go_down_are_never_compared(fitted: Characterisation) -> None:
    assert number(fitted, "queues.reset.rate")["estimate"] == pytest.approx(1.0)
    # Five wait all the time before, and from the fifth second after the restart on.
    assert row_of(fitted, "reset")["delay_mean_s"] == pytest.approx((5 * 9 + 32.5) / 18)
    assert any("went down 1 times" in note for note in fitted.notes)


def test_polls_may_be_missing_doubled_and_out_of_order(
    fitted: Characterisation, odd_polls: pd.DataFrame
) -> None:
    odd, plain = row_of(fitted, "odd"), row_of(fitted, "plain")
    assert odd["on_time"] == pytest.approx(plain["on_time"], abs=0.01)
    assert odd["error"] > plain["error"]  # a gap makes the bound wider
    copies = fitted.quality.set_index("fate").loc["duplicate", "rows"]
    assert copies == len(odd_polls) - len(odd_polls.drop_duplicates())


def test_what_never_leaves_is_late_and_not_forgotten(fitted: Characterisation) -> None:
    # One a second enters; from second 50 on nothing leaves. Of the last ten nobody knows.
    assert row_of(fitted, "stuck")["on_time"] == pytest.approx(50 / 90, abs=0.01)


def test_partitions_are_compared_each_with_itself(fitted: Characterisation) -> None:
    row = row_of(fitted, "parts")
    assert row["wanted_per_s"] == pytest.approx(20.0)
    # Two seconds in one, six in the other: there the first 40 took less than four, on the way up.
    assert row["on_time"] == pytest.approx(0.54, abs=0.03)


def test_drops_are_told_by_cause(fitted: Characterisation) -> None:
    row = row_of(fitted, "dropping")
    assert row["lost_expired"] == pytest.approx(0.1)
    assert row["lost_unexplained"] == pytest.approx(0.2)
    assert row["on_time"] == row["delivered"] == pytest.approx(0.7)
    assert row["handled_again"] == pytest.approx(0.3)


def test_rows_that_cannot_be_are_set_aside(fitted: Characterisation) -> None:
    aside = fitted.quality[fitted.quality["fate"] == "set aside"]
    assert dict(zip(aside["reason"], aside["rows"], strict=True)) == {
        "more are done than have entered": 1,
        "no queue": 1,
        "dropped is not an object in JSON": 1,
    }


def test_handling_is_not_learnt_from_times_in_which_an_outage_began_or_ended(
    fitted: Characterisation,
) -> None:
    # Only from 135 to 150 s is it known to have worked all the time: 500 in 15 s.
    handled = number(fitted, "subscribers.halting.processing")
    assert handled["estimate"] == pytest.approx(0.03)
    assert handled["count"] == 500
    assert handled["bound"] == 0  # nothing ever left faster


def test_a_queue_that_never_has_a_backlog_is_fitted_by_its_mean(fitted: Characterisation) -> None:
    handled = number(fitted, "subscribers.light.processing")
    assert "mean time" in handled["verdict"]
    assert handled["standard_error"] < 0.005
    assert abs(handled["estimate"] - 0.05) <= 4 * handled["standard_error"]
    assert abs(handled["estimate"] - 0.05) <= handled["bound"]


@pytest.mark.parametrize(("scv", "servers"), [(0.0, 1), (1.0, 1), (1.0, 4), (3.0, 2)])
def test_the_service_gives_the_mean_sojourn_back(scv: float, servers: int) -> None:
    service_s = service_of_sojourn_s(0.7 * servers, 2.0, scv, servers)
    assert mean_sojourn_s(0.7 * servers, service_s, scv, servers) == pytest.approx(2.0)


def test_mean_sojourn_is_that_of_known_queues() -> None:
    assert mean_sojourn_s(0.5, 1.0, 0.0) == pytest.approx(1.5)  # M/D/1
    # M/M/2 at load 1/2: S = s / (1 − ρ²)
    assert mean_sojourn_s(1.0, 1.0, 1.0, 2) == pytest.approx(1.0 / (1.0 - 0.25))
    assert mean_sojourn_s(1.0, 1.0) == math.inf


def ends_of(spark: SparkSession, rows: pd.DataFrame, window: TraceWindow) -> pd.DataFrame:
    """What is kept of the polls of a window."""
    return count_ends(replace(traces_of(spark, rows), window=window))


def went(counters: Counters) -> tuple[float, float, dict[str, float], int]:
    """How far counters went in all."""
    dropped = {cause: float(each.sum()) for cause, each in counters.dropped.items() if each.sum()}
    return float(counters.entered.sum()), float(counters.again.sum()), dropped, counters.polls


def test_counters_of_parts_add_up_to_those_of_all_at_once(spark: SparkSession) -> None:
    """Two partitions, one of them reset; drops that begin, and are not told in all polls."""
    rows = []
    for part, reset_at in (("a", 999), ("b", 47)):
        entered = again = expired = 0
        for second in range(80):
            entered, again = (0, 0) if second == reset_at else (entered + 7, again + second // 20)
            expired = 0 if second == reset_at else expired + (second > 30)
            causes = {"full": 5} | ({"expired": expired} if expired else {})
            text = json.dumps(causes, separators=(",", ":"), sort_keys=True)
            rows.append(("q", part, second, entered, entered, again, None if second % 3 else text))
    columns = ["queue", "part", "at_s", "entered", "done", "redelivered", "dropped"]
    polls = pd.DataFrame(rows, columns=columns)
    length_ns = 20 * SECOND
    windows = [TraceWindow(from_ns=EPOCH + n * length_ns, until_ns=EPOCH + (n + 1) * length_ns)
               for n in range(4)]  # fmt: skip
    whole = TraceWindow(from_ns=EPOCH, until_ns=EPOCH + 4 * length_ns)
    (at_once,) = read_counters(ends_of(spark, polls, whole)).values()
    # Partition b counts 46 steps, loses the one of its reset, and counts 32 more.
    assert went(at_once)[0] == 7 * (79 + 46 + 32)
    assert went(at_once)[2] == {"expired": (78 - 30) + (45 - 30) + (78 - 48)}
    parts = [ends_of(spark, polls, each) for each in windows]
    (together,) = read_counters(pd.concat(parts)).values()
    assert went(together) == went(at_once)
    numbered = [each.assign(batch=each["batch"] // 8) for each in parts]
    coarse = coarser_ends(pd.concat([each.assign(batch=each["batch"] + 4 * n)
                                     for n, each in enumerate(numbered)]))  # fmt: skip
    assert len(coarse) < 40 < len(pd.concat(parts))
    (put_together,) = read_counters(coarse).values()
    assert went(put_together) == went(at_once)
    unwatched = [each.assign(stretch=n) for n, each in enumerate(parts)]
    (apart,) = read_counters(pd.concat(unwatched)).values()
    assert went(apart)[0] == went(at_once)[0] - 7 * 3 * 2  # what lies between parts is not known
