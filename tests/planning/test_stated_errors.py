"""What a prediction says of its own error counts: in intervals, and in what plans make of it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tidings.model import reading
from tidings.model.outcome import Outcome, table
from tidings.model.outcome_files import load_outcome, save_outcome
from tidings.planning.evidence import MEETS, MISSES, OPEN, prediction_error, settle
from tidings.planning.targets import Target
from tidings.theory.predicting import predict
from tidings.theory.stated_errors import (
    MODEL_ERROR,
    Stated,
    possible_error,
    with_stated_errors,
)
from tidings.validation.intervals import intervals

# Bursts before slower brokers beside a subscription that comes and goes: 0.31 is predicted for 's'.
BURSTS = """
tidings: 1
lifetime: 1s
brokers: {a: {service: {exponential: 30ms}}, b: {service: {exponential: 60ms}}}
links: [{between: [a, b]}]
publishers:
  p:
    at: a
    every: {exponential: 120ms}
    content: {event: {k: x}}
    connectivity: {on: {exponential: 20s}, off: {exponential: 8s}, service: {exponential: 20ms}}
subscribers:
  s: {at: b, wants: {}}
  t: {at: b, wants: {}, stays: {exponential: 60s}, away: {exponential: 30s}}
"""


@pytest.fixture(scope="module")
def bursts():
    return reading.loads(BURSTS)


@pytest.fixture(scope="module")
def predicted(bursts):
    return predict(bursts, delays=False)


def simulated(predicted, share, noise=0.01):
    rows = predicted.subscribers.assign(on_time=share, on_time_se=noise)
    return replace(predicted, source="simulated", subscribers=rows, provenance={})


def said(approximations=(), warnings=()):
    story = {"approximations": list(approximations), "warnings": list(warnings)}
    rows = {"subscriber": ["s"], "on_time": [0.5], "on_time_se": [math.nan]}
    return Outcome(
        source="predicted",
        subscribers=table("subscribers", rows),
        provenance=with_stated_errors(story),
    )


def test_the_largest_of_what_is_stated_wins():
    assert possible_error(said()).whole == 0.0
    assert possible_error(said(["independent"])).whole == MODEL_ERROR
    assert possible_error(said([Stated("tiny", 0.002)])).whole == MODEL_ERROR
    outcome = said([Stated("line", 0.11)], [Stated("bursts", 0.3), "a word without a size"])
    assert possible_error(outcome).whole == 0.3
    assert {type(each) for each in outcome.warnings} == {str}
    outcome = said(["plain"], [Stated("bursts", 0.3), Stated("back at once", None)])
    unknown = possible_error(outcome)
    assert (unknown.share, unknown.unknown, unknown.whole) == (0.3, ("back at once",), None)


def test_an_interval_is_as_wide_as_what_is_stated():
    (row,) = intervals(said(["plain"], [Stated("bursts", 0.3)])).to_dict("records")
    assert (row["low"], row["high"], row["model_error"]) == (0.2, 0.8, 0.3)
    (row,) = intervals(said(["plain"], [Stated("bursts", 0.3)]), model_error=0.0).to_dict("records")
    assert (row["low"], row["high"]) == (0.5, 0.5)
    doubtful = said(["plain"], [Stated("bursts", 0.3), Stated("back at once", None)])
    (row,) = intervals(doubtful).to_dict("records")
    assert (row["low"], row["high"]) == (0.2, 0.8)
    assert math.isnan(row["model_error"])


def test_bursts_beside_churn_are_told_with_their_size_and_kept_in_files(predicted, tmp_path):
    (warning,) = predicted.warnings
    sizes = {row["says"]: row["error"] for row in predicted.provenance["stated_errors"]}
    assert sizes[warning] == possible_error(predicted).whole == prediction_error(predicted)
    assert f"up to {sizes[warning]:g} ".replace("0.", ".") in warning
    save_outcome(predicted, tmp_path / "p.json")
    assert possible_error(load_outcome(tmp_path / "p.json")) == possible_error(predicted)


def test_a_target_within_a_stated_error_is_simulated_for(bursts, predicted):
    share = float(predicted.subscribers["on_time"].min())
    played = []

    def play(truth):
        return lambda system: played.append(system) or simulated(predicted, truth)

    near = Target(share=share + 0.1)
    assert settle(bursts, near, play(share + 0.25)).verdict == MEETS
    assert settle(bursts, near, play(share)).verdict == MISSES
    assert len(played) == 2
    assert settle(bursts, near, None).foretold == OPEN
    far = settle(bursts, Target(share=0.99), play(share))
    assert (far.verdict, far.simulated) == (MISSES, None)
    assert len(played) == 2
