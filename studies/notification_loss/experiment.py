"""The experiments of the notification-loss paper on random overlays.

For every topology the curves B(t) give T_sub, T_diff and r; then couples of a subscriber and a
publisher are drawn and simulated, broker by broker, for a sweep of T_ON: subscriptions that come
and go, events at random moments. Beside that stand the paper's closed form and the exact
expectation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from studies.notification_loss.overlays import (
    Overlay,
    Times,
    couples_system,
    drawn_after_s,
    random_overlay,
)
from studies.notification_loss.transit_stub import TransitStub
from tidings.errors import InvalidInputError
from tidings.prediction.notification_loss import exact_share, notified_share, rapidity
from tidings.simulation.run import simulate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Progress = Callable[[str], None]

PAPER_RAPIDITY, PAPER_SPREAD_S = 1.14, 20.0
# T_ON in multiples of T_sub + T_diff
STAYS = (0.125, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
COVERERS = (0, 1, 3, 10, 30)
NOBODY = np.zeros(0, dtype=np.int64)
SIMULATED_STAY = 1.0  # the one for which covering filters are simulated
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
    "All couples of a topology are one system for the event simulator, which follows every "
    "subscription from broker to broker and matches events with what each broker knows. A "
    "couple's subscriber stays for T_ON and is away for T_sub + T_diff, by turns; its events come "
    "by a Poisson process, one in a stay on average.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is run."""

    topologies: int = 5
    couples: int = 250
    publications: int = 1  # of each couple while subscribed, for each T_ON, on average
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
    covering: pd.DataFrame  # by covering subscribers and stay: exact; for one stay sampled, costs
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
        run = _Run(
            plan=plan, overlay=overlay, couples=couples, spread_s=facts["spread_s"], seed=seed
        )
        everybody_s = 2.0 * _off_diagonal(delays_s)
        for multiple in STAYS:
            progress(f"topology {seed}, T_ON = {multiple:g} (T_sub + T_diff)")
            stay_s = multiple * facts["spread_s"]
            shares.append(
                {
                    "seed": seed,
                    "stay": multiple,
                    "stay_s": stay_s,
                    **_sample(run, multiple, NOBODY),
                    "exact_all": float(exact_share(stay_s, everybody_s)),
                    "closed": float(notified_share(stay_s, facts["spread_s"], facts["r"])),
                }
            )
        progress(f"topology {seed}, covering filters")
        covering += _covering(run, random)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """The couples of one topology, and S = T_sub + T_diff there."""

    plan: Plan
    overlay: Overlay
    couples: Ints
    spread_s: float
    seed: int

    def exact(self, stay_s: float, coverers: Ints) -> float:
        """The share that is notified, expected over the couples."""
        back_s = self.overlay.delays_s()[self.couples[:, 0], self.couples[:, 1]]
        after_s = drawn_after_s(self.overlay, self.couples, coverers)
        return float(exact_share(stay_s, after_s + back_s))


def _sample(run: _Run, multiple: float, coverers: Ints) -> dict[str, float]:
    """Simulate the couples: the share that is notified, its error, and what that costs.

    Events of couples fall evenly over stays, so that each is notified or not by a coin of its own.
    """
    stay_s = multiple * run.spread_s
    times = Times(stay_s=stay_s, away_s=run.spread_s, every_s=stay_s)
    cycle_s = stay_s + run.spread_s
    outcome = simulate(
        couples_system(run.overlay, run.couples, times, coverers),
        seed=run.seed,
        replications=1,
        warmup_s=cycle_s,  # by then everybody has come once
        duration_s=run.plan.publications * cycle_s,
    )
    mine = outcome.subscribers[: len(run.couples)]
    wanted = float(mine["events"].sum())
    notified = float((mine["delivered"].fillna(0.0) * mine["events"]).sum())
    exact = run.exact(stay_s, coverers)
    messages = outcome.provenance["messages"]["subscribes"]
    return {
        "events": wanted,
        "sampled": notified / wanted if wanted else math.nan,
        "sampled_se": math.sqrt(exact * (1.0 - exact) / wanted) if wanted else math.nan,
        "exact": exact,
        "messages": messages / (len(run.couples) * run.plan.publications),
    }


def _covering(run: _Run, random: np.random.Generator) -> list[dict[str, float]]:
    """D where others hold subscriptions that contain this one: it need not travel as far."""
    order = random.permutation(run.overlay.brokers)
    rows = []
    for count in COVERERS:
        coverers = order[:count]
        for multiple in STAYS:
            row = {"seed": run.seed, "coverers": count, "stay": multiple}
            if multiple == SIMULATED_STAY:
                rows.append({**row, **_sample(run, multiple, coverers)})
            else:
                rows.append({**row, "exact": run.exact(multiple * run.spread_s, coverers)})
    return rows


def _curve(delays_s: Floats) -> tuple[Floats, Floats]:
    """B(t) at a hundred times."""
    sorted_s = np.sort(_off_diagonal(delays_s))
    times_s = np.linspace(0.0, sorted_s[-1], 100)
    return times_s, np.searchsorted(sorted_s, times_s, side="right") / sorted_s.size
