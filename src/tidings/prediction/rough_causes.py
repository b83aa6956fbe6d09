"""What causes cost where theory has no answer: it has one for a system without what it lacks.

Publishers with times or rates of their own (``publishes``, ``rates``) publish as often at random,
consumer groups take no time, full buffers block nobody, recovery ends at once. What a subscriber
would gain in that system is what bursts cost it, or its group, or the buffers that hold its
publishers back; all other causes cost what they cost there.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from tidings.model.causes import LEAST, Cause, in_order
from tidings.model.laws import Exponential
from tidings.model.outcome import Outcome, table
from tidings.model.record_tables import column
from tidings.model.remarks import BLOCKED
from tidings.model.system import WHEN_FULL, Publisher, Recovery, System
from tidings.prediction.overloaded_groups import without_queues


def calmed(system: System) -> System:
    """Leave out of a system what theory lacks and can be left out."""
    publishers = [
        replace(each, publishes=None, rates=None, every=Exponential(mean_s=1.0 / each.rate_per_s))
        if _is_uneven(each)
        else each
        for each in system.publishers
    ]
    if any(map(_is_uneven, system.publishers)):
        system = replace(system, publishers=tuple(publishers))
    groups = column(system.subscribers, "consumers").where(lambda each: each is not None)
    if groups.size:
        system = without_queues(system, {system.subscribers[int(each)].name for each in groups})
    if any(each.blocks for each in system.brokers):
        unbounded = [
            replace(each, buffer=None, when_full=WHEN_FULL[0]) if each.blocks else each
            for each in system.brokers
        ]
        system = replace(system, brokers=tuple(unbounded))
    if system.recovery is not None:
        scheme = system.recovery.scheme
        at_once = Recovery(scheme="periodic" if scheme == "none" else scheme)
        system = replace(system, recovery=at_once)
    return system


def _is_uneven(publisher: Publisher) -> bool:
    return publisher.publishes is not None or publisher.rates is not None


def rough_causes(
    system: System, answer: Outcome, calm: Outcome, known: pd.DataFrame
) -> pd.DataFrame:
    """Give the causes of the calm system, those ``known``, and what all gain by its being calm.

    Bursts of several publishers are told of none: what each costs is not known; nor are bursts told
    apart from buffers that block. Of these, the one that blocks most is named.
    """
    common = [Cause("bursts", each.name) for each in system.publishers if _is_uneven(each)]
    blocked = [each for each in answer.remarks if each.kind == BLOCKED]
    if blocked:
        most = max(blocked, key=lambda each: each.size or 0.0)
        common.append(Cause("back-pressure", most.where[0]))
    groups = {each.name for each in system.subscribers if each.consumers is not None}
    before = answer.subscribers.set_index("subscriber")["on_time"]
    after = calm.subscribers.set_index("subscriber")["on_time"]
    rows = []
    for name, gain in (after - before.reindex(after.index)).items():
        own = [Cause("own queue", str(name))] if name in groups else common
        if gain >= LEAST and len(own) == 1:
            (cause,) = own
            row = {"subscriber": name, "cause": cause.kind, "place": cause.place}
            rows.append({**row, "cost": float(gain)})
    if not rows:
        return calm.causes
    every = pd.concat([known, table("causes", rows), calm.causes], ignore_index=True)
    return _in_order(every)


def _in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """The causes of each subscriber in their order, the subscriber with the dearest first."""
    costs: dict[str, dict[Cause, float]] = {}
    for name, kind, place, cost in rows[list(table("causes"))].itertuples(index=False, name=None):
        costs.setdefault(name, {})[Cause(kind, place)] = cost
    by_cost = sorted(costs.items(), key=lambda item: -max(item[1].values()))
    return table(
        "causes",
        [
            {"subscriber": name, "cause": cause.kind, "place": cause.place, "cost": cost}
            for name, own in by_cost
            for cause, cost in in_order(own)
        ],
    )
