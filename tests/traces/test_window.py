from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

from tidings.errors import InvalidTracesError
from tidings.traces.window import DAY_NS, HOUR_NS, NANOSECONDS, DailyHours, TraceWindow


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


@pytest.mark.parametrize("from_h", [0, 5, 23 + 19675 * 24])
def test_hours_of_every_day_are_watched_as_a_clock_would_tell(frame, from_h):
    """Against an obvious twin: every half hour of two days and a half, one by one."""
    night = DailyHours(
        from_ns=from_h * HOUR_NS,
        until_ns=(from_h + 60) * HOUR_NS,
        begin_ns=22 * HOUR_NS,
        length_ns=8 * HOUR_NS,
    )
    times = [
        (from_h * 2 + half) * HOUR_NS // 2 for half in range(-2, 122) if from_h * 2 + half >= 0
    ]
    at = F.col("at_ns")
    asked = [night.holds(at), night.batch(at, 4), night.piece(at, 4)]
    rows = frame([(time,) for time in times], "at_ns bigint").select("at_ns", *asked).collect()
    held = [row[0] for row in rows if row[1]]
    assert held == [
        time
        for time in times
        if night.from_ns <= time < night.until_ns and not 6 <= time % DAY_NS / HOUR_NS < 22
    ]
    assert night.seconds == len(held) * 1800
    assert [row[2] for row in rows if row[1]] == [4 * n // len(held) for n in range(len(held))]
    nights = [(time + 2 * HOUR_NS) // DAY_NS for time in held]
    into = [(time + 2 * HOUR_NS) % DAY_NS // (2 * HOUR_NS) for time in held]
    first = (night.from_ns + 2 * HOUR_NS) // DAY_NS
    expected = [(day - first) * 4 + part for day, part in zip(nights, into, strict=True)]
    assert [row[3] for row in rows if row[1]] == expected
