"""What keeps events from being on time: kinds of causes, where they act, and what they cost.

A cost is the on-time share that would be gained without the cause, everything else as it is. Costs
overlap (an event that is late for two reasons is late once), so they need not add up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from tidings.model.arrays import Floats
from tidings.model.outcome import Outcome

ARROW = " → "  # between the ends of a link, in the direction of the events
LIKE = "subscribers like "  # before the name of one of several that are alike

# What each kind is called, with the place in it.
KINDS = {
    "overload": "overload of {}",
    "deadline": "a deadline shorter than the path without waiting",
    "bursts": "bursts of {}",
    "waiting": "waiting at {}",
    "service": "service at {}",
    "travel": "travelling {}",
    "network": "the shared network {}",
    "loss": "loss on {}",
    "overflow": "the full queue of {}",
    "batches": "batches of {}",
    "outages": "outages of {}",
    "away": "absences of {}",
    "own queue": "the queue of {}",
    "slow member": "the slow member {}",
    "hot partition": "a hot partition of {}",
    "redelivery": "redeliveries of {}",
    "crashes": "crashes of members of {}",
    "back-pressure": "back-pressure of {}",
    "churn": "not subscribed in time",
}
# A cause that makes up most of the dearest one says more than that: bursts more than the queue that
# they fill, a deadline that no path can meet more than each part of the path, what is wrong with a
# consumer group more than its queue.
TELLING = (
    "overload", "deadline", "bursts", "slow member", "hot partition", "redelivery", "crashes",
    "back-pressure",
)  # fmt: skip
ALL_PUBLISHERS = "all publishers"  # those that publish unevenly, made even together
MEMBER_OF = " of "  # between the names of a member and of its group
LEAST = 5e-4  # of a share: what costs less is not listed
MOST_OF_ONE = 8  # causes of one subscriber that are listed
_MOST_OF = 0.5  # of the dearest cost
_SLOW = 2.0  # times the median of the others of its kind


class Cause(NamedTuple):
    """A kind of cause, and the broker, link or client at which it acts; "" for none."""

    kind: str
    place: str = ""

    @property
    def words(self) -> str:
        """The cause in words.

        >>> Cause("waiting", "hub").words
        'waiting at hub'
        >>> Cause("deadline", "alice").words
        'a deadline shorter than the path without waiting (alice)'
        """
        words = KINDS[self.kind]
        return (
            f"{words} ({self.place})"
            if self.place and "{}" not in words
            else words.format(self.place)
        )


class Cost(NamedTuple):
    """What a cause costs in on-time share, and half the 95 % interval of that (NaN: not known)."""

    cause: Cause
    cost: float
    error: float = math.nan

    def row(self, subscriber: str) -> dict[str, Any]:
        """Make the row of a table of causes."""
        (kind, place), cost, error = self
        own = {"cause": kind, "place": place, "cost": cost, "error": error}
        return {"subscriber": subscriber, **own}


def usual_s(means_s: Floats) -> Floats:
    """Compute what each of a kind would take if it were no slower than usual, in seconds.

    Whoever takes more than twice the median of the others would take that.

    >>> usual_s(np.array([0.01, 0.01, 0.03, 0.02])), usual_s(np.array([0.1]))
    (array([0.01, 0.01, 0.01, 0.02]), array([0.1]))
    """
    others = means_s.size - 1
    if others < 1:
        return means_s
    order = np.argsort(means_s, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    middle = [(others - 1) // 2, others // 2]
    both = [means_s[order[place + (place >= rank)]] for place in middle]
    median_s = 0.5 * (both[0] + both[1])
    return np.where(means_s > _SLOW * median_s, median_s, means_s)


def in_order(costs: Iterable[Cost]) -> list[Cost]:
    """Sort causes by cost, the dearest first; what tells most of it comes before.

    >>> costs = [Cost(Cause("waiting", "b"), 0.5), Cost(Cause("bursts", "p"), 0.3)]
    >>> [each.cause.kind for each in in_order(costs)]
    ['bursts', 'waiting']
    """
    known = [each for each in costs if each.cost >= LEAST]
    dearest = max((each.cost for each in known), default=0.0)

    def rank(one: Cost) -> tuple[bool, float]:
        most_of_it = one.cause.kind in TELLING and one.cost >= _MOST_OF * dearest
        return not most_of_it, -round(one.cost, 9)

    return sorted(known, key=rank)


def at_most_missing(causes: pd.DataFrame, subscribers: pd.DataFrame) -> pd.DataFrame:
    """Cut costs to what a subscriber misses, as a share: nothing costs more than all of it."""
    if not len(causes):
        return causes
    missing = 1.0 - subscribers.set_index("subscriber")["on_time"]
    most = missing.reindex(causes["subscriber"]).to_numpy()
    cut = causes.assign(cost=np.minimum(causes["cost"], most))
    return cut[cut["cost"] >= LEAST]


def total_costs(outcome: Outcome) -> list[Cost]:
    """Compute what causes cost all events together, as shares of what everybody wants.

    What subscribers' costs are off by may be the same for all: errors add up.
    """
    rows = outcome.subscribers
    weight = (rows["wanted_per_s"] * rows["count"]).where(rows["on_time"].notna(), 0.0)
    weight_of = dict(
        zip(rows["subscriber"], weight / max(float(weight.sum()), 1e-300), strict=True)
    )
    rows = outcome.causes
    parts = rows["subscriber"].map(weight_of).fillna(0.0)
    weighed = rows.assign(cost=rows["cost"] * parts, error=rows["error"] * parts)
    by_cause = weighed.groupby(["cause", "place"], sort=False)[["cost", "error"]]
    sums = by_cause.sum(min_count=1).reset_index().itertuples(index=False, name=None)
    return in_order(Cost(Cause(kind, place), *numbers) for kind, place, *numbers in sums)


def causes_of(outcome: Outcome) -> dict[str, list[Cost]]:
    """List by subscriber what keeps its events from being on time, in order."""
    of: dict[str, list[Cost]] = {}
    for name, kind, place, *numbers in outcome.causes.itertuples(index=False, name=None):
        of.setdefault(name, []).append(Cost(Cause(kind, place), *numbers))
    return of
