"""Planted periods are found by the piece of time, as by looking through all of them."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import functions as F

from tidings.traces.period_lookup import PLACE, look_up
from tidings.traces.planted_periods import Period, Periods
from tidings.traces.window import TraceWindow

WINDOW = TraceWindow(from_ns=1_000, until_ns=2_000)


def some_periods(rng, count):
    """Periods that do not overlap, some short, some long, from before the window to after it."""
    turns = 900 + rng.permutation(1300)[: 2 * count]
    turns.sort()
    return [Period(int(a), int(b)) for a, b in turns.reshape(-1, 2)]


@pytest.mark.parametrize("count", [1, 2, 7, 60, 400])
def test_a_moment_finds_in_its_piece_what_holds_it(count):
    rng = np.random.default_rng(count)
    lists = {"broker": some_periods(rng, count), "link": some_periods(rng, 3)}
    found = look_up(Periods(down=lists), WINDOW)
    longest = 0
    for name, periods in lists.items():
        place = found.places["down", name]
        for at in range(WINDOW.from_ns, WINDOW.until_ns + 200):  # events arrive after the end, too
            number = place["first"] + (at - WINDOW.from_ns) // place["width_ns"]
            near = found.pieces[min(number, place["last"])]
            held = [each for each in near if each.from_ns <= at < each.until_ns]
            assert held == [each for each in periods if each.from_ns <= at < each.until_ns]
            longest = max(longest, len(near) if at < WINDOW.until_ns - 100 else 0)
    assert longest <= 20  # of up to 400: that is what pieces are for
    assert len(found.pieces) == count + 3


@pytest.mark.spark
def test_columns_look_up_as_lists_do(spark):
    mine = [Period(1_100, 1_150), Period(1_300, 1_900)]
    found = look_up(Periods(away={"other": [Period(0, 5_000)], "bob": mine}), WINDOW)
    place = found.places["away", "bob"]
    at = F.col("id")
    here = F.struct(*(F.lit(value).alias(name) for name, value in place.items())).cast(PLACE)
    nowhere = F.lit(None).cast(PLACE)
    rows = (
        spark.range(1_000, 2_100, 7)
        .select("id", found.within(here, at), found.until(here, at), found.within(nowhere, at))
        .collect()
    )
    for moment, inside, until_ns, unknown in rows:
        ends = [each.until_ns for each in mine if each.from_ns <= moment < each.until_ns]
        assert (inside, until_ns, unknown) == (bool(ends), ends[0] if ends else None, None)
