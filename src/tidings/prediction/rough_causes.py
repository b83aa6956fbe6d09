"""What causes cost where theory has no answer: it has one for a system without what it lacks.

Publishers with times or rates of their own (``publishes``, ``rates``) publish as often at random,
consumer groups take no time, full buffers block nobody, recovery ends at once. What waits, serves,
travels and is away costs what it costs there; what was left out is asked of the simulator.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from tidings.model.causes import LEAST, Cause, Cost, at_most_missing, in_order
from tidings.model.outcome import Outcome, table
from tidings.model.record_tables import column
from tidings.model.remarks import BLOCKED
from tidings.model.system import WHEN_FULL, Recovery, System
from tidings.prediction.overloaded_groups import without_queues


def calmed(system: System) -> System:
    """Leave out of a system what theory lacks and can be left out."""
    publishers = [each.evenly() if each.every is None else each for each in system.publishers]
    if any(each.every is None for each in system.publishers):
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


def with_cost_errors(causes: pd.DataFrame, subscribers: pd.DataFrame) -> pd.DataFrame:
    """State how far theory's costs can be off, as shares: by the errors of its two answers.

    Theory is off by a part of what is missing, with the cause and without it. How much of that is
    the same in both is not known: as if nothing were.
    """
    rows = subscribers.set_index("subscriber").reindex(causes["subscriber"])
    error, missing = rows["error"].to_numpy(), 1.0 - rows["on_time"].to_numpy()
    left = np.clip(missing - causes["cost"].to_numpy(), 0.0, None)
    after = error * np.divide(left, missing, out=np.zeros_like(left), where=missing > 0.0)
    return causes.assign(error=np.hypot(error, after))


def causes_by_theory(system: System, answer: Outcome, calm: Outcome) -> pd.DataFrame:
    """Give what causes cost in the calm system, and what was left out of it.

    What the calm system lacks may make a cause cost as much more or less in the system itself.
    """
    after = calm.subscribers.set_index("subscriber")["on_time"]
    before = answer.subscribers.set_index("subscriber")["on_time"]
    lacking = (after - before).abs().reindex(calm.causes["subscriber"]).to_numpy()
    rough = calm.causes.assign(error=calm.causes["error"] + np.nan_to_num(lacking))
    return pd.concat([rough, _causes_left_out(system, answer, calm)])


def _causes_left_out(system: System, answer: Outcome, calm: Outcome) -> pd.DataFrame:
    """Give what the calm system gains where only one thing was left out that can be behind it.

    Of a consumer group that is its queue; of others the bursts of the one uneven publisher, or the
    one buffer that blocks. What recovery costs is not told apart from these.
    """
    common = [Cause("bursts", each.name) for each in system.publishers if each.every is None]
    blocked = [each for each in answer.remarks if each.kind == BLOCKED]
    common += [Cause("back-pressure", each.where[0]) for each in blocked]
    places = column(system.subscribers, "consumers").where(lambda each: each is not None)
    groups = {system.subscribers[int(each)].name for each in places}
    columns = ["on_time", "error"]
    after = calm.subscribers.set_index("subscriber")[columns]
    before = answer.subscribers.set_index("subscriber")[columns].reindex(after.index)
    gains = after["on_time"] - before["on_time"]
    errors = np.hypot(after["error"], before["error"])  # of two engines, which share none
    rows = []
    for name, gain, error in zip(gains.index, gains, errors, strict=True):
        own = [Cause("own queue", str(name))] if name in groups else common
        if gain >= LEAST and len(own) == 1 and (name in groups or system.recovery is None):
            (cause,) = own
            rows.append(Cost(cause, gain, error).row(name))
    return table("causes", rows)


def joined_causes(answer: Outcome, calm: pd.DataFrame, beyond: pd.DataFrame) -> pd.DataFrame:
    """Put together the causes of the calm system and those that are beyond theory.

    Nothing costs more than all that is missing. What both know costs what the calm system says,
    which has no noise; but its outages, which end at once, give way to those that were simulated.
    """
    if "outages" in set(beyond["cause"]):
        calm = calm[calm["cause"] != "outages"]
    every = pd.concat([each for each in (beyond, calm) if len(each)] or [beyond])
    return _in_order(at_most_missing(every, answer.subscribers))


def _in_order(rows: pd.DataFrame) -> pd.DataFrame:
    """Put the causes of each subscriber in their order, the subscriber with the dearest first."""
    costs: dict[str, dict[Cause, Cost]] = {}
    for name, kind, place, *numbers in rows.itertuples(index=False, name=None):
        cost = Cost(Cause(kind, place), *numbers)
        costs.setdefault(name, {})[cost.cause] = cost
    by_cost = sorted(costs.items(), key=lambda item: -max(each.cost for each in item[1].values()))
    ordered = [each.row(name) for name, own in by_cost for each in in_order(own.values())]
    return table("causes", ordered)
