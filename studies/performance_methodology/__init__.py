"""The case study of the performance-methodology paper, solved by three engines side by side.

Operational analysis, the queueing Petri net and the event simulator all get the same fifteen
brokers. Once as the paper's formulas assume (Poisson, exponential, every next broker decided by
itself), where they should agree; and then with what they do not assume.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from studies.harness import Experiment, Texts
from studies.performance_methodology.case_study import (
    BROKERS,
    LEAVES,
    SCENARIOS,
    SERVICE_ALONE_S,
    SERVICE_S,
    Scenario,
    case_workload,
)
from studies.performance_methodology.shared_network import (
    ALONE,
    OPERATIONAL,
    TRUTHS,
    shared_network,
)
from studies.performance_methodology.systems import case_system
from studies.settings.performance_methodology import Settings
from tidings.model.arrays import Floats
from tidings.model.laws import Deterministic, Exponential, Gamma, Law
from tidings.model.progress import Progress
from tidings.model.study import Finding, Section, Study
from tidings.model.system_workload import workload_of
from tidings.model.workload import Workload
from tidings.operational.analysing import analyse
from tidings.petri.generating import generate_net
from tidings.petri.simulating import simulate_net
from tidings.simulation.run import simulate

PUBLISHERS = [f"p{place}" for place in range(1, len(LEAVES) + 1)]
LETTER = "eq. 11 alone"
ACCURATE, AGREE = 0.10, 0.03  # how claims are read, see the last of the choices
TEXTS = Texts("performance-methodology")


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
class Tables:
    """What came out: every number, long."""

    throughputs: pd.DataFrame  # scenario, broker, engine, per_s
    latencies: pd.DataFrame  # scenario, publisher, engine, latency_s, latency_se_s
    variants: pd.DataFrame  # scenario, variant, engine, publisher, latency_s, latency_se_s
    engine_errors: pd.DataFrame  # of each engine against the event simulator, by variant
    shared_network: pd.DataFrame  # wait and latency, and how far from those of the right net

    def of(self, name: str, scenario: Scenario) -> pd.DataFrame:
        """Find the rows of a table that are of a scenario."""
        table: pd.DataFrame = getattr(self, name)
        return table[table["scenario"] == scenario.name]


def solve_all(plan: dict[str, Any], progress: Progress) -> Tables:
    """Run the case study by every engine."""
    throughputs, latencies, variants = [], [], []
    shared: list[dict[str, Any]] = []
    for scenario in SCENARIOS:
        for variant in VARIANTS:
            progress(f"{scenario.name}: {variant.name}")
            rates, delays = _solve(plan, scenario, variant)
            variants.append(delays.assign(scenario=scenario.name, variant=variant.name))
            if variant is AS_ASSUMED:
                throughputs.append(rates.assign(scenario=scenario.name))
                both = pd.concat([delays, _letter(scenario)], ignore_index=True)
                latencies.append(both.assign(scenario=scenario.name))
        progress(f"{scenario.name}: one shared network")
        replications = 2 * plan["replications"]
        shared += shared_network(scenario, seed=plan["seed"], replications=replications)
    by_variant = pd.concat(variants, ignore_index=True)
    return Tables(
        throughputs=pd.concat(throughputs, ignore_index=True),
        latencies=pd.concat(latencies, ignore_index=True),
        variants=by_variant,
        engine_errors=_engine_errors(by_variant),
        shared_network=_shared_errors(pd.DataFrame(shared)),
    )


def _shared_errors(shared: pd.DataFrame) -> pd.DataFrame:
    """Compute how far wait and latency are from those of the right net, as shares of them."""
    right = shared["engine"] == shared["decisions"].map(TRUTHS)
    truth = shared[right].drop(columns="engine")
    both = shared.merge(truth, on=["scenario", "decisions"], suffixes=("", "_true"))
    return shared.assign(
        wait_off=both["wait_s"] / both["wait_s_true"] - 1.0,
        latency_off=both["latency_s"] / both["latency_s_true"] - 1.0,
    )


def _engine_errors(variants: pd.DataFrame) -> pd.DataFrame:
    """Compute errors of latencies against the event simulator, as shares of them."""
    truth = variants[variants["engine"] == "simulation"]
    both = variants.merge(
        truth, on=["scenario", "variant", "publisher"], suffixes=("", "_true")
    ).query("engine != 'simulation'")
    both = both.assign(
        off=both["latency_s"] / both["latency_s_true"] - 1.0,
        noise=both["latency_se_s_true"] / both["latency_s_true"],
    )
    grouped = both.groupby(["scenario", "variant", "engine"], sort=False)
    return grouped.agg(
        root_mean_square=("off", lambda off: float(np.sqrt(np.mean(off**2)))),
        mean=("off", "mean"),
        worst=("off", lambda off: float(off.iloc[int(off.abs().argmax())])),
        noise=("noise", "mean"),
    ).reset_index()


def _solve(
    plan: dict[str, Any], scenario: Scenario, variant: Variant
) -> tuple[pd.DataFrame, pd.DataFrame]:
    service, every = variant.service(SERVICE_S), variant.every(1.0 / scenario.rate_per_s)
    load = case_workload(scenario, service=service, every=every)
    system = case_system(scenario, decisions=variant.decisions, service=service, every=every)
    parts = [_operational(load), _petri(plan, load, "petri net")]
    if variant.decisions == "together":  # what is known of sets of edges helps the net
        parts.append(_petri(plan, workload_of(system), "petri net, joint"))
    run = {name: plan[name] for name in ("seed", "replications", "events")}
    outcome = simulate(system, **run)
    pairs = outcome.pairs[outcome.pairs["subscriber"] == "s"].set_index("publisher")
    arrivals = outcome.brokers.set_index("broker")["arrivals_per_s"]
    simulated = _long(
        "simulation",
        [float(arrivals[f"b{broker}"]) for broker in BROKERS],
        pairs.loc[PUBLISHERS, ["delay_mean_s", "delay_mean_se_s"]].to_numpy(),
    )
    rates, delays = zip(*parts, simulated, strict=True)
    return pd.concat(rates, ignore_index=True), pd.concat(delays, ignore_index=True)


def _long(engine: str, rates: list[float], latencies: Floats) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Put an engine's throughputs, and its latencies with standard errors, into rows."""
    delays = pd.DataFrame(latencies, columns=["latency_s", "latency_se_s"], dtype=np.float64)
    delays.insert(0, "publisher", PUBLISHERS)
    delays.insert(0, "engine", engine)
    return pd.DataFrame({"engine": engine, "broker": list(BROKERS), "per_s": rates}), delays


def _operational(load: Workload) -> tuple[pd.DataFrame, pd.DataFrame]:
    analysis = analyse(load)
    rows = analysis.deliveries
    to_end = rows[rows["broker"] == "delivery"].set_index("publisher")
    latencies = to_end.loc[PUBLISHERS, "latency_mean_s"].to_numpy()
    rates = analysis.rates_per_s.sum(axis=0)[: len(BROKERS)].tolist()
    return _long("operational", rates, np.column_stack([latencies, 0.0 * latencies]))


def _petri(plan: dict[str, Any], load: Workload, name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Simulate the net; the latency to the subscriber is the age of tokens in the last place."""
    solved = simulate_net(
        generate_net(load), seed=plan["seed"], precision=plan["precision"], quantiles=False
    )
    per_place = solved.places.set_index("place")["throughput_per_s"]
    ages = solved.cells[solved.cells["place"] == "delivery"].set_index("colour")
    rates = [float(per_place[f"b{broker}"]) for broker in BROKERS]
    return _long(name, rates, ages.loc[PUBLISHERS, ["age_mean_s", "age_mean_se_s"]].to_numpy())


def _letter(scenario: Scenario) -> pd.DataFrame:
    """Follow eq. 11 to the letter: brokers' responses and nothing else, by the best service."""
    service = Exponential(mean_s=SERVICE_ALONE_S)
    rows = analyse(case_workload(scenario, service=service, delivering=False)).deliveries
    leaf = rows[rows["broker"] == f"b{scenario.subscriber}"]
    return pd.DataFrame(
        {
            "engine": LETTER,
            "publisher": leaf["publisher"].to_numpy(),
            "latency_s": leaf["latency_mean_s"].to_numpy(),
            "latency_se_s": 0.0,
        }
    )


def run(settings: Settings, progress: Progress) -> Study:
    """Solve the case study by the three engines, or run it on real brokers."""
    if settings.real:
        # The client library comes with an extra, so it is loaded late.
        from studies.performance_methodology.real import run_for_real

        return run_for_real(TEXTS, settings, progress)
    plan = settings.plan
    tables = solve_all(plan, progress)
    return TEXTS.study(
        summary="Fifteen brokers in two load scenarios by operational analysis, by a queueing "
        f"Petri net (to {100 * plan['precision']:g} % of every residence time) and by the event "
        f"simulator ({plan['replications']} runs of {plan['events']:,} events each).",
        findings=(each for scenario in SCENARIOS for each in _findings(tables, scenario)),
        sections=(
            _throughputs(tables),
            _latencies(tables),
            _assumptions(tables),
            _shared_network(tables),
        ),
        tables={each.name: getattr(tables, each.name) for each in fields(tables)},
        plan=plan,
    )


def _throughputs(tables: Tables) -> Section:
    grids = []
    for scenario in SCENARIOS:
        long = tables.of("throughputs", scenario)
        ours = long.pivot(index="broker", columns="engine", values="per_s")
        rows = ours.assign(
            model=scenario.throughput_per_s, measured=scenario.throughput_measured_per_s
        )
        grids.append(TEXTS.grid("throughput", rows.reset_index(), scenario=scenario.name))
    return TEXTS.section("throughput", *grids)


def _latencies(tables: Tables) -> Section:
    grids = []
    for scenario in SCENARIOS:
        long = tables.of("latencies", scenario)
        texts = [_ms(*pair) for pair in zip(long["latency_s"], long["latency_se_s"], strict=True)]
        ours = long.assign(text=texts).pivot(index="publisher", columns="engine", values="text")
        means = long.pivot(index="publisher", columns="engine", values="latency_s")
        shown = ours.assign(
            model=[_ms(each) for each in scenario.latency_s],
            measured=[_ms(each) for each in scenario.latency_measured_s],
        ).loc[PUBLISHERS]
        means["measured"] = scenario.latency_measured_s
        off = {name: f"{100 * _rms(means[name], scenario):.1f} %" for name in means}
        last = {"publisher": "off from model", "model": "", **off}
        rows = [*shown.reset_index().to_dict("records"), last]
        leaf, name = scenario.subscriber, scenario.name
        grids.append(TEXTS.grid("latency", rows, leaf=leaf, scenario=name))
    return TEXTS.section("latency", *grids)


def _assumptions(tables: Tables) -> Section:
    table = tables.engine_errors
    shown = 100 * table[["mean", "root_mean_square", "worst", "noise"]]
    return TEXTS.section("assumptions", TEXTS.grid("assumptions", table.assign(**shown)))


def _shared_network(tables: Tables) -> Section:
    rows = [
        {
            **row,
            "wait": _ms(row["wait_s"], row["wait_se_s"]),
            "latency": _ms(row["latency_s"], row["latency_se_s"]),
            "wait_off": 100 * row["wait_off"],
            "latency_off": 100 * row["latency_off"],
        }
        for row in tables.shared_network.to_dict("records")
    ]
    return TEXTS.section("shared network", TEXTS.grid("shared network", rows))


def _findings(tables: Tables, scenario: Scenario) -> Iterator[Finding]:
    case = scenario.name
    measured = np.array(scenario.latency_measured_s)
    rates = np.array(scenario.throughput_per_s) / scenario.throughput_measured_per_s - 1.0
    worst = float(np.abs(np.array(scenario.latency_s) / measured - 1.0).max())
    ours = tables.of("latencies", scenario).set_index(["engine", "publisher"])["latency_s"]
    net = np.abs(ours["petri net"].loc[PUBLISHERS].to_numpy() / measured - 1.0).max()
    of_paper = {"latency": 100 * worst, "throughput": 100 * np.abs(rates).max(), "net": 100 * net}
    yield TEXTS.claim("accurate", worst <= ACCURATE, case=case, **of_paper)
    errors = tables.of("engine_errors", scenario).set_index(["engine", "variant"])
    off = errors["root_mean_square"]
    assumed = float(off["operational", AS_ASSUMED.name])
    others = off["operational"].drop(AS_ASSUMED.name)
    how_far = {"assumed": 100 * assumed, "most": 100 * others.max(), "worst": others.idxmax()}
    yield TEXTS.claim("operational", assumed <= AGREE, case=case, **how_far)
    if ("petri net", TOGETHER.name) in off.index:
        together = float(off["petri net", TOGETHER.name])
        yield TEXTS.claim("weights", together <= AGREE, case=case, off=100 * together)
    rows = tables.of("shared_network", scenario)
    wait = rows[rows["decisions"] == "together"].set_index("engine")["wait_off"]
    waits = {"operational": 100 * wait[OPERATIONAL], "alone": 100 * wait[ALONE]}
    yield TEXTS.claim("one by one", bool(abs(wait[OPERATIONAL]) <= AGREE), case=case, **waits)


def _rms(ours: pd.Series, scenario: Scenario) -> float:
    off = ours.loc[PUBLISHERS].to_numpy() / np.array(scenario.latency_s) - 1.0
    return float(np.sqrt(np.mean(off**2)))


def _ms(value_s: float, se_s: float = 0.0) -> str:
    return f"{1e3 * value_s:.2f} ± {1e3 * se_s:.2f}" if se_s > 0 else f"{1e3 * value_s:.2f}"


EXPERIMENT = Experiment(texts=TEXTS, settings=Settings, run=run)
