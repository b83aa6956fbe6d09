"""The answer of theory: from a system to its outcome, by queueing theory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tidings.model.arrays import Floats
from tidings.model.features import require_only
from tidings.model.outcome import Outcome, table
from tidings.model.progress import Progress
from tidings.model.routes import route
from tidings.model.system import System
from tidings.theory.causes.costs import costs_of_subscribers
from tidings.theory.error_bars.parameter_errors import parameter_errors
from tidings.theory.network.arriving import arriving
from tidings.theory.network.following import Result, Worst, follow
from tidings.theory.network.network import Network
from tidings.theory.peers.connectivity import with_periods_as_laws
from tidings.theory.provenance import provenance, remarks
from tidings.theory.queues.published import require_queue_model
from tidings.theory.repairs.components import acknowledged
from tidings.theory.repairs.failing import require_repairs_handled
from tidings.theory.theory_tables import (
    brokers_table,
    by_subscriber,
    delays_table,
    links_table,
    pairs_table,
    regimes_table,
    subscribers_table,
)

HANDLED = frozenset(
    {
        "connectivity",
        "connectivity from traces",
        "subscription churn",
        "subscriber's own queue",
        "one tree per topic",
        "random lifetimes",
        "several stations in a broker",
        "lifetimes of subscribers",
        "subscribers with a count",
        "failures",
        "recovery",
    }
)
# Unasked, costs of causes are given of the worst: up to so many audiences · brokers, and of nobody
# where there are more subscribers · brokers.
MOST_CAUSES, FAR_TOO_MANY = 20_000, 20_000_000
MOST_DELAY_LAWS = 2_000  # subscribers up to which whole delay distributions are given unasked
WORST_DELAY_LAWS = 300  # of more, those with the lowest on-time shares


@dataclass(frozen=True, slots=True, kw_only=True)
class TheoryAnswer:
    """What theory says, and the regime of every subscriber, which tells how far to trust it."""

    outcome: Outcome
    regimes: pd.DataFrame  # a row for every subscriber
    roughness: Floats  # [subscriber]: how far its share is off by arithmetic alone
    possible: Floats  # [subscriber]: share that is on time if nothing takes longer than it must


def network_of(system: System, *, model: str = "law", faults: str = "exact") -> Network:
    """Give a system as theory sees it; refuses by name what theory does not handle."""
    require_queue_model(model)
    require_only(system, HANDLED, "theory")
    require_repairs_handled(system, faults)
    system = with_periods_as_laws(system)
    routes = acknowledged(system, route(system))
    return Network(system=system, routes=routes, model=model, faults=faults)


def _worst(results: Sequence[Result], system: System) -> list[Result]:
    """Choose those who miss most events, as many as the costs of causes are quickly found of."""
    brokers = len(system.brokers)
    if len(system.subscribers) * brokers > FAR_TOO_MANY:
        return []

    def missed_per_s(result: Result) -> float:
        numbers = result.numbers
        missed = np.nan_to_num((1.0 - numbers["on_time"]) * numbers["wanted_per_s"])
        return -float(missed[result.audience.filter_of].sum())

    return sorted(results, key=missed_per_s)[: max(MOST_CAUSES // brokers, 1)]


def answer_by_theory(  # noqa: PLR0913 (what it can be asked for, all of it by name)
    system: System,
    *,
    pairs: bool = False,
    delays: bool | None = None,
    model: str = "law",
    faults: str = "exact",
    error_bars: bool | None = None,
    causes: bool | None = None,
    progress: Progress | None = None,
) -> TheoryAnswer:
    """Predict which share of the events each subscriber wants reaches it in time, by theory.

    ``model`` is one of ``QUEUE_MODELS``, ``faults`` one of ``FAULT_MODELS``. ``error_bars`` turns
    standard errors of parameters into those of the result; by itself where the system has them and
    that is quick. ``causes`` adds what each cause costs everybody; by itself in small systems.
    """
    report = progress or (lambda _: None)
    report("contents and routes")
    network = network_of(system, model=model, faults=faults)
    system = network.system
    report("queues")
    _ = network.stages
    some = delays is None and len(system.subscribers) > MOST_DELAY_LAWS
    worst = Worst(0 if delays is False else WORST_DELAY_LAWS if some else len(system.subscribers))
    results: list[Result] = []
    for group in network.by_home():
        report(f"paths to subscribers, {len(results)} of {len(network.audiences)}")
        came = arriving(network, group, by_publisher=pairs)
        results += [follow(came, each, worst, by_publisher=pairs) for each in group]
    left_s = [each.left_s for each in results]
    report("causes")
    costs = table("causes")
    blamed = results if causes else _worst(results, system) if causes is None else []
    if model == "law" and blamed:
        costs = costs_of_subscribers(network, left_s, [each.audience for each in blamed])
    bars = parameter_errors(network, left_s, asked=error_bars, progress=report)
    subscribers = subscribers_table(system, results)
    return TheoryAnswer(
        outcome=Outcome(
            source="predicted",
            subscribers=subscribers.assign(**bars.subscribers),
            pairs=pairs_table(system, network, results) if pairs else table("pairs"),
            brokers=brokers_table(system, network).assign(**bars.brokers),
            links=links_table(system, network),
            delays=delays_table(subscribers, results, worst.most),
            causes=costs,
            provenance=provenance(system, network, bars.parameters),
            remarks=(*remarks(system, network), *bars.remarks(system)),
        ),
        regimes=regimes_table(system, results),
        roughness=by_subscriber(system, results, "roughness"),
        possible=by_subscriber(system, results, "possible"),
    )
