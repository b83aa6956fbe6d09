"""How a prediction came about: what was assumed, how exact the numbers are, what to beware of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.model.features import FEATURES, has_churn
from tidings.model.loads import overload
from tidings.model.reading import fingerprint
from tidings.model.record_tables import names
from tidings.model.routes import Routes
from tidings.model.system import System
from tidings.theory.audiences import Floats
from tidings.theory.churn.churning import AMONG_FAILURES, APPROXIMATIONS
from tidings.theory.error_bars import ASSUMED, ErrorBars
from tidings.theory.flows import Flows, met_flows
from tidings.theory.presence import lasting
from tidings.theory.queue_models import Queues
from tidings.theory.shares import Followed
from tidings.theory.stated_errors import Stated

_NOTICEABLY = 0.1  # of a broker's time: what more it seems to be busy, from which on it is said
_UNSETTLED = Stated(
    "overloaded brokers feed each other and their rates did not settle; the last ones were taken",
    None,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sureness:
    """What is known of the errors of a prediction, numerical ones apart."""

    bars: ErrorBars | None = None  # from the parameters
    errors: Mapping[str, Floats] = field(default_factory=dict)  # all of them together


def provenance(system: System, model: str, found: Followed, sureness: Sureness) -> dict[str, Any]:
    """Version, model, approximations, largest numerical error and warnings of a prediction."""
    errors = [float(result.error.max()) for result in found.results if result.error.size]
    said = [*approximations(system, found.rates, found.queues), *found.peers.assumes]
    bursts = found.journeys.ways.bursts
    said += [] if bursts is None else bursts.approximations
    said += _from_parameters(system, sureness.bars) + _from_contents(found.routes, sureness)
    counted: dict[str, Any] = {}
    if sureness.bars is not None:
        bars = sureness.bars
        counted["error_bars"] = {"parameters": bars.parameters, "predictions": bars.predictions}
    if found.routes.sampled:
        sampling = found.routes.sampling
        counted["contents_drawn"] = {
            "publishers": len(found.routes.sampled),
            "events": sampling.draws,
            "seed": sampling.seed,
        }
    return {
        "version": metadata.version("tidings"),
        "engine": "prediction",
        "system": fingerprint(system),
        "model": model,
        "approximations": said,
        "numerical_error": max(errors, default=0.0),  # of any on-time share
        **counted,
        "warnings": [
            *_overloads(system, found.rates),
            *([] if found.rates.settled else [_UNSETTLED]),
            *_nearly_overloaded(system, sureness.bars),
            *found.peers.warnings,
            *([] if bursts is None else bursts.warnings),
            *_busier_than_found(system, found),
            *_without_events(system, found),
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
    if has_churn(system, "prediction"):
        found += APPROXIMATIONS
        found += [AMONG_FAILURES] if any(FEATURES["failures"](system)) else []
    return found


def _from_parameters(system: System, bars: ErrorBars | None) -> list[str]:
    """What was made of the standard errors of the parameters."""
    if bars is None:
        unused = (
            "standard errors of the parameters not turned into those of the result (error_bars, "
            "--error-bars)"
        )
        return [unused] if system.standard_errors else []
    if not bars.left_out:
        return [ASSUMED]
    shown = ", ".join(bars.left_out[:3])
    shown += f" and {len(bars.left_out) - 3} more" if len(bars.left_out) > 3 else ""
    return [ASSUMED, f"standard errors of these parameters left out: {shown}"]


def _nearly_overloaded(system: System, bars: ErrorBars | None) -> list[str]:
    """Brokers of which it is not known whether they are overloaded."""
    return [
        f"one standard error of {path} decides whether broker '{system.brokers[broker].name}' is "
        "overloaded: how far waits and delays can be off there is unknown, told as infinite"
        for broker, path in (bars.overloading if bars else {}).items()
    ]


def _from_contents(routes: Routes, sureness: Sureness) -> list[str]:
    """What drawing contents means for the result."""
    if not routes.sampled:
        return []
    sampling = routes.sampling
    share = 0.5 / math.sqrt(sampling.draws)
    said = (
        f"contents of {len(routes.sampled)} publishers too many to enumerate: {sampling.draws:,} "
        f"events of each drawn (seed {sampling.seed}), the share of them that goes over a link "
        f"known to {share:.2g} (standard error) or better"
    )
    known = sureness.errors.get("on_time", np.zeros(0))
    known = known[np.isfinite(known)]
    if known.size:
        said += f"; standard errors of on-time shares up to {known.max():.2g}"
    else:
        said += "; what that means for on-time shares was not worked out"
    return [said]


def _overloads(system: System, rates: Flows) -> list[str]:
    return [
        overload(system.brokers[index].name, rates.loads[index], rates.arrivals[index])
        + "; events that cross it count as lost"
        for index in np.flatnonzero(rates.overloaded)
    ]


def _busier_than_found(system: System, found: Followed) -> list[str]:
    """Brokers that are taken to be busier than those find them who last, beside who comes and goes.

    What they draw comes in company, which the events of others meet less often.
    """
    if not has_churn(system, "prediction") or not lasting(system).any():
        return []
    met = met_flows(system, found.routes, found.rates).loads
    return [
        Stated(
            f"broker '{system.brokers[index].name}' is {found.rates.loads[index]:.2f} busy on "
            f"average and {met[index]:.2f} as most events find it, drawn by who comes and goes; "
            "lasting subscribers find less, and their shares were too low by up to .05 "
            "(docs/notification-loss.md)",
            0.05,
        )
        for index in np.flatnonzero(met - found.rates.loads > _NOTICEABLY)
    ]


def _without_events(system: System, follow: Followed) -> list[str]:
    found = [
        result.audience.subscribers[(result.wanted.sum(axis=1) == 0.0)[result.audience.filter_of]]
        for result in follow.results
    ]
    idle = np.concatenate(found)
    routes = follow.routes
    filters = routes.filter_of_subscriber[idle]
    # What is not 0 here is a share that is not known; drawn contents were none of these.
    unsure = np.any([shares[filters] != 0.0 for shares in routes.drawn_shares.values()], axis=0)
    unsure = np.broadcast_to(unsure, idle.shape)
    reasons = {
        "nobody publishes anything that these subscribers want": idle[~unsure],
        f"none of {routes.sampling.draws:,} contents drawn of each publisher is wanted by these, "
        "so nothing can be told of them": idle[unsure],
    }
    return [f"{said}: {_listed(system, who)}" for said, who in reasons.items() if who.size]


def _listed(system: System, subscribers: NDArray[np.int64]) -> str:
    named = names(system.subscribers)
    listed = ", ".join(named[index] for index in subscribers[:5])
    return listed + (f" and {subscribers.size - 5} more" if subscribers.size > 5 else "")
