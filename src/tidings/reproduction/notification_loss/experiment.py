"""The experiments of the notification-loss paper on random overlays.

For every topology the curves B(t) give T_sub, T_diff and r; then couples of a subscriber and a
publisher are drawn, one publication each at a moment spread evenly over the subscription, for a
sweep of T_ON. Beside the draws stand the paper's closed form and the exact expectation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tidings.errors import InvalidInputError
from tidings.prediction.churn.closed_form import exact_share, notified_share, rapidity
from tidings.reproduction.notification_loss.overlays import (
    Overlay,
    random_overlay,
    spread_until_covered_s,
)
from tidings.reproduction.notification_loss.transit_stub import TransitStub

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Progress = Callable[[str], None]

PAPER_RAPIDITY, PAPER_SPREAD_S = 1.14, 20.0
# T_ON in multiples of T_sub + T_diff
STAYS = (0.125, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
COVERERS = (0, 1, 3, 10, 30)
FAMILY_S = (5.0, 10.0, 20.0, 40.0, 80.0)

PAPER = {
    "brokers, network nodes": "100, 100",
    "network": "transit-stub (GT-ITM)",
    "overlay": "a random broker topology, oblivious of the network",
    "routing": "as in Siena: subscriptions spread, one that is contained is not sent on",
    "couples": "250 of random subscriber and publisher, on each of 5 topologies",
    "publication": "one, at a uniform moment of the subscription",
    "found": f"T_diff ≈ 8 s, T_sub ≈ 12 s, r = {PAPER_RAPIDITY}",
}
CHOICES = (
    "The network: one transit domain of four nodes, three stubs of eight nodes behind each; delays "
    "of links within a stub, to it and between transit nodes 0.035, 0.14 and 0.28 s on average "
    "(the paper does not tell its own; with these T_sub + T_diff is near its 20 s).",
    "The overlay is a random recursive tree over a random placement; a hop takes the least delay "
    "between its two nodes. Subscriptions take as long as events: brokers work in no time.",
    "Couples are uniform with subscriber ≠ publisher. T_sub and T_diff are the worst over all "
    "origins; with the mean over origins instead, r is smaller and their sum as well, and d where "
    "T_ON is above the sum the same. Areas under B(t) are exact, as B is a step function.",
    "Couples are drawn by NumPy from these delays: notified if and only if t_pub ≥ D_sub and "
    "t_pub + D_diff < T_ON.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is run."""

    topologies: int = 5
    couples: int = 250
    publications: int = 1  # of each couple, for each T_ON
    seed: int = 1  # of the first topology; the others follow
    shape: TransitStub = field(default_factory=TransitStub)

    def __post_init__(self) -> None:
        for name in ("topologies", "couples", "publications"):
            if getattr(self, name) < 1:
                raise InvalidInputError(f"{name} is {getattr(self, name)}; wants 1 or more")

    def to_document(self) -> dict[str, Any]:
        """The plan as plain data."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Results:
    """What came out: tables, and the curves B(t) of each topology."""

    plan: Plan
    topologies: pd.DataFrame  # seed, spread_s (T_sub + T_diff), typical_s, mean_s, r by either
    shares: pd.DataFrame  # by seed and stay: sampled with its error, exact, closed form
    covering: pd.DataFrame  # by number of covering subscribers and stay
    curves: dict[int, tuple[Floats, Floats]]  # B(t) by seed


def reproduce(plan: Plan, progress: Progress = lambda _: None) -> Results:
    """Run the plan."""
    topologies, shares, covering, curves = [], [], [], {}
    for seed in range(plan.seed, plan.seed + plan.topologies):
        progress(f"topology {seed}")
        random = np.random.default_rng(seed)
        overlay = random_overlay(plan.shape, random)
        delays_s = overlay.delays_s()
        facts = spreading(delays_s)
        topologies.append({"seed": seed, **facts})
        couples = draw_couples(overlay.brokers, plan.couples, random)
        there_s = delays_s[couples[:, 0], couples[:, 1]]
        everybody_s = 2.0 * _off_diagonal(delays_s)
        for multiple in STAYS:
            stay_s = multiple * facts["spread_s"]
            sampled = _sample(stay_s, there_s, there_s, plan.publications, random)
            shares.append(
                {
                    "seed": seed,
                    "stay": multiple,
                    "stay_s": stay_s,
                    **sampled,
                    "exact": float(exact_share(stay_s, 2.0 * there_s)),
                    "exact_all": float(exact_share(stay_s, everybody_s)),
                    "closed": float(notified_share(stay_s, facts["spread_s"], facts["r"])),
                }
            )
        covering += _covering(overlay, couples, facts["spread_s"], seed, random)
        curves[seed] = _curve(delays_s)
    return Results(
        plan=plan,
        topologies=pd.DataFrame(topologies),
        shares=pd.DataFrame(shares),
        covering=pd.DataFrame(covering),
        curves=curves,
    )


def draw_couples(brokers: int, count: int, random: np.random.Generator) -> Ints:
    """Subscriber and publisher of each couple, at different brokers."""
    first = random.integers(brokers, size=count)
    second = (first + random.integers(1, brokers, size=count)) % brokers
    return np.stack([first, second], axis=1)


def spreading(delays_s: Floats) -> dict[str, float]:
    """T_sub + T_diff and r, by the worst origin and by the mean over origins, in seconds.

    B(t) is the share of (origin, other broker) pairs with a delay of at most t; the area under it
    up to T is T less the mean delay.
    """
    mean_s = float(_off_diagonal(delays_s).mean())
    worst_s, typical_s = float(delays_s.max()), float(delays_s.max(axis=1).mean())
    return {
        "spread_s": 2.0 * worst_s,
        "r": rapidity(2.0 * (worst_s - mean_s), 2.0 * worst_s),
        "typical_s": 2.0 * typical_s,
        "r_typical": rapidity(2.0 * (typical_s - mean_s), 2.0 * typical_s),
        "mean_s": 2.0 * mean_s,
    }


def _off_diagonal(delays_s: Floats) -> Floats:
    found: Floats = delays_s[~np.eye(len(delays_s), dtype=bool)]
    return found


def _sample(
    stay_s: float, spread_s: Floats, travel_s: Floats, publications: int, random: Any
) -> dict[str, float]:
    """The share of publications that are notified, and its standard error over couples."""
    moments_s = random.uniform(0.0, stay_s, (publications, spread_s.size))
    told = (moments_s >= spread_s) & (moments_s + travel_s < stay_s)
    by_couple = told.mean(axis=0)
    # Given the couples, what is left to chance is when they publish.
    chance = np.maximum(stay_s - spread_s - travel_s, 0.0) / stay_s
    error = math.sqrt(float((chance * (1.0 - chance)).sum()) / publications) / spread_s.size
    return {"sampled": float(by_couple.mean()), "sampled_se": error}


def _covering(
    overlay: Overlay, couples: Ints, spread_s: float, seed: int, random: np.random.Generator
) -> list[dict[str, float]]:
    """D where others hold subscriptions that contain this one: it need not travel as far."""
    order = random.permutation(overlay.brokers)
    travel_s = overlay.delays_s()[couples[:, 0], couples[:, 1]]
    rows = []
    for count in COVERERS:
        until_s = spread_until_covered_s(overlay, couples, order[:count])
        for multiple in STAYS:
            share = float(exact_share(multiple * spread_s, until_s + travel_s))
            rows.append({"seed": seed, "coverers": count, "stay": multiple, "exact": share})
    return rows


def _curve(delays_s: Floats) -> tuple[Floats, Floats]:
    """B(t) at a hundred times."""
    sorted_s = np.sort(_off_diagonal(delays_s))
    times_s = np.linspace(0.0, sorted_s[-1], 100)
    return times_s, np.searchsorted(sorted_s, times_s, side="right") / sorted_s.size
