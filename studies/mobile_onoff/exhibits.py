"""The mobile-peers experiments as a study: what holds, tables side by side, curves."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict

import pandas as pd

from studies.mobile_onoff.connectivity import law_table
from studies.mobile_onoff.experiment import SIMULATED_RATES_PER_S, Results
from studies.mobile_onoff.scenarios import MINUTE_S
from studies.mobile_onoff.trace_sections import (
    antenna_section,
    path_sections,
    trace_section,
    with_error,
)
from tidings.model.study import Curves, Finding, Grid, Section, Study

PAPER = {
    "ON/OFF centre": "T_ON = T_OFF = 20, 40, 60 s, service 0.125 s, .05 to 4 events/s",
    "metro": "146.38 s ON and 96 s OFF; 155.88 s ON and 72.15 s OFF; service 0.125 s and 0.0625 s",
    "end to end": "publisher's ON/OFF centre, M/M/1 centres of the brokers, the subscriber's "
    "ON/OFF centre and its own M/M/1 queue; service 0.0625 s everywhere",
}
CHOICES = (
    "How many M/M/1 centres are on the path is taken as four and as six: four meet the paper's "
    "figures of the metro rows, six follow from its text.",
    "The voluntary rows are worked out at the stated .5 events/s and at .1 events/s, which the "
    "paper's figures need.",
    "Theorem 2 is exact (the M/M/1 queue with breakdowns), so that gaps near saturation in the "
    "paper's first plot are its simulator's; saturation begins at 4 events/s, not above.",
    "What leaves an ON/OFF centre is taken as Poisson, as the paper does; it is not, and what is "
    "simulated takes longer.",
    "The data of the antennas are not public: synthetic weeks with the paper's mean rates stand "
    "for them, or real activity of other antennas brought to these means (--activity).",
)
WITHIN = 1e-3  # what "comes out" means for a row
PAPER_WITHIN = 0.05


def study(results: Results) -> Study:
    """The experiments, ready to be shown."""
    return Study(
        paper="mobile-onoff",
        title="Mobile peers: the paper's experiments, worked out again",
        summary="Response times of queues whose server comes and goes, by theory; end to end with "
        "streams taken as Poisson (the paper), beside what is simulated.",
        settings=PAPER,
        choices=CHOICES,
        findings=tuple(findings(results.end_to_end)),
        sections=(
            _by_rate(results.by_rate),
            antenna_section(results),
            *trace_section(results),
            *path_sections(results),
            _end_to_end(results.end_to_end),
        ),
        tables={
            "by_rate": results.by_rate,
            "end_to_end": results.end_to_end,
            "antennas": results.antennas,
            **({"laws": law_table(results.paths)} if results.paths else {}),
            **({} if results.by_law is None else {"by_law": results.by_law}),
            **({} if results.traced is None else {"traced": results.traced}),
        },
        plan=asdict(results.effort),
    )


def findings(table: pd.DataFrame) -> Iterator[Finding]:
    """The paper's analytic figure of every row, against ours; nearest of four and six centres."""
    for name, rows in table.groupby("scenario", sort=False):
        best = rows.loc[rows["deviation"].abs().idxmin()]
        paper_gap = abs(best["paper_analytic_s"] / best["paper_simulated_s"] - 1.0)
        yield Finding(
            section="4.2",
            says=f"The response time is {_time(best['paper_analytic_s'])}.",
            case=str(name),
            found=f"{_time(best['poisson_s'])} with {best['plain_centres']} plain centres "
            f"({_off(best['deviation'])}); {best['note']}",
            holds=abs(best["deviation"]) <= WITHIN,
        )
        if best["stated"]:
            yield Finding(
                section="4.2",
                says="Analysis and simulation deviate by at most 5 %.",
                case=str(name),
                found=f"the paper's own figures differ by {100 * paper_gap:.1f} %",
                holds=paper_gap <= PAPER_WITHIN,
            )


def _by_rate(table: pd.DataFrame) -> Section:
    equal = table[table["case"].str.startswith("T_ON")]
    metro = table[~table["case"].str.startswith("T_ON")]
    return Section(
        title="Response time against arrival rate",
        words="Mean sojourn at one ON/OFF centre. The table has median and 95th percentile beside "
        "the mean: the sojourn is a mixture of two exponential laws, a short one for events that "
        "meet the peer, a long one for those that do not.",
        exhibits=(_curves("T_ON = T_OFF", equal), _curves("metro", metro), _rate_grid(equal)),
    )


def _curves(title: str, table: pd.DataFrame) -> Curves:
    lines = {
        str(case): tuple(zip(rows["rate_per_s"], rows["response_s"], strict=True))
        for case, rows in table.groupby("case", sort=False)
    }
    simulated = table[table["simulated_s"].notna()]
    points = tuple(zip(simulated["rate_per_s"], simulated["simulated_s"], strict=True))
    return Curves(
        title=title,
        lines=lines,
        marks={"simulated": points} if points else {},
        x_label="events/s",
        y_label="mean response, s",
        y_log=True,
    )


def _rate_grid(table: pd.DataFrame) -> Grid:
    shown = table[table["rate_per_s"].isin(SIMULATED_RATES_PER_S)]
    rows = tuple(
        (
            str(row.case),
            f"{row.rate_per_s:g}",
            f"{row.load:.3f}",
            f"{row.response_s:.2f}",
            f"{row.median_s:.2f}",
            f"{row.p95_s:.1f}",
            with_error(row.simulated_s, row.simulated_se_s),
        )
        for row in shown.itertuples()
    )
    columns = ("case", "events/s", "load", "mean, s", "median, s", "p95, s", "simulated, s")
    return Grid(title="One ON/OFF centre", columns=columns, rows=rows)


def _end_to_end(table: pd.DataFrame) -> Section:
    rows = tuple(
        (
            str(row.scenario),
            f"{row.rate_per_s:g}",
            str(row.plain_centres),
            _time(row.paper_simulated_s),
            _time(row.paper_analytic_s),
            _time(row.poisson_s),
            _off(row.deviation),
            _simulated(row.simulated_s, row.simulated_se_s),
        )
        for row in table.itertuples()
    )
    columns = (
        "scenario",
        "1/s",
        "M/M/1",
        "paper sim",
        "paper",
        "Poisson",
        "off by",
        "sim",
    )
    notes = table.drop_duplicates("scenario")
    reasons = tuple((str(row.scenario), str(row.note)) for row in notes.itertuples())
    return Section(
        title="End to end (the paper's Table 3)",
        words="Mean time from publication to the end of the subscriber's own processing: the "
        "paper's simulated and analytic figures, then ours with streams taken as Poisson (the "
        "paper's model; off by so much from its analytic figure) and simulated, as they are.",
        exhibits=(
            Grid(title="Table 3", columns=columns, rows=rows),
            Grid(title="Why", columns=("scenario", "what to know"), rows=reasons, names=2),
        ),
    )


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
        return f"{with_error(seconds / MINUTE_S, error_s / MINUTE_S)} min"
    return f"{with_error(seconds, error_s)} s"
