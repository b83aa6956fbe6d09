"""Replications added until errors are small enough, and what is told meanwhile."""

import math
import os
from threading import Event, Lock
from types import SimpleNamespace

import pytest

from tidings.kernels.replications import Clock, Series, side_by_side, usable_cores


def told(seconds, wanted, cpu_s=1.0):
    """What is told of ten replications and of those that follow; an error is 1/√n."""
    totals, clock, said = SimpleNamespace(replications=0), Clock(seconds), []

    def add(_):
        totals.replications += 1
        clock.spend(cpu_s)

    totals.add = add
    series = Series(totals, iter, clock, said.append)
    series.add(10, "at least 10")
    reached = series.until(lambda: 1.0 / math.sqrt(totals.replications) / wanted, 10_000)
    return said, totals.replications, reached


def test_how_many_replications_are_expected_is_told_from_the_first_look_on():
    said, done, reached = told(seconds=None, wanted=0.05)  # 400 of them
    assert reached
    assert {each.split(" of ")[1] for each in said[11:] if " of " in each} == {f"about {done}"}
    assert done == 440  # a tenth more than the errors seen ask for


@pytest.mark.parametrize("cpu_s", [0.5, 2.0])
def test_no_more_are_expected_than_the_seconds_allow(cpu_s):
    said, done, reached = told(seconds=60.0, wanted=0.01, cpu_s=cpu_s)
    assert not reached
    assert f"replication 11 of about {done}" in said
    assert done == 60.0 / cpu_s


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_results_come_in_order_and_as_many_are_run_at_a_time_as_there_are_cores(monkeypatch, cores):
    monkeypatch.setattr("tidings.kernels.replications.usable_cores", lambda: cores)
    lock, others_are_done, under_way, most = Lock(), Event(), 0, 0

    def work(number):
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        if number == 0 and cores > 1:  # the first to begin is the last of its round to end
            assert others_are_done.wait(timeout=60)
        if number == cores:
            others_are_done.set()
        with lock:
            under_way -= 1
        return number

    assert list(side_by_side(work, range(20))) == list(range(20))
    assert most <= cores


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cores cannot be given here")
def test_only_the_cores_that_the_process_was_given_are_used(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5})
    assert usable_cores() == 1


@pytest.mark.parametrize(("cpu_s", "done"), [(7.0, 8), (25.0, 2), (40.0, 2)])
def test_no_replication_is_begun_that_the_seconds_do_not_allow(cpu_s, done):
    asked, totals, clock = [], SimpleNamespace(replications=0), Clock(60.0)

    def run(numbers):
        asked.extend(numbers)  # all of them are begun, whoever asks for the first
        return iter(numbers)

    def add(_):
        totals.replications += 1
        clock.spend(cpu_s)

    totals.add = add
    series = Series(totals, run, clock, lambda _: None)
    series.add(10)
    assert not series.until(lambda: 2.0, 10_000)
    assert asked == list(range(done)) == list(range(totals.replications))
    assert series.is_out_of_time
