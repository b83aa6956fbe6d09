"""The mobile-peers experiments: response against rate, antennas, traces, and end-to-end times.

Each by theory and, unless no runs are asked for (NaN then), by simulation with its standard error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from studies.durations import SECONDS, goodness, longer_than
from studies.harness import Experiment, line, lines
from studies.mobile_onoff.antennas import (
    ANTENNAS,
    CENTRE,
    DAY_SLOTS,
    SLOT_S,
    antenna_rows,
    quietest_and_busiest,
    synthetic_rates,
)
from studies.mobile_onoff.centre import (
    exponential_centre,
    published_response_s,
    response_quantiles_s,
)
from studies.mobile_onoff.connectivity import PathFindings, examine, law_table, response_table
from studies.mobile_onoff.scenarios import CENTRE_COUNTS, MINUTE_S, TABLE_3, TEXTS, scenario_system
from studies.mobile_onoff.scenarios import SERVICE_S as PATH_SERVICE_S
from studies.mobile_onoff.simulating import (
    Effort,
    respond,
    respond_at_centre,
    respond_to_rates,
    trace_rows,
)
from studies.mobile_onoff.varying import VaryingResponse, varying_response
from studies.settings.mobile_onoff import Settings
from tidings.model.behaviour import DailyRates
from tidings.model.progress import Progress
from tidings.model.study import Curves, Finding, Section, Study
from tidings.prediction.predict import predict

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidings.characterisation.fit.durations import Durations

RATES_PER_S = tuple(float(rate) for rate in (0.05, *np.arange(0.25, 4.0, 0.25), 3.9))
SIMULATED_RATES_PER_S = (0.05, 1.0, 2.0, 3.0, 3.5, 3.9)
PERIODS_S = (20.0, 40.0, 60.0)
SERVICE_S = 0.125
METRO_PERIODS_S = {"metro path 1": (146.38, 96.0), "metro path 2": (155.88, 72.15)}
METRO_SERVICES_S = (0.125, 0.0625)
CASES = {f"T_ON = T_OFF = {t:g} s": (SERVICE_S, t, t) for t in PERIODS_S} | {
    f"{name}, D = {service_s:g} s": (service_s, *periods_s)
    for name, periods_s in METRO_PERIODS_S.items()
    for service_s in METRO_SERVICES_S
}
WITHIN = 1e-3  # what "comes out" means for a row
PAPER_WITHIN = 0.05


@dataclass(frozen=True, kw_only=True)
class Real:
    """What traces say: periods of every path, rates of antennas, and what was set aside."""

    paths: Sequence[PathFindings] = ()
    antennas: Mapping[str, DailyRates] | None = None
    aside: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Results:
    """What came out: response times by rate, and end to end."""

    by_rate: pd.DataFrame
    end_to_end: pd.DataFrame
    antennas: pd.DataFrame
    responses: Mapping[str, VaryingResponse]  # of the antennas, slot by slot
    by_law: pd.DataFrame | None = None  # responses on the paths
    traced: pd.DataFrame | None = None  # a short trace drawn from, and gone through in turn


def run(settings: Settings, progress: Progress) -> Study:
    """Work the experiments out, with real traces where there are any."""
    real = _from_traces(settings, progress)
    effort = Effort(runs=settings.runs, cycles=settings.cycles, seed=settings.seed)
    return study(work_out(effort, real, progress), effort, real)


def _from_traces(settings: Settings, progress: Progress) -> Real:
    """Read the traces; Spark is started only if there are any."""
    if settings.sessions is None and settings.activity is None:
        return Real()
    from studies.mobile_onoff.connections import sessions_place
    from tidings.cli import spark
    from tidings.traces.places import table_kind

    if settings.sessions is not None:
        sessions_place(settings.sessions)
    if settings.activity is not None:
        table_kind(settings.activity)
    progress("starting Spark")
    periods, rates = None, None
    aside: tuple[str, ...] = ()
    with spark.started(settings.master) as session:
        if settings.sessions is not None:
            progress("times connected and away")
            periods, aside = _periods(session, settings.sessions, settings.off_kbps)
        if settings.activity is not None:
            progress("rates of antennas")
            rates = _rates(session, settings.activity)
    return Real(
        paths=[] if periods is None else examine(periods, str(settings.sessions)),
        antennas=None if rates is None else quietest_and_busiest(rates),
        aside=aside,
    )


def _periods(
    session: SparkSession, place: Path, off_kbps: float
) -> tuple[dict[str, dict[bool, Durations]], tuple[str, ...]]:
    from studies.mobile_onoff.connections import read_connections
    from tidings.characterisation.count.periods import period_cells, session_periods
    from tidings.characterisation.fit.durations import durations_by_path
    from tidings.traces.actions import bring_here

    read = read_connections(session, place, off_kbps=off_kbps)
    cells = period_cells(session_periods(read.sessions, read.observed))
    periods = durations_by_path(bring_here(cells, str(place)))
    if read.set_aside is None:
        return periods, ()
    counted = bring_here(read.set_aside, str(place)).sort_values("reason")
    return periods, tuple(
        f"{place}: {row.rows:,} rows were set aside: {row.reason}." for row in counted.itertuples()
    )


def _rates(session: SparkSession, place: Path) -> dict[str, DailyRates]:
    from studies.mobile_onoff.activity import activity_rates, daily_rates, read_activity
    from tidings.traces.actions import bring_here

    per_slot = activity_rates(read_activity(session, place), SLOT_S)
    return daily_rates(bring_here(per_slot, str(place)), SLOT_S)


def work_out(effort: Effort, real: Real, progress: Progress) -> Results:
    """Work out all responses by theory, and simulate them as far as asked for."""
    progress("response against rate")
    by_rate = pd.DataFrame([row for case in CASES for row in _at_rates(case, effort)])
    end_to_end = pd.DataFrame(list(_table_3(effort, progress)))
    progress("antennas")
    rates = real.antennas or {each.name: synthetic_rates(each) for each in ANTENNAS}
    responses = {name: varying_response(CENTRE, each) for name, each in rates.items()}
    simulated = [respond_to_rates(CENTRE, each, effort).columns for each in rates.values()]
    by_antenna = pd.DataFrame(list(antenna_rows(rates, responses)))
    return Results(
        by_rate=by_rate,
        end_to_end=end_to_end,
        antennas=by_antenna.join(pd.DataFrame(simulated)),
        responses=responses,
        by_law=response_table(real.paths, effort) if real.paths else None,
        traced=pd.DataFrame(trace_rows(effort)) if effort.runs else None,
    )


def _at_rates(case: str, effort: Effort) -> Iterator[dict[str, Any]]:
    service_s, on_s, off_s = CASES[case]
    centre = exponential_centre(service_s, on_s, off_s)
    nothing = replace(effort, runs=0)
    for rate in RATES_PER_S:
        if centre.is_overloaded(rate):
            continue
        median_s, p95_s = response_quantiles_s(centre, rate, (0.5, 0.95)).tolist()
        asked = effort if rate in SIMULATED_RATES_PER_S else nothing
        yield {
            "case": case,
            "rate_per_s": rate,
            "load": centre.load(rate),
            "response_s": published_response_s(rate, service_s=service_s, on_s=on_s, off_s=off_s),
            "median_s": median_s,
            "p95_s": p95_s,
            **respond_at_centre(centre, rate, asked).columns,
        }


def _table_3(effort: Effort, progress: Progress) -> Iterator[dict[str, Any]]:
    for scenario in TABLE_3:
        peers = [
            exponential_centre(PATH_SERVICE_S, *periods_s)
            for periods_s in (scenario.publisher, scenario.subscriber)
            if periods_s[1] > 0.0
        ]
        for count in CENTRE_COUNTS:
            progress(f"{scenario.name}, {count} plain centres")
            system = scenario_system(scenario, count)
            published = predict(system, model="mm1", delays=False, causes=False, by="theory")
            poisson_s = float(published.subscribers["delay_mean_s"][0])
            simulated = respond(
                system,
                effort,
                cycle_s=max(each.on.mean_s + each.off.mean_s for each in peers),
                rate_per_s=scenario.rate_per_s,
                load=max(each.load(scenario.rate_per_s) for each in peers),
            )
            yield {
                "scenario": scenario.name,
                "rate_per_s": scenario.rate_per_s,
                "plain_centres": count,
                "paper_simulated_s": scenario.paper_simulated_s,
                "paper_analytic_s": scenario.paper_analytic_s,
                "poisson_s": poisson_s,
                **simulated.columns,
                "deviation": poisson_s / scenario.paper_analytic_s - 1.0,
                "note": scenario.note,
                "stated": scenario.stated,
            }


def study(results: Results, effort: Effort, real: Real) -> Study:
    """Show the experiments: what holds, tables side by side, curves."""
    further = {
        "laws": law_table(real.paths) if real.paths else None,
        "by_law": results.by_law,
        "traced": results.traced,
    }
    return TEXTS.study(
        summary="Response times of queues whose server comes and goes, by theory; end to end with "
        "streams taken as Poisson (the paper), beside what is simulated.",
        findings=findings(results.end_to_end),
        sections=(
            _by_rate(results.by_rate),
            _antennas(results),
            *_trace(results.traced),
            *_paths(real.paths, results.by_law),
            _end_to_end(results.end_to_end),
        ),
        tables={
            "by_rate": results.by_rate,
            "end_to_end": results.end_to_end,
            "antennas": results.antennas,
            **{name: table for name, table in further.items() if table is not None},
        },
        plan=asdict(effort),
        notes=real.aside,
    )


def findings(table: pd.DataFrame) -> Iterator[Finding]:
    """Hold the paper's analytic figure of every row against ours, the nearest of four and six."""
    for _, rows in table.groupby("scenario", sort=False):
        best = rows.loc[rows["deviation"].abs().idxmin()].to_dict()
        texts = {
            "time": _time(best["paper_analytic_s"]),
            "ours": _time(best["poisson_s"]),
            "off": _off(best["deviation"]),
        }
        yield TEXTS.claim("response", bool(abs(best["deviation"]) <= WITHIN), **best, **texts)
        if best["stated"]:
            gap = abs(best["paper_analytic_s"] / best["paper_simulated_s"] - 1.0)
            within = bool(gap <= PAPER_WITHIN)
            yield TEXTS.claim("deviation", within, scenario=best["scenario"], gap=100 * gap)


def _by_rate(table: pd.DataFrame) -> Section:
    is_equal = table["case"].str.startswith("T_ON")
    equal = table[is_equal]
    shown = _with_texts(equal[equal["rate_per_s"].isin(SIMULATED_RATES_PER_S)], "simulated")
    plots = [
        _responses(name, rows)
        for name, rows in {"T_ON = T_OFF": equal, "metro": table[~is_equal]}.items()
    ]
    return TEXTS.section("by rate", *plots, TEXTS.grid("by rate", shown))


def _responses(name: str, table: pd.DataFrame) -> Curves:
    simulated = table[table["simulated_s"].notna()]
    points = line(simulated["rate_per_s"], simulated["simulated_s"])
    drawn = lines(table, "case", "rate_per_s", "response_s")
    return TEXTS.curves("by rate", drawn, {"simulated": points} if points else {}, name=name)


def _antennas(results: Results) -> Section:
    days = []
    for name, response in results.responses.items():
        day = pd.DataFrame({"events/s": response.rates_per_s, "events there": response.present})
        day = day[:DAY_SLOTS]
        day.index = day.index * SLOT_S / 3600.0
        above = {label: values[values > 0] for label, values in day.items()}
        drawn = {str(label): line(values.index, values) for label, values in above.items()}
        days.append(TEXTS.curves("day", drawn, antenna=name))
    table = TEXTS.grid("antennas", _with_texts(results.antennas, "simulated"))
    return TEXTS.section("antennas", table, *days)


def _trace(traced: pd.DataFrame | None) -> Iterator[Section]:
    if traced is not None:
        shown = _with_texts(traced, "resampled", "looped")
        yield TEXTS.section("trace", TEXTS.grid("trace", shown))


def _paths(paths: Sequence[PathFindings], by_law: pd.DataFrame | None) -> Iterator[Section]:
    for each in paths:
        counts = " and ".join(
            f"{seen.whole:,} whole times {state} (and {seen.cut_off:,} cut off; mean "
            f"{seen.mean_s:.3g} s, c² {seen.scv:.2f})"
            for state, seen in each.measured.items()
        )
        plots = (
            longer_than(f"{each.path}: longer than this, {state}", seen, each.fits[state], SECONDS)
            for state, seen in each.measured.items()
        )
        laws = goodness(f"Laws, {each.path}", each.measured, each.fits, SECONDS)
        yield TEXTS.section("path", laws, *plots, path=each.path, about=f"{counts}.")
    if by_law is not None:
        shown = _with_texts(by_law, "simulated")
        yield TEXTS.section("by law", TEXTS.grid("by law", shown))


def _end_to_end(table: pd.DataFrame) -> Section:
    figures = ("paper_simulated", "paper_analytic", "poisson")
    times = {name: table[f"{name}_s"].map(_time) for name in figures}
    pairs = zip(table["simulated_s"], table["simulated_se_s"], strict=True)
    simulated = [_simulated(*pair) for pair in pairs]
    rows = table.assign(**times, off=table["deviation"].map(_off), simulated=simulated)
    why = TEXTS.grid("why", table.drop_duplicates("scenario"))
    return TEXTS.section("end to end", TEXTS.grid("table 3", rows), why)


def _with_texts(table: pd.DataFrame, *names: str) -> pd.DataFrame:
    """Write times that have standard errors as texts."""
    pairs = {name: zip(table[f"{name}_s"], table[f"{name}_se_s"], strict=True) for name in names}
    return table.assign(
        **{name: [_with_error(*one) for one in each] for name, each in pairs.items()}
    )


def _with_error(value_s: float, error_s: float) -> str:
    """Write a time with its standard error, in seconds; nothing where none was simulated."""
    if math.isnan(value_s):
        return ""
    digits = max(0, 1 - math.floor(math.log10(error_s))) if error_s > 0 else 2
    return f"{value_s:.{digits}f} ± {error_s:.{digits}f}"


def _time(seconds: float) -> str:
    if seconds >= 10 * MINUTE_S:
        return f"{seconds / MINUTE_S:.2f} min"
    return f"{seconds:.2f} s" if seconds >= 10 else f"{seconds:.3f} s"


def _off(deviation: float) -> str:
    return f"{100 * deviation:+.2f} %" if abs(deviation) < 1.0 else f"{1.0 + deviation:.1f} times"


def _simulated(seconds: float, error_s: float) -> str:
    if math.isnan(seconds):
        return ""
    if seconds >= 10 * MINUTE_S:
        return f"{_with_error(seconds / MINUTE_S, error_s / MINUTE_S)} min"
    return f"{_with_error(seconds, error_s)} s"


EXPERIMENT = Experiment(texts=TEXTS, settings=Settings, run=run)
