from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

from tidings.errors import InvalidTracesError
from tidings.traces.window import NANOSECONDS, TraceWindow


def batches(frame, window: TraceWindow, times: list[int | None], number: int) -> list[int | None]:
    given = frame([(time,) for time in times], "at_ns bigint")
    return [row[0] for row in given.select(window.batch(F.col("at_ns"), number)).collect()]


def test_batches_are_equal_and_cover_the_window_to_the_nanosecond(frame):
    window = TraceWindow(from_ns=1_700_000_000_000_000_000, until_ns=1_700_000_000_000_000_320)
    times = [window.from_ns + step for step in (0, 9, 10, 159, 160, 319)]
    assert batches(frame, window, times, 32) == [0, 0, 1, 15, 16, 31]


def test_moments_beyond_the_ends_belong_to_the_nearest_batch_and_nothing_to_none(frame):
    window = TraceWindow(from_ns=100, until_ns=200)
    assert batches(frame, window, [0, 99, 200, 2**62, None], 10) == [0, 0, 9, 9, None]


def test_the_end_is_not_in_the_window(frame):
    window = TraceWindow(from_ns=5, until_ns=8)
    given = frame([(n,) for n in (4, 5, 7, 8)], "at_ns bigint")
    held = [row[0] for row in given.select(window.holds(F.col("at_ns"))).collect()]
    assert held == [False, True, True, False]


@given(length_s=st.floats(1.0, 1e6), share=st.floats(0.0, 0.9))
@settings(deadline=None)
def test_a_shortened_window_ends_earlier(length_s, share):
    window = TraceWindow(from_ns=0, until_ns=round(length_s * NANOSECONDS))
    shorter = window.shortened(share * window.seconds * 0.999)
    assert shorter.from_ns == window.from_ns
    assert 0 < shorter.until_ns <= window.until_ns


@pytest.mark.parametrize(("start", "end"), [(5, 5), (6, 5), (-1, 5)])
def test_a_window_without_length_is_refused(start, end):
    with pytest.raises(InvalidTracesError, match="the observed window"):
        TraceWindow(from_ns=start, until_ns=end)


def test_too_long_to_settle_is_refused():
    with pytest.raises(InvalidTracesError, match="at most nine tenths"):
        TraceWindow(from_ns=0, until_ns=NANOSECONDS).shortened(0.95)
