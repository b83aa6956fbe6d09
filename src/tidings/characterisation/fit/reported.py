"""What counters and histograms add to a fit: traces are surer than these, and these than those.

A number is taken from the surest source that tells it. Histograms give laws of service and delay;
counters of a queue give its rate, the time that events spend in it and, while it is never out of
work, how fast it is worked off. What no source tells stays as the base system has it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from tidings.characterisation.fit.censored import Buckets, CensoredFit, fit_buckets
from tidings.characterisation.fit.parameters import HISTOGRAMS, LEVELS, Parameter
from tidings.characterisation.fit.queues import CountedQueue, Counters, InTime
from tidings.characterisation.fit.sojourns import service_of_sojourn_s
from tidings.model.behaviour import Service
from tidings.model.content import ContentTable
from tidings.model.delay_grid import EDGES_S, Histogram
from tidings.model.filters import matches
from tidings.model.laws import Deterministic, Exponential, Law
from tidings.model.match_shares import match_shares
from tidings.model.naming import few
from tidings.model.outcome import CAUSES, QUANTILES, table
from tidings.model.standard_errors import share_se
from tidings.model.system import Broker, Publisher, Subscriber, System

DELAY, SERVICE = "delay", "service"
_ENOUGH = 100  # departures of a queue that was never out of work, to know how fast it is
_OTHER_ERRORS, _OTHER_SHARE = 3.0, 0.1  # of a rate: another one, neither by chance nor rounding
_WIDE = 0.2  # of a share: with a wider bound the curves do not tell
# What brokers call their causes, as outcomes have them.
_CAUSES = {
    "expired": "expired", "ttl": "expired", "overflow": "overflow", "full": "overflow",
    "maxlen": "overflow", "rejected": "dead_letter", "delivery_limit": "dead_letter",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """What brokers report: queues, histograms by name and what they are of, rows by fate."""

    queues: Mapping[str, CountedQueue] = field(default_factory=dict)
    buckets: Mapping[tuple[str, str], Buckets] = field(default_factory=dict)
    quality: pd.DataFrame = field(default_factory=pd.DataFrame)
    window_s: float = math.nan  # for how long histograms were watched

    @property
    def names(self) -> set[str]:
        """Everybody whom it is about."""
        return {*self.queues, *(name for name, _ in self.buckets)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What was added to a system: the system, its numbers, measured rows, what is to be said."""

    system: System
    parameters: tuple[Parameter, ...]
    rows: tuple[dict[str, Any], ...]
    delays: pd.DataFrame
    notes: tuple[str, ...]


def deadlines_of(system: System | None, name: str) -> tuple[Law, ...]:
    """List for how long events of a queue are of use: by its subscriber, and by the system."""
    if system is None:
        return ()
    own = next((each.lifetime for each in system.subscribers if each.name == name), None)
    return tuple(law for law in (own, system.lifetime) if law is not None)


def asked_times_s(system: System | None, names: Iterable[str]) -> tuple[float, ...]:
    """List all fixed times within which anybody wants events, in seconds."""
    laws = {law for name in names for law in deadlines_of(system, name)}
    return tuple(sorted({law.value_s for law in laws if isinstance(law, Deterministic)}))


def add_reported(
    system: System, reported: Reported, *, traced: Collection[str], learnt: Collection[str]
) -> Added:
    """Add broker-reported values to a system, for parameters that traces did not give.

    ``learnt`` are the paths of those that they gave; ``traced`` are subscribers whose deliveries
    were recorded.
    """
    parameters: list[Parameter] = []
    rows: list[dict[str, Any]] = []
    delays: list[pd.DataFrame] = []
    notes: list[str] = []
    brokers = []
    for broker in system.brokers:
        buckets = reported.buckets.get((broker.name, SERVICE))
        path = f"brokers.{broker.name}.service"
        if buckets is not None and path not in learnt:
            fitted = fit_buckets(buckets)
            parameters.append(_of_histogram(path, buckets, fitted))
            broker = replace(broker, service=Service(law=fitted.law))
        brokers.append(broker)
    takes_no_time = not system.links and all(map(_takes_no_time, brokers))
    subscribers = []
    for each in system.subscribers:
        if each.name in reported.names:
            found = _learn(each, reported, of_path=each.name not in traced and takes_no_time)
            parameters += found.parameters
            notes += found.notes
            each = found.subscriber
            if each.name not in traced:
                measured = _measured(each, system, reported)
                if measured is not None:
                    rows.append(measured.row)
                    delays.append(measured.delays)
        subscribers.append(each)
    known = {each.name for each in system.brokers} | {each.name for each in system.subscribers}
    strangers = sorted(reported.names - known)
    if strangers:
        notes.append(
            f"counters and histograms of {few(strangers)} are not used: no subscriber or broker "
            "of the system has such a name"
        )
    changed = replace(system, brokers=tuple(brokers), subscribers=tuple(subscribers))
    doubts = (*_outages(reported), *_other_rates(system, reported))
    return Added(
        system=replace(
            changed,
            standard_errors=_errors(system, parameters),
            remarks=(*system.remarks, *doubts),
        ),
        parameters=tuple(parameters),
        rows=tuple(rows),
        delays=pd.concat(delays, ignore_index=True) if delays else table("delays"),
        notes=(*notes, *_resets(reported), *doubts),
    )


# ---- one subscriber ------------------------------------------------------------------------------


def _takes_no_time(broker: Broker) -> bool:
    """Test if events pass a broker at once, whatever happens: it has no service, or one of 0 s."""
    at_once = broker.service is None or broker.service.law.mean_s == 0.0
    return at_once and replace(broker, service=None) == Broker(name=broker.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Learnt:
    subscriber: Subscriber
    parameters: list[Parameter]
    notes: list[str]


def _learn(subscriber: Subscriber, reported: Reported, *, of_path: bool) -> _Learnt:
    """Learn a subscriber's rate, handling time or delay, each from the surest source.

    ``of_path`` is whether a whole delay may become that of its own link: nothing else on the path
    takes time, which would be counted twice.
    """
    name = subscriber.name
    queue = reported.queues.get(name)
    served, delayed = (reported.buckets.get((name, what)) for what in (SERVICE, DELAY))
    parameters: list[Parameter] = []
    notes: list[str] = []
    if queue is not None:
        parameters += [*_of_counters(queue), *counter_parameters(name, queue.counters)]
    if served is not None:
        fitted = fit_buckets(served)
        parameters.append(_of_histogram(f"subscribers.{name}.processing", served, fitted))
        subscriber = replace(subscriber, processing=fitted.law)
    elif delayed is not None and of_path:
        fitted = fit_buckets(delayed)
        parameters.append(_of_histogram(f"subscribers.{name}.link.delay", delayed, fitted))
        link = replace(subscriber.link, delay=fitted.law)
        subscriber = replace(subscriber, link=link, processing=None)
    elif queue is not None and queue.events > 0 and queue.mean_s > 0:
        parameter, law = _handling(queue, subscriber)
        parameters.append(parameter)
        subscriber = replace(subscriber, processing=law)
    elif delayed is not None:
        notes.append(
            f"subscriber '{name}': its histogram of delays is measured and not fitted, because "
            "brokers and links on its path have times of their own; compare what is predicted "
            "with what is measured"
        )
    return _Learnt(subscriber=subscriber, parameters=parameters, notes=notes)


def _of_counters(queue: CountedQueue) -> Iterator[Parameter]:
    """Yield the rate, per second, and the mean time in the queue, in seconds.

    They are no numbers of the system itself.
    """
    yield Parameter(
        path=f"queues.{queue.name}.rate",
        estimate=queue.rate_per_s,
        standard_error=queue.rate_se,
        count=queue.events,
        unit="1/s",
        source=LEVELS,
    )
    yield Parameter(
        path=f"queues.{queue.name}.time",
        estimate=queue.mean_s,
        standard_error=queue.mean_se_s,
        count=queue.events,
        unit="s",
        verdict="by Little's law",
        source=LEVELS,
        bound=queue.bound_s,
    )


def counter_parameters(name: str, counters: Counters) -> Iterator[Parameter]:
    """Yield the shares of a queue's events that were handed out again, and dropped, by cause."""
    for what, share, error, _ in counters.shares():
        yield Parameter(
            path=f"queues.{name}.{what}",
            estimate=share,
            standard_error=error,
            count=counters.events,
            unit="of events",
            source=LEVELS,
        )


def _handling(queue: CountedQueue, subscriber: Subscriber) -> tuple[Parameter, Law]:
    """Estimate the time to handle an event, in seconds.

    It follows from how fast a backlog shrinks, else from the model's mean wait.
    """
    shape = subscriber.processing or Exponential(mean_s=1.0)
    scv = shape.scv
    servers = 1 if subscriber.consumers is None else sum(1 for _ in subscriber.consumers.each())
    if queue.busy_events >= _ENOUGH:
        mean_s = servers / queue.busy_per_s
        # Pauses shorter than the time between polls are not told from slow handling.
        bound_s = servers * (1.0 / queue.slowest_per_s - 1.0 / queue.fastest_per_s) / 2.0
        error_s = mean_s * math.sqrt(scv / queue.busy_events)
        verdict = "by how fast it is worked off"
    else:
        times_s = (queue.mean_s, queue.least_mean_s, queue.most_mean_s)
        means_s = [service_of_sojourn_s(queue.rate_per_s, t, scv, servers) for t in times_s]
        mean_s, bound_s = means_s[0], (means_s[2] - means_s[1]) / 2.0
        above = service_of_sojourn_s(queue.rate_per_s, queue.mean_s + queue.mean_se_s, scv, servers)
        error_s = abs(above - mean_s) if math.isfinite(queue.mean_se_s) else math.nan
        verdict = "so that the model's mean time in the queue is the one measured"
        if queue.stalls:
            bound_s, verdict = mean_s, f"{verdict}, with the outages that are in it"
    law = shape.scaled(mean_s / shape.mean_s) if shape.mean_s > 0 else Exponential(mean_s=mean_s)
    parameter = Parameter(
        path=f"subscribers.{queue.name}.processing",
        estimate=mean_s,
        standard_error=error_s,
        count=queue.busy_events if queue.busy_events >= _ENOUGH else queue.events,
        unit="s",
        family=type(law).__name__.lower(),
        verdict=verdict,
        source=LEVELS,
        bound=bound_s,
    )
    return parameter, law


def _of_histogram(path: str, buckets: Buckets, fitted: CensoredFit) -> Parameter:
    low_s, high_s = buckets.mean_s()
    events = buckets.events
    return Parameter(
        path=path,
        estimate=fitted.law.mean_s,
        standard_error=fitted.law.mean_s * math.sqrt(max(fitted.law.scv, 0.0) / events),
        count=int(events),
        unit="s",
        family=fitted.family,
        goodness=fitted.distance,
        verdict="fitted between the bounds of a histogram",
        source=HISTOGRAMS,
        bound=(high_s - low_s) / 2.0,
    )


# ---- what was measured ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    row: dict[str, Any]
    delays: pd.DataFrame


def _measured(subscriber: Subscriber, system: System, reported: Reported) -> _Measured | None:
    """Make one row of the outcome: by a histogram of delays, else by the two curves of a queue."""
    name = subscriber.name
    laws = deadlines_of(system, name)
    buckets, queue = reported.buckets.get((name, DELAY)), reported.queues.get(name)
    if buckets is not None:
        fitted = fit_buckets(buckets)
        counts = np.diff(np.asarray(fitted.law.cdf(EDGES_S)), prepend=0.0) * buckets.events
        in_time = _by_histogram(buckets, fitted.law, laws)
        rate = queue.rate_per_s if queue is not None else buckets.events / reported.window_s
        dropped = queue.dropped if queue is not None else {}
        why = "between the bounds of a histogram the share is open"
        source, mean_s, error_s = HISTOGRAMS, fitted.law.mean_s, math.nan
    elif queue is not None and queue.delays.get("drawn", np.zeros(1)).sum() > 0:
        counts = queue.delays["drawn"]
        rate, dropped = queue.rate_per_s, queue.dropped
        in_time = _handled_in_time(_by_curves(queue, laws), queue)
        why = f"polled every {queue.apart_s:.3g} s; {_order(queue)}"
        if in_time.high - in_time.low > _WIDE:
            why += f"; {_open(queue, in_time, laws)}"
        source, mean_s, error_s = LEVELS, queue.mean_s, queue.mean_se_s
    else:
        return None
    lost: dict[str, float] = {}
    for cause, share in dropped.items():
        kind = f"lost_{_cause(cause)}"
        lost[kind] = lost.get(kind, 0.0) + share
    delivered = max(1.0 - sum(lost.values()), 0.0)
    on_time = in_time.share * delivered if source == HISTOGRAMS else in_time.share
    quantiles = Histogram.between_edges(counts).quantiles(list(QUANTILES.values()))
    again = None if queue is None else queue.redelivered
    handled_again = {} if again is None else {"handled_again": min(again, 1.0)}
    row = {
        "subscriber": name,
        "broker": subscriber.at,
        "count": 1.0,
        "wanted_per_s": rate if math.isfinite(rate) else 0.0,
        "events": in_time.events,
        "on_time": on_time,
        "on_time_se": in_time.standard_error,
        "error": max(in_time.high - in_time.share, in_time.share - in_time.low),
        "by": source,
        "why": why,
        "delivered": delivered,
        "late": max(delivered - on_time, 0.0),
        **lost,
        **handled_again,
        "delay_mean_s": mean_s,
        "delay_mean_se_s": error_s,
        **dict(zip(QUANTILES, quantiles, strict=True)),
    }
    filled = np.flatnonzero(counts > 0)
    arrived = np.cumsum(counts)[filled] / max(counts.sum(), 1e-300) * delivered
    return _Measured(
        row=row,
        delays=pd.DataFrame(
            {"subscriber": name, "delay_s": EDGES_S[filled], "arrived": np.minimum(arrived, 1.0)}
        ),
    )


def _handled_in_time(left: InTime, queue: CountedQueue) -> InTime:
    """Bound the share that was handled in time, of the share that left a queue in time.

    What was dropped left too. It is taken for what had waited longest, which is what queues drop;
    in the worst case all of it left in time. What is handed out again leaves out of its order: each
    such time may make one event late, or another one punctual.
    """
    dropped, again = sum(queue.dropped.values()), min(queue.redelivered or 0.0, 1.0)
    return replace(
        left,
        share=min(left.share, max(1.0 - dropped, 0.0)),
        low=max(left.low - dropped - again, 0.0),
        high=min(left.high + again, max(1.0 - dropped, 0.0)),
    )


def _order(queue: CountedQueue) -> str:
    """Say what a share by the two curves of a queue rests on."""
    words = "holds if events leave in the order they came"
    if queue.redelivered:
        words += f", but {queue.redelivered:.0%} were handed out again"
    if queue.dropped:
        dropped = f"{sum(queue.dropped.values()):.0%}"
        words += f"; {dropped} left without being handled, taken for those that waited longest"
    return words


def _open(queue: CountedQueue, in_time: InTime, laws: tuple[Law, ...]) -> str:
    """Say what the polls alone leave open, and what to do where that is because of the lifetime."""
    words = f"whatever happened between polls, it is from {in_time.low:.2f} to {in_time.high:.2f}"
    if min((law.mean_s for law in laws), default=math.inf) >= queue.apart_s:
        return words
    words += "; polls are further apart than the lifetime: poll more often"
    if queue.stalls:
        return f"{words} (a prediction leaves out the outages that were seen)"
    return f"{words}, or use the prediction"


def _cause(reported: str) -> str:
    """Name a cause of a broker as outcomes do.

    >>> _cause("expired"), _cause("link"), _cause("odd")
    ('expired', 'link', 'unexplained')
    """
    return _CAUSES.get(reported, reported if reported in CAUSES else "unexplained")


def _by_histogram(buckets: Buckets, law: Law, laws: tuple[Law, ...]) -> InTime:
    fixed = [each.value_s for each in laws if isinstance(each, Deterministic)]
    if len(fixed) == len(laws):
        within_s = min(fixed, default=math.inf)
        low, high = (1.0, 1.0) if math.isinf(within_s) else buckets.share(within_s)
        share = 1.0 if math.isinf(within_s) else float(np.asarray(law.cdf(within_s)))
        share = min(max(share, low), high)
    else:
        mass = np.diff(np.asarray(law.cdf(EDGES_S)), prepend=0.0)
        share, low, high = _weighed(mass, laws), 0.0, 1.0
    return InTime(
        share=share,
        standard_error=float(share_se(share * buckets.events, buckets.events)),
        low=low,
        high=high,
        events=buckets.events,
    )


def _by_curves(queue: CountedQueue, laws: tuple[Law, ...]) -> InTime:
    fixed = [each.value_s for each in laws if isinstance(each, Deterministic)]
    if laws and len(fixed) == len(laws) and min(fixed) in queue.in_time:
        return queue.in_time[min(fixed)]
    events = float(queue.delays["drawn"].sum())
    share, low, high = (
        _weighed(queue.delays.get(which, np.zeros(EDGES_S.size)) / events, laws)
        for which in ("drawn", "most", "least")
    )
    return InTime(share=share, standard_error=math.nan, low=low, high=high, events=events)


def _weighed(mass: Any, laws: tuple[Law, ...]) -> float:
    """Compute the share of delays on the grid within random times; all where there are none."""
    lasts = np.ones(EDGES_S.size)
    for law in laws:
        lasts = lasts * (1.0 - np.asarray(law.cdf(EDGES_S)))
    return float(min(mass @ lasts, 1.0)) if laws else 1.0


# ---- what is to be said --------------------------------------------------------------------------


def _errors(system: System, parameters: Iterable[Parameter]) -> tuple[tuple[str, float], ...]:
    """Give standard errors by path, links' delays added: handling times have none there."""
    added = {
        each.path: each.standard_error
        for each in parameters
        if each.path.endswith((".link.delay", ".service")) and math.isfinite(each.standard_error)
    }
    return tuple(sorted((dict(system.standard_errors) | added).items()))


def _resets(reported: Reported) -> list[str]:
    reset = [each for each in reported.queues.values() if each.resets]
    if not reset:
        return []
    return [
        f"counters went down {sum(each.resets for each in reset)} times (restarts): "
        f"{few([each.name for each in reset])}; what lies before and after is not compared"
    ]


def _outages(reported: Reported) -> list[str]:
    """Note that queues stood still: the description of a system knows of no such time."""
    return [
        f"queue '{each.name}' stood still for {each.stalled_s:.3g} s although events were waiting "
        f"(between {each.stalls} polls): such outages are in what was measured; predictions leave "
        "them out unless you add how its consumers fail"
        for each in reported.queues.values()
        if each.stalls
    ]


def _other_rates(system: System, reported: Reported) -> Iterator[str]:
    """Yield a note for queues that get more or fewer events than the system sends them."""
    if any(each.connectivity is not None for each in system.publishers):
        return  # what is sent while away comes some other way, or not at all
    for each in system.subscribers:
        queue = reported.queues.get(each.name)
        if queue is None or each.stays is not None or not math.isfinite(queue.rate_se):
            continue
        sent = sum(
            publisher.rate_per_s * _matched(each, publisher) for publisher in system.publishers
        )
        apart = abs(sent - queue.rate_per_s)
        if apart > max(_OTHER_ERRORS * queue.rate_se, _OTHER_SHARE * sent):
            yield (
                f"queue '{each.name}' got {queue.rate_per_s:.4g} ± {queue.rate_se:.2g} events/s, "
                f"and the system's publishers send it {sent:.4g}: predictions are of these; "
                "correct the publishers' rates"
            )


def _matched(subscriber: Subscriber, publisher: Publisher) -> float:
    """Compute the share of a publisher's events that a subscriber wants."""
    content = publisher.content
    if isinstance(content, ContentTable):
        return sum(row.probability for row in content.table if matches(subscriber.wants, row.event))
    return float(match_shares([subscriber.wants], content)[0])
