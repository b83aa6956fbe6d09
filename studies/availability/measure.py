"""How near the availability of a fitted component is to the share of time it was up.

    python studies/availability/measure.py DATA [--write]

``DATA`` holds folders of times up and down in one of the two formats that
``studies/fault_tolerance/uptime_traces.py`` reads. Each component with enough whole periods of both
kinds is fitted as ``tidings characterise`` fits ``states``. Standard errors are tested where the
truth is known: on repairs that are made up, and on halves of real records against each other.
``--write`` keeps the page of the docs.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import pandas as pd

from studies.fault_tolerance.uptime_traces import Uptimes, read_uptimes
from tidings.characterisation.fit.durations import (
    Durations,
    cycle_means_s,
    durations,
    measure,
)
from tidings.characterisation.fit.parameters import FittedPeriods
from tidings.characterisation.fit.periods import fit_periods
from tidings.model.arrays import Floats

PAGE = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "availability.md"
LEAST_WHOLE = 20  # periods of each kind
HALVES = 40  # of each kind in all, for halves of 20
FITS = "fits"
DRAWS, CYCLES = 1000, (30, 100, 400)
MINUTES_S, DAYS_S, RARE = 180.0, 2 * 86400.0, 0.05  # of made-up repairs
UP_S = 6 * 3600.0
BEYOND = 1.96


def components(trace: Uptimes) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the periods of every component that has enough whole ones, by its name."""
    for (scope, name), periods in trace.periods.groupby(["scope", "component"]):
        whole = periods[periods["begun"] & periods["ended"]]
        if min((whole["up"] == up).sum() for up in (True, False)) >= LEAST_WHOLE:
            yield f"{scope}/{name}", periods.sort_values("begin_s")


def seen_of(periods: pd.DataFrame, *, up: bool) -> Durations:
    """Give the lengths of periods up or down; of what had begun before, only its time and end."""
    rows = periods[periods["up"] == up]
    known, older = rows[rows["begun"]], rows[~rows["begun"]]
    lengths_s = known["length_s"].to_numpy(np.float64)
    return replace(
        durations(lengths_s, known["ended"].to_numpy(np.bool_)),
        older=int(older["ended"].sum()),
        older_s=float(older["length_s"].sum()),
    )


def fitted(periods: pd.DataFrame) -> tuple[FittedPeriods, FittedPeriods]:
    """Fit times up and down as ``characterise`` does."""
    up, down = (seen_of(periods, up=each) for each in (True, False))
    up_s, down_s = cycle_means_s(up, down)
    return fit_periods(up, up_s), fit_periods(down, down_s)


def row_of(name: str, periods: pd.DataFrame) -> dict[str, object]:
    """Compare one component: availability, distances of laws that are said to fit."""
    up, down = fitted(periods)
    measured = periods.loc[periods["up"], "length_s"].sum() / periods["length_s"].sum()
    available = up.law.mean_s / (up.law.mean_s + down.law.mean_s)
    far = [
        measure(seen_of(periods, up=state)).distance(each.law.cdf)
        for state, each in ((True, up), (False, down))
        if each.verdict == FITS
    ]
    return {
        "component": name,
        "measured": measured,
        "fitted": available,
        "off": abs(available - measured),
        "distance": max(far, default=math.nan),
        "fits": len(far),
    }


def halves(periods: pd.DataFrame) -> Iterator[float]:
    """Compare the means of the two halves of a record, in their standard errors."""
    middle = len(periods) // 2
    parts = (periods.iloc[:middle], periods.iloc[middle:])
    for up in (True, False):
        seen = [seen_of(part, up=up) for part in parts]
        if min(each.whole for each in seen) < LEAST_WHOLE:
            continue
        means_s = [each.total_s / each.ends for each in seen]
        errors_s = [each.mean_se_s(mean_s) for each, mean_s in zip(seen, means_s, strict=True)]
        yield (means_s[0] - means_s[1]) / math.hypot(*errors_s)


def made_up(rng: np.random.Generator, cycles: int) -> list[float]:
    """Draw a component whose repairs take minutes, and days now and then.

    Gives how far the means of times up and down are off, in standard errors.
    """
    ended = np.ones(cycles, np.bool_)
    on = durations(rng.exponential(UP_S, cycles), ended)
    off = durations(_repairs_s(rng, cycles), ended)
    truth_s = (UP_S, (1.0 - RARE) * MINUTES_S + RARE * DAYS_S)
    return [
        (each.total_s / each.ends - true_s) / each.mean_se_s(each.total_s / each.ends)
        for each, true_s in zip((on, off), truth_s, strict=True)
    ]


def _repairs_s(rng: np.random.Generator, count: int) -> Floats:
    is_rare = rng.random(count) < RARE
    drawn: Floats = np.where(
        is_rare, rng.normal(DAYS_S, 0.1 * DAYS_S, count), rng.exponential(MINUTES_S, count)
    )
    return np.maximum(drawn, 1.0)


def made_up_lines(seed: int) -> list[str]:
    """Tabulate how many of many draws have the true mean within their standard errors."""
    lines = ["| cycles seen | mean time up: covered | mean time down: covered |", "|---|---|---|"]
    for cycles in CYCLES:
        rng = np.random.default_rng([seed, cycles])
        z = np.array([made_up(rng, cycles) for _ in range(DRAWS)])
        up, down = (np.abs(z) <= BEYOND).mean(axis=0)
        lines.append(f"| {cycles} | {up:.3f} | {down:.3f} |")
    return lines


def trace_lines(traces: list[Uptimes]) -> list[str]:
    """Tabulate every trace, and all of them together."""
    lines = [
        "| trace | components | within .005 | worst off | laws said to fit | farthest of them "
        "| halves that agree |",
        "|---|---|---|---|---|---|---|",
    ]
    every: list[dict[str, object]] = []
    every_z: list[float] = []
    for trace in traces:
        known = list(components(trace))
        rows = [row_of(name, periods) for name, periods in known]
        z = [each for _, periods in known for each in halves(periods)]
        every, every_z = every + rows, every_z + z
        lines.append(_line(trace.name, rows, z))
    lines.append(_line("**all**", every, every_z))
    return lines


def _line(name: str, rows: list[dict[str, object]], z: list[float]) -> str:
    table = pd.DataFrame(rows)
    near = (table["off"] <= 0.005).mean()
    agree = f"{(np.abs(z) <= BEYOND).mean():.2f} of {len(z)}" if z else ""
    far = table["distance"].max()
    return (
        f"| {name} | {len(table)} | {near:.1%} | {table['off'].max():.4f} | "
        f"{int(table['fits'].sum())} of {2 * len(table)} | "
        f"{'' if math.isnan(far) else format(far, '.3f')} | {agree} |"
    )


def main() -> None:
    """Read, fit, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    files = sorted(given.data.rglob("*events.parquet"))
    traces = [trace for file in files for trace in read_uptimes(file)]
    lines = trace_lines(traces)
    head = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
    page = head.format(
        whole=LEAST_WHOLE,
        draws=DRAWS,
        table="\n".join(lines),
        made_up="\n".join(made_up_lines(given.seed)),
    )
    print(page)
    if given.write:
        PAGE.write_text(page.rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
