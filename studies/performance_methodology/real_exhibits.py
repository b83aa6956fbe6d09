"""The case study on real brokers as a study: the paper's two tables, deadlines, and what holds."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from scipy import stats

from studies.performance_methodology.case_study import SCENARIOS, Scenario
from studies.performance_methodology.exhibits import PAPER
from studies.performance_methodology.real import (
    BY_LAWS,
    BY_MEANS,
    SUBSCRIBER,
    RealPlan,
    RealResults,
)
from tidings.model.study import Curves, Finding, Grid, Section, Study
from tidings.testbed.calibrating import CALIBRATION_LOAD
from tidings.testbed.comparing import MOST_LATENCY, MOST_SHARE, Reality, Repetition
from tidings.testbed.reality_study import (
    interval_text,
    late_text,
    nothing_believed,
    runs_together,
    why_latency,
    why_shares,
)

ENGINES = (*BY_MEANS, *BY_LAWS)
MOST_ERRORS = 3.0  # of a routing probability, in standard errors
_LATENCIES = f"Mean latencies are within {MOST_LATENCY:.0%} of the prediction."
_SHARES = f"On-time shares are within {MOST_SHARE} of the prediction."


def real_study(results: RealResults) -> Study:
    """The case study on real brokers, to be shown."""
    plan = results.plan
    return Study(
        paper="performance-methodology",
        title="Performance methodology: the case study on real brokers",
        summary=f"Fifteen nats-server processes of one machine in two load scenarios, all times "
        f"{plan.factor:g} times the paper's; {_repetitions(results)} runs of each, predicted from "
        f"a separate run at a load of {CALIBRATION_LOAD:g}.",
        settings=PAPER,
        choices=_choices(plan),
        findings=tuple(_findings(results)),
        sections=(
            _throughputs(results),
            _latencies(results),
            _on_time(results),
            _delay_laws(results),
            _routing(results),
        ),
        tables={
            "throughputs": results.throughputs,
            "latencies": results.latencies,
            "routing": results.routing,
        },
        plan=plan.to_document(),
    )


def _repetitions(results: RealResults) -> int:
    return min(len(each.repetitions) for each in results.realities.values())


def _choices(plan: RealPlan) -> tuple[str, ...]:
    return (
        "Brokers are nats-server processes joined by leaf nodes; their service times are spent in "
        f"relays before them (exponential, {1e3 * plan.service_s:.3g} ms after scaling).",
        f"The root has a load of {plan.load:.2f} in scenario 1, and in proportion in scenario 2.",
        "One machine, one clock: no error of synchronisation, and all fifteen brokers share its "
        "processors. How late relays and timers are is measured in the calibration as part of "
        "every link's delay, a stage of the prediction; nothing is subtracted.",
        "Contents carry one number that decides about all edges together; every edge by itself is "
        "used as often as in the paper's Table 1.",
        f"Deadlines are not the paper's: events are of use for {1e3 * plan.deadline_s:g} ms, "
        f"{1e3 * plan.scaled_deadline_s:g} ms after scaling.",
        "Measured numbers are means over the repetitions that are believed; ± is half a "
        "confidence interval (95 %, Student's t over them).",
    )


# ---- tables ------------------------------------------------------------------------------------


def _grid(
    table: pd.DataFrame, title: str, key: str, value: str, engines: tuple[str, ...], digits: int = 2
) -> Grid:
    scale = 1e3 if value.endswith("_s") and value != "per_s" else 1.0
    measured = table[table["engine"] == "measured"].groupby(key)[value]
    predicted = table[table["engine"] != "measured"].pivot(
        index=key, columns="engine", values=value
    )
    rows = tuple(
        (
            str(name),
            interval_text(measured.get_group(name).tolist(), digits, scale),
            *(f"{scale * float(predicted[engine][name]):.{digits}f}" for engine in engines),
        )
        for name in predicted.index
    )
    return Grid(title=title, columns=(key, "measured", *engines), rows=rows)


def _of(table: pd.DataFrame, scenario: Scenario) -> pd.DataFrame:
    return table[table["scenario"] == scenario.name]


def _throughputs(results: RealResults) -> Section:
    return Section(
        title="Throughput",
        words="In a stable network throughput only repeats the routing: that it agrees proves "
        "nothing about queueing.",
        exhibits=tuple(
            _grid(
                _of(results.throughputs, scenario),
                f"Table 1: broker throughput in events/s, {scenario.name}",
                "broker",
                "per_s",
                ENGINES,
            )
            for scenario in SCENARIOS
        ),
    )


def _latencies(results: RealResults) -> Section:
    return Section(
        title="Delivery latency",
        exhibits=tuple(
            _grid(
                _of(results.latencies, scenario),
                f"Table 2: delivery latency in ms to a subscriber at leaf {scenario.subscriber}, "
                f"{scenario.name}",
                "publisher",
                "latency_s",
                ENGINES,
            )
            for scenario in SCENARIOS
        ),
    )


def _on_time(results: RealResults) -> Section:
    deadline_ms = 1e3 * results.plan.scaled_deadline_s
    return Section(
        title="On time",
        words="What means cannot tell: the share of events that arrive before they expire.",
        exhibits=tuple(
            _grid(
                _of(results.latencies, scenario),
                f"Share within {deadline_ms:g} ms to the subscriber at leaf {scenario.subscriber}, "
                f"{scenario.name}",
                "publisher",
                "on_time",
                BY_LAWS,
                digits=3,
            )
            for scenario in SCENARIOS
        ),
    )


def _delay_laws(results: RealResults) -> Section:
    figures = []
    for name, found in results.realities.items():
        assert found.simulated is not None
        outcomes = {"prediction": found.predicted, "simulation": found.simulated}
        outcomes |= {f"run {n}": each.measured for n, each in enumerate(found.repetitions, 1)}
        lines = {}
        for label, outcome in outcomes.items():
            mine = outcome.delays[outcome.delays["subscriber"] == SUBSCRIBER]
            points = zip(mine["delay_s"], mine["arrived"], strict=True)
            lines[label] = tuple((float(x), float(y)) for x, y in points)
        figures.append(
            Curves(
                title=f"Delay to the subscriber of Table 2, {name}",
                lines=lines,
                x_label="delay in s",
                y_label="share that has arrived",
            )
        )
    return Section(title="The whole law of delays", exhibits=tuple(figures))


def _routing(results: RealResults) -> Section:
    table = results.routing
    rows = tuple(
        (
            str(edge),
            f"{part['predicted'].iloc[0]:.4f}",
            " ".join(f"{value:.4f}" for value in part["measured"]),
            " ".join(f"{value:+.1f}" for value in part["off"]),
        )
        for (_, edge), part in table.groupby(["scenario", "edge"], sort=False)
    )
    return Section(
        title="Routing",
        words="How often an event that could go down an edge does, by run, in both scenarios: "
        "counts, whatever the times, so of all runs.",
        exhibits=(
            Grid(
                title="Probabilities of going down",
                columns=("edge", "predicted", "measured", "off, in standard errors"),
                rows=rows,
            ),
        ),
    )


# ---- what holds --------------------------------------------------------------------------------


def _findings(results: RealResults) -> Iterator[Finding]:
    for scenario in SCENARIOS:
        reality = results.realities[scenario.name]
        yield _routing_finding(_of(results.routing, scenario), scenario)
        yield from _findings_together(reality, f"{scenario.name}, load {reality.load:.2f}")
        for number, each in enumerate(reality.repetitions, 1):
            yield from _run_findings(each, f"{scenario.name}, run {number}")


def _routing_finding(table: pd.DataFrame, scenario: Scenario) -> Finding:
    off = table["off"].abs()
    beyond = int((off > MOST_ERRORS).sum())
    chance = 2.0 * float(stats.norm.sf(MOST_ERRORS)) * len(off)
    return Finding(
        section="2.2",
        says=f"Routing probabilities are within {MOST_ERRORS:g} standard errors.",
        case=scenario.name,
        found=f"{beyond} of {len(off)} are beyond (chance alone: {chance:.1f}); the largest is "
        f"{float(off.max()):.1f} off",
        holds=beyond == 0,
    )


def _findings_together(reality: Reality, case: str) -> Iterator[Finding]:
    case, none = f"{case}, {runs_together(reality)}", nothing_believed(reality)
    yield Finding(
        section="3",
        says=_LATENCIES,
        case=case,
        found=none
        or f"off by {reality.latency_error:.1%} (mean over subscribers; largest "
        f"{reality.largest_latency_error:.1%})",
        holds=None if none else reality.latency_error <= MOST_LATENCY,
    )
    yield Finding(
        section="–",
        says=_SHARES,
        case=case,
        found=none
        or f"off by {reality.share_error:.4f} (mean over subscribers; largest "
        f"{reality.largest_share_error:.4f})",
        holds=None if none else reality.share_error <= MOST_SHARE,
    )


def _run_findings(one: Repetition, case: str) -> Iterator[Finding]:
    summary = one.against_predicted.summary
    late = f"; {late_text(one)}"
    late += "".join(f"; NOT TO BE BELIEVED: {doubt}" for doubt in one.doubts)
    yield Finding(
        section="3",
        says=_LATENCIES,
        case=case,
        found=f"off by {one.latency_error:.1%} (mean over subscribers; by chance alone such runs "
        f"are off by {one.latency_by_chance:.1%}){late}{why_latency(one)}",
        holds=None if one.doubts else one.latency_error <= MOST_LATENCY,
    )
    yield Finding(
        section="–",
        says=_SHARES,
        case=case,
        found=f"off by {summary.mean_absolute:.4f} (mean over subscribers, largest "
        f"{summary.maximum:.4f}; by chance alone such runs are off by {one.share_by_chance:.4f})"
        f"{late}{why_shares(one)}",
        holds=None if one.doubts else summary.mean_absolute <= MOST_SHARE,
    )
