"""The case study on real brokers: fifteen servers, measured beside everything that predicts them.

All times are the paper's times so many times, so that service times are well above what the timers
of a machine get wrong; loads and shares stay what they are. Every prediction starts from the system
fitted to a separate run at low load, never from the runs that it is compared with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from studies.harness import MARKER, Texts, line
from studies.performance_methodology.case_study import (
    BROKERS,
    ROOT,
    SCENARIOS,
    SERVICE_ALONE_S,
    Scenario,
)
from studies.performance_methodology.systems import case_system
from tidings.cli import spark
from tidings.errors import InvalidInputError
from tidings.model.laws import Deterministic, Exponential
from tidings.model.outcome import Outcome
from tidings.model.progress import Progress
from tidings.model.study import Curves, Finding, Section, Study
from tidings.model.system import System
from tidings.model.system_workload import workload_of
from tidings.model.writing import check_new_folder, write_file
from tidings.operational.analysing import analyse
from tidings.petri.generating import colour_of, exit_place, generate_net
from tidings.petri.simulating import simulate_net
from tidings.testbed.calibrating import CALIBRATION_LOAD, Bench, calibrate
from tidings.testbed.comparing import confront
from tidings.testbed.reality import MOST_LATENCY, MOST_SHARE, Reality, Repetition
from tidings.testbed.reality_study import (
    interval_text,
    late_text,
    nothing_believed,
    runs_together,
    why_latency,
    why_shares,
)
from tidings.testbed.runs import TestbedOptions

if TYPE_CHECKING:
    from studies.settings.performance_methodology import Settings

TESTBED = "testbed"  # the folder of traces and fitted systems, in that of the study
MOST_ERRORS = 3.0  # of a routing probability, in standard errors
SUBSCRIBER = "s"
BY_MEANS = ("operational", "petri net")
BY_LAWS = ("simulation", "prediction")
ENGINES = (*BY_MEANS, *BY_LAWS)
Rows = list[dict[str, Any]]


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


def run_for_real(texts: Texts, settings: Settings, progress: Progress) -> Study:
    """Run the case study on real servers; traces and fitted systems are left in the folder."""
    chosen = {} if settings.load is None else {"load": settings.load}
    factor = 3.0 if settings.factor is None else settings.factor
    plan = RealPlan(factor=factor, precision=settings.precision, **chosen)
    length = TestbedOptions(duration_s=settings.duration_s or 60.0, seed=settings.seed)
    check_new_folder(settings.to / TESTBED)
    if not (settings.to / MARKER).exists():  # traces come into the folder before the study does
        write_file(settings.to / MARKER, b'{"unfinished": true}\n')
    progress("starting Spark")
    with spark.started(None, small=True) as session:
        repetitions = settings.repetitions or 3
        bench = Bench(spark=session, options=length, repetitions=repetitions, progress=progress)
        results = measure_all(plan, bench, settings.to / TESTBED)
    return real_study(texts, results)


def measure_all(plan: RealPlan, bench: Bench, folder: Path) -> RealResults:
    """Run both scenarios on real servers; traces and fitted systems are left in ``folder``.

    One calibration serves both: they differ in rates and routing, which are stated.
    """
    known = calibrate(bench, real_system(SCENARIOS[0], plan), folder / "calibration")
    realities, throughputs, latencies, routing = {}, [], [], []
    for scenario in SCENARIOS:
        place = folder / scenario.name.replace(" ", "-")
        within = bench.within(scenario.name)
        reality = confront(within, real_system(scenario, plan), known, place)
        within.progress("operational analysis and Petri net")
        realities[scenario.name] = reality
        rates, delays = (pd.DataFrame(part) for part in _engines(scenario, plan, reality))
        throughputs.append(rates.assign(scenario=scenario.name))
        latencies.append(delays.assign(scenario=scenario.name))
        routing.append(pd.DataFrame(_down_edges(reality)).assign(scenario=scenario.name))
    return RealResults(
        plan=plan,
        realities=realities,
        throughputs=pd.concat(throughputs, ignore_index=True),
        latencies=pd.concat(latencies, ignore_index=True),
        routing=pd.concat(routing, ignore_index=True),
    )


def _engines(scenario: Scenario, plan: RealPlan, reality: Reality) -> tuple[Rows, Rows]:
    """Throughputs and latencies by every engine, and as measured."""
    rates: Rows = []
    delays: Rows = []
    assert reality.simulated is not None
    outcomes = [("simulation", 0, reality.simulated), ("prediction", 0, reality.predicted)]
    outcomes += [
        ("measured", number, each.measured) for number, each in enumerate(reality.counted, 1)
    ]
    for engine, run, outcome in outcomes:
        labels = {"engine": engine, "run": run}
        rates += [{**labels, **row} for row in _throughputs(outcome)]
        delays += [{**labels, **row} for row in _latencies(outcome)]
    for engine, more_rates, more_delays in _by_means(scenario, plan, reality.fitted):
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


def _down_edges(reality: Reality) -> Iterator[dict[str, Any]]:
    """How often an event goes down an edge that it could go down, in every run."""
    predicted = shares_down(reality.predicted)
    for run, each in enumerate(reality.repetitions, 1):
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
    shares = {}
    for broker in BROKERS:
        if broker != ROOT:
            lower, upper = f"b{broker}", f"b{broker // 2}"
            at_upper = float(arrivals[upper]) - float(sent[lower, upper])
            shares[f"{upper}→{lower}"] = min(float(sent[upper, lower]) / at_upper, 1.0)
    return shares


def real_study(texts: Texts, results: RealResults) -> Study:
    """Show the case study on real brokers."""
    plan, own = results.plan, texts.all["real"]
    runs = min(len(each.repetitions) for each in results.realities.values())
    filled = {
        "service_ms": 1e3 * plan.service_s,
        "load": plan.load,
        "deadline_ms": 1e3 * plan.deadline_s,
        "scaled_ms": 1e3 * plan.scaled_deadline_s,
    }
    return Study(
        paper=texts.name,
        title=own["title"],
        summary=f"Fifteen nats-server processes of one machine in two load scenarios, all times "
        f"{plan.factor:g} times the paper's; {runs} runs of each, predicted from a separate run at "
        f"a load of {CALIBRATION_LOAD:g}.",
        settings=texts.all["stated"],
        choices=tuple(each.format(**filled) for each in own["choices"]),
        findings=tuple(_findings(texts, results)),
        sections=tuple(_sections(texts, results)),
        tables={name: getattr(results, name) for name in ("throughputs", "latencies", "routing")},
        plan=asdict(plan),
    )


def _sections(texts: Texts, results: RealResults) -> Iterator[Section]:
    for key, value, engines in (
        ("real throughput", "per_s", ENGINES),
        ("real latency", "latency_s", ENGINES),
        ("on time", "on_time", BY_LAWS),
    ):
        table = results.throughputs if value == "per_s" else results.latencies
        yield texts.section(
            key,
            *(
                texts.grid(
                    key,
                    *_beside(_of(table, scenario), value, engines),
                    leaf=scenario.subscriber,
                    scenario=scenario.name,
                    deadline_ms=1e3 * results.plan.scaled_deadline_s,
                )
                for scenario in SCENARIOS
            ),
        )
    yield texts.section("delays", *_delay_laws(texts, results))
    edges = [
        {
            "edge": edge,
            "predicted": part["predicted"].iloc[0],
            "measured": " ".join(f"{value:.4f}" for value in part["measured"]),
            "off": " ".join(f"{value:+.1f}" for value in part["off"]),
        }
        for (_, edge), part in results.routing.groupby(["scenario", "edge"], sort=False)
    ]
    yield texts.section("routing", texts.grid("routing", edges))


def _of(table: pd.DataFrame, scenario: Scenario) -> pd.DataFrame:
    return table[table["scenario"] == scenario.name]


def _beside(table: pd.DataFrame, value: str, engines: tuple[str, ...]) -> tuple[pd.DataFrame, str]:
    """Set what was measured beside what engines predict, times in ms; and the engines' columns."""
    key = "broker" if value == "per_s" else "publisher"
    scale, digits = {"latency_s": (1e3, 2), "on_time": (1.0, 3)}.get(value, (1.0, 2))
    is_measured = table["engine"] == "measured"
    measured = table[is_measured].groupby(key)[value]
    predicted = scale * table[~is_measured].pivot(index=key, columns="engine", values=value)
    texts = [
        interval_text(measured.get_group(name).tolist(), digits, scale) for name in predicted.index
    ]
    columns = "".join(f" | {engine} = {{{engine}:.{digits}f}}" for engine in engines)
    return predicted.assign(measured=texts).reset_index(), columns


def _delay_laws(texts: Texts, results: RealResults) -> Iterator[Curves]:
    for name, reality in results.realities.items():
        assert reality.simulated is not None
        outcomes = {"prediction": reality.predicted, "simulation": reality.simulated}
        outcomes |= {f"run {n}": each.measured for n, each in enumerate(reality.repetitions, 1)}
        drawn = {}
        for label, outcome in outcomes.items():
            mine = outcome.delays[outcome.delays["subscriber"] == SUBSCRIBER]
            drawn[label] = line(mine["delay_s"], mine["arrived"])
        yield texts.curves("delays", drawn, scenario=name)


def _findings(texts: Texts, results: RealResults) -> Iterator[Finding]:
    for scenario in SCENARIOS:
        reality = results.realities[scenario.name]
        off = _of(results.routing, scenario)["off"].abs()
        beyond = int((off > MOST_ERRORS).sum())
        chance = 2.0 * float(stats.norm.sf(MOST_ERRORS)) * len(off)
        counts = {"beyond": beyond, "edges": len(off), "chance": chance, "largest": off.max()}
        yield texts.claim("routing", beyond == 0, case=scenario.name, **counts)
        yield from _findings_together(texts, reality, scenario)
        for number, each in enumerate(reality.repetitions, 1):
            yield from _run_findings(texts, each, f"{scenario.name}, run {number}")


def _findings_together(texts: Texts, reality: Reality, scenario: Scenario) -> Iterator[Finding]:
    case = f"{scenario.name}, load {reality.load:.2f}, {runs_together(reality)}"
    none = nothing_believed(reality)
    latency = (
        f"off by {reality.latency_error:.1%} (mean over subscribers; largest "
        f"{reality.largest_latency_error:.1%})"
    )
    near = None if none else reality.latency_error <= MOST_LATENCY
    yield texts.claim("real latencies", near, case=case, most=MOST_LATENCY, off=none or latency)
    share = (
        f"off by {reality.share_error:.4f} (mean over subscribers; largest "
        f"{reality.largest_share_error:.4f})"
    )
    near = None if none else reality.share_error <= MOST_SHARE
    yield texts.claim("real shares", near, case=case, most=MOST_SHARE, off=none or share)


def _run_findings(texts: Texts, one: Repetition, case: str) -> Iterator[Finding]:
    summary = one.against_predicted.summary
    late = f"; {late_text(one)}"
    late += "".join(f"; NOT RELIABLE: {doubt}" for doubt in one.doubts)
    latency = (
        f"off by {one.latency_error:.1%} (mean over subscribers; by chance alone such runs are off "
        f"by {one.latency_by_chance:.1%}){late}{why_latency(one)}"
    )
    near = None if one.doubts else one.latency_error <= MOST_LATENCY
    yield texts.claim("real latencies", near, case=case, most=MOST_LATENCY, off=latency)
    share = (
        f"off by {summary.mean_absolute:.4f} (mean over subscribers, largest "
        f"{summary.maximum:.4f}; by chance alone such runs are off by {one.share_by_chance:.4f})"
        f"{late}{why_shares(one)}"
    )
    near = None if one.doubts else summary.mean_absolute <= MOST_SHARE
    yield texts.claim("real shares", near, case=case, most=MOST_SHARE, off=share)
