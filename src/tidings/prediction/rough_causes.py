"""What causes cost where theory has no answer: it has one for a system without what it lacks.

Publishers with times or rates of their own (``publishes``, ``rates``) publish as often at random,
consumer groups take no time, recovery ends at once. What a subscriber would gain in that system is
what bursts cost it, or its group; all other causes cost what they cost there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from tidings.model.causes import LEAST
from tidings.model.laws import Exponential
from tidings.model.outcome import Outcome, table
from tidings.model.record_tables import column
from tidings.model.system import Publisher, Recovery, System


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
    if column(system.subscribers, "consumers").where(lambda each: each is not None).size:
        alone = [
            replace(each, consumers=None, processing=None) if each.consumers is not None else each
            for each in system.subscribers
        ]
        system = replace(system, subscribers=tuple(alone))
    if system.recovery is not None:
        scheme = system.recovery.scheme
        at_once = Recovery(scheme="periodic" if scheme == "none" else scheme)
        system = replace(system, recovery=at_once)
    return system


def _is_uneven(publisher: Publisher) -> bool:
    return publisher.publishes is not None or publisher.rates is not None


def rough_causes(system: System, answer: Outcome, calm: Outcome) -> pd.DataFrame:
    """Give the causes of the calm system, and what everybody gains by its being calm.

    Bursts of several publishers are told of none: what each costs is not known.
    """
    uneven = [each.name for each in system.publishers if _is_uneven(each)]
    groups = {each.name for each in system.subscribers if each.consumers is not None}
    before = answer.subscribers.set_index("subscriber")["on_time"]
    after = calm.subscribers.set_index("subscriber")["on_time"]
    rows = []
    for name, gain in (after - before.reindex(after.index)).items():
        cause, place = ("own queue", name) if name in groups else ("bursts", "".join(uneven[:1]))
        if gain >= LEAST and (name in groups or len(uneven) == 1):
            rows.append({"subscriber": name, "cause": cause, "place": place, "cost": float(gain)})
    if not rows:
        return calm.causes
    every = pd.concat([table("causes", rows), calm.causes], ignore_index=True)
    order = np.argsort(-every["cost"].to_numpy().round(9), kind="stable")
    return every.iloc[order].reset_index(drop=True)
