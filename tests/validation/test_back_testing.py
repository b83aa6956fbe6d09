"""A system that stays as it is: the rest is as the first part makes us expect."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tidings.demonstration.sample_system import market_and_weather
from tidings.errors import InvalidTracesError
from tidings.simulation.run import simulate
from tidings.traces.reading import Traces
from tidings.traces.window import TraceWindow
from tidings.validation import back_testing
from tidings.validation.back_testing import back_test, split

S = 10**9


@pytest.mark.slow
def test_the_rest_is_predicted_from_the_first_part(monkeypatch):
    """Characterisation is played by the truth: what it learns is the system, what it sees a run."""
    system, asked = market_and_weather(), []

    def learn(traces, *, base, settle_s=0.0, progress):
        progress("publications")
        asked.append((traces.window.from_ns // S, traces.window.until_ns // S, base, settle_s))
        run = simulate(system, seed=len(asked), duration_s=120.0, replications=4)
        return SimpleNamespace(system=system, measured=run)

    monkeypatch.setattr(back_testing, "characterise", learn)
    told = []
    traces = Traces(tables={}, window=TraceWindow(from_ns=0, until_ns=100 * S))
    found = back_test(traces, share=0.6, settle_s=5.0, progress=told.append)
    # the first part has no end where recording stopped, so that nothing need settle there
    assert asked == [(0, 60, None, 0.0), (60, 100, None, 5.0)]
    assert told == ["first, publications", "predicting the rest", "the rest, publications"]
    summary = found.comparison.summary
    assert found.comparison.source_b == "simulated"
    assert summary.compared == len(system.subscribers)
    assert summary.mean_absolute < 0.02
    assert f"off by {summary.mean_absolute:.3g} on average" in found.text


@pytest.mark.parametrize("share", [0.05, 0.95])
def test_parts_too_small_to_tell_are_refused(share):
    with pytest.raises(InvalidTracesError, match=r"wants 0\.1 to 0\.9"):
        split(TraceWindow(from_ns=0, until_ns=100), share)
