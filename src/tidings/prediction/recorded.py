"""How far an answer from recorded times can be off because the record is only so long."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from tidings.model.outcome import Outcome
from tidings.model.system import System
from tidings.simulation.schedules import find_replays


def with_record_errors(simulated: Outcome, system: System) -> Outcome:
    r"""Give a simulated outcome whose standard errors hold what a record leaves open.

    Blocks of a record are drawn at random, so that shares of runs of a time t in all vary as those
    of other records do: with a variance of v/t. A record of length T leaves v/T open, and
    :math:`v/t + v/T = (v/t)(1 + t/T)`. A record that is looped tells nothing of it.
    """
    lengths_s = [each.length_s for each in find_replays(system) if each.block_s < each.length_s]
    if not lengths_s:
        return simulated
    story = simulated.provenance
    measured_s = story["replications"] * story["duration_s"]
    rows = simulated.subscribers.copy()
    rows["on_time_se"] = np.minimum(
        rows["on_time_se"] * math.sqrt(1.0 + measured_s / min(lengths_s)), 1.0
    )
    return dataclasses.replace(simulated, subscribers=rows)
