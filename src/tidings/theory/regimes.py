"""Where a row lies among all systems: the numbers that decide how far theory is off."""

from __future__ import annotations

import pandas as pd

from tidings.model.features import FEATURES
from tidings.model.outcome import Outcome
from tidings.model.system import System

_FLAGS = {
    "failing": "failures",
    "mobile": "connectivity",
    "churning": "subscription churn",
}


def regime_of(system: System, outcome: Outcome) -> pd.DataFrame:
    """Describe each subscriber of a predicted outcome by numbers, one row each."""
    queues = any(FEATURES["subscriber's own queue"](system))
    load = 1.0 if queues else float(outcome.brokers["utilisation"].max())
    columns = {"load": load, "sensitivity": 1.0}
    columns |= {name: float(any(FEATURES[used](system))) for name, used in _FLAGS.items()}
    return pd.DataFrame(columns, index=range(len(outcome.subscribers)))
