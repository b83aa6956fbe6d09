"""The experiments of the notification-loss paper on random overlays.

For every topology the curves B(t) give T_sub, T_diff and r; then couples of a subscriber and a
publisher are drawn and simulated, broker by broker, for a sweep of T_ON: subscriptions that come
and go, events at random moments. Beside that stand the paper's closed form and the exact
expectation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from studies.harness import Experiment, Texts, line, root_of_squares
from studies.notification_loss.overlays import (
    Overlay,
    Times,
    TransitStub,
    couples_system,
    drawn_after_s,
    random_overlay,
)
from studies.settings.notification_loss import Settings
from tidings.model.arrays import Floats, Ints
from tidings.model.progress import Progress
from tidings.model.study import Finding, Section, Study
from tidings.simulation.run import simulate
from tidings.theory.peers.notification_loss import exact_share, notified_share, rapidity

PAPER_RAPIDITY = 1.14
# T_ON in multiples of T_sub + T_diff
STAYS = (0.125, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
COVERERS = (0, 1, 3, 10, 30)
NOBODY = np.zeros(0, dtype=np.int64)
SIMULATED_STAY = 1.0  # the one for which covering filters are simulated
FAMILY_S = (5.0, 10.0, 20.0, 40.0, 80.0)
NEAR = 0.05  # the paper's own word: "within 5 %"
CLOSE = 0.01  # of the exact expectation, where the closed form is meant to hold
SHAPE = TransitStub()
TEXTS = Texts("notification-loss")


@dataclass(frozen=True, kw_only=True)
class Results:
    """What came out: tables, and the curves B(t) of each topology."""

    topologies: pd.DataFrame  # seed, spread_s (T_sub + T_diff), typical_s, mean_s, r by either
    shares: pd.DataFrame  # by seed and stay: sampled with its error, exact, closed form
    covering: pd.DataFrame  # by covering subscribers and stay: exact; for one stay sampled, costs
    curves: dict[int, tuple[Floats, Floats]]  # B(t) by seed


def simulate_all(settings: Settings, progress: Progress) -> Results:
    """Simulate the couples of all topologies for every T_ON, and with covering filters."""
    topologies, shares, curves = [], [], {}
    covering: list[dict[str, float]] = []
    for seed in range(settings.seed, settings.seed + settings.topologies):
        random = np.random.default_rng(seed)
        overlay = random_overlay(SHAPE, random)
        delays_s = overlay.delays_s()
        facts = spreading(delays_s)
        topologies.append({"seed": seed, **facts})
        couples = draw_couples(overlay.brokers, settings.couples, random)
        spread_s = facts["spread_s"]
        run = _Run(
            settings=settings, overlay=overlay, couples=couples, spread_s=spread_s, seed=seed
        )
        for multiple in STAYS:
            progress(f"topology {seed}, T_ON = {multiple:g} (T_sub + T_diff)")
            stay_s = multiple * spread_s
            shares.append(
                {
                    "seed": seed,
                    "stay": multiple,
                    "stay_s": stay_s,
                    **run.sample(multiple, NOBODY),
                    "exact_all": float(exact_share(stay_s, 2.0 * _off_diagonal(delays_s))),
                    "closed": float(notified_share(stay_s, spread_s, facts["r"])),
                }
            )
        progress(f"topology {seed}, covering filters")
        covering += run.covering(random)
        curves[seed] = _curve(delays_s)
    frames = [pd.DataFrame(each) for each in (topologies, shares, covering)]
    return Results(topologies=frames[0], shares=frames[1], covering=frames[2], curves=curves)


def draw_couples(brokers: int, count: int, random: np.random.Generator) -> Ints:
    """Draw subscriber and publisher of each couple, at different brokers."""
    first = random.integers(brokers, size=count)
    second = (first + random.integers(1, brokers, size=count)) % brokers
    return np.stack([first, second], axis=1)


def spreading(delays_s: Floats) -> dict[str, float]:
    """Compute T_sub + T_diff and r, by the worst origin and the mean over origins, in seconds.

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
    between: Floats = delays_s[~np.eye(len(delays_s), dtype=bool)]
    return between


def _curve(delays_s: Floats) -> tuple[Floats, Floats]:
    """Compute B(t) at a hundred times."""
    sorted_s = np.sort(_off_diagonal(delays_s))
    times_s = np.linspace(0.0, sorted_s[-1], 100)
    return times_s, np.searchsorted(sorted_s, times_s, side="right") / sorted_s.size


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """The couples of one topology, and S = T_sub + T_diff there."""

    settings: Settings
    overlay: Overlay
    couples: Ints
    spread_s: float
    seed: int

    def exact(self, multiple: float, coverers: Ints) -> float:
        """Compute the share that is notified, expected over the couples."""
        back_s = self.overlay.delays_s()[self.couples[:, 0], self.couples[:, 1]]
        after_s = drawn_after_s(self.overlay, self.couples, coverers)
        return float(exact_share(multiple * self.spread_s, after_s + back_s))

    def sample(self, multiple: float, coverers: Ints) -> dict[str, float]:
        """Simulate the couples: the share that is notified, its error, and what that costs.

        Events of couples fall evenly over stays: each is notified or not by a coin of its own.
        """
        stay_s = multiple * self.spread_s
        times = Times(stay_s=stay_s, away_s=self.spread_s, every_s=stay_s)
        cycle_s = stay_s + self.spread_s
        outcome = simulate(
            couples_system(self.overlay, self.couples, times, coverers),
            seed=self.seed,
            replications=1,
            warmup_s=cycle_s,  # by then everybody has come once
            duration_s=self.settings.publications * cycle_s,
        )
        mine = outcome.subscribers[: len(self.couples)]
        wanted = float(mine["events"].sum()) or math.nan
        exact = self.exact(multiple, coverers)
        subscriptions = len(self.couples) * self.settings.publications
        return {
            "events": 0.0 if math.isnan(wanted) else wanted,
            "sampled": float((mine["delivered"].fillna(0.0) * mine["events"]).sum()) / wanted,
            "sampled_se": math.sqrt(exact * (1.0 - exact) / wanted),
            "exact": exact,
            "messages": outcome.provenance["messages"]["subscribes"] / subscriptions,
        }

    def covering(self, random: np.random.Generator) -> Iterator[dict[str, float]]:
        """Compute d where others hold subscriptions that contain this one: it travels less far."""
        order = random.permutation(self.overlay.brokers)
        for count in COVERERS:
            for multiple in STAYS:
                row = {"seed": self.seed, "coverers": count, "stay": multiple}
                if multiple == SIMULATED_STAY:
                    yield {**row, **self.sample(multiple, order[:count])}
                else:
                    yield {**row, "exact": self.exact(multiple, order[:count])}


def run(settings: Settings, progress: Progress) -> Study:
    """Run the experiments, and say what they say to the paper's claims."""
    results = simulate_all(settings, progress)
    return TEXTS.study(
        summary=f"{settings.couples} couples on each of {settings.topologies} random overlays of "
        f"{SHAPE.nodes} brokers, {settings.publications} publication(s) for each T_ON.",
        findings=_findings(results),
        sections=(_spreading(results), _shares(results), _covering(results.covering), _family()),
        tables={
            "topologies": results.topologies,
            "points": results.shares,
            "covering": results.covering,
        },
        plan={**asdict(settings), "shape": asdict(SHAPE)},
    )


def _findings(results: Results) -> Iterator[Finding]:
    shares = results.shares
    pooled = _over_topologies(shares[shares["stay"] >= 1.0])
    worst = pooled.loc[(pooled["closed"] - pooled["sampled"]).abs().idxmax()]
    off, se = abs(worst["closed"] - worst["sampled"]), worst["sampled_se"]
    yield TEXTS.claim("closed form", bool(off <= NEAR), off=off, stay=worst["stay"], se=se)
    apart = (shares["closed"] - shares["exact_all"]).abs()
    long, short = apart[shares["stay"] >= 1.0].max(), apart[shares["stay"] < 1.0].max()
    yield TEXTS.claim("area", bool(long <= CLOSE), off=long)
    yield TEXTS.claim("low", bool(short <= NEAR), off=short)
    r = {name: (values.min(), values.max()) for name, values in results.topologies.items()}
    within = any(r[name][0] <= PAPER_RAPIDITY <= r[name][1] for name in ("r", "r_typical"))
    yield TEXTS.claim("rapidity", within, worst=r["r"], mean=r["r_typical"])
    rows = results.covering
    mean = rows[rows["stay"] == 1.0].groupby("coverers")[["exact", "messages"]].mean()
    at, sent = mean["exact"], mean["messages"]
    listed = ", ".join(f"{count}: {share:.3f}" for count, share in at.items())
    grows = bool(at.is_monotonic_increasing and at.iloc[-1] > at.iloc[0])
    yield TEXTS.claim("covering", grows, listed=listed, most=sent.iloc[0], least=sent.iloc[-1])


def _over_topologies(shares: pd.DataFrame) -> pd.DataFrame:
    """Average over topologies by length of stay, with the standard errors of the means."""
    groups = shares.groupby("stay", sort=True)
    means = groups[["stay_s", "sampled", "exact", "exact_all", "closed"]].mean()
    return means.assign(
        sampled_se=groups["sampled_se"].apply(root_of_squares),
        off=means["closed"] - means["exact_all"],
    ).reset_index()


def _spreading(results: Results) -> Section:
    reached = {f"topology {seed}": line(*curve) for seed, curve in results.curves.items()}
    table = TEXTS.grid("spreading", results.topologies)
    return TEXTS.section("spreading", table, TEXTS.curves("reached", reached))


def _shares(results: Results) -> Section:
    pooled = _over_topologies(results.shares)
    named = {"exact": "exact_all", "closed form": "closed", "sampled": "sampled"}
    drawn = {name: line(pooled["stay"], pooled[column]) for name, column in named.items()}
    marks = {"sampled": drawn.pop("sampled")}
    return TEXTS.section(
        "shares", TEXTS.grid("shares", pooled), TEXTS.curves("shares", drawn, marks)
    )


def _covering(covering: pd.DataFrame) -> Section:
    means = covering.groupby(["coverers", "stay"])["exact"].mean().unstack("coverers")
    means.columns = [f"{count} others" for count in means.columns]
    simulated = covering.dropna(subset=["sampled"]).groupby("coverers")
    costs = simulated[["exact", "sampled", "messages"]].mean()
    costs["sampled_se"] = simulated["sampled_se"].apply(root_of_squares)
    further = "".join(f" | {name} = {{{name}:.4f}}" for name in means)
    return TEXTS.section(
        "covering",
        TEXTS.grid("costs", costs.reset_index()),
        TEXTS.grid("covering", means.reset_index(), further),
        TEXTS.curves("covering", {name: line(means.index, means[name]) for name in means}),
    )


def _family() -> Section:
    stays_s = np.linspace(1.0, 200.0, 200)
    family = {sum_s: stays_s[stays_s >= sum_s] for sum_s in FAMILY_S}
    drawn = {
        f"{sum_s:g} s": line(at_s, notified_share(at_s, sum_s, PAPER_RAPIDITY))
        for sum_s, at_s in family.items()
    }
    return TEXTS.section("family", TEXTS.curves("family", drawn))


EXPERIMENT = Experiment(texts=TEXTS, settings=Settings, run=run)
