"""Real traces of uptimes as sections of the study: laws, shares under them, failing together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from studies.duration_exhibits import HOURS, goodness, longer_than
from studies.fault_tolerance.real_uptimes import TraceFindings
from studies.fault_tolerance.uptime_traces import TOGETHER_S
from tidings.model.study import Curves, Grid, Section

_LAWS = (
    "Exponential, Weibull and log-normal laws by maximum likelihood; times that observation cut "
    "off count as at least so long. AIC: how much worse than the best of the three. Distance: the "
    "largest difference of P[X ≤ t] from the measured law; with the measured mean kept it is that "
    "of the laws that are put into systems, and of the curves."
)
_SHARES = (
    "The random tree of the experiments, its brokers up and down as in the trace, its links "
    "perfect, on-time shares of all that subscribers want. 'fitted' is the likeliest law for "
    "either state; all have the same means, so without buffers the law cannot matter. ± is one "
    "standard error over runs. The gain of buffers is compared run by run, over the same outages, "
    "and is sharper than the shares."
)
_TOGETHER = (
    "An outage begins together with another if another component within the same scope (the "
    f"monitor, the cluster) begins one within {TOGETHER_S / 60:g} minutes. By chance: the share if "
    "all failed at their own rates on their own. The random graph (own trees) with exponential "
    "times, that share of the outages common to all ten brokers, against independent brokers of "
    "the same availability."
)


def uptime_sections(findings: Sequence[TraceFindings]) -> Iterator[Section]:
    """What the traces say of exponential times and of independent failures."""
    for each in findings:
        yield Section(
            title=f"Real times up and down: {each.trace.name}",
            words=f"{_about(each)} {_LAWS}",
            exhibits=(_goodness(each), *_curves(each)),
        )
    if findings:
        yield Section(
            title="What exponential times are worth",
            words=_SHARES,
            exhibits=(_by_law(findings),),
        )
        yield Section(
            title="Failing together",
            words=_TOGETHER,
            exhibits=(_together(findings), _by_group(findings)),
        )


def _about(found: TraceFindings) -> str:
    trace = found.trace
    counts = " and ".join(
        f"{each.whole:,} whole times {state} (and {each.cut_off:,} cut off)"
        for state, each in found.measured.items()
    )
    empty = f" {trace.empty:,} without length were left out." if trace.empty else ""
    return (
        f"{trace.components:,} components, {counts}; availability {found.availability:.4f}.{empty}"
    )


def _goodness(found: TraceFindings) -> Grid:
    title = f"Laws of times up and down, {found.trace.name}"
    return goodness(title, found.measured, found.fits, HOURS)


def _curves(found: TraceFindings) -> Iterator[Curves]:
    for state, measured in found.measured.items():
        title = f"{found.trace.name}: longer than this, {state}"
        yield longer_than(title, measured, found.fits[state], HOURS)


def _by_law(findings: Sequence[TraceFindings]) -> Grid:
    rows = [
        (
            row["trace"],
            row["scheme"]
            if math.isnan(row["lifetime_s"])
            else f"{row['scheme']}, {row['lifetime_s'] / 3600:g} h",
            row["law"],
            _number(row["predicted"]),
            _with_error(row["simulated"], row["simulated_se"]),
            _number(row["gain_predicted"]),
            _with_error(row["gain_simulated"], row["gain_simulated_se"]),
        )
        for each in findings
        for row in each.by_law.sort_values(
            ["scheme", "lifetime_s"], ascending=[False, True], kind="stable"
        ).to_dict("records")
    ]
    return Grid(
        title="On-time share by the law of times up and down",
        columns=(
            "trace",
            "scheme, lifetime",
            "law",
            "predicted",
            "simulated",
            "gain predicted",
            "gain simulated",
        ),
        rows=tuple(rows),
        names=3,
        caption="gain: over periodic, in the same runs",
    )


def _together(findings: Sequence[TraceFindings]) -> Grid:
    return Grid(
        title="Outages that begin together with another",
        columns=("trace", "outages", "together", "by chance"),
        rows=tuple(
            (
                each.trace.name,
                f"{each.together.outages:,}",
                f"{100 * each.together.share:.0f} %",
                f"{100 * each.together.by_chance:.0f} %",
            )
            for each in findings
        ),
    )


def _by_group(findings: Sequence[TraceFindings]) -> Grid:
    rows = [
        (
            row["trace"],
            row["scheme"],
            row["outages"],
            _number(row["predicted"]),
            _with_error(row["simulated"], row["simulated_se"]),
        )
        for each in findings
        for row in each.by_group.to_dict("records")
    ]
    return Grid(
        title="On-time share, failing alone and together",
        columns=("trace", "scheme", "outages", "predicted", "simulated"),
        rows=tuple(rows),
        names=3,
    )


def _number(share: float) -> str:
    return "" if math.isnan(share) else f"{share:.5f}"


def _with_error(share: float, error: float) -> str:
    return "" if math.isnan(share) else f"{share:.5f} ± {error:.5f}"
