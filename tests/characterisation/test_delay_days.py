"""Delays of links that follow the hour of the day: found where they are, and nowhere else."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation.fit.channels import fit_channels, nothing_by_hour
from tidings.characterisation.fit.delay_days import find_delay_day, find_delay_days
from tidings.characterisation.fit.samples import sample_of
from tidings.characterisation.statistics import WEEK_HOURS
from tidings.model.behaviour import PERFECT
from tidings.model.delay_grid import EDGES_S, bin_of
from tidings.traces.window import HOUR_NS, TraceWindow

MEAN_S = 0.04
BUSY = np.where((np.arange(24) >= 17) & (np.arange(24) < 23), 2.5, 0.5)  # of which the mean is 1
ALIKE = np.ones(24)


def drawn(rng, times, days, count, draw):
    """Delays of so many crossings in each hour, by hour since the first of 1970."""
    return {hour: times[hour % 24] * draw(rng, count) for hour in range(24 * days)}


def rows_by_hour(delays):
    """What Spark counts of them by hour of the week."""
    of_week = {}
    for hour, some in delays.items():
        of_week.setdefault(hour % WEEK_HOURS, []).append(some)
    rows = []
    for hour, parts in of_week.items():
        each = sample_of(np.concatenate(parts))
        sums = (each.count, each.total_s, each.squares, each.logs, each.squared_logs)
        rows.append(("a", "b", hour, *sums, each.lowest_s, each.highest_s))
    return pd.DataFrame(rows, columns=list(nothing_by_hour()))


def rows_by_bin(delays):
    """What Spark counts of them by length."""
    every = np.concatenate(list(delays.values()))
    place = bin_of(every)
    rows = []
    for number in np.unique(place):
        each = sample_of(every[place == number])
        sums = (each.count, each.total_s, each.squares, each.logs, each.squared_logs)
        rows.append((None, "a", "b", number, each.count, 0, *sums, each.lowest_s, each.highest_s))
    names = ["reason", "source", "target", "bin", "rows", "lost", *list(nothing_by_hour())[3:]]
    return pd.DataFrame(rows, columns=names)


def exponential(rng, count):
    return rng.exponential(MEAN_S, count)


def heavy(rng, count):
    return MEAN_S * rng.lognormal(-0.5 * 1.5**2, 1.5, count)


def by_day(days, rng, count, draw=exponential):
    """Every day as slow as it likes, all its hours alike: no hour of the day is."""
    slow = rng.uniform(0.3, 3.0, days)
    return {hour: slow[hour // 24] * draw(rng, count) for hour in range(24 * days)}


def one_bad_hour(days, rng, count):
    delays = drawn(rng, ALIKE, days, count, exponential)
    return delays | {30: 20.0 * delays[30]}


def shares(law, times, at_s):
    """P[X ≤ t] of a law as many times as long in each hour."""
    return np.mean([law.cdf(np.asarray(at_s) / each) for each in times], axis=0)


@pytest.mark.statistical
@pytest.mark.parametrize("days", [2, 3, 9])
def test_hours_are_found_with_their_errors(days):
    found = find_delay_day(
        rows_by_hour(drawn(np.random.default_rng(days), BUSY, days, 400, exponential))
    )
    off = (found.times - BUSY) / found.standard_error
    assert np.abs(off).max() < 4.5
    assert 0.6 < np.sqrt((off**2).mean()) < 1.5
    assert (found.standard_error < 0.1 * BUSY).all()
    assert (found.hours["count"] * found.times).sum() == pytest.approx(found.hours["count"].sum())


@pytest.mark.statistical
def test_chance_bad_days_and_one_bad_hour_are_no_hours_of_the_day():
    rng = np.random.default_rng(5)
    for seed in range(40):
        own = np.random.default_rng(seed)
        days = 2 + seed % 6
        for draw in (exponential, heavy):
            assert find_delay_day(rows_by_hour(drawn(own, ALIKE, days, 60, draw))) is None
        assert find_delay_day(rows_by_hour(by_day(days, own, 60))) is None
    assert find_delay_day(rows_by_hour(one_bad_hour(4, rng, 100))) is None


def test_hours_that_hardly_differ_are_left_alone():
    slightly = 1.0 + 0.02 * np.sin(np.arange(24))
    delays = drawn(np.random.default_rng(1), slightly, 4, 2_000, lambda _, n: np.full(n, MEAN_S))
    assert find_delay_day(rows_by_hour(delays)) is None


def test_nobody_can_tell_of_less_than_two_days_or_of_hours_without_events():
    delays = drawn(np.random.default_rng(2), BUSY, 1, 400, exponential)
    day = TraceWindow(from_ns=0, until_ns=47 * HOUR_NS)
    assert find_delay_days(rows_by_hour(delays), day) == {}
    assert find_delay_day(rows_by_hour(delays)) is None  # an hour of one day is a stretch of time
    at_night = drawn(np.random.default_rng(2), BUSY, 3, 400, exponential)
    shop = {hour: each for hour, each in at_night.items() if hour % 24 >= 8}
    found = find_delay_day(rows_by_hour(shop))
    assert (found.times[:8] == 1.0).all()
    assert np.isnan(found.standard_error[:8]).all()
    assert [each.path for each in found.parameters("x")] == [f"x.{hour}" for hour in range(8, 24)]


@pytest.mark.statistical
@pytest.mark.parametrize(
    "draw", [exponential, heavy, lambda rng, n: 0.03 + rng.exponential(0.01, n)]
)
def test_the_law_is_that_of_one_time_and_all_hours_together_are_what_was_counted(draw):
    delays = drawn(np.random.default_rng(3), BUSY, 3, 500, draw)
    window = TraceWindow(from_ns=0, until_ns=72 * HOUR_NS)
    days = find_delay_days(rows_by_hour(delays), window)
    channel = fit_channels(rows_by_bin(delays), days=days)["a", "b"]
    every, alone = np.concatenate(list(delays.values())), draw(np.random.default_rng(4), 200_000)
    law = channel.delay.law
    assert law.mean_s == pytest.approx(every.mean(), rel=1e-9)
    # The law of the hours together has an scv of three; that of one time is what was drawn.
    at_s = np.quantile(alone, np.linspace(0.02, 0.98, 49))
    scale = every.mean() / alone.mean()
    assert np.abs(law.cdf(at_s * scale) - np.linspace(0.02, 0.98, 49)).max() < 0.05
    mixed = shares(law, channel.day.times, EDGES_S[:-1])
    counted = np.searchsorted(np.sort(every), EDGES_S[:-1], side="right") / every.size
    assert np.abs(mixed - counted).max() < 0.02


def test_links_without_a_day_are_fitted_as_ever():
    delays = drawn(np.random.default_rng(6), ALIKE, 3, 200, exponential)
    window = TraceWindow(from_ns=0, until_ns=72 * HOUR_NS)
    days = find_delay_days(rows_by_hour(delays), window)
    rows = rows_by_bin(delays)
    assert days == {}
    found = fit_channels(rows, days=days)["a", "b"]
    assert found.day is None
    assert found.channel(PERFECT) == fit_channels(rows)["a", "b"].channel(PERFECT)
    assert found.channel(PERFECT).delay_by_time is None
