"""The answer of theory: from a system to its outcome, by queueing theory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from tidings.model.arrays import Floats, Ints
from tidings.model.delay_grid import EDGES_S
from tidings.model.features import require_only
from tidings.model.laws import Law
from tidings.model.outcome import QUANTILES, Outcome, table
from tidings.model.record_tables import column, names
from tidings.model.routes import Routes, route
from tidings.model.system import System
from tidings.prediction.audiences import Audience, Streams, audiences, lifetime_nodes, streams
from tidings.prediction.brokers import BrokerStages, broker_stages, processing_stage
from tidings.prediction.churn import (
    Churn,
    path_arcs,
    present_share,
    spread_and_before,
    weighed_by_stay,
)
from tidings.prediction.delays import Delays, Grid, from_law, nothing, stack
from tidings.prediction.dispersion import dispersion
from tidings.prediction.flows import Flows, flows
from tidings.prediction.paths import Paths, paths
from tidings.prediction.peers import (
    on_scv_deviation,
    peer_delay,
    peer_load,
    periods,
    with_periods_as_laws,
)
from tidings.prediction.regimes import ALONG, FAILING, FEATURES, Regimes
from tidings.prediction.repairs.components import Components
from tidings.prediction.repairs.expiry import expiring
from tidings.prediction.repairs.failing import (
    BUFFERING,
    Repairs,
    acknowledged,
    failing_parts,
    repair_times_s,
    repairs,
    require_repairs_handled,
)
from tidings.prediction.repairs.schemes import FailingPaths

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
        "many subscribers in one",
        "failures",
        "recovery",
    }
)
MOST_DELAY_LAWS = 2_000  # subscribers up to which whole delay distributions are given unasked
_EDGES_S = EDGES_S[::2]

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TheoryAnswer:
    """What theory says, and the regime of every subscriber, which tells how far to trust it."""

    outcome: Outcome
    regimes: pd.DataFrame  # a row for every subscriber


def answer_by_theory(
    system: System,
    *,
    pairs: bool = False,
    delays: bool | None = None,
    faults: str = "exact",
    progress: Progress | None = None,
) -> TheoryAnswer:
    """Predict which share of the events each subscriber wants reaches it in time, by theory.

    ``faults`` is one of ``FAULT_MODELS``.
    """
    require_only(system, HANDLED, "theory")
    require_repairs_handled(system, faults)
    report = progress or (lambda _: None)
    report("contents and routes")
    system = with_periods_as_laws(system)
    routes = acknowledged(system, route(system))
    network = Network(system=system, routes=routes, faults=faults)
    report("queues")
    _ = network.stages
    whole = len(system.subscribers) <= MOST_DELAY_LAWS if delays is None else delays
    results = []
    for number, audience in enumerate(network.audiences):
        if number % 50 == 0:
            report(f"paths to subscribers, {number} of {len(network.audiences)}")
        results.append(_follow(network, audience, whole=whole, by_publisher=pairs))
    return TheoryAnswer(
        outcome=Outcome(
            source="predicted",
            subscribers=_subscribers(system, results),
            pairs=_pairs(system, network, results) if pairs else table("pairs"),
            brokers=_brokers(system, network),
            links=_links(system, network),
            delays=_delays(system, results),
            provenance={},
        ),
        regimes=_regimes(system, results),
    )


@dataclass(frozen=True, kw_only=True)
class Network:
    """A system as theory sees it; each part worked out once, when it is first asked for."""

    system: System
    routes: Routes
    faults: str = "exact"

    @cached_property
    def rates(self) -> Flows:
        """Events per second everywhere."""
        return flows(self.system, self.routes, self.churn.open_shares if self.churns else None)

    @cached_property
    def churn(self) -> Churn:
        """Who is subscribed when."""
        return Churn(system=self.system, routes=self.routes)

    @cached_property
    def churns(self) -> bool:
        """Whether subscriptions come and go."""
        return any(law is not None for law in column(self.system.subscribers, "stays").values)

    @cached_property
    def emitted(self) -> list[Law | None]:
        """Intervals of what each publisher hands to its link; None: taken as Poisson."""
        return [
            publisher.every if publisher.connectivity is None else None
            for publisher in self.system.publishers
        ]

    @cached_property
    def grid(self) -> Grid:
        """From far below the shortest random time to beyond the longest delay and lifetime."""
        services = [law for laws in self.rates.services for law in laws if law.mean_s > 0.0]
        times = [law.mean_s for law in services]
        times += [arc.channel.delay.mean_s for arc in self.routes.arcs]
        times += [peer.link.delay.mean_s for peer in self.system.publishers]
        exits = column(self.system.subscribers, "link").values
        processing = column(self.system.subscribers, "processing").values
        times += [channel.delay.mean_s for channel in exits]
        times += [law.mean_s for law in processing if law is not None]
        lifetimes = [row.lifetime for row in self.routes.rows]
        lifetimes += list(column(self.system.subscribers, "lifetime").values)
        limits = [law.mean_s for law in lifetimes if law is not None]
        peers = [peer.connectivity for peer in self.system.publishers]
        peers += list(column(self.system.subscribers, "connectivity").values)
        for connectivity in peers:
            if connectivity is not None:
                on, off = periods(connectivity)
                handover_s = connectivity.service.mean_s if connectivity.service else off.mean_s
                times += [on.mean_s, off.mean_s * (1.0 + off.scv), handover_s]
        known = [time for time in times if time > 0.0] or [1.0]
        longest = max(known)
        for load, laws in zip(self.rates.loads, self.rates.services, strict=True):
            for law in laws:
                spare = max(1.0 - load, 0.01)
                longest = max(longest, law.mean_s * (2.0 + law.scv) / spare)
        if self.failing is not None and self.buffering:
            shortest, longest_wait = repair_times_s(self.failing)
            known.append(shortest)
            longest = max(longest, longest_wait)
        return Grid.spanning(0.01 * min(known), 30.0 * max(longest, min([longest, *limits])))

    @cached_property
    def failing(self) -> Components | None:
        """What fails, if anything does."""
        return failing_parts(self.system, self.faults)

    @property
    def buffering(self) -> bool:
        """Whether brokers keep events until what is down is repaired."""
        return self.system.recovery is not None and self.system.recovery.scheme in BUFFERING

    @cached_property
    def stages(self) -> BrokerStages:
        """What events meet at brokers."""
        curves = dispersion(self.rates, self.emitted)
        return broker_stages(self.grid, self.rates, curves, self.emitted)

    @cached_property
    def paths(self) -> Paths:
        """Paths between brokers."""
        return paths(self.grid, self.routes, self.stages)

    @cached_property
    def longer(self) -> Paths:
        """The same with all waits a step longer, to see how much they matter."""
        return self.paths.with_longer_waits()

    @cached_property
    def repairs(self) -> Repairs | None:
        """What failures do to paths, if anything fails."""
        if self.failing is None:
            return None
        return repairs(self.system, self.routes, self.grid, self.failing, self.faults)

    @cached_property
    def followed(self) -> Sequence[Paths | FailingPaths]:
        """Paths as they are, and with all waits a step longer, both with what fails."""
        plain = (self.paths, self.longer)
        if self.repairs is None:
            return plain
        return [FailingPaths(paths=p, rates=self.rates, repairs=self.repairs) for p in plain]

    @cached_property
    def regimes(self) -> Regimes:
        """Features of paths."""
        return Regimes(routes=self.routes, rates=self.rates, brokers=self.stages)

    @cached_property
    def streams(self) -> Streams:
        """What is published, in groups."""
        return self.streams_by(
            [
                (
                    publisher.at,
                    publisher.link,
                    publisher.every,
                    publisher.rate_per_s,
                    publisher.connectivity,
                )
                for publisher in self.system.publishers
            ]
        )

    def of_peers(self, audience: Audience, rate_per_s: float) -> Floats:
        """Features of an audience's regime that do not depend on its paths."""
        one = audience.example
        peer = one.connectivity
        mobile = any(each.connectivity is not None for each in self.system.publishers)
        return np.array(
            [
                float(peer is not None),
                0.0 if peer is None else min(peer_load(peer, rate_per_s), 1.0),
                0.0 if peer is None else on_scv_deviation(peer),
                float(mobile),
                float(one.stays is not None),
                float(self.churns),
                0.0 if one.processing is None else min(rate_per_s * one.processing.mean_s, 1.0),
            ]
        )

    def features(self, publishers: Ints, home: int, tree: int) -> Floats:
        """[publisher, feature]: what the error of theory depends on, of paths to a home broker."""
        first = self.followed[0]
        rows = np.zeros((publishers.size, len(FEATURES)))
        rows[:, : len(ALONG)] = self.regimes.of_paths(publishers, home, tree)
        if isinstance(first, FailingPaths):
            failing = slice(len(ALONG), len(ALONG) + len(FAILING))
            rows[:, failing] = first.features(publishers, home, tree)
        return rows

    def streams_by(self, alike: Sequence[object]) -> Streams:
        """Group what is published by a key of publishers."""
        return streams(self.system, self.routes, alike, by_class=self.churns)

    @cached_property
    def streams_by_publisher(self) -> Streams:
        """What is published, by publisher."""
        return self.streams_by(range(len(self.system.publishers)))

    @cached_property
    def audiences(self) -> list[Audience]:
        """Subscribers in groups."""
        return list(audiences(self.system, self.routes))

    def entry(self, publishers: Ints) -> Delays:
        """[publisher]: from the publisher to its home broker."""
        kinds: dict[object, Delays] = {}
        rows = []
        for index in publishers:
            each = self.system.publishers[int(index)]
            key = (each.link, each.connectivity, each.rate_per_s)
            if key not in kinds:
                kinds[key] = from_law(self.grid, each.link.delay, each.link.reliability)
                if each.connectivity is not None:
                    waiting = peer_delay(self.grid, each.connectivity, each.rate_per_s)
                    kinds[key] = waiting.series(kinds[key])
            rows.append(kinds[key])
        return stack(rows)

    def exit(self, audience: Audience, rate_per_s: float) -> Delays:
        """From the home broker to the subscriber, its own queue included."""
        one = audience.example
        last = from_law(self.grid, one.link.delay, one.link.reliability)
        if one.connectivity is not None:
            last = peer_delay(self.grid, one.connectivity, rate_per_s).series(last)
        if one.processing is None:
            return last
        arriving = rate_per_s * float(last.survival[0])
        return last.series(processing_stage(self.grid, arriving, one.processing))


@dataclass(frozen=True, kw_only=True)
class _Result:
    """What the filters of an audience want and get, by the streams they want anything of."""

    audience: Audience
    streams: Streams
    used: Ints
    wanted: Floats  # [filter, used stream], events per second
    delays: Delays  # [used stream]
    on_time: Floats  # [used stream], share of what is published
    if_longer: Floats  # the same with all waits a step longer
    regimes: Floats  # [used stream, feature]
    quantiles_s: Floats  # [filter, quantile]
    laws: list[tuple[Floats, Floats]]  # [filter]: delays, and shares arrived by then


def _follow(network: Network, audience: Audience, *, whole: bool, by_publisher: bool) -> _Result:
    """Follow every stream that an audience wants anything of to its subscribers."""
    flowing = network.streams_by_publisher if by_publisher else network.streams
    mine = flowing.matched[audience.filters]
    used = np.unique(mine.indices).astype(np.int64)
    present = present_share(audience.example.stays, audience.example.away)
    wanted = mine[:, used].toarray() * present
    queue_rate = float(wanted.sum(axis=1).max(initial=0.0))
    last = network.exit(audience, queue_rate)
    delays, longer = (
        _along(network, paths, flowing, used, last, audience) for paths in network.followed
    )
    own = audience.example.lifetime
    nodes = {law: lifetime_nodes(law, own) for law in {flowing.lifetimes[index] for index in used}}
    on_time, if_longer = (_shares(each, flowing, used, nodes) for each in (delays, longer))
    features = np.zeros((used.size, len(FEATURES)))
    for tree in np.unique(flowing.trees[used]):
        chosen = np.flatnonzero(flowing.trees[used] == tree)
        publishers = flowing.publishers[used[chosen]]
        features[chosen] = network.features(publishers, audience.home, int(tree))
    features[:, len(ALONG) + len(FAILING) :] = network.of_peers(audience, queue_rate)
    first = network.followed[0]
    if network.buffering and isinstance(first, FailingPaths):
        unkept = _along(network, first.without_buffers(), flowing, used, last, audience)
        lifetimes_s = np.vstack(np.broadcast_arrays(*(nodes[flowing.lifetimes[i]] for i in used)))
        delays = expiring(delays, unkept, on_time, lifetimes_s)
    return _Result(
        audience=audience,
        streams=flowing,
        used=used,
        wanted=wanted,
        delays=delays,
        on_time=on_time,
        if_longer=if_longer,
        regimes=features,
        quantiles_s=delays.quantiles(wanted, list(QUANTILES.values())),
        laws=[_law(delays, row, nodes) for row in wanted] if whole and used.size else [],
    )


def _along(
    network: Network,
    way: Paths | FailingPaths,
    flowing: Streams,
    used: Ints,
    last: Delays,
    audience: Audience,
) -> Delays:
    """[used stream]: the whole delay from publisher to subscriber."""
    order: list[Ints] = []
    parts: list[Delays] = []
    for tree in np.unique(flowing.trees[used]):
        chosen = np.flatnonzero(flowing.trees[used] == tree)
        publishers = flowing.publishers[used[chosen]]
        parts.append(way.from_publishers(publishers, audience.home, int(tree)))
        order.append(chosen)
    if not parts:
        return last.take(np.empty(0, dtype=np.int64))
    inside = stack(parts).take(np.argsort(np.concatenate(order)))
    entries = network.entry(flowing.publishers[used])
    whole = entries.series(inside).series(last)
    if audience.example.stays is None or not isinstance(way, Paths):
        return whole
    rows = [
        _for_a_time(network, way, (flowing, int(stream)), (entries, whole, row), audience)
        for row, stream in enumerate(used)
    ]
    return stack(rows)


def _for_a_time(
    network: Network,
    way: Paths,
    stream: tuple[Streams, int],
    delays: tuple[Delays, Delays, int],
    audience: Audience,
) -> Delays:
    """The delay of one stream for subscribers that stay only for a time."""
    (flowing, index), (entries, whole, row) = stream, delays
    stays, away = audience.example.stays, audience.example.away
    assert stays is not None
    publisher = int(flowing.publishers[index])
    start = int(network.routes.home_of_publisher[publisher])
    arcs = path_arcs(network.routes, start, audience.home, int(flowing.trees[index]))
    present = present_share(stays, away)
    chances = network.churn.drawn(arcs, int(flowing.classes[index]), present)
    spreading, before = spread_and_before(way, entries.take([row]), arcs, publisher)
    if present == 1.0:  # who is back at once is still known from before
        spreading = nothing(way.grid, len(spreading))
    return weighed_by_stay(whole.take([row]), spreading, before, stays, chances)


def _shares(
    delays: Delays, flowing: Streams, used: Ints, nodes: dict[Law | None, Floats]
) -> Floats:
    """[used stream]: the share that arrives within its lifetime."""
    found = np.zeros(used.size)
    for lifetime, times_s in nodes.items():
        chosen = np.array(
            [place for place, index in enumerate(used) if flowing.lifetimes[index] == lifetime],
            dtype=np.int64,
        )
        part = delays.take(chosen)
        found[chosen] = part.at(np.tile(times_s, (chosen.size, 1))).mean(axis=1)
    return found


def _law(delays: Delays, weights: Floats, nodes: dict[Law | None, Floats]) -> tuple[Floats, Floats]:
    """Delays of a mixture in seconds, and the share that has arrived by then."""
    total = weights.sum()
    if total <= 0.0 or not np.any(weights * delays.survival > 0.0):
        return np.empty(0), np.empty(0)
    ends_s = delays.quantiles(weights[None, :], (0.001, 0.999))[0]
    first, last = np.searchsorted(_EDGES_S, ends_s)
    lifetimes = [times_s for times_s in nodes.values() if times_s.size == 1]
    certain_s = np.array([each[0] for each in lifetimes if math.isfinite(each[0])])
    times_s = np.unique(np.concatenate([_EDGES_S[max(first - 1, 0) : last + 1], certain_s]))
    arrived = weights @ delays.at(np.tile(times_s, (len(delays), 1))) / total
    return times_s, arrived


# ---- tables --------------------------------------------------------------------------------------


def _subscribers(system: System, results: list[_Result]) -> pd.DataFrame:
    everyone = system.subscribers
    columns: dict[str, object] = {"subscriber": names(everyone)}
    for name, field in (("broker", "at"), ("count", "count")):
        own = column(everyone, field)
        columns[name] = np.array(own.values)[own.codes]
    numbers: dict[str, Floats] = {}

    def put(name: str, result: _Result, by_filter: Floats, empty: float = math.nan) -> None:
        values = numbers.setdefault(name, np.full(len(everyone), empty))
        values[result.audience.subscribers] = by_filter[result.audience.filter_of]

    for result in results:
        total = result.wanted.sum(axis=1)
        rate = np.where(total > 0.0, total, np.nan)
        delays = result.delays
        delivered = result.wanted @ delays.survival / rate
        on_time = result.wanted @ result.on_time / rate
        put("wanted_per_s", result, total, 0.0)
        put("on_time", result, on_time)
        put("delivered", result, delivered)
        put("late", result, np.maximum(delivered - on_time, 0.0))
        for cause, lost in delays.lost.items():
            put(f"lost_{cause}", result, np.nan_to_num(result.wanted @ lost / rate), 0.0)
        spent_s = result.wanted @ (delays.survival * (delays.shift_s + delays.mean_s)) / rate
        put("delay_mean_s", result, spent_s / np.where(delivered > 0.0, delivered, np.nan))
        for index, name in enumerate(QUANTILES):
            put(name, result, result.quantiles_s[:, index])
    return table("subscribers", {**columns, **numbers})


def _regimes(system: System, results: list[_Result]) -> pd.DataFrame:
    """Features of every subscriber: means over what it wants."""
    found = np.zeros((len(system.subscribers), len(FEATURES) + 1))
    for result in results:
        total = result.wanted.sum(axis=1)
        shares = result.wanted / np.where(total > 0.0, total, 1.0)[:, None]
        moved = np.abs(shares @ (result.on_time - result.if_longer))
        rows = np.column_stack([shares @ result.regimes, moved])
        found[result.audience.subscribers] = rows[result.audience.filter_of]
    return pd.DataFrame(found, columns=[*FEATURES, "sensitivity"])


def _pairs(system: System, network: Network, results: list[_Result]) -> pd.DataFrame:
    """A row for every publisher and subscriber of whom the second wants something of the first."""
    publishers = np.array(names(system.publishers), dtype=object)
    subscribers = np.array(names(system.subscribers), dtype=object)
    parts = []
    for result in results:
        source = result.streams.publishers[result.used]
        for publisher in np.unique(source):
            chosen = np.flatnonzero(source == publisher)
            parts.append(_pair_rows(result, chosen, str(publishers[publisher]), subscribers))
    return table("pairs", pd.concat(parts).to_dict("list") if parts else ())


def _pair_rows(result: _Result, chosen: Ints, publisher: str, subscribers: object) -> pd.DataFrame:
    wanted = result.wanted[:, chosen]
    total = wanted.sum(axis=1)
    rate = np.where(total > 0.0, total, np.nan)
    delays = result.delays.take(chosen)
    delivered = wanted @ delays.survival / rate
    on_time = wanted @ result.on_time[chosen] / rate
    spent_s = wanted @ (delays.survival * (delays.shift_s + delays.mean_s)) / rate
    quantiles_s = delays.quantiles(wanted, list(QUANTILES.values()))
    columns: dict[str, Floats] = {
        "wanted_per_s": total,
        "on_time": on_time,
        "delivered": delivered,
        "late": np.maximum(delivered - on_time, 0.0),
        "delay_mean_s": spent_s / np.where(delivered > 0.0, delivered, np.nan),
        **{f"lost_{cause}": wanted @ lost / rate for cause, lost in delays.lost.items()},
        **{name: quantiles_s[:, index] for index, name in enumerate(QUANTILES)},
    }
    of_filter = result.audience.filter_of
    present = total[of_filter] > 0.0
    frame = pd.DataFrame({name: values[of_filter][present] for name, values in columns.items()})
    frame.insert(0, "subscriber", np.asarray(subscribers)[result.audience.subscribers[present]])
    frame.insert(0, "publisher", publisher)
    return frame


def _brokers(system: System, network: Network) -> pd.DataFrame:
    rates = network.rates
    waited = np.zeros(len(system.brokers))
    waits_s = np.where(network.stages.waiting.survival > 0.0, network.stages.waiting.mean_s, np.inf)
    np.add.at(
        waited,
        rates.into,
        np.where(rates.source_rates > 0.0, waits_s, 0.0) * np.maximum(rates.source_rates, 0.0),
    )
    columns = {
        "broker": names(system.brokers),
        "arrivals_per_s": rates.arrivals,
        "utilisation": np.minimum(rates.loads, 1.0),
        "service_mean_s": [sum(law.mean_s for law in laws) for laws in rates.services],
        "wait_mean_s": np.divide(
            waited, rates.arrivals, out=np.zeros_like(waited), where=rates.arrivals > 0.0
        ),
    }
    return table("brokers", columns)


def _links(system: System, network: Network) -> pd.DataFrame:
    arcs = network.routes.arcs
    brokers = names(system.brokers)
    columns = {
        "source": [brokers[arc.source] for arc in arcs],
        "target": [brokers[arc.target] for arc in arcs],
        "events_per_s": network.rates.offered.sum(axis=1),
        "lost": [1.0 - arc.channel.reliability for arc in arcs],
        "delay_mean_s": [arc.channel.delay.mean_s for arc in arcs],
    }
    return table("links", columns)


def _delays(system: System, results: list[_Result]) -> pd.DataFrame:
    """The delay distribution of every subscriber, as rows."""
    rows: dict[str, list[object]] = {"subscriber": [], "delay_s": [], "arrived": []}
    for result in results:
        if not result.laws:
            continue
        members = zip(result.audience.subscribers, result.audience.filter_of, strict=True)
        for subscriber, which in members:
            times_s, arrived = result.laws[int(which)]
            rows["subscriber"].extend([system.subscribers[int(subscriber)].name] * times_s.size)
            rows["delay_s"].extend(times_s.tolist())
            rows["arrived"].extend(arrived.tolist())
    return table("delays", rows)
