"""Overloaded brokers: what nothing can be simulated of in the long run, and what can be instead."""

from __future__ import annotations

import math
from dataclasses import replace

from tidings.model.loads import FULL_LOAD
from tidings.model.outcome import Outcome
from tidings.model.system import Broker, System
from tidings.simulation.network import compile_system

_TIMES = 2.0  # the longest lifetime: how long whatever is served has waited
_MOST = 100_000  # events that may wait at a broker
_LONGEST = 0.999  # quantile of a lifetime


def with_full_queues(system: System, outcome: Outcome) -> System | None:
    """Bound the queues of overloaded brokers so that whatever leaves them is late all the same.

    There is a steady state then, in which everybody else gets what they get as the queues grow.
    None where a queue would be too long, or is bounded or made up of several as it is.
    """
    rows = outcome.brokers[outcome.brokers["utilisation"] >= FULL_LOAD]
    service_s = dict(zip(rows["broker"], rows["service_mean_s"], strict=True))
    lifetimes = {row.lifetime for row in compile_system(system).routes.rows}
    longest_s = max(
        (math.inf if law is None else float(law.quantile(_LONGEST)) for law in lifetimes),
        default=math.inf,
    )
    brokers = []
    for each in system.brokers:
        if each.name in service_s:
            waiting = _TIMES * longest_s * each.servers / service_s[each.name]
            if waiting > _MOST or not _is_plain(each):
                return None
            each = replace(each, buffer=math.ceil(waiting))
        brokers.append(each)
    return replace(system, brokers=tuple(brokers)) if service_s else None


def _is_plain(broker: Broker) -> bool:
    """Whether a broker is one queue without a limit, served in order."""
    return len(broker.stations) == 1 and broker.buffer is None and broker.discipline == "fcfs"
