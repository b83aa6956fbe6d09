"""What is known of a system, number by number, so that what is learnt can be held against it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from tidings.characterisation.fit.fitted import Characterisation
from tidings.characterisation.fit.queues import Counters
from tidings.characterisation.statistics import BATCHES
from tidings.model.parameter_values import parameter_values
from tidings.model.standard_errors import share_se
from tidings.model.system import System
from tidings.watching.certainty import LEAST_COUNT
from tidings.watching.judging import Value


def known_values(system: System) -> dict[str, Value]:
    """List rates, services, delays and reliabilities by path, with the errors the system states."""
    errors = dict(system.standard_errors)
    return {
        path: Value(value=value, error=errors.get(path, 0.0))
        for path, value in parameter_values(system)
    }


def learnt_values(found: Characterisation) -> dict[str, Value]:
    """List the same as learnt from one part of traces, whose end cuts off what is under way."""
    rows = found.parameters
    columns = (rows[name].tolist() for name in ("path", "estimate", "standard_error", "count"))
    learnt = {
        path: Value(value=value, error=0.0 if math.isnan(error) else error, count=int(count))
        for path, value, error, count in zip(*columns, strict=True)
        if not math.isnan(value)
    }
    provenance = found.measured.provenance
    seconds = (provenance["until_ns"] - provenance["from_ns"]) / 1e9
    at = _sources(found.system)
    brokers = found.measured.brokers
    waits = dict(zip(brokers["broker"], brokers["wait_mean_s"], strict=True))
    services = dict(zip(brokers["broker"], brokers["service_mean_s"], strict=True))
    corrected = {}
    for path, now in learnt.items():
        of, _, kind = path.rpartition(".")
        delay, broker = learnt.get(f"{of}.delay"), at.get(of, "")
        if kind == "delay":
            now = _with_slow_ones(now, seconds)
        elif kind == "reliability" and delay is not None:
            wait_s = _or_nothing(waits.get(broker))
            through_s = delay.value + wait_s + _or_nothing(services.get(broker))
            now = _with_those_under_way(now, through_s / seconds, wait_s / seconds)
        corrected[path] = now
    return corrected


def queue_values(
    now: Mapping[str, Counters], before: Mapping[str, Counters]
) -> tuple[dict[str, Value], dict[str, Value]]:
    """List shares of redeliveries and drops by path, as they are now and as they were before.

    How far a share strays by chance is told by how far those before strayed, where that is more
    than batches of its own say: consumers stop for a moment, and all that they hold comes again. A
    batch of the time before may be longer than now lasts: all of what strayed in it may have come
    within as short a time.
    """
    found: tuple[dict[str, Value], dict[str, Value]] = ({}, {})
    for name in now.keys() & before.keys():
        old, new = before[name], now[name]
        if min(old.events, new.events) < LEAST_COUNT or min(old.freedom, new.freedom) < 1:
            continue
        batch_ns, now_ns = (old.until_ns - old.from_ns) / BATCHES, new.until_ns - new.from_ns
        longer = max(batch_ns / max(now_ns, 1), 1.0)
        was = {what: rest for what, *rest in old.shares()}
        never = (0.0, float(share_se(0, old.events)), 0.0)
        for what, share, error, _ in new.shares():
            share_was, error_was, strayed = was.get(what, never)
            path = f"queues.{name}.{what}"
            found[0][path] = Value(
                value=share,
                error=max(error, longer * strayed),
                count=new.events,
                freedom=new.freedom,
            )
            found[1][path] = Value(
                value=share_was, error=error_was, count=old.events, freedom=old.freedom
            )
    return found


def _sources(system: System) -> dict[str, str]:
    """Find the broker from which events go over a link, by the link's path."""
    pairs = [each.between for each in system.links]
    there = {f"links.{a}--{b}": a for one, two in pairs for a, b in ((one, two), (two, one))}
    back = {f"links.{a}--{b}.back": b for one, two in pairs for a, b in ((one, two), (two, one))}
    homes = {f"subscribers.{each.name}.link": each.at for each in system.subscribers}
    return {**there, **back, **homes}


def _or_nothing(time_s: float | None) -> float:
    return 0.0 if time_s is None or math.isnan(time_s) else time_s


def _with_those_under_way(now: Value, under_way: float, waiting: float) -> Value:
    """Correct a link's reliability as if all had arrived that were under way when its part ended.

    Those who came to the broker before the link in a part and have not crossed it by its end count
    as lost. By Little's law they are so many of the part's events as it takes of its time to get
    through the broker and over the link. That is the mean: of those that wait there may be any
    number, about as far from their mean as that is long.
    """
    share = min(now.value * (1.0 + under_way), 1.0)
    return replace(now, value=share, error=math.hypot(now.error, under_way**2, waiting))


def _with_slow_ones(now: Value, seconds: float) -> Value:
    r"""Correct a link's mean delay for events under way when its part ended, in seconds.

    It becomes what it would be, had all of them arrived.

    Long delays are the likelier to be under way: the mean of the others is too small by
    :math:`\sigma^2 / T`, to the first order in the delay over the time :math:`T`.
    """
    if now.count < 2:
        return now
    more_s = now.error**2 * now.count / seconds
    unsure_s = more_s * now.value / seconds
    return replace(now, value=now.value + more_s, error=math.hypot(now.error, unsure_s))
