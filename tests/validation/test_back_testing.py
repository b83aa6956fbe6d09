"""Where a window is parted; the test itself runs where the traces for it are (characterisation)."""

from __future__ import annotations

import pytest

from tidings.errors import InvalidTracesError
from tidings.model.outcome import Outcome, table
from tidings.traces.window import TraceWindow
from tidings.validation.back_testing import split, within_model
from tidings.validation.comparison import compare


@pytest.mark.parametrize("share", [0.05, 0.95])
def test_parts_too_small_to_tell_are_refused(share):
    with pytest.raises(InvalidTracesError, match=r"wants 0\.1 to 0\.9"):
        split(TraceWindow(from_ns=0, until_ns=100), share)


def outcome(source, shares, error):
    rows = [
        {"subscriber": f"s{n}", "broker": "b", "count": n, "on_time": share, "on_time_se": error}
        for n, share in enumerate(shares, start=1)
    ]
    return Outcome(source=source, subscribers=table("subscribers", rows))


def test_the_error_of_the_model_widens_what_counts_as_agreement():
    """Two standard errors of 0.003 and 0.004 are 0.01; with a model off by 0.012, 0.026."""
    predicted = outcome("predicted", [0.909, 0.92, 0.93, float("nan")], 0.003)
    comparison = compare(predicted, outcome("measured", [0.9] * 4, 0.004))
    assert comparison.summary.within_2se == within_model(comparison, 0.0) == pytest.approx(1 / 6)
    assert within_model(comparison, 0.012) == pytest.approx(3 / 6)  # each as often as it counts
