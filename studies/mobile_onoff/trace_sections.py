"""What traces add to the study: antennas whose rates change, real times connected and away."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from studies.duration_exhibits import AS_MEASURED, SECONDS, goodness, longer_than
from studies.mobile_onoff.antennas import DAY_SLOTS, SLOT_S
from studies.mobile_onoff.connectivity import PathFindings
from studies.mobile_onoff.experiment import Results
from studies.mobile_onoff.simulating import TRACE_HOURS, TRACE_SERVICE_S
from tidings.model.study import Curves, Grid, Points, Section

_ANTENNAS = (
    "One ON/OFF centre with service 1 s and T_ON = T_OFF = 40 s; events come at a rate that "
    "changes every ten minutes. 'at mean' is Theorem 2 at the overall mean, 'by slot' its "
    "mean over slots, 'by event' the same weighted with how many events a slot has (slots in which "
    "it has no answer left out), and 'exact' follows the queue from slot to slot. What an event "
    "sees is the last: most events come when rates are high, and slots are too short for the queue "
    "to forget the slot before."
)
_PATHS = (
    "Laws by maximum likelihood; times that the end of a journey cut off count as at least so "
    "long, those already under way at its beginning are left out. AIC: how much worse than the "
    "best. Distance: the largest difference of P[X ≤ t] from the measured law; chance alone makes "
    "about 1.4 over the root of the number of times in one of twenty samples."
)
_BY_LAW = (
    "Mean response of one ON/OFF centre with exponential service of .0625 s, by the law of its "
    "times connected and away, all of the same means. Measured laws count by two moments; with "
    "just these times, drawn at random, it is simulated."
)


_TRACE = (
    f"A synthetic traveller on the second metro path, observed for {TRACE_HOURS} hours as in the "
    f"paper, service {TRACE_SERVICE_S} s: Theorem 2 with the means of this very trace, phases with "
    "two moments of its periods, and simulated with its periods "
    "drawn at random, and gone through in turn, again and again. What goes round in a short trace "
    "meets no worse than the worst stretch of it."
)


def antenna_section(results: Results) -> Section:
    """Response times under rates that change."""
    rows = tuple(
        (
            str(row.antenna),
            f"{row.mean_per_s:.3f}",
            f"{row.paper_simulated_s:g}",
            f"{row.paper_analytic_s:g}",
            f"{row.at_mean_s:.2f}",
            f"{row.by_slot_s:.2f}",
            f"{row.by_event_s:.2f}",
            f"{row.exact_s:.2f}",
            with_error(row.simulated_s, row.simulated_se_s),
        )
        for row in results.antennas.itertuples()
    )
    columns = (
        "antenna", "events/s", "paper sim.", "paper", "at mean", "by slot", "by event", "exact",
        "simulated",
    )  # fmt: skip
    return Section(
        title="Antenna-driven arrivals",
        words=_ANTENNAS,
        exhibits=(
            Grid(title="Mean response, s", columns=columns, rows=rows),
            *_days(results),
        ),
    )


def _days(results: Results) -> Iterator[Curves]:
    """The first day of every antenna: its rates, and how many events are there."""
    for name, found in results.responses.items():
        shown = min(DAY_SLOTS, found.present.size)
        hours = np.arange(shown) * SLOT_S / 3600.0
        yield Curves(
            title=f"{name}, a day",
            lines={
                "events/s": _line(hours, found.rates_per_s[:shown]),
                "events there": _line(hours, found.present[:shown]),
            },
            x_label="hour",
            y_label="mean",
            y_log=True,
        )


def path_sections(results: Results) -> Iterator[Section]:
    """The laws of every path, and what they do to response times."""
    for found in results.paths:
        yield Section(
            title=f"Real times connected and away: {found.path}",
            words=f"{_about(found)} {_PATHS}",
            exhibits=(
                goodness(f"Laws, {found.path}", found.measured, found.fits, SECONDS),
                *(
                    longer_than(
                        f"{found.path}: longer than this, {state}", each, found.fits[state], SECONDS
                    )
                    for state, each in found.measured.items()
                ),
            ),
        )
    if results.by_law is not None:
        yield Section(
            title="What exponential times are worth", words=_BY_LAW, exhibits=(_by_law(results),)
        )


def trace_section(results: Results) -> Iterator[Section]:
    """A short trace drawn from at random, and gone through in turn."""
    if results.traced is None:
        return
    rows = tuple(
        (
            f"{row.rate_per_s:g}",
            f"{row.load:.2f}",
            f"{row.by_means_s:.2f}",
            f"{row.by_law_s:.2f}",
            with_error(row.resampled_s, row.resampled_se_s),
            with_error(row.looped_s, row.looped_se_s),
        )
        for row in results.traced.itertuples()
    )
    columns = ("events/s", "load", "Theorem 2", "two moments", "drawn at random", "in turn")
    yield Section(
        title="A short trace of connections",
        words=_TRACE,
        exhibits=(Grid(title="Mean response, s, from a trace", columns=columns, rows=rows),),
    )


def _about(found: PathFindings) -> str:
    counts = " and ".join(
        f"{each.whole:,} whole times {state} (and {each.cut_off:,} cut off; mean {each.mean_s:.3g} "
        f"s, c² {each.scv:.2f})"
        for state, each in found.measured.items()
    )
    return f"{counts}."


def _by_law(results: Results) -> Grid:
    assert results.by_law is not None
    laws = ("exponential", "likeliest", AS_MEASURED)
    rows = tuple(
        (
            str(row["path"]),
            f"{row['load']:g}",
            f"{row['rate_per_s']:.3g}",
            *(f"{row[law]:.3g}" for law in laws),
            with_error(row["simulated_s"], row["simulated_se_s"]),
        )
        for row in results.by_law.to_dict("records")
    )
    return Grid(
        title="Mean response, s, by the law of periods",
        columns=("path", "load", "events/s", *laws, "simulated"),
        rows=rows,
    )


def _line(across: np.ndarray, up: np.ndarray) -> Points:
    return tuple((float(x), float(y)) for x, y in zip(across, up, strict=True) if y > 0)


def with_error(value_s: float, error_s: float) -> str:
    """A simulated time with its standard error, in seconds; nothing where none was simulated."""
    if math.isnan(value_s):
        return ""
    digits = max(0, 1 - math.floor(math.log10(error_s))) if error_s > 0 else 2
    return f"{value_s:.{digits}f} ± {error_s:.{digits}f}"
