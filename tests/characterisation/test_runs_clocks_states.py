"""Losses in a row, clocks that disagree, components that fail: by hand, and as planted."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation.count.links import (
    LOSS_RUNS,
    loss_run_statistics,
    probe_statistics,
    split_probes,
)
from tidings.characterisation.count.periods import STATE_PERIODS, state_periods
from tidings.characterisation.fit.assembling import FittedNetwork, with_failures
from tidings.characterisation.fit.channels import (
    FittedChannel,
    LossRuns,
    by_clocks,
    early_notes,
    loss_runs,
)
from tidings.characterisation.fit.clocks import (
    Apparent,
    apparent_delays,
    clock_notes,
    clock_offsets,
    clock_table,
)
from tidings.characterisation.fit.durations import durations
from tidings.characterisation.fit.failures import failing_together, fit_failures
from tidings.characterisation.fit.laws import fit_law
from tidings.characterisation.fit.periods import fit_periods
from tidings.characterisation.fit.samples import sample_of
from tidings.characterisation.statistics import CHANGED_OUTSIDE, CLOCK_STATISTICS
from tidings.model import reading
from tidings.model.laws import Deterministic
from tidings.model.trace_tables import TRACE_TABLES
from tidings.simulation.recording import record
from tidings.traces.actions import bring_here
from tidings.traces.window import TraceWindow

S = 10**9
WINDOW = TraceWindow(from_ns=0, until_ns=32 * S)  # a batch a second


@pytest.fixture(scope="module")
def table(frame):
    return lambda name, rows: frame(rows, TRACE_TABLES[name].ddl.replace(" NOT NULL", ""))


def found_schema(frame):
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema)


def plan_of(frame, capsys):
    frame.explain()
    return capsys.readouterr().out


def test_losses_are_followed_over_the_ends_of_batches(table, capsys):
    lost = [1, 1, 0, 1, 1, 1, 0, 0]  # every third of a second: batches of three
    rows = [("a", "b", i * S // 3, None if each else S * 40) for i, each in enumerate(lost)]
    found = loss_run_statistics(table("probes", rows), WINDOW)
    assert found_schema(found) == LOSS_RUNS
    plan = plan_of(found, capsys)
    assert plan.count("Exchange ") == 1
    assert "Python" not in plan
    cells = bring_here(found, "probes")
    counts = cells[["following", "lost", "after_loss", "lost_after_loss"]].sum()
    first = cells.sort_values("batch")
    assert first["first_lost"].tolist() == [True, True, False]
    assert first["last_lost"].tolist() == [False, True, False]
    # within batches: 1→1, 1→0 | 1→1, 1→1 | 0→0
    assert counts.to_dict() == {
        "following": 5, "lost": 3, "after_loss": 4, "lost_after_loss": 3,
    }  # fmt: skip
    assert loss_runs(cells) == {}  # too few to tell


@pytest.mark.statistical
def test_planted_runs_of_losses_are_found(table):
    """A chain that stays lost with 0.6 and begins to lose with 0.02."""
    rng = np.random.default_rng(3)
    draws, state, lost = rng.random(40_000), False, []
    for draw in draws:
        state = draw < (0.6 if state else 0.02)
        lost.append(state)
    step = 32 * S // len(lost)
    rows = [("a", "b", i * step, None if each else i * step + 5) for i, each in enumerate(lost)]
    alone = rng.random(40_000) < 0.05
    rows += [("b", "a", i * step, None if each else i * step + 5) for i, each in enumerate(alone)]
    cells = bring_here(loss_run_statistics(table("probes", rows), WINDOW), "probes")
    found = loss_runs(cells)
    bursty, chance = found["a", "b"], found["b", "a"]
    assert bursty.following == chance.following == 39_999
    naive = sum(x and y for x, y in itertools.pairwise(lost))
    assert bursty.lost_after_loss == naive
    assert abs(bursty.burst - 1 / 0.4) < 5 * bursty.burst_se < 0.4
    assert abs(chance.burst - 1 / 0.95) < 5 * chance.burst_se < 0.1
    assert (bursty.is_bursty, chance.is_bursty) == (True, False)
    assert chance.by_chance == pytest.approx(1 / (1 - alone[1:].mean()), rel=1e-12)


def test_losses_that_never_end_have_no_mean():
    assert LossRuns(following=5, lost=5, after_loss=5, lost_after_loss=5).burst == math.inf


def test_clocks_are_bounded_from_both_ways_and_never_clamped(table, capsys):
    """The clock of b is 2 s ahead: the way back ends before it began."""
    rows = [
        ("a", "b", 10 * S, 12 * S + S // 2),
        ("a", "b", 20 * S, 23 * S),
        ("a", "b", 20 * S, None),
        ("b", "a", 12 * S, 10 * S + S // 4),
        ("b", "c", 0, S),
        ("c", "b", 0, S),
        ("", "a", 12 * S, 0),
        ("b", "a", 90_000 * S, 5),  # a damaged time, not a clock that is a day behind
    ]
    found = probe_statistics(table("probes", rows))
    assert plan_of(found, capsys).count("Exchange ") == 1
    cells = split_probes(bring_here(found, "probes"))["clocks"]
    assert list(cells.columns) == [each.split()[0] for each in CLOCK_STATISTICS.split(", ")]
    assert int(cells["count"].sum()) == 5
    assert dict(zip(cells["target"] + cells["source"], cells["early"], strict=True)) == {
        "ba": 0, "ab": 1, "cb": 0, "bc": 0,
    }  # fmt: skip
    first, second = clock_offsets(apparent_delays(cells))
    assert (first.low_s, first.high_s) == (1.75, 2.5)
    assert (second.low_s, second.high_s) == (-1.0, 1.0)
    assert (first.differs, second.differs) == (True, False)
    (note,) = clock_notes([first, second])
    assert "the clock of b is 1.75 s to 2.5 s ahead of that of a" in note
    told = clock_table([first, second], apparent_delays(cells))  # also where it includes 0
    assert told.to_numpy().tolist() == [
        ["a", "b", 1.75, 2.5, 2, 0, 1, 1, "they differ"],
        ["b", "c", -1.0, 1.0, 1, 0, 1, 0, "they may be equal"],
    ]


def test_a_clock_that_was_set_is_told_as_such():
    seen = {("a", "b"): apparent([-2.0]), ("b", "a"): apparent([1.0])}
    assert "was set" in clock_notes(clock_offsets(seen))[0]


def apparent(times_s):
    times_s = np.asarray(times_s)
    return Apparent(
        count=times_s.size,
        early=int((times_s < 0).sum()),
        least_s=float(times_s.min()),
        total_s=float(times_s.sum()),
        squares=float((times_s**2).sum()),
    )


@pytest.mark.statistical
@pytest.mark.parametrize("ahead_s", [-0.002, 0.002, 0.3])
def test_delays_over_clocks_that_differ_are_told_less_the_offset(ahead_s):
    """Delays of 0 to 4 ms there, 1 to 2 ms back: the offset is known to within a millisecond."""
    rng = np.random.default_rng(4)
    there, back = rng.uniform(0.0, 0.004, 20_000), rng.uniform(0.001, 0.002, 20_000)
    times = {("a", "b"): there + ahead_s, ("b", "a"): back - ahead_s}
    seen = {way: apparent(each) for way, each in times.items()}
    (offset,) = clock_offsets(seen)
    assert offset.low_s <= ahead_s <= offset.high_s < offset.low_s + 0.00101
    plain = {
        way: FittedChannel(
            tried=each.size,
            lost=0,
            delay=fit_law(sample_of(each[each >= 0])) if each.max() >= 0 else None,
        )
        for way, each in times.items()
    }
    found = by_clocks(plain, seen, [offset])
    for way, truth in ((("a", "b"), there), (("b", "a"), back)):
        delay = found[way].delay
        assert delay.count == 20_000
        assert delay.law.scv * delay.law.mean_s**2 == pytest.approx(truth.var(ddof=1), rel=1e-6)
        assert delay.systematic_s == pytest.approx(0.001 / math.sqrt(12), rel=0.01)
        # The middle is half the shortest way back off, and no more of them would make that less.
        assert delay.law.mean_s - truth.mean() == pytest.approx(
            0.0005 if way == ("a", "b") else -0.0005, abs=1e-5
        )
        assert abs(delay.law.mean_s - truth.mean()) < 2 * delay.mean_se_s < 0.0006
        assert str(offset) in delay.verdict


def test_a_delay_of_which_clocks_hide_a_part_is_refused_not_cut_off():
    """Uniform from 0 to 4 ms and the receiver's clock 2 ms behind: a half seems to be 1 ms."""
    times = np.random.default_rng(4).uniform(0.0, 0.004, 20_000) - 0.002
    seen = {("a", "b"): apparent(times)}
    (offset,) = clock_offsets(seen)
    assert not offset.is_bounded
    assert offset.high_s == times.min()
    plain = {
        ("a", "b"): FittedChannel(tried=20_000, lost=0, delay=fit_law(sample_of(times[times >= 0])))
    }
    found = by_clocks(plain, seen, [offset])
    assert found["a", "b"].delay is None
    (note,) = early_notes(found)
    assert note.startswith("the delay of a link cannot be measured: from a to b ")
    assert f" {(times < 0).sum()} of 20000 arrived before they left" in note
    (said,) = clock_notes([offset])
    assert said.startswith(
        "the clock of a is at least 2 ms ahead of that of b, and nothing was sent"
    )
    (row,) = clock_table([offset], seen).to_dict("records")
    assert math.isnan(row["low_s"])
    assert (row["high_s"], row["early_there"]) == (times.min(), (times < 0).sum())
    # one of many that is early by less than chance moves the mean is told, and the rest is used
    once = np.append(np.abs(times), -1e-6)
    slight = by_clocks(plain, {("a", "b"): apparent(once)}, [])
    assert slight["a", "b"].delay == plain["a", "b"].delay
    assert "changes the mean by less than its standard error" in early_notes(slight)[0]


def test_periods_are_whole_or_cut_off_by_the_end(table, capsys):
    rows = [
        ("hub", "up", 0),  # what it was when the window began
        ("hub", "down", 4 * S),
        ("hub", "down", 5 * S),  # repeats it
        ("hub", "up", 6 * S),
        ("hub", "sideways", 7 * S),
        ("hub", "down", 30 * S),
        ("hub", "up", 40 * S),
    ]
    found = state_periods(table("states", rows), WINDOW)
    assert found_schema(found) == STATE_PERIODS
    assert "Python" not in plan_of(found, capsys)
    cells = found.collect()
    periods = {
        (row.up, row.begun, row.ended, row.total_s)
        for row in cells
        if row.reason is None and row["count"]
    }
    assert periods == {
        (True, False, True, 4.0),
        (False, True, True, 2.0),
        (True, True, True, 24.0),
        (False, True, False, 2.0),
    }
    reasons = {row.reason: row.rows for row in cells if row.reason}
    assert reasons == {CHANGED_OUTSIDE: 1, "state is not up or down": 1}
    assert sum(row.rows for row in cells) == len(rows)


@pytest.mark.statistical
def test_planted_failures_are_found_though_the_end_cuts_periods_off(table):
    """Many components, each seen for little more than two periods: censoring matters."""
    rng = np.random.default_rng(11)
    rows = []
    window = TraceWindow(from_ns=0, until_ns=100 * S)
    for component in range(1000):
        now, up = 0.0, True
        while now < 100:
            rows.append(("all", "up" if up else "down", component * 10**12 + round(now * S)))
            now += rng.exponential(40.0 if up else 10.0)
            up = not up
    by_name = [(f"n{at // 10**12}", state, at % 10**12) for _, state, at in rows]
    cells = bring_here(state_periods(table("states", by_name), window), "states")
    pooled = cells.assign(component=cells["component"].where(cells["component"].isna(), "all"))
    found, notes = fit_failures(pooled)
    fitted = found["all"]
    up, down = fitted.parameters("brokers.all")
    assert (up.path, down.path) == ("brokers.all.failure.mtbf", "brokers.all.failure.mttr")
    assert abs(up.estimate - 40.0) < 5 * up.standard_error < 8.0
    assert abs(down.estimate - 10.0) < 5 * down.standard_error < 2.0
    whole = cells[cells["ended"].eq(True) & cells["up"].eq(True)]
    # without what is cut off the mean would be far too short
    assert whole["total_s"].sum() / whole["count"].sum() < 40.0 - 8 * up.standard_error
    assert notes == []
    assert "changed state too rarely" in fit_failures(cells)[1][0]


@pytest.mark.statistical
def test_the_law_of_periods_is_chosen_by_likelihood_and_exponential_where_it_is_true():
    rng = np.random.default_rng(3)
    for draw, family, mean_s in (
        (lambda n: rng.exponential(50.0, n), "exponential", 50.0),
        (lambda n: 20.0 * rng.weibull(0.5, n), "weibull", 40.0),
        (lambda n: rng.lognormal(1.0, 1.5, n), "lognormal", math.exp(1.0 + 1.125)),
    ):
        lengths = draw(3000)
        until = rng.uniform(0.0, 300.0, lengths.size)  # when observation ends
        seen = durations(np.minimum(lengths, until), lengths <= until)
        found = fit_periods(seen)
        assert found.family == family
        # censored, so that less is known than by as many whole periods
        error = found.parameter("x").standard_error
        assert abs(found.law.mean_s - mean_s) < 5 * math.sqrt(3000 / seen.whole) * error
        assert found.distance < 0.1
    few = fit_periods(durations(np.array([1.0, 2.0, 9.0]), np.array([True, True, False])))
    assert (few.family, few.law.mean_s) == ("exponential", 6.0)
    assert "fewer than" in few.verdict


# Uneven times up and down, and a broker that fails only with its link.
FAILING = """
tidings: 1
lifetime: 1h
brokers:
  a:
    failure: {up: {weibull: {mean: 3h, shape: 0.6}}, down: {lognormal: {mean: 10min, scv: 2}}}
  b: {failure: {mtbf: 2h, mttr: 10min}}
  c: {}
links:
  - {between: [a, b]}
  - {between: [b, c]}
publishers:
  p: {at: a, every: 1h, content: {event: {x: 1}}}
subscribers:
  s: {at: c, wants: {}}
recovery: {scheme: buffering}
failure_groups:
  rack:
    members: [c, b--c]
    failure: {up: {weibull: {mean: 6h, shape: 0.7}}, down: {exponential: 15min}}
"""


@pytest.mark.statistical
def test_simulated_failures_are_learnt_with_their_laws_and_groups(table):
    system = reading.loads(FAILING)
    recorded = record(system, duration_s=120 * 86_400.0, seed=5, probes_per_s=1e-6)
    states = recorded.tables["states"]
    window = TraceWindow(from_ns=recorded.from_ns, until_ns=recorded.until_ns)
    columns = [states[name].to_pylist() for name in ("component", "state", "at_ns")]
    rows = list(zip(*columns, strict=True))
    cells = bring_here(state_periods(table("states", rows), window), "states")
    found, notes = fit_failures(cells)
    assert notes == []
    truth = {broker.name: broker.failure for broker in system.brokers}
    truth["c"] = truth["b--c"] = system.failure_groups[0].failure
    for name, each in found.items():
        planted = truth[name].up, truth[name].down
        for seen, law in zip((each.up, each.down), planted, strict=True):
            assert seen.family == type(law).__name__.lower()
            error = seen.parameter("").standard_error
            assert abs(seen.law.mean_s - law.mean_s) < 5 * error < 0.4 * law.mean_s
            if seen.family == "weibull":  # whose shape has a relative standard error of .78/√n
                off = seen.law.shape / law.shape - 1.0
                assert abs(off) < 5 * 0.78 / math.sqrt(seen.count) < 0.2
    together = failing_together(cells, found)
    assert together == (("b--c", "c"),)
    bare = FittedNetwork(
        brokers=system.brokers, links=system.links, used=frozenset(), parameters=(), notes=()
    )
    learnt = with_failures(bare, found, together)
    (group,) = learnt.failure_groups
    assert group.members == ("b--c", "c")
    assert group.failure == found["b--c"].failure
    failing = {broker.name: broker.failure for broker in learnt.brokers}
    assert failing == {"a": found["a"].failure, "b": found["b"].failure, "c": None}
    assert all(link.there.failure is None for link in learnt.links)
    # A base system's name of it stays; what it calls a group that was none is left out, and said.
    again = with_failures(replace(bare, failure_groups=system.failure_groups), found, together)
    assert [each.name for each in again.failure_groups] == ["rack"]
    wrong = replace(system.failure_groups[0], name="pair", members=("a", "c"))
    mended = with_failures(replace(bare, failure_groups=(wrong,)), found, together)
    assert [each.name for each in mended.failure_groups] == ["b--c and c"]
    assert mended.notes[0].startswith("failure_groups.pair: its members were not always down")


def test_periods_that_are_all_the_same_are_constant():
    found = fit_periods(durations(np.full(40, 300.0), np.ones(40, bool)))
    assert isinstance(found.law, Deterministic)
    assert found.law.value_s == pytest.approx(300.0, rel=1e-12)
    assert found.family == "deterministic"
    begun = durations(np.append(np.full(40, 300.0), 301.0), np.arange(41) < 40)
    assert not isinstance(fit_periods(begun).law, Deterministic)  # one lasted longer than that


@pytest.mark.parametrize("spread", [1e-5, 1e-3])
def test_periods_that_hardly_differ_have_a_narrow_law(spread):
    """The search for their shape goes far, and ends."""
    lengths_s = 2.5 * (1.0 + spread * np.linspace(-1.0, 1.0, 36))
    law = fit_periods(durations(lengths_s, np.ones(36, bool))).law
    assert law.mean_s == pytest.approx(2.5, rel=spread)
    assert law.scv == pytest.approx(spread**2 / 3, rel=1e-3)  # evenly between the two ends


def test_components_that_keep_one_timetable_are_no_group():
    cells = [
        {
            "component": name,
            "up": up,
            "begun": True,
            "ended": True,
            "bin": 9,
            "count": 50,
            "total_s": 500.0,
        }
        for name in ("a", "b")
        for up in (True, False)
    ]
    assert failing_together(pd.DataFrame(cells), ("a", "b")) == ()
