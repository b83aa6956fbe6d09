"""How a prediction came about: what was assumed, how exact the numbers are, what to beware of."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import numpy as np

from tidings.model.loads import overload
from tidings.model.reading import fingerprint
from tidings.model.system import System
from tidings.prediction.flows import Flows
from tidings.prediction.queue_models import Queues
from tidings.prediction.shares import Shares

_UNSETTLED = (
    "overloaded brokers feed each other and their rates did not settle; the last ones were taken"
)


def provenance(
    system: System, model: str, network: tuple[Flows, Queues], results: list[Shares]
) -> dict[str, Any]:
    """Version, model, approximations, largest numerical error and warnings of a prediction."""
    rates, queues = network
    errors = [float(result.error.max()) for result in results if result.error.size]
    return {
        "version": metadata.version("tidings"),
        "engine": "prediction",
        "system": fingerprint(system),
        "model": model,
        "approximations": approximations(system, rates, queues),
        "numerical_error": max(errors, default=0.0),  # of any on-time share
        "warnings": [
            *_overloads(system, rates),
            *([] if rates.settled else [_UNSETTLED]),
            *_without_events(system, results),
        ],
    }


def approximations(system: System, rates: Flows, queues: Queues) -> list[str]:
    """What a prediction assumes of this system that need not be so, as sentences."""
    said = (each for stations in queues for queue in stations for each in queue.assumes)
    found = list(dict.fromkeys(said))
    laws = [law for services in rates.services for law in services if law.mean_s > 0]
    if len(laws) > 1:
        found.append("delays of one event at successive queues taken as independent")
    if any(len(services) > 1 for services in rates.services):
        found.append("the stations of a broker taken as queues in series")
    if any(s.service and s.service.per_subscription for b in system.brokers for s in b.stations):
        found.append("every broker taken to store every subscription")
    if system.standard_errors:
        found.append(
            "standard errors of the parameters are known but not yet turned into intervals"
        )
    return found


def _overloads(system: System, rates: Flows) -> list[str]:
    return [
        overload(system.brokers[index].name, rates.loads[index], rates.arrivals[index])
        + "; events that cross it count as lost"
        for index in np.flatnonzero(rates.overloaded)
    ]


def _without_events(system: System, results: list[Shares]) -> list[str]:
    names: list[str] = []
    for result in results:
        idle = result.wanted.sum(axis=1) == 0.0
        chosen = result.audience.subscribers[idle[result.audience.filter_of]]
        names.extend(system.subscribers[int(index)].name for index in chosen)
    if not names:
        return []
    listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return [f"nobody publishes anything that these subscribers want: {listed}"]
