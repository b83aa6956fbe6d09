"""The case study of the performance-methodology paper, solved in three ways side by side.

Operational analysis, the queueing Petri net and the event simulator all get the same fifteen
brokers. Once as the paper's formulas assume (Poisson, exponential, every next broker decided by
itself), where they should agree; and then with what they do not assume.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from studies.performance_methodology.case_study import (
    BROKERS,
    LEAVES,
    SCENARIOS,
    SERVICE_ALONE_S,
    SERVICE_S,
    Scenario,
    case_workload,
)
from studies.performance_methodology.shared_network import TRUTHS, shared_network
from studies.performance_methodology.systems import case_system
from tidings.errors import InvalidInputError
from tidings.model.laws import Deterministic, Exponential, Gamma, Law
from tidings.model.outcome_files import plain
from tidings.model.system_workload import workload_of
from tidings.model.workload import Workload
from tidings.petri.generating import generate_net
from tidings.petri.simulating import simulate_net
from tidings.prediction.operational.analysing import analyse
from tidings.simulation.run import simulate

PUBLISHERS = tuple(f"p{number}" for number in range(1, len(LEAVES) + 1))
ENGINES = ("operational", "petri net", "simulation")
LETTER = "eq. 11 alone"

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is run: how precisely, and by which seed."""

    precision: float = 0.01  # half-width of latencies and residence times, as a share of them
    events: int = 100_000  # published in each replication of the event simulator
    replications: int = 10
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("precision", "events", "replications"):
            if not getattr(self, name) > 0:
                raise InvalidInputError(f"{name} is {getattr(self, name)}; wants a number above 0")

    def to_document(self) -> dict[str, Any]:
        """The plan as plain data for JSON."""
        return dict(plain({name: getattr(self, name) for name in self.__slots__}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What the case is run with: laws of publishing and service, and how edges are decided."""

    name: str
    decisions: str = "independent"
    service: Callable[[float], Law] = lambda mean_s: Exponential(mean_s=mean_s)
    every: Callable[[float], Law] = lambda mean_s: Exponential(mean_s=mean_s)


def _constant(mean_s: float) -> Law:
    return Deterministic(value_s=mean_s)


def _regular(mean_s: float) -> Law:
    return Gamma(mean_s=mean_s, shape=4)


AS_ASSUMED = Variant(name="Poisson, exponential, edges by themselves")
TOGETHER = Variant(name="edges decided together", decisions="together")
VARIANTS = (
    AS_ASSUMED,
    TOGETHER,
    Variant(name="service times constant", service=_constant),
    Variant(name="publishing regular (Erlang 4)", every=_regular),
    Variant(name="all three", decisions="together", service=_constant, every=_regular),
)


@dataclass(frozen=True, kw_only=True)
class Results:
    """What came out: every number, long."""

    plan: Plan
    throughputs: pd.DataFrame  # scenario, broker, engine, per_s
    latencies: pd.DataFrame  # scenario, publisher, engine, latency_s, latency_se_s
    variants: pd.DataFrame  # scenario, variant, engine, publisher, latency_s, latency_se_s
    shared: pd.DataFrame  # scenario, decisions, engine, wait and latency with standard errors

    @cached_property
    def shared_errors(self) -> pd.DataFrame:
        """On the shared network: how far wait and latency are from those of the right net."""
        keys = ["scenario", "decisions"]
        right = self.shared["engine"] == self.shared["decisions"].map(TRUTHS)
        truth = self.shared[right].drop(columns="engine")
        both = self.shared.merge(truth, on=keys, suffixes=("", "_true"))
        return both.assign(
            wait_off=both["wait_s"] / both["wait_s_true"] - 1.0,
            latency_off=both["latency_s"] / both["latency_s_true"] - 1.0,
        )[[*self.shared.columns, "wait_off", "latency_off"]]

    @cached_property
    def engine_errors(self) -> pd.DataFrame:
        """Of each engine against the event simulator, by variant: root mean square and worst."""
        truth = self.variants[self.variants["engine"] == "simulation"]
        keys = ["scenario", "variant", "publisher"]
        both = self.variants.merge(truth, on=keys, suffixes=("", "_true"))
        both = both[both["engine"] != "simulation"]
        both = both.assign(off=both["latency_s"] / both["latency_s_true"] - 1.0)
        both = both.assign(noise=both["latency_se_s_true"] / both["latency_s_true"])
        grouped = both.groupby(["scenario", "variant", "engine"], sort=False)
        return grouped.agg(
            root_mean_square=("off", lambda off: float(np.sqrt(np.mean(off**2)))),
            mean=("off", "mean"),
            worst=("off", lambda off: float(off.iloc[int(off.abs().argmax())])),
            noise=("noise", "mean"),
        ).reset_index()


def reproduce(plan: Plan, *, progress: Progress = lambda _: None) -> Results:
    """Run the case study; ``progress`` is told which run is under way."""
    throughputs, latencies, variants = [], [], []
    shared: list[dict[str, Any]] = []
    for scenario in SCENARIOS:
        for variant in VARIANTS:
            progress(f"{scenario.name}: {variant.name}")
            rates, delays = _run(plan, scenario, variant)
            labels = {"scenario": scenario.name, "variant": variant.name}
            variants.append(delays.assign(**labels))
            if variant is AS_ASSUMED:
                throughputs.append(rates.assign(scenario=scenario.name))
                letter = pd.DataFrame(_letter(scenario))
                both = pd.concat([delays, letter], ignore_index=True)
                latencies.append(both.assign(scenario=scenario.name))
        progress(f"{scenario.name}: one shared network")
        shared += shared_network(scenario, seed=plan.seed, replications=2 * plan.replications)
    return Results(
        plan=plan,
        shared=pd.DataFrame(shared),
        throughputs=pd.concat(throughputs, ignore_index=True),
        latencies=pd.concat(latencies, ignore_index=True),
        variants=pd.concat(variants, ignore_index=True),
    )


def _run(plan: Plan, scenario: Scenario, variant: Variant) -> tuple[pd.DataFrame, pd.DataFrame]:
    service, every = variant.service(SERVICE_S), variant.every(1.0 / scenario.rate_per_s)
    load = case_workload(scenario, service=service, every=every)
    system = case_system(scenario, decisions=variant.decisions, service=service, every=every)
    parts = [_operational(load), _petri(plan, load, "petri net")]
    if variant.decisions == "together":  # what is known of sets of edges helps the net
        parts.append(_petri(plan, workload_of(system), "petri net, joint"))
    outcome = simulate(
        system,
        seed=plan.seed,
        replications=plan.replications,
        events=plan.events,
    )
    pairs = outcome.pairs[outcome.pairs["subscriber"] == "s"].set_index("publisher")
    arrivals = outcome.brokers.set_index("broker")["arrivals_per_s"]
    simulated = _tables(
        "simulation",
        [float(arrivals[f"b{broker}"]) for broker in BROKERS],
        pairs.loc[list(PUBLISHERS), ["delay_mean_s", "delay_mean_se_s"]].to_numpy(),
    )
    rates, delays = zip(*parts, simulated, strict=True)
    return pd.concat(rates, ignore_index=True), pd.concat(delays, ignore_index=True)


def _tables(engine: str, rates: list[float], latencies: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    found = np.asarray(latencies, dtype=np.float64)
    return (
        pd.DataFrame({"engine": engine, "broker": list(BROKERS), "per_s": rates}),
        pd.DataFrame(
            {
                "engine": engine,
                "publisher": PUBLISHERS,
                "latency_s": found[:, 0],
                "latency_se_s": found[:, 1],
            }
        ),
    )


def _operational(load: Workload) -> tuple[pd.DataFrame, pd.DataFrame]:
    found = analyse(load)
    to_end = found.deliveries[found.deliveries["broker"] == "delivery"].set_index("publisher")
    latencies = to_end.loc[list(PUBLISHERS), "latency_mean_s"].to_numpy()
    rates = found.rates_per_s.sum(axis=0)[: len(BROKERS)].tolist()
    return _tables("operational", rates, np.column_stack([latencies, 0.0 * latencies]))


def _petri(plan: Plan, load: Workload, name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The latency to the subscriber is the age of tokens that leave the last place."""
    found = simulate_net(
        generate_net(load), seed=plan.seed, precision=plan.precision, quantiles=False
    )
    per_place = found.places.set_index("place")["throughput_per_s"]
    ages = found.cells[found.cells["place"] == "delivery"].set_index("colour")
    return _tables(
        name,
        [float(per_place[f"b{broker}"]) for broker in BROKERS],
        ages.loc[list(PUBLISHERS), ["age_mean_s", "age_mean_se_s"]].to_numpy(),
    )


def _letter(scenario: Scenario) -> Iterator[dict[str, Any]]:
    """Eq. 11 to the letter: the brokers' responses and nothing else, by its own best service."""
    service = Exponential(mean_s=SERVICE_ALONE_S)
    found = analyse(case_workload(scenario, service=service, delivering=False))
    leaf = found.deliveries[found.deliveries["broker"] == f"b{scenario.subscriber}"]
    for row in leaf.itertuples():
        yield {
            "engine": LETTER,
            "publisher": row.publisher,
            "latency_s": row.latency_mean_s,
            "latency_se_s": 0.0,
        }
