"""The case study on real brokers: fifteen servers, measured beside everything that predicts them.

All times are the paper's times so many times, so that service times are well above what the timers
of a machine get wrong; loads and shares stay what they are. Every prediction starts from the system
fitted to a separate run at low load, never from the runs that it is compared with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from studies.performance_methodology.case_study import (
    BROKERS,
    ROOT,
    SCENARIOS,
    SERVICE_ALONE_S,
    Scenario,
)
from studies.performance_methodology.systems import case_system
from tidings.errors import InvalidInputError
from tidings.model.laws import Deterministic, Exponential
from tidings.model.outcome import Outcome
from tidings.model.outcome_files import plain
from tidings.model.system import System
from tidings.model.system_workload import workload_of
from tidings.petri.generating import colour_of, exit_place, generate_net
from tidings.petri.simulating import simulate_net
from tidings.prediction.operational.analysing import analyse
from tidings.testbed.calibrating import Bench, calibrate
from tidings.testbed.comparing import Reality, confront

SUBSCRIBER = "s"
BY_MEANS = ("operational", "petri net")
BY_LAWS = ("simulation", "prediction")


@dataclass(frozen=True, slots=True, kw_only=True)
class RealPlan:
    """How the case study is put on real servers."""

    factor: float = 3.0  # all times of the paper, so many times
    load: float = SCENARIOS[0].throughput_per_s[0] * SERVICE_ALONE_S  # of the root, scenario 1
    deadline_s: float = 0.03  # before it is scaled up
    precision: float = 0.02  # of residence times in the net

    def __post_init__(self) -> None:
        for name in ("factor", "deadline_s", "precision"):
            if not getattr(self, name) > 0:
                raise InvalidInputError(f"{name} is {getattr(self, name)}; wants a number above 0")
        if not 0.0 < self.load < 1.0:
            raise InvalidInputError(f"the load is {self.load}; wants one between 0 and 1")

    @property
    def service_s(self) -> float:
        """The mean service time of every broker, scaled up."""
        return self.factor * self.load / SCENARIOS[0].throughput_per_s[0]

    @property
    def scaled_deadline_s(self) -> float:
        """How long events are of use, scaled up."""
        return self.factor * self.deadline_s

    def to_document(self) -> dict[str, Any]:
        """The plan as plain data for JSON."""
        return dict(plain({name: getattr(self, name) for name in self.__slots__}))


@dataclass(frozen=True, kw_only=True)
class RealResults:
    """What came out, long; ``run`` numbers repetitions and is 0 where nothing was repeated."""

    plan: RealPlan
    realities: dict[str, Reality]  # by scenario
    throughputs: pd.DataFrame  # scenario, engine, run, broker, per_s
    latencies: pd.DataFrame  # scenario, engine, run, publisher, latency_s, on_time
    routing: pd.DataFrame  # scenario, run, edge, predicted, measured, standard_error, off, events


def real_system(scenario: Scenario, plan: RealPlan) -> System:
    """A scenario as real servers run it: fifteen brokers, times scaled up, events with a deadline.

    What goes down an unlikely edge goes down all likelier ones, so that contents are few enough
    to be subjects; every edge by itself is used as often as in the paper.
    """
    system = case_system(
        scenario,
        decisions="together",
        service=Exponential(mean_s=plan.service_s),
        every=Exponential(mean_s=plan.factor / scenario.rate_per_s),
        delivering=False,
    )
    return replace(system, lifetime=Deterministic(value_s=plan.scaled_deadline_s))


def reproduce_for_real(plan: RealPlan, bench: Bench, folder: Path) -> RealResults:
    """Run both scenarios on real servers; traces and fitted systems are left in ``folder``.

    One calibration serves both: they differ in rates and routing, which are stated.
    """
    known = calibrate(bench, real_system(SCENARIOS[0], plan), folder / "calibration")
    realities, throughputs, latencies, routing = {}, [], [], []
    for scenario in SCENARIOS:
        place = folder / scenario.name.replace(" ", "-")
        within = bench.within(scenario.name)
        found = confront(within, real_system(scenario, plan), known, place)
        within.progress("operational analysis and Petri net")
        realities[scenario.name] = found
        rates, delays = (pd.DataFrame(part) for part in _engines(scenario, plan, found))
        throughputs.append(rates.assign(scenario=scenario.name))
        latencies.append(delays.assign(scenario=scenario.name))
        routing.append(pd.DataFrame(_routing(found)).assign(scenario=scenario.name))
    return RealResults(
        plan=plan,
        realities=realities,
        throughputs=pd.concat(throughputs, ignore_index=True),
        latencies=pd.concat(latencies, ignore_index=True),
        routing=pd.concat(routing, ignore_index=True),
    )


Rows = list[dict[str, Any]]


def _engines(scenario: Scenario, plan: RealPlan, found: Reality) -> tuple[Rows, Rows]:
    """Throughputs and latencies by every engine, and as measured."""
    rates: Rows = []
    delays: Rows = []
    assert found.simulated is not None
    outcomes = [("simulation", 0, found.simulated), ("prediction", 0, found.predicted)]
    outcomes += [
        ("measured", number, each.measured) for number, each in enumerate(found.counted, 1)
    ]
    for engine, run, outcome in outcomes:
        labels = {"engine": engine, "run": run}
        rates += [{**labels, **row} for row in _throughputs(outcome)]
        delays += [{**labels, **row} for row in _latencies(outcome)]
    for engine, more_rates, more_delays in _by_means(scenario, plan, found.fitted):
        rates += [{"engine": engine, "run": 0, **row} for row in more_rates]
        delays += [{"engine": engine, "run": 0, **row} for row in more_delays]
    return rates, delays


def _throughputs(outcome: Outcome) -> Rows:
    per_s = outcome.brokers.set_index("broker")["arrivals_per_s"]
    return [{"broker": broker, "per_s": float(per_s[f"b{broker}"])} for broker in BROKERS]


def _latencies(outcome: Outcome) -> Rows:
    pairs = outcome.pairs[outcome.pairs["subscriber"] == SUBSCRIBER]
    return [
        {
            "publisher": row.publisher,
            "latency_s": float(row.delay_mean_s),
            "on_time": float(row.on_time),
        }
        for row in pairs.sort_values("publisher").itertuples()
    ]


def _by_means(
    scenario: Scenario, plan: RealPlan, fitted: System
) -> Iterator[tuple[str, Rows, Rows]]:
    """What knows means only: to the leaf, and then over the subscriber's own link."""
    load = workload_of(fitted)
    leaf = fitted.broker_index[f"b{scenario.subscriber}"]
    link_s = next(each.link.delay.mean_s for each in fitted.subscribers if each.name == SUBSCRIBER)
    analysed = analyse(load)
    to_leaf = analysed.deliveries[analysed.deliveries["broker"] == load.nodes[leaf].name]
    names = [node.name for node in load.nodes]
    per_s = dict(zip(names, analysed.rates_per_s.sum(axis=0).tolist(), strict=True))
    means = dict(zip(to_leaf["publisher"], to_leaf["latency_mean_s"], strict=True))
    yield "operational", _as_throughputs(per_s), _as_latencies(means, link_s)
    net = simulate_net(generate_net(load), precision=plan.precision, quantiles=False)
    places = net.places.set_index("place")["throughput_per_s"]
    per_s = {name: float(places[name]) for name in names}
    ages = net.cells[net.cells["place"] == exit_place(load, leaf)].set_index("colour")["age_mean_s"]
    means = {
        load.sources[flow.source].name: float(ages[colour_of(load, index)])
        for index, flow in enumerate(load.flows)
    }
    yield "petri net", _as_throughputs(per_s), _as_latencies(means, link_s)


def _as_throughputs(per_s: dict[str, float]) -> Rows:
    return [{"broker": broker, "per_s": per_s[f"b{broker}"]} for broker in BROKERS]


def _as_latencies(means: dict[str, float], link_s: float) -> Rows:
    return [
        {"publisher": name, "latency_s": mean_s + link_s, "on_time": np.nan}
        for name, mean_s in sorted(means.items())
    ]


def _routing(found: Reality) -> Iterator[dict[str, Any]]:
    """How often an event goes down an edge that it could go down, in every run."""
    predicted = shares_down(found.predicted)
    for run, each in enumerate(found.repetitions, 1):
        for row in each.forwarded.itertuples():
            edge = f"{row.source}→{row.target}"
            if edge in predicted:
                stated, events, went = predicted[edge], int(row.events), int(row.went)
                yield {
                    "run": run,
                    "edge": edge,
                    "events": events,
                    "predicted": stated,
                    "measured": went / events,
                    "standard_error": float(np.sqrt(stated * (1.0 - stated) / events)),
                    "off": _binomial_off(went, events, stated),
                }


def _binomial_off(went: int, events: int, share: float) -> float:
    """How far a count is from its probability, in standard errors of a normal law as unlikely.

    Exact, as an edge that nearly everything goes down has too few exceptions to be normal.

    >>> round(_binomial_off(40, 100, 0.5), 1), round(_binomial_off(999, 1000, 0.9998), 1)
    (-1.9, -1.3)
    """
    if share >= 1.0:
        return 0.0 if went == events else -np.inf
    unlikely = float(stats.binomtest(went, events, share).pvalue)
    return float(np.copysign(stats.norm.isf(unlikely / 2.0), went - events * share))


def shares_down(outcome: Outcome) -> dict[str, float]:
    """By edge: its share of the events at its upper end that did not come up it."""
    sent = outcome.links.set_index(["source", "target"])["events_per_s"]
    arrivals = outcome.brokers.set_index("broker")["arrivals_per_s"]
    found = {}
    for broker in BROKERS:
        if broker != ROOT:
            lower, upper = f"b{broker}", f"b{broker // 2}"
            at_upper = float(arrivals[upper]) - float(sent[lower, upper])
            found[f"{upper}→{lower}"] = min(float(sent[upper, lower]) / at_upper, 1.0)
    return found
