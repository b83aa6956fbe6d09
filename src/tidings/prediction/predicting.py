"""The prediction of a system: from its description to its outcome, by theory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from tidings.errors import InvalidInputError
from tidings.model.features import require_only
from tidings.model.outcome import Outcome, table
from tidings.model.routes import Routes, route
from tidings.model.system import System
from tidings.prediction.audiences import Floats, audiences, streams
from tidings.prediction.delay_columns import delay_columns
from tidings.prediction.delay_tables import Extent, Tables
from tidings.prediction.faults.modelling import failures_of
from tidings.prediction.faults.telling import with_faults
from tidings.prediction.flows import Flows, flows
from tidings.prediction.mobility.peers import Accesses, accesses
from tidings.prediction.pairs import pair_table
from tidings.prediction.path_laws import Workshop
from tidings.prediction.provenance import provenance
from tidings.prediction.queue_models import QUEUE_MODELS, Queues, broker_stages
from tidings.prediction.shares import Shares, shares
from tidings.prediction.ways import Ways, ways

HANDLED = frozenset(
    {
        "failures",
        "recovery",
        "connectivity",
        "bounded buffers of peers",
        "subscriber's own queue",
        "one tree per topic",
        "random lifetimes",
        "several stations in a broker",
        "lifetimes of subscribers",
        "many subscribers in one",
    }
)
MOST_DELAY_LAWS = 2_000  # subscribers up to which whole delay laws are given unasked

Progress = Callable[[str], None]


def predict(
    system: System,
    *,
    model: str = "law",
    faults: str = "exact",
    pairs: bool = False,
    delays: bool | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Which share of the events each subscriber wants reaches it in time, and why not the rest.

    ``model`` says how queues are predicted, one of ``QUEUE_MODELS``, and ``faults`` how failures
    are, one of ``FAULT_MODELS``; ``pairs`` adds a row for every publisher and subscriber;
    ``delays`` adds each subscriber's delay law (left out by itself only for systems of thousands).
    ``progress`` is told what is being worked on.
    """
    if model not in QUEUE_MODELS:
        names = ", ".join(QUEUE_MODELS)
        raise InvalidInputError(f"there is no queue model '{model}'; wants one of {names}")
    require_only(system, HANDLED, "prediction")
    tell = progress or (lambda _: None)
    tell("contents and routes")
    routes = route(system)
    tell("rates")
    rates = flows(system, routes)
    tell("queues")
    queues = QUEUE_MODELS[model].queues(system, routes, rates)
    failing = failures_of(system, faults)
    peers = accesses(system, routes, rates, model)
    stages = ways(routes, broker_stages(queues), failing)
    workshop, results = _all_shares(system, peers, stages, pairs=pairs, tell=tell)
    tell("delays")
    tables = Tables(_extent(results).times_s(), workshop)
    whole_laws = len(system.subscribers) <= MOST_DELAY_LAWS if delays is None else delays
    timing = delay_columns(system, tables, results, whole_laws=whole_laws)
    columns = {**_subscriber_columns(system, results), **timing.quantiles}
    return Outcome(
        source="predicted",
        subscribers=table("subscribers", columns),
        pairs=pair_table(system, results, tables) if pairs else table("pairs"),
        brokers=_brokers(system, rates, queues),
        links=_links(system, routes, rates),
        delays=table("delays", timing.laws),
        provenance=with_faults(
            provenance(system, model, (rates, queues, peers), results), failing, faults
        ),
    )


def _all_shares(
    system: System,
    peers: Accesses,
    stages: Ways,
    *,
    pairs: bool,
    tell: Progress,
) -> tuple[Workshop, list[Shares]]:
    workshop, routes = Workshop(), stages.routes
    published = streams(system, routes, peers.publishers, by_publisher=pairs)
    everybody = list(audiences(system, routes, peers.subscribers))
    results = []
    for number, audience in enumerate(everybody):
        if number % 50 == 0:
            tell(f"ways to subscribers, {number} of {len(everybody)}")
        results.append(shares(audience, published, routes, stages, workshop))
    return workshop, results


def _extent(results: list[Shares]) -> Extent:
    extent = Extent()
    for result in results:
        for stage in set(result.stages):
            if stage.survives > 0.0:
                extent.include(stage)
                if stage.unbuffered is not None:
                    extent.include(stage.unbuffered)
    return extent


def _subscriber_columns(system: System, results: list[Shares]) -> dict[str, object]:
    everyone = system.subscribers
    columns: dict[str, object] = {
        "subscriber": [each.name for each in everyone],
        "broker": [each.at for each in everyone],
        "count": [each.count for each in everyone],
    }
    numbers: dict[str, Floats] = {}

    def put(name: str, result: Shares, by_filter: Floats, empty: float) -> None:
        column = numbers.setdefault(name, np.full(len(everyone), empty))
        column[result.audience.subscribers] = by_filter[result.audience.filter_of]

    for result in results:
        total = result.wanted.sum(axis=1)
        delivered = _share(result, result.delivered)
        put("wanted_per_s", result, total, 0.0)
        put("on_time", result, _share(result, result.on_time), np.nan)
        put("delivered", result, delivered, np.nan)
        put("late", result, _share(result, result.delivered - result.on_time), np.nan)
        for cause, lost in result.lost.items():
            put(f"lost_{cause}", result, np.nan_to_num(_share(result, lost)), 0.0)
        delays_s = _share(result, result.delivered * result.means_s)
        arriving = np.where(delivered > 0, delivered, np.nan)
        put("delay_mean_s", result, delays_s / arriving, np.nan)
    return {**columns, **numbers}


def _share(result: Shares, per_stream: Floats) -> Floats:
    """The mean over the events each filter wants; NaN where it wants nothing that is published."""
    total = result.wanted.sum(axis=1)
    found: Floats = (result.wanted @ per_stream) / np.where(total > 0, total, np.nan)
    return found


def _brokers(system: System, rates: Flows, queues: Queues) -> pd.DataFrame:
    columns = {
        "broker": [broker.name for broker in system.brokers],
        "arrivals_per_s": rates.arrivals,
        "utilisation": np.minimum(rates.loads, 1.0),
        "service_mean_s": [sum(law.mean_s for law in laws) for laws in rates.services],
        "wait_mean_s": [sum(queue.wait_s for queue in stations) for stations in queues],
    }
    return table("brokers", columns)


def _links(system: System, routes: Routes, rates: Flows) -> pd.DataFrame:
    names = [broker.name for broker in system.brokers]
    columns = {
        "source": [names[arc.source] for arc in routes.arcs],
        "target": [names[arc.target] for arc in routes.arcs],
        "events_per_s": rates.offered.sum(axis=1),
        "lost": [1.0 - arc.channel.reliability for arc in routes.arcs],
        "delay_mean_s": [arc.channel.delay.mean_s for arc in routes.arcs],
    }
    return table("links", columns)
