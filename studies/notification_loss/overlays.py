"""Trees of brokers laid over a network without regard to it, and what couples see of them.

Subscriptions and events take the same way through the tree in opposite directions; each hop takes
the delay between the two nodes, so that a couple's delays are sums over its path.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from studies.notification_loss.transit_stub import TransitStub, node_delays_s
from tidings.model import reading
from tidings.model.system import System

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long subscribers stay and are away, and the mean time between two events of a couple."""

    stay_s: float
    away_s: float
    every_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """A tree of brokers: everybody's parent (its own number is higher) and the delay to it."""

    parents: Ints  # −1 for the first broker
    hop_s: Floats

    @property
    def brokers(self) -> int:
        """How many there are."""
        return self.parents.size

    def delays_s(self) -> Floats:
        """The delay through the tree between any two brokers, [broker, broker]."""
        found = np.zeros((self.brokers, self.brokers))
        for broker in range(1, self.brokers):
            above = int(self.parents[broker])
            way = found[above, :broker] + self.hop_s[broker]
            found[broker, :broker] = found[:broker, broker] = way
        return found

    def path(self, start: int, end: int) -> list[int]:
        """The brokers from one to another, both included."""
        up, down = [start], [end]
        while up[-1] != down[-1]:  # whoever came later is farther from the root
            longer = up if up[-1] > down[-1] else down
            longer.append(int(self.parents[longer[-1]]))
        return up + down[-2::-1]

    def below(self) -> NDArray[np.bool_]:
        """[broker, other]: whether the other is the broker or hangs below it."""
        found = np.eye(self.brokers, dtype=bool)
        for broker in range(self.brokers - 1, 0, -1):
            found[self.parents[broker]] |= found[broker]
        return found


def random_overlay(shape: TransitStub, random: np.random.Generator) -> Overlay:
    """A broker on every node of a random network, joined into a random tree oblivious of it."""
    between_s = node_delays_s(shape, random)
    places = random.permutation(shape.nodes)
    parents = np.array([-1, *(int(random.integers(b)) for b in range(1, shape.nodes))])
    hop_s = np.zeros(shape.nodes)
    hop_s[1:] = between_s[places[1:], places[parents[1:]]]
    return Overlay(parents=parents, hop_s=hop_s)


def drawn_after_s(overlay: Overlay, couples: Ints, coverers: Ints) -> Floats:
    """From when on after subscribing what is published is drawn to the subscriber, in seconds.

    Brokers do not send a subscription on where they have sent one that contains it. With
    subscribers at ``coverers`` whose filters contain it, it stops at the first broker of its way on
    whose side of the next link one of them is; without any, at the publisher's broker. Events come
    there anyway, so that they may have been published before by as long as they take there.
    ``couples`` has a subscriber and a publisher in each row.
    """
    below, delays_s = overlay.below(), overlay.delays_s()
    chosen = np.zeros(overlay.brokers, dtype=bool)
    chosen[coverers] = True
    count_below = (below & chosen).sum(axis=1)
    total = int(chosen.sum())
    found = np.zeros(len(couples))
    for row, (subscriber, publisher) in enumerate(couples):
        path = overlay.path(int(subscriber), int(publisher))
        stops = path[-1]
        for here, onwards in pairwise(path):
            up = int(overlay.parents[here]) == onwards
            if (count_below[here] if up else total - count_below[onwards]) > 0:
                stops = here
                break
        found[row] = delays_s[subscriber, stops] - delays_s[stops, publisher]
    return np.maximum(found, 0.0)


def couples_system(overlay: Overlay, couples: Ints, times: Times, coverers: Ints) -> System:
    """All couples on an overlay as one system, each with contents that only it cares about.

    Subscribers at ``coverers`` stay for ever, and their filters contain everybody's.
    """
    names = [f"b{number:03d}" for number in range(overlay.brokers)]
    guests = {
        f"s{number}": {
            "at": names[subscriber],
            "wants": {"couple": number},
            "stays": times.stay_s,
            "away": times.away_s,
        }
        for number, (subscriber, _) in enumerate(couples)
    }
    lasting = {
        f"c{number}": {"at": names[broker], "wants": {"couple": {"at_least": 0}}}
        for number, broker in enumerate(coverers)
    }
    document = {
        "tidings": 1,
        "description": "couples of the notification-loss experiments",
        "brokers": {name: {} for name in names},
        "links": [
            {
                "between": [names[int(overlay.parents[broker])], names[broker]],
                "delay": float(overlay.hop_s[broker]),
            }
            for broker in range(1, overlay.brokers)
        ],
        "publishers": {
            f"p{number}": {
                "at": names[publisher],
                "every": {"exponential": times.every_s},
                "content": {"event": {"couple": number}},
            }
            for number, (_, publisher) in enumerate(couples)
        },
        "subscribers": guests | lasting,
    }
    return reading.from_document(document, "the couples")
