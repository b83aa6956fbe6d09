from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.reporting import wording


@settings(deadline=None)
@given(st.floats(0, 1))
def test_a_percentage_reads_back_to_within_its_last_digit(share):
    text = wording.percent(share).removesuffix(" %")
    decimals = len(text.partition(".")[2])
    assert float(text) == pytest.approx(100 * share, abs=0.5000001 * 10**-decimals)


@settings(deadline=None)
@given(st.floats(1e-4, 0.99), st.floats(1e-4, 0.2))
def test_a_standard_error_is_never_shown_as_nothing(share, se):
    shown = wording.percent(share, se).removesuffix(" %").split(" ± ")
    assert float(shown[1]) > 0


def test_shares_close_to_everything_do_not_become_everything():
    assert wording.percent(0.9996) == "99.96 %"
    assert wording.percent(0.99999) == "99.999 %"
    assert wording.whole_percent(0.9999) == "over 99 %"


def test_what_is_unknown_is_a_dash_everywhere():
    for write in (wording.percent, wording.whole_percent, wording.seconds, wording.rate):
        assert write(math.nan) == "–"
    assert wording.quantity(math.nan, "s", 1.0) == "–"
    assert wording.number(math.nan) == "–"


def test_errors_of_times_are_in_the_unit_of_the_time():
    assert wording.seconds(0.0123, 0.0004) == "12.3 ± 0.4 ms"
    assert wording.seconds(5400.0, 360.0) == "1.5 ± 0.1 h"
