"""Commands on small systems whose truth is known, and theory whose error a test chooses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from planning.truths import played_by
from tidings.prediction import predict as room
from tidings.theory.delay.distributions import Distributions
from tidings.theory.error_table import ErrorTable


@pytest.fixture(autouse=True)
def theory_off_by(monkeypatch):
    """Says how far theory is off, the same everywhere; exact unless a test says otherwise."""

    def say(error):
        table = ErrorTable(
            features=(),
            low=np.zeros(0),
            high=np.zeros(0),
            start=math.log(max(error, 1e-300)),
            margin=0.0,
            trees=(),
        )
        monkeypatch.setattr(room, "measured_errors", lambda: table)
        monkeypatch.setattr(
            Distributions, "roughness", lambda _, lifetimes_s, rows: np.zeros(rows.size)
        )

    say(0.0)
    return say


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A system file, and a simulation that finds the system as some changes would make it."""

    def made(text, *truth):
        path = tmp_path / "system.yaml"
        path.write_text(text)
        play = played_by(*truth)
        monkeypatch.setattr(
            "tidings.simulation.run.simulate",
            lambda plan, options, **_: play(plan, options.precision),
        )
        return str(path)

    return made
