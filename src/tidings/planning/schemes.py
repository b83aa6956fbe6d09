"""Which recovery scheme: what each gives to subscribers and what it costs in messages.

What a scheme costs is counted in a simulation, whose own shares stand beside those of theory; of
each subscriber that share counts which has the smaller error. What theory has not is simulated that
once.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from tidings.errors import InvalidInputError
from tidings.model.json_text import plain
from tidings.model.outcome import Outcome
from tidings.model.progress import Progress
from tidings.model.shown import Shown
from tidings.model.system import SCHEMES, Recovery, System
from tidings.planning.choices import SCHEME_SECONDS
from tidings.planning.evidence import (
    MEETS,
    OPEN,
    Target,
    better,
    by_theory,
    deciding,
    errors,
    verdict,
)
from tidings.simulation.options import SimulationOptions
from tidings.simulation.run import simulate

SURELY = 2.0  # standard errors within which costs are not told apart
QUANTILES = {"worst": 0.0, "p05": 0.05, "p50": 0.5}  # of on-time shares over subscribers


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemeReport:
    """What one scheme gives and costs."""

    scheme: str
    by: str  # the engine of the shares that count: theory, simulation, or both
    on_time: dict[str, float]  # mean over events, and quantiles over subscribers
    error: float  # the largest of a subscriber's share that counts (half-width, 95 %)
    simulated: float  # mean over events
    simulated_error: float  # its half-width (95 %) at most: if all shares err to one side
    simulated_se: float  # the largest standard error of a subscriber's simulated share
    satisfied: float  # share of subscribers that get their target
    satisfied_simulated: float
    satisfied_simulated_error: float  # by how much, if all shares are off by their errors
    satisfied_simulated_least: float  # if all are lower by their errors
    satisfied_simulated_most: float  # if all are higher
    transmissions: float  # of events between brokers, for each delivery
    acknowledgements: float  # of those, for each delivery
    refreshes: float  # of subscriptions between brokers, for each delivery
    duplicates: float  # filtered out at the last broker, for each delivery
    cost: float  # messages of all kinds between brokers, for each delivery
    cost_se: float  # its standard error; NaN where there was one replication
    verdict: str  # whether the target is met: MEETS or MISSES whatever the error, else OPEN
    warnings: tuple[str, ...] = ()  # of the shares that count

    @property
    def meets(self) -> bool:
        """Whether the target is met for sure."""
        return self.verdict == MEETS

    @property
    def likely(self) -> tuple[float, float]:
        """The share of subscribers that get their target, and of events in time."""
        return self.satisfied, self.on_time["mean"]

    def costs_as_much_as(self, other: SchemeReport) -> bool:
        """Test whether the simulation cannot tell the two costs apart."""
        noise = math.hypot(self.cost_se, other.cost_se)
        return abs(self.cost - other.cost) <= (0.0 if math.isnan(noise) else SURELY * noise)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SchemeAdvice(Shown):
    """All schemes compared, and the cheapest that meets the target."""

    _table = "schemes"
    _columns = ("scheme", "satisfied", "cost", "verdict")

    target: Target
    reports: tuple[SchemeReport, ...]

    @property
    def choice(self) -> SchemeReport | None:
        """The cheapest scheme that meets the target, or None where none does.

        Of schemes that cost the same, as far as can be told, the one with the best share.
        """
        return max(self.cheapest, key=lambda each: each.on_time["mean"], default=None)

    @property
    def cheapest(self) -> tuple[SchemeReport, ...]:
        """The schemes that meet the target and cost as much as the cheapest of these.

        One that delivers nothing is none of them, not even where nothing is asked for.
        """
        good = [each for each in self.reports if each.meets and not math.isnan(each.cost)]
        least = min(good, key=lambda each: each.cost, default=None)
        return tuple(each for each in good if least is not None and each.costs_as_much_as(least))

    @property
    def perhaps(self) -> tuple[SchemeReport, ...]:
        """The schemes that would be cheaper than the choice, if they meet the target."""
        best = self.choice
        return tuple(
            each
            for each in self.reports
            if each.verdict == OPEN and (best is None or each.cost < best.cost)
        )

    @property
    def nearest(self) -> SchemeReport:
        """The scheme that satisfies most subscribers; of equals the one with the best share."""
        return max(self.reports, key=lambda each: each.likely)

    def to_document(self) -> dict[str, Any]:
        """Give the advice as plain data for JSON."""
        document = {
            "target": asdict(self.target),
            "choice": self.choice.scheme if self.choice else None,
            "nearest": self.nearest.scheme,
            "equally_cheap": [each.scheme for each in self.cheapest],
            "perhaps": [each.scheme for each in self.perhaps],
            "schemes": [asdict(each) for each in self.reports],
        }
        return dict(plain(document))


def compare_schemes(
    system: System,
    target: Target,
    options: SimulationOptions | None = None,
    *,
    progress: Progress = lambda _: None,
) -> SchemeAdvice:
    """Predict and simulate the system under every recovery scheme; all else stays as it is.

    Unless ``options`` say how long, each is simulated as precisely as decides whether it meets the
    target.
    """
    chosen = options or SimulationOptions()
    target.wanted(system)  # refuse before the work, not after
    if not _can_fail(system):
        raise InvalidInputError(
            "nothing in this system fails, so all recovery schemes are the same; to "
            "compare them, give brokers or links a 'failure'"
        )
    reports = []
    for number, scheme in enumerate(SCHEMES, start=1):
        tell = _prefixed(progress, f"{scheme} ({number} of {len(SCHEMES)} schemes)")
        tell("predicted")
        changed = under(system, scheme)
        predicted = by_theory(changed)  # without it, the simulation to come is the prediction
        if chosen.duration_s is None and chosen.events is None:
            precision = deciding(changed, target, predicted)
            chosen = replace(chosen, precision=precision, seconds=chosen.seconds or SCHEME_SECONDS)
        simulated = simulate(changed, chosen, progress=tell)
        reports.append(_report(changed, target, predicted or simulated, simulated))
    return SchemeAdvice(target=target, reports=tuple(reports))


def _prefixed(progress: Progress, scheme: str) -> Progress:
    return lambda step: progress(f"{scheme}, {step}")


def under(system: System, scheme: str) -> System:
    """Set another recovery scheme; keep its refresh interval, time-out and detection time."""
    if scheme == "none":
        return replace(system, recovery=Recovery(scheme=scheme))
    return replace(system, recovery=replace(system.used_recovery, scheme=scheme))


def _can_fail(system: System) -> bool:
    failures = [broker.failure for broker in system.brokers]
    failures += [link.there.failure for link in system.links]
    return bool(system.failure_groups) or any(each is not None for each in failures)


def _report(system: System, target: Target, predicted: Outcome, simulated: Outcome) -> SchemeReport:
    counts, error = better(predicted, simulated), errors(simulated)
    engines = sorted({each for each in counts.subscribers["by"] if each})
    satisfied, least, most = (
        target.satisfied(system, simulated, each) for each in (0.0, error, -error)
    )
    costs = simulated.provenance["messages"]["per_delivery"]

    def cost(name: str, what: str = "value") -> float:
        amount = costs[name][what]
        return math.nan if amount is None else float(amount)

    return SchemeReport(
        scheme=system.used_recovery.scheme,
        by=engines[0] if len(engines) == 1 else "both",
        on_time={"mean": counts.on_time, **_quantiles(counts)},
        error=float(counts.subscribers["error"].max()),
        simulated=simulated.on_time,
        simulated_error=_error_of_mean(simulated),
        simulated_se=float(simulated.subscribers["on_time_se"].max()),
        satisfied=target.satisfied(system, counts),
        satisfied_simulated=satisfied,
        satisfied_simulated_error=max(satisfied - least, most - satisfied),
        satisfied_simulated_least=least,
        satisfied_simulated_most=most,
        transmissions=cost("transmissions"),
        acknowledgements=cost("acknowledgements"),
        refreshes=cost("refreshes"),
        duplicates=cost("duplicates"),
        cost=cost("messages"),
        cost_se=cost("messages", "se"),
        verdict=verdict(system, target, predicted, simulated),
        warnings=simulated.warnings if engines == ["simulation"] else _lasting(predicted),
    )


def _lasting(predicted: Outcome) -> tuple[str, ...]:
    """Give what stands of a prediction's warnings beside a simulation: not how far it was off."""
    remarks = tuple(each for each in predicted.remarks if each.kind != "not held")
    return replace(predicted, remarks=remarks).warnings


def _error_of_mean(outcome: Outcome) -> float:
    """Bound the half-width (95 %) of the mean over events; NaN where that of a share is unknown.

    Shares come from the same runs, so they may all err to one side: their errors are averaged as
    the shares are, not divided by a root.
    """
    rows = outcome.subscribers[outcome.subscribers["on_time"].notna()]
    weight = (rows["wanted_per_s"] * rows["count"]).to_numpy()
    known = rows["error"].to_numpy()
    return float(known @ weight / weight.sum()) if weight.sum() > 0.0 else math.nan


def _quantiles(outcome: Outcome) -> dict[str, float]:
    """Compute quantiles of on-time shares over subscribers: so many of them get less."""
    known = outcome.subscribers[outcome.subscribers["on_time"].notna()].sort_values(
        "on_time", kind="stable"
    )
    shares, heads = known["on_time"].to_numpy(), known["count"].to_numpy()
    upto = np.cumsum(heads) / max(1.0, heads.sum())
    return {
        name: float(shares[min(int(np.searchsorted(upto, level, side="right")), len(shares) - 1)])
        if len(shares)
        else float("nan")
        for name, level in QUANTILES.items()
    }
