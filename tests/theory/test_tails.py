"""Few misses: theory's tail against closed forms, and who answers."""

from __future__ import annotations

import math

import pytest
from scipy import special

import tidings as td
from systems.lines import line


@pytest.mark.parametrize("hops", [1, 2, 3, 6])
@pytest.mark.parametrize("exact", [1e-2, 1e-3, 1.1e-4])
def test_misses_of_lines_of_mm1_are_within_the_stated_part_of_those_of_erlang(hops, exact):
    lifetime_s = float(special.gammainccinv(hops, exact)) / 40.0
    row = td.predict(line(hops, lifetime_s), by="theory").subscribers.iloc[0]
    missed = 1.0 - row["on_time"]
    assert abs(missed - exact) <= row["error"]
    assert abs(missed - exact) < 0.02 * exact  # sharper than what is stated
    assert row["error"] < 0.5 * exact


def test_theory_answers_for_few_misses_where_it_is_exact():
    system = line(3, float(special.gammainccinv(3, 1e-3)) / 40.0)
    answer = td.predict(system, within="10% of misses")
    row = answer.subscribers.iloc[0]
    assert (row["by"], row["why"]) == ("theory", "")
    assert row["error"] <= 1e-4
    assert 1.0 - row["on_time"] == pytest.approx(1e-3, rel=0.03)


@pytest.mark.slow
@pytest.mark.statistical
def test_the_simulator_answers_for_few_misses_where_theory_is_not_exact():
    """A periodic publisher before two brokers: fewer misses than a Poisson one of that rate."""
    system = line(2, float(special.gammainccinv(2, 1e-2)) / 40.0, every="16.667ms")
    answer = td.predict(system, within="10% of misses")
    row = answer.subscribers.iloc[0]
    assert row["by"] == "simulation"
    assert answer.provenance["promise"]["not_held"] == 0
    assert 1e-5 < 1.0 - row["on_time"] < 1e-2
    assert row["error"] <= max(0.1 * (1.0 - row["on_time"]), 1e-5) + 1e-12


@pytest.mark.parametrize("seed", [pytest.param(1, marks=pytest.mark.nightly), 3])
def test_no_miss_among_many_events_of_few_long_queues_proves_little(seed):
    """At load .9 the first replications miss nothing; a ten-thousandth is missed in truth."""
    exact = 1e-4
    lifetime_s = math.log(1.0 / exact) / (100.0 / 0.9 - 100.0)
    system = line(1, lifetime_s, "service: {exponential: 9ms}", every="{exponential: 10ms}")
    row = td.predict(system, within="10% of misses", by="simulation", seed=seed).subscribers.iloc[0]
    assert abs(1.0 - row["on_time"] - exact) <= 4.0 * row["error"] / 1.96
    plain = td.simulate(system, seed=seed, replications=10, events=50_000).subscribers.iloc[0]
    assert plain["error"] >= abs(1.0 - plain["on_time"] - exact)
