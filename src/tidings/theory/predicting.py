"""The prediction of a system: from its description to its outcome, by theory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from tidings.errors import InvalidInputError
from tidings.model.features import has_churn, require_only
from tidings.model.outcome import Outcome, table
from tidings.model.record_tables import column, names
from tidings.model.routes import EXACT_IF_POSSIBLE, Routes, route
from tidings.model.system import System
from tidings.model.uncertainty import Uncertain
from tidings.theory.audiences import Audience, Floats, audiences, streams
from tidings.theory.churn.churning import drawn_by_guests, soon_back
from tidings.theory.delay_columns import delay_columns
from tidings.theory.error_bars import (
    BATCHES,
    LOST_STREAMS,
    Numbers,
    batch_errors,
    groups,
    together,
)
from tidings.theory.error_bars import error_bars as propagate
from tidings.theory.faults.modelling import failures_of
from tidings.theory.faults.telling import with_faults
from tidings.theory.flows import Flows, flows, met_flows
from tidings.theory.mobility.bursts import Bursts, bursting
from tidings.theory.mobility.peers import accesses
from tidings.theory.mobility.traced import with_periods_as_laws
from tidings.theory.pairs import pair_table
from tidings.theory.path_laws import Workshop
from tidings.theory.provenance import Sureness, provenance
from tidings.theory.queue_models import FITTED, QUEUE_MODELS, Queues, broker_stages
from tidings.theory.shares import Followed, Journeys, Shares, most_singly, shares
from tidings.theory.stages import Stage
from tidings.theory.stated_errors import with_stated_errors
from tidings.theory.traffic import Traffic
from tidings.theory.ways import ways

HANDLED = frozenset(
    {
        "failures",
        "recovery",
        "connectivity",
        "connectivity from traces",
        "bounded buffers of peers",
        "subscriber's own queue",
        "subscription churn",
        "one tree per topic",
        "random lifetimes",
        "several stations in a broker",
        "lifetimes of subscribers",
        "many subscribers in one",
    }
)
# For error bars that nobody asked for: streams followed to audiences, and queues seen by curves.
MOST_WAYS_AGAIN, MOST_QUEUES_AGAIN = 25_000, 2_000
MOST_DELAY_LAWS = 2_000  # subscribers up to which whole delay laws are given unasked

Progress = Callable[[str], None]


def predict(  # noqa: PLR0913 (what it can be asked for, all of it by name)
    system: System,
    *,
    model: str = "law",
    faults: str = "exact",
    pairs: bool = False,
    delays: bool | None = None,
    error_bars: bool | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Which share of the events each subscriber wants reaches it in time, and why not the rest.

    ``model`` says how queues are predicted, one of ``QUEUE_MODELS``, and ``faults`` how failures
    are, one of ``FAULT_MODELS``; ``pairs`` adds a row for every publisher and subscriber;
    ``delays`` adds each subscriber's delay law (left out by itself only for systems of thousands).
    ``error_bars`` turns standard errors of parameters into those of the result (by itself where the
    system has them, nothing fails, and it takes no more than ``MOST_WAYS_AGAIN`` ways to be
    followed and ``MOST_QUEUES_AGAIN`` queues). ``progress`` is told what is being worked on.
    """
    if model not in QUEUE_MODELS:
        names = ", ".join(QUEUE_MODELS)
        raise InvalidInputError(f"there is no queue model '{model}'; wants one of {names}")
    require_only(system, HANDLED, "prediction")
    has_churn(system, "prediction")
    tell = progress or (lambda _: None)
    models = Models(queues=model, faults=faults)
    found = _follow(system, models, pairs=pairs, tell=tell)
    bars, errors = None, Numbers({}, {})
    moved = groups(system, lambda one: _moves(one, system, found))
    if _wants_error_bars(2 * len(moved), found, error_bars):

        def again(other: System, queues_stay: bool) -> Numbers:
            return _again(other, models, queues=found.queues if queues_stay else None)

        bars = propagate(system, _numbers(system, found), moved, again, tell)
        errors = bars.errors
    if found.routes.sampled and _wants_error_bars(BATCHES, found, error_bars):
        tell("errors from drawn contents")
        drawn = batch_errors(lambda *part: _again(system, models, batch=part))
        errors = Numbers(*map(together, errors, drawn))
    tell("delays")
    whole_laws = len(system.subscribers) <= MOST_DELAY_LAWS if delays is None else delays
    timing = delay_columns(system, found.journeys, found.results, whole_laws=whole_laws)
    columns = {**_subscriber_columns(system, found.results), **timing.quantiles}
    story = provenance(system, model, found, Sureness(bars=bars, errors=errors.subscribers))
    if has_churn(system, "prediction"):
        means_s = np.asarray(columns["delay_mean_s"])
        story["warnings"] += soon_back(system, means_s)
        story["warnings"] += drawn_by_guests(system, found.routes, means_s)
    if errors.subscribers:
        columns["on_time_se"] = errors.subscribers["on_time"]
        columns["delay_mean_se_s"] = errors.subscribers["delay_mean_s"]
    return Outcome(
        source="predicted",
        subscribers=table("subscribers", columns),
        pairs=pair_table(system, found.results, timing.tables) if pairs else table("pairs"),
        brokers=_brokers(system, found, errors.brokers),
        links=_links(system, found.routes, found.rates),
        delays=table("delays", timing.laws),
        provenance=with_stated_errors(
            with_faults(story, found.journeys.ways.faults, faults, system=system)
        ),
    )


class Models(NamedTuple):
    """By which models a system is predicted, by name."""

    queues: str = "law"
    faults: str = "exact"


def _follow(
    system: System,
    models: Models,
    *,
    pairs: bool,
    tell: Progress,
    batch: tuple[int, int] | None = None,
    queues: Queues | None = None,
) -> Followed:
    tell("contents and routes")
    system = with_periods_as_laws(system)
    routes = route(system, replace(EXACT_IF_POSSIBLE, batch=batch))
    tell("rates")
    rates = flows(system, routes)
    tell("queues")
    traffic = Traffic(system=system, routes=routes, flows=met_flows(system, routes, rates))
    queues = queues or QUEUE_MODELS[models.queues].queues(traffic)
    peers = accesses(traffic, models.queues)
    failing = failures_of(system, models.faults, rates.loads)
    everybody = list(audiences(system, routes, peers.subscribers))
    churns = has_churn(system, "prediction")
    flowing = streams(
        system,
        routes,
        peers.publishers,
        by_publisher=pairs,
        by_homes=churns or (failing is not None and failing.refresh is not None),
    )
    # Joint waits are dear to ask for one by one, which is what short stays need.
    few = not churns and np.unique(flowing.ways).size <= most_singly(len(everybody))
    bursts = Bursts(traffic=traffic, followed=bursting(system.publishers) if few else frozenset())
    journeys = Journeys(
        streams=flowing,
        ways=ways(
            routes,
            broker_stages(queues),
            failing,
            bursts if models.queues == "law" else None,
            for_guests=_as_guests_find(traffic, rates, models.queues),
        ),
        workshop=Workshop(),
        most_singly=most_singly(len(everybody)),
    )
    results = _all_shares(everybody, journeys, tell)
    return Followed(
        routes=routes,
        rates=rates,
        queues=queues,
        peers=peers,
        journeys=journeys,
        results=results,
    )


def _as_guests_find(traffic: Traffic, rates: Flows, model: str) -> tuple[Stage, ...]:
    """The stage of each broker as those find it who come and go; none where nobody does."""
    if traffic.flows is rates:
        return ()
    met = met_flows(traffic.system, traffic.routes, rates, by_guests=True)
    return broker_stages(QUEUE_MODELS[model].queues(replace(traffic, flows=met)))


def _wants_error_bars(predictions: int, found: Followed, asked: bool | None) -> bool:
    """Whether so many predictions more are wanted, or unasked are quick enough."""
    if predictions == 0 or asked is not None:
        return predictions > 0 and bool(asked)
    ways_once = sum(result.used.size for result in found.results)
    queues_once = sum(FITTED in queue.assumes for own in found.queues for queue in own)
    quick = found.journeys.ways.faults is None and predictions * queues_once <= MOST_QUEUES_AGAIN
    return quick and predictions * ways_once <= MOST_WAYS_AGAIN


def _moves(one: Uncertain, system: System, found: Followed) -> bool:
    """Whether anything depends on a parameter: not on those of a link that no event crosses."""
    lasting = found.journeys.ways.faults is None and not has_churn(system, "prediction")
    if one.section != "links" or not lasting:
        return True
    there, back = found.rates.offered.sum(axis=1).reshape(-1, 2)[
        names(system.links).index(one.owner)
    ]
    if one.field.startswith("back."):
        return bool(back > 0.0)
    told = dict(system.standard_errors)
    return bool(there > 0.0 or (back > 0.0 and f"links.{one.owner}.back.{one.field}" not in told))


def _again(
    system: System,
    models: Models,
    *,
    batch: tuple[int, int] | None = None,
    queues: Queues | None = None,
) -> Numbers:
    """What error bars are given for, predicted anew; from a part of the drawn contents only."""
    found = _follow(system, models, pairs=False, tell=lambda _: None, batch=batch, queues=queues)
    return _numbers(system, found)


def _numbers(system: System, found: Followed) -> Numbers:
    columns = _subscriber_columns(system, found.results)
    return Numbers(
        subscribers={
            LOST_STREAMS: _lost_streams(system, found.results),
            **{name: np.asarray(columns[name]) for name in ("on_time", "delay_mean_s")},
        },
        brokers={"utilisation": found.rates.loads, "wait_mean_s": _waits_s(found.queues)},
    )


def _lost_streams(system: System, results: list[Shares]) -> Floats:
    """How many of the streams that each subscriber wants are lost to overload."""
    found: Floats = np.zeros(len(system.subscribers))
    for result in results:
        lost = result.ways.lost.get("overload", np.zeros(result.used.size)) > 0.0
        by_filter = (result.wanted > 0.0).astype(np.float64) @ lost
        found[result.audience.subscribers] = by_filter[result.audience.filter_of]
    return found


def _all_shares(everybody: list[Audience], journeys: Journeys, tell: Progress) -> list[Shares]:
    results = []
    for number, audience in enumerate(everybody):
        if number % 50 == 0:
            tell(f"ways to subscribers, {number} of {len(everybody)}")
        results.append(shares(audience, journeys))
    return results


def _subscriber_columns(system: System, results: list[Shares]) -> dict[str, object]:
    everyone = system.subscribers
    columns: dict[str, object] = {"subscriber": names(everyone)}
    for name, field in (("broker", "at"), ("count", "count")):
        own = column(everyone, field)
        columns[name] = np.array(own.values)[own.codes]
    numbers: dict[str, Floats] = {}

    def put(name: str, result: Shares, by_filter: Floats, empty: float) -> None:
        column = numbers.setdefault(name, np.full(len(everyone), empty))
        column[result.audience.subscribers] = by_filter[result.audience.filter_of]

    for result in results:
        wanted = result.wanted
        delivered = _share(wanted, result.delivered)
        put("wanted_per_s", result, wanted.sum(axis=1), 0.0)
        put("on_time", result, _share(wanted, result.on_time), np.nan)
        put("delivered", result, delivered, np.nan)
        put("late", result, _share(wanted, result.delivered - result.on_time), np.nan)
        for cause, lost in result.lost.items():
            put(f"lost_{cause}", result, np.nan_to_num(_share(wanted, lost)), 0.0)
        delays_s = _share(wanted, result.delivered * result.means_s)
        arriving = np.where(delivered > 0, delivered, np.nan)
        put("delay_mean_s", result, delays_s / arriving, np.nan)
    return {**columns, **numbers}


def _share(wanted: sparse.csr_array, per_stream: Floats) -> Floats:
    """The mean over the events each filter wants; NaN where it wants nothing that is published."""
    total = wanted.sum(axis=1)
    found: Floats = (wanted @ per_stream) / np.where(total > 0, total, np.nan)
    return found


def _brokers(system: System, found: Followed, errors: dict[str, Floats]) -> pd.DataFrame:
    rates = found.rates
    columns = {
        "broker": [broker.name for broker in system.brokers],
        "arrivals_per_s": rates.arrivals,
        "utilisation": np.minimum(rates.loads, 1.0),
        "service_mean_s": [sum(law.mean_s for law in laws) for laws in rates.services],
        "wait_mean_s": _waits_s(found.queues),
    }
    if errors:
        columns["utilisation_se"] = errors["utilisation"]
        columns["wait_mean_se_s"] = errors["wait_mean_s"]
    return table("brokers", columns)


def _waits_s(queues: Queues) -> Floats:
    """Mean wait at each broker, in seconds."""
    return np.array([sum(queue.wait_s for queue in stations) for stations in queues], dtype=float)


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
