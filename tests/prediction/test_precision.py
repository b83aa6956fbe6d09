from __future__ import annotations

import numpy as np
import pytest

from tidings.errors import InvalidInputError
from tidings.prediction.precision import LEAST, Within, read_within


@pytest.mark.parametrize(
    ("asked", "share", "of_misses"),
    [
        (0.005, 0.005, False),
        ("0.005", 0.005, False),
        (" 5e-3 ", 0.005, False),
        ("0.5 %", 0.005, False),
        ("10% of misses", 0.1, True),
        ("0.1 of the misses", 0.1, True),
        ("5 % OF MISSES", 0.05, True),
    ],
)
def test_what_people_write_is_understood(asked, share, of_misses):
    found = read_within(asked)
    assert found.share == pytest.approx(share, rel=1e-12)
    assert found.of_misses is of_misses
    assert read_within(str(found)) == found


@pytest.mark.parametrize(
    "asked",
    ["", "a lot", "10% of hits", "10 percent", "-0.1", "0", 0.0, -0.1, 1.0, "100%", "50%", 5,
     float("nan"), float("inf"), "1e-6", "10% of", "of misses", "0.005 0.005"],
)  # fmt: skip
def test_what_cannot_be_wanted_is_an_error_that_shows_what_can(asked):
    with pytest.raises(InvalidInputError, match=r"within is .*wants an error.*10% of misses"):
        read_within(asked)


def test_a_part_of_the_misses_follows_the_share_down_to_what_anybody_wants():
    shares = np.array([0.0, 0.9, 0.999, 1.0, np.nan])
    assert Within(share=0.1, of_misses=True).half_widths(shares) == pytest.approx(
        [0.1, 0.01, 1e-4, LEAST, np.nan], rel=1e-9, nan_ok=True
    )
    assert Within(share=0.1).half_widths(shares) == pytest.approx([0.1] * 5)
