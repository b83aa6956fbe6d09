"""The case study as a study: the paper's two tables with ours beside them, and what they show."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from studies.performance_methodology.case_study import (
    BROKERS,
    SCENARIOS,
    SERVICE_ALONE_S,
    SERVICE_S,
    Scenario,
)
from studies.performance_methodology.experiment import (
    AS_ASSUMED,
    ENGINES,
    LETTER,
    PUBLISHERS,
    TOGETHER,
    Plan,
    Results,
)
from studies.performance_methodology.shared_network import (
    ALONE,
    BUSY,
    BY_CONTENT,
    OPERATIONAL,
)
from tidings.model.study import Finding, Grid, Section, Study

Floats = NDArray[np.float64]

PAPER = {
    "system": "hierarchical, 15 brokers, 8 publishers, 16 subscribers; SIENA, Gigabit LAN",
    "workload": "dissemination of requests for quotes; two of several scenarios are shown",
    "model": "queueing Petri net without networks, solved by SimQPN in less than two minutes",
    "results": "throughput of every broker; latency to one randomly selected subscriber",
}
ACCURATE, AGREE = 0.10, 0.03  # how claims are read, see the last of the choices
CHOICES = (
    "Not stated: the topology (its figure is lost to us). The throughputs fit a binary tree "
    "numbered as a heap, a publisher at each leaf, one rate for all (that of the root over 8).",
    "Not stated: routing probabilities. Up always, down each other edge with the probability that "
    "Table 1 implies; it meets Table 1's model column exactly, though other routings would too. So "
    "throughputs test routing, not queueing.",
    f"Not stated: service times. One for all brokers, {1e3 * SERVICE_S:g} ms, exponential, first "
    "come first served, is what fits Table 2 best.",
    "Not stated: what a latency ends with. Brokers alone leave the latencies far too short; one "
    "more stage like a broker for each delivery explains them. It is a node 'delivery' here.",
    "Not stated: which subscriber. Its own leaf's publisher is the nearest: leaf 8 in scenario 1, "
    "leaf 10 in scenario 2.",
    "The event simulator routes by contents and filters: contents carry a decision for every edge, "
    "and every broker has a subscriber who wants what should come there.",
    "The measured side is the paper's; a real broker network is another experiment.",
    f"'Pretty accurate' is read as: no latency further off than {100 * ACCURATE:g} %; "
    f"'approximates' and 'equivalent' as: a root mean square of at most {100 * AGREE:g} %.",
)


def study(results: Results) -> Study:
    """The case study to be shown."""
    return Study(
        paper="performance-methodology",
        title="Performance methodology: the paper's case study, solved again",
        summary=_summary(results.plan),
        settings=PAPER,
        choices=CHOICES,
        findings=tuple(_findings(results)),
        sections=(
            _throughputs(results),
            _latencies(results),
            _assumptions(results),
            _shared_network(results),
        ),
        tables={
            "throughputs": results.throughputs,
            "latencies": results.latencies,
            "variants": results.variants,
            "engine_errors": results.engine_errors,
            "shared_network": results.shared_errors,
        },
        plan=results.plan.to_document(),
    )


def _summary(plan: Plan) -> str:
    return (
        "Fifteen brokers in two load scenarios by operational analysis, by a queueing Petri net "
        f"(to {100 * plan.precision:g} % of every residence time) and by the event simulator "
        f"({plan.replications} runs of {plan.events:,} events each)."
    )


def _by_engine(table: pd.DataFrame, scenario: Scenario, key: str, value: str) -> pd.DataFrame:
    rows = table[table["scenario"] == scenario.name]
    return rows.pivot(index=key, columns="engine", values=value)


def _throughputs(results: Results) -> Section:
    grids = []
    for scenario in SCENARIOS:
        ours = _by_engine(results.throughputs, scenario, "broker", "per_s")
        rows = tuple(
            (
                str(broker),
                f"{scenario.throughput_per_s[broker - 1]:.2f}",
                f"{scenario.throughput_measured_per_s[broker - 1]:.2f}",
                *(f"{ours[engine][broker]:.2f}" for engine in ENGINES),
            )
            for broker in BROKERS
        )
        grids.append(
            Grid(
                title=f"Table 1: broker throughput in events/s, {scenario.name}",
                columns=("broker", "model", "measured", *ENGINES),
                rows=rows,
                caption="model, measured: the paper's",
            )
        )
    return Section(
        title="Throughput",
        words="The routing was chosen to meet the paper's model, so operational analysis does; the "
        "net and the simulator show that their routing is that of the equations.",
        exhibits=tuple(grids),
    )


def _latencies(results: Results) -> Section:
    grids = []
    names = (*ENGINES, LETTER)
    for scenario in SCENARIOS:
        ours = _by_engine(results.latencies, scenario, "publisher", "latency_s")
        errors = _by_engine(results.latencies, scenario, "publisher", "latency_se_s")
        rows = []
        for at, publisher in enumerate(PUBLISHERS):
            found = (_ms(ours[name][publisher], errors[name][publisher]) for name in names)
            model, measured = scenario.latency_s[at], scenario.latency_measured_s[at]
            rows.append((publisher, _ms(model), _ms(measured), *found))
        paper, actual = np.array(scenario.latency_s), np.array(scenario.latency_measured_s)
        own = [_rms(ours[name].loc[list(PUBLISHERS)].to_numpy(), paper) for name in names]
        off = map(_percent, (_rms(actual, paper), *own))
        rows.append(("off from model", "", *off))
        grids.append(
            Grid(
                title=f"Table 2: delivery latency in ms to a subscriber at leaf "
                f"{scenario.subscriber}, {scenario.name}",
                columns=("publisher", "model", "measured", *names),
                rows=tuple(rows),
                caption="model, measured: the paper's; last row: root mean square of relative "
                "differences from its model",
            )
        )
    return Section(
        title="Delivery latency",
        words=f"± is a standard error. '{LETTER}' has the brokers' responses and nothing else, "
        f"with the service time that then fits best, {1e3 * SERVICE_ALONE_S:g} ms.",
        exhibits=tuple(grids),
    )


def _assumptions(results: Results) -> Section:
    found = results.engine_errors
    rows = tuple(
        (
            row.scenario,
            row.variant,
            row.engine,
            _percent(row.mean, signed=True),
            _percent(row.root_mean_square),
            _percent(row.worst, signed=True),
            _percent(row.noise),
        )
        for row in found.itertuples()
    )
    return Section(
        title="Where the assumptions do not hold",
        words="Latencies of operational analysis and of the net against the event simulator, which "
        "knows contents, filters and every law. 'petri net' decides about each next broker by "
        "itself, as the paper's firing weights do; 'joint' has the sets that occur. In a tree that "
        "is the same for every single queue: no two copies of an event ever meet again.",
        exhibits=(
            Grid(
                title="How far latencies are from those of the event simulator",
                columns=("scenario", "what differs", "engine", "mean", "rms", "worst", "noise"),
                rows=rows,
                names=3,
                caption="noise: standard error of the simulated latency, as a share of it",
            ),
        ),
    )


def _shared_network(results: Results) -> Section:
    rows = tuple(
        (
            row.scenario,
            row.decisions,
            row.engine,
            _ms(row.wait_s, row.wait_se_s),
            _percent(row.wait_off, signed=True),
            _ms(row.latency_s, row.latency_se_s),
            _percent(row.latency_off, signed=True),
        )
        for row in results.shared_errors.itertuples()
    )
    return Section(
        title="Where copies meet again: one network for all",
        words=f"The same brokers over one half-duplex network, busy {100 * BUSY:g} % of the time. "
        "Copies that a broker makes of one event are sent at once and wait for each other, which "
        f"streams taken as independent do not. '{ALONE}' is right where next brokers are decided "
        f"about one by one; where these decisions hang together, '{BY_CONTENT}' is, in which "
        "nothing is left to chance. The others are held against them.",
        exhibits=(
            Grid(
                title="Wait for the shared network and delivery latency, in ms",
                columns=("scenario", "edges", "engine", "wait", "off", "latency", "off"),
                rows=rows,
                names=3,
                caption="± is a standard error",
            ),
        ),
    )


def _findings(results: Results) -> Iterator[Finding]:
    for scenario in SCENARIOS:
        paper, measured = np.array(scenario.latency_s), np.array(scenario.latency_measured_s)
        rates = np.array(scenario.throughput_per_s) / scenario.throughput_measured_per_s - 1.0
        worst = float(np.abs(paper / measured - 1.0).max())
        ours = _by_engine(results.latencies, scenario, "publisher", "latency_s")
        net = ours["petri net"].loc[list(PUBLISHERS)].to_numpy()
        yield Finding(
            section="3",
            says="The predictions are pretty accurate and reflect the real system behaviour.",
            case=scenario.name,
            found=f"the paper's own model is off from its measurements by up to {_percent(worst)} "
            f"in latency and {_percent(float(np.abs(rates).max()))} in throughput; our net by up "
            f"to {_percent(float(np.abs(net / measured - 1.0).max()))} in latency",
            holds=worst <= ACCURATE,
        )
        rows = results.engine_errors
        rows = rows[(rows["scenario"] == scenario.name) & (rows["engine"] == "operational")]
        by_variant = rows.set_index("variant")["root_mean_square"]
        assumed = float(by_variant[AS_ASSUMED.name])
        others = by_variant.drop(AS_ASSUMED.name)
        yield Finding(
            section="2.3",
            says="Operational analysis approximates the mean delivery latency.",
            case=scenario.name,
            found=f"rms {_percent(assumed)} from the simulator where publishing is Poisson and "
            f"service exponential; up to {_percent(float(others.max()))} ({others.idxmax()})",
            holds=assumed <= AGREE,
        )
        net_errors = results.engine_errors
        net_errors = net_errors[
            (net_errors["scenario"] == scenario.name)
            & (net_errors["variant"] == TOGETHER.name)
            & (net_errors["engine"] == "petri net")
        ]
        for off in net_errors["root_mean_square"]:
            yield Finding(
                section="2.4",
                says="Independent firing weights enforce equivalent resource consumption.",
                case=scenario.name,
                found="throughputs are the same; where edges are decided together, latencies are "
                f"{_percent(off)} (rms) from the simulator's",
                holds=off <= AGREE,
            )
        yield from _shared_findings(results, scenario)


def _shared_findings(results: Results, scenario: Scenario) -> Iterator[Finding]:
    rows = results.shared_errors
    rows = rows[(rows["scenario"] == scenario.name) & (rows["decisions"] == "together")]
    off = rows.set_index("engine")["wait_off"]
    yield Finding(
        section="2.3",
        says="Queues can be looked at one by one, as if arrivals were independent.",
        case=f"{scenario.name}, one shared network",
        found=f"operational analysis is {_percent(float(off[OPERATIONAL]), signed=True)} off in "
        f"the wait for it, a net that decides about edges one by one "
        f"{_percent(float(off[ALONE]), signed=True)}",
        holds=abs(float(off[OPERATIONAL])) <= AGREE,
    )


def _rms(ours: Floats, theirs: Floats) -> float:
    return float(np.sqrt(np.mean((ours / theirs - 1.0) ** 2)))


def _ms(value_s: float, se_s: float = 0.0) -> str:
    return f"{1e3 * value_s:.2f} ± {1e3 * se_s:.2f}" if se_s > 0 else f"{1e3 * value_s:.2f}"


def _percent(share: float, *, signed: bool = False) -> str:
    return f"{100 * share:+.1f} %" if signed else f"{100 * share:.1f} %"
