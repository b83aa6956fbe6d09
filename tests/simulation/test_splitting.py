"""Splitting against exact tails, in standard errors, and what it leaves as it was."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import special

from systems.lines import line
from tidings.simulation.network import compile_system
from tidings.simulation.run import replications, simulate
from tidings.simulation.splitting import TRIALS, can_split, find_splitting
from tidings.simulation.tally import find_units
from tidings.simulation.totals import Totals
from tidings.simulation.world import Window


def split_totals(system, misses, number=60, events=50_000, seed=3):
    """Totals of replications that are split, and the splitting."""
    compiled = compile_system(system)
    units = find_units(compiled)
    window = Window(warmup_s=20.0, end_s=20.0 + events / float(compiled.publisher_rates.sum()))
    splitting = find_splitting(compiled, units, np.full(units.count, misses), window, seed)
    totals = Totals(compiled, units, window.length_s, splitting=splitting)
    for counts in replications(compiled, window, seed, range(number), splitting=splitting):
        totals.add(counts)
    return totals, splitting


def agrees(totals, exact, sharpness):
    missed, error = 1.0 - totals.on_time.value[0], totals.standard_errors[0]
    assert 9.0 * error < sharpness * exact, "not sharp enough to tell"
    assert abs(missed - exact) < 4.5 * error


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize(
    ("hops", "exact"),
    [
        (1, 1e-3),
        (3, 1e-4),
        pytest.param(1, 1e-4, marks=pytest.mark.nightly),
        pytest.param(1, 1e-5, marks=pytest.mark.nightly),
    ],
)
def test_tails_of_lines_of_mm1_are_those_of_erlang(hops, exact):
    lifetime_s = float(special.gammainccinv(hops, exact)) / 40.0
    agrees(split_totals(line(hops, lifetime_s), exact)[0], exact, 0.35)


@pytest.mark.statistical
@pytest.mark.slow
def test_a_tail_seen_through_a_link_and_a_lifetime_of_its_own_is_hypoexponential():
    """Sojourn at rate 40, link at rate 100."""
    t = float(special.gammainccinv(1, 1e-4)) / 40.0
    late = (100.0 * math.exp(-40.0 * t) - 40.0 * math.exp(-100.0 * t)) / 60.0
    own = f", lifetime: {t:.9f}s, link: {{delay: {{exponential: 10ms}}}}"
    agrees(split_totals(line(1, 1.0, subscriber=own), late)[0], late, 0.35)


@pytest.mark.statistical
@pytest.mark.slow
def test_losses_to_a_full_buffer_are_split_as_well():
    load, places = 0.6, 16  # one in service, fifteen that wait
    exact = (1 - load) * load**places / (1 - load ** (places + 1))
    assert 1e-4 < exact < 2e-4
    system = line(1, 10.0, "service: {exponential: 10ms}, buffer: 15")
    totals, _ = split_totals(system, exact)
    agrees(totals, exact, 0.35)
    assert totals.lost.sum() == pytest.approx((totals.on_time.w - totals.on_time.x).sum())


def test_the_first_trial_counts_what_a_plain_run_counts_of_everything_but_misses():
    totals, splitting = split_totals(line(2, 0.2), 1e-3, number=3, events=20_000)
    assert splitting.upper.size >= 2
    assert (splitting.lower < splitting.upper).all()
    assert totals.published == totals.on_time.w.sum()  # one subscriber wants everything
    assert totals.delay.w.sum() == totals.published  # nothing is lost
    late = (totals.on_time.w - totals.on_time.x).sum()
    assert late > 0.0
    assert late % 1.0 != 0.0  # some count for less than one
    assert late * TRIALS**splitting.upper.size % 1.0 == 0.0


def test_a_run_that_needs_more_room_counts_the_same():
    system = line(2, 0.2)
    compiled = compile_system(system)
    units, window = find_units(compiled), Window(warmup_s=5.0, end_s=105.0)
    splitting = find_splitting(compiled, units, np.full(units.count, 1e-2), window, 1)
    narrow = dataclasses.replace(splitting, room=8)
    one, other = (
        next(replications(compiled, window, 1, [0], splitting=each)) for each in (splitting, narrow)
    )
    assert one.late.tolist() == other.late.tolist()
    assert one.delay_sum_s.tolist() == other.delay_sum_s.tolist()


def wanted(shares):
    return np.maximum(0.1 * (1.0 - shares), 1e-5)


@pytest.mark.slow
def test_where_nothing_is_missed_the_error_is_that_of_the_events_seen():
    found = simulate(line(1, 5.0), precision=wanted, split=True, seed=2, max_replications=20)
    row = found.subscribers.iloc[0]
    assert row["on_time"] == 1.0
    assert row["error"] > 1.0 / row["events"]


@pytest.mark.slow
def test_few_misses_are_split_if_asked_and_many_never():
    rare = line(2, float(special.gammainccinv(2, 2e-4)) / 40.0)
    found = simulate(rare, precision=wanted, split=True, seed=2)
    plain = simulate(rare, precision=wanted, split=False, seed=2, max_replications=20)
    often = simulate(line(2, 0.05), precision=wanted, split=True, seed=2)
    assert "levels of backlog" in found.provenance["splitting"]
    assert "splitting" not in plain.provenance
    assert "splitting" not in often.provenance
    row = found.subscribers.iloc[0]
    assert found.provenance["half_width"] == pytest.approx(row["error"])
    assert row["error"] <= 0.1 * (1.0 - row["on_time"]) + 1e-12
    assert row["on_time"] + row["late"] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    "broker", ["service: {exponential: 10ms}, failure: {mtbf: 1h, mttr: 1s}", ""]
)
def test_what_fails_or_never_waits_is_not_split(broker):
    assert not can_split(compile_system(line(1, 0.1, broker)))
    assert can_split(compile_system(line(1, 0.1)))
