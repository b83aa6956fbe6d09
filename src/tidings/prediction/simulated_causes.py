"""What causes cost where theory has no answer: the system is simulated again without each of them.

All runs have the same random numbers, so that little but the cause differs between them. Those that
are likelier to matter come first; when the seconds are over, the rest is not asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from tidings.errors import TidingsError
from tidings.model.arrays import Floats
from tidings.model.behaviour import Channel
from tidings.model.causes import ARROW, LEAST, MOST_OF_ONE, Cause, in_order
from tidings.model.laws import Exponential
from tidings.model.outcome import Outcome, table
from tidings.model.record_tables import column, names
from tidings.model.system import Broker, Publisher, Subscriber, System
from tidings.prediction.group_troubles import with_subscriber, without_trouble
from tidings.simulation.options import SimulationOptions
from tidings.simulation.run import simulate

SECONDS = 10.0  # CPU seconds of all runs together
_EVENTS, _RUNS = 4_000, 5  # of each system
_BROKERS, _LINKS, _CLIENTS = 8, 8, 3  # of each kind that are asked
_MANY = 2_000  # subscribers: of more, the clients' own causes are not asked
_EMPTY = 1_000.0  # times the intervals between events: nobody meets another
_SURE = 2.0  # standard errors


@dataclass(frozen=True, slots=True, kw_only=True)
class _Suspect:
    """What a system would be without a cause; that of what is lost may have another name."""

    cause: Cause
    system: System
    when_lost: tuple[str, Cause] | None = None  # a column of losses, and the cause of those


@dataclass(frozen=True, slots=True, kw_only=True)
class Playing:
    """How systems are played: CPU seconds of all runs together, and what to leave out of each.

    Without ``warmup_s``, pilot runs say what to leave out.
    """

    seed: int
    seconds: float = SECONDS
    warmup_s: float | None = None


def simulated_causes(system: System, how: Playing) -> pd.DataFrame:
    """Make the table of causes: what each costs each subscriber, the dearest first."""
    return _asked(system, how, lambda before: _suspects(system, before))


def troubles_of_groups(system: System, how: Playing) -> pd.DataFrame:
    """Make the table of what is wrong with consumer groups, and what that costs them."""
    if not any(any(without_trouble(system.subscribers[place])) for place in _grouped(system)):
        return table("causes")
    return _asked(system, how, lambda before: _groups(system, before))


def _asked(
    system: System, how: Playing, suspects: Callable[[Outcome], Iterator[_Suspect]]
) -> pd.DataFrame:
    before = _played(system, how)
    begin_s = time.process_time()  # the first run may have had to compile what it runs
    everybody = names(system.subscribers)
    costs: list[dict[Cause, float]] = [{} for _ in everybody]
    for suspect in suspects(before):
        if time.process_time() - begin_s > how.seconds:
            break
        try:
            after = _played(suspect.system, how, before)
        except TidingsError:
            continue
        least = np.maximum(_noise(before, after), LEAST)
        for place, (cause, cost) in enumerate(_gains(suspect, before, after)):
            if cost > least[place]:
                costs[place][cause] = cost
    rows = [
        {"subscriber": name, "cause": cause.kind, "place": cause.place, "cost": cost}
        for name, own in zip(everybody, costs, strict=True)
        for cause, cost in in_order(own)[:MOST_OF_ONE]
    ]
    return table("causes", rows)


def _played(system: System, how: Playing, as_in: Outcome | None = None) -> Outcome:
    """Simulate for a short while; for as long as another run."""
    options = SimulationOptions(
        seed=how.seed, replications=_RUNS, events=_EVENTS, warmup_s=how.warmup_s
    )
    if as_in is not None:
        times = {name: as_in.provenance[name] for name in ("duration_s", "warmup_s")}
        options = replace(options, events=None, **times)
    return simulate(system, options)


def _gains(suspect: _Suspect, before: Outcome, after: Outcome) -> Iterator[tuple[Cause, float]]:
    """Each subscriber's gain, under the name of what is gained most of."""
    old, new = before.subscribers, after.subscribers
    if suspect.cause.kind == "deadline":
        yield from ((suspect.cause, float(late)) for late in new["late"].fillna(0.0))
        return
    gained = (new["on_time"] - old["on_time"]).fillna(0.0)
    for place, gain in enumerate(gained):
        cause = suspect.cause
        if suspect.when_lost is not None:
            column, other = suspect.when_lost
            if old[column].iloc[place] - new[column].iloc[place] > 0.5 * gain:
                cause = other
        yield cause, float(gain)


def _noise(before: Outcome, after: Outcome) -> Floats:
    """[subscriber]: what a gain must exceed; less is chance."""
    squares = before.subscribers["on_time_se"] ** 2 + after.subscribers["on_time_se"] ** 2
    # Runs with the same random numbers differ by less than two that know nothing of each other.
    noise: Floats = _SURE * np.sqrt(squares.fillna(0.0).to_numpy())
    return noise


# ---- systems without a cause -------------------------------------------------------------------


def _suspects(system: System, before: Outcome) -> Iterator[_Suspect]:
    """Causes that may matter, likelier ones first, each with the system without it."""
    yield from _brokers(system, before)
    yield from _links(system, before)
    for network in system.networks:
        bare = _each_channel(system, partial(_off_network, network=network.name))
        kept = tuple(each for each in system.networks if each.name != network.name)
        yield _Suspect(cause=Cause("network", network.name), system=replace(bare, networks=kept))
    yield from _publishers(system)
    if len(system.subscribers) <= _MANY:
        yield from _groups(system, before)
        yield from _subscribers(system, before)
    slow = [
        replace(
            each,
            every=Exponential(mean_s=_EMPTY / each.rate_per_s),
            rates=None,
            publishes=None,
            batch=None,
        )
        for each in system.publishers
    ]
    empty = replace(system, publishers=tuple(slow))
    for place in _grouped(system):  # that a member is slow is no deadline's fault
        for cause, other in without_trouble(system.subscribers[place]):
            if cause.kind == "slow member":
                empty = with_subscriber(empty, place, other)
    yield _Suspect(cause=Cause("deadline"), system=empty)


def _brokers(system: System, before: Outcome) -> Iterator[_Suspect]:
    """Brokers that take no time; first those that take most."""
    rows = before.brokers
    taken_s = (rows["wait_mean_s"] + rows["service_mean_s"]).fillna(0.0) * rows["arrivals_per_s"]
    for place in np.argsort(-taken_s.to_numpy(), kind="stable")[:_BROKERS]:
        row, broker = rows.iloc[place], system.brokers[place]
        if not broker.stations:
            continue
        waits = row["wait_mean_s"] >= row["service_mean_s"] or broker.blocks
        at_once = Broker(name=broker.name, failure=broker.failure)
        yield _Suspect(
            cause=Cause("waiting" if waits else "service", broker.name),
            system=replace(system, brokers=_put(system.brokers, place, at_once)),
            when_lost=("lost_overflow", Cause("overflow", broker.name)),
        )


def _links(system: System, before: Outcome) -> Iterator[_Suspect]:
    """Links between brokers that take no time and lose nothing; first those that take most."""
    rows = before.links.copy()
    rows["taken"] = (rows["delay_mean_s"] * rows["events_per_s"]).fillna(0.0)
    rows["taken"] += (rows["lost"] * rows["events_per_s"]).fillna(0.0)
    worst = rows[rows["taken"] > 0.0].nlargest(_LINKS, "taken")
    for source, target in worst[["source", "target"]].itertuples(index=False, name=None):
        for place, link in enumerate(system.links):
            if source in link.between and target in link.between:
                side = "there" if link.between == (source, target) else "back"
                channel: Channel = getattr(link, side)
                changed: dict[str, Any] = {side: _quick(channel)}
                way = f"{source}{ARROW}{target}"
                yield _Suspect(
                    cause=Cause("travel", way),
                    system=replace(
                        system, links=_put(system.links, place, replace(link, **changed))
                    ),
                    when_lost=("lost_link", Cause("loss", way)),
                )


def _publishers(system: System) -> Iterator[_Suspect]:
    """Publishers that publish evenly and at once, that are always there, and near."""
    for place, each in _first(system.publishers, lambda one: one.publishes or one.rates):
        even = Exponential(mean_s=1.0 / each.rate_per_s)
        changed = replace(each, publishes=None, rates=None, every=even)
        yield _with_publisher(system, place, Cause("bursts", each.name), changed)
    for place, each in _first(system.publishers, lambda one: one.batch):
        changed = replace(each, batch=None)
        yield _with_publisher(system, place, Cause("batches", each.name), changed)
    for place, each in _first(system.publishers, lambda one: one.connectivity):
        changed = replace(each, connectivity=None)
        yield _with_publisher(system, place, Cause("away", each.name), changed)
    for place, each in _first(system.publishers, lambda one: _takes_time(one.link)):
        changed = replace(each, link=_quick(each.link))
        cause = Cause("travel", f"{each.name}{ARROW}{each.at}")
        yield _with_publisher(system, place, cause, changed)


def _groups(system: System, before: Outcome) -> Iterator[_Suspect]:
    """Consumer groups without a slow member, with even keys, without redeliveries; the worst."""
    shares = before.subscribers["on_time"].fillna(1.0).to_numpy()
    for place in sorted(_grouped(system), key=lambda each: float(shares[each]))[:_CLIENTS]:
        for cause, other in without_trouble(system.subscribers[place]):
            yield _Suspect(cause=cause, system=with_subscriber(system, place, other))


def _grouped(system: System) -> list[int]:
    groups = column(system.subscribers, "consumers").where(lambda each: each is not None)
    return [int(each) for each in groups]


def _subscribers(system: System, before: Outcome) -> Iterator[_Suspect]:
    """Subscribers that take no time, are always there, and near; the worst of them."""
    worst = np.argsort(before.subscribers["on_time"].fillna(1.0).to_numpy(), kind="stable")
    everybody = list(system.subscribers)
    of: list[tuple[str, Callable[[Subscriber], Any], dict[str, Any]]] = [
        ("own queue", lambda one: one.processing or one.consumers,
         {"processing": None, "consumers": None}),
        ("away", lambda one: one.connectivity, {"connectivity": None}),
        ("travel", lambda one: _takes_time(one.link), {}),
    ]  # fmt: skip
    for kind, has, without in of:
        for place in [int(each) for each in worst if has(everybody[int(each)])][:_CLIENTS]:
            one = everybody[place]
            change = without or {"link": _quick(one.link)}
            name = f"{one.at}{ARROW}{one.name}" if kind == "travel" else one.name
            changed = _put(everybody, place, replace(one, **change))
            yield _Suspect(
                cause=Cause(kind, name),
                system=replace(system, subscribers=changed),
                when_lost=("lost_link", Cause("loss", name)) if kind == "travel" else None,
            )


def _with_publisher(system: System, place: int, cause: Cause, changed: Publisher) -> _Suspect:
    publishers = _put(system.publishers, place, changed)
    return _Suspect(cause=cause, system=replace(system, publishers=publishers))


def _first(
    publishers: Sequence[Publisher], has: Callable[[Publisher], Any]
) -> list[tuple[int, Publisher]]:
    """The publishers of which something holds, that publish most, with their places."""
    having = [(place, each) for place, each in enumerate(publishers) if has(each)]
    return sorted(having, key=lambda item: -item[1].rate_per_s)[:_CLIENTS]


def _takes_time(channel: Channel) -> bool:
    return channel.delay.mean_s > 0.0 or channel.bandwidth_bytes_per_s is not None


def _quick(channel: Channel) -> Channel:
    """The channel without its own delays and losses; what it shares and when it fails stays."""
    return Channel(failure=channel.failure, network=channel.network)


def _off_network(channel: Channel, network: str) -> Channel:
    return replace(channel, network=None) if channel.network == network else channel


def _each_channel(system: System, change: Callable[[Channel], Channel]) -> System:
    """The system with every channel changed."""
    return replace(
        system,
        links=tuple(
            replace(each, there=change(each.there), back=change(each.back)) for each in system.links
        ),
        publishers=tuple(replace(each, link=change(each.link)) for each in system.publishers),
        subscribers=tuple(replace(each, link=change(each.link)) for each in system.subscribers),
    )


def _put(records: Sequence[Any], place: int, record: Any) -> tuple[Any, ...]:
    return (*records[:place], record, *records[place + 1 :])
