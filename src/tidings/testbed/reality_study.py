"""Reality beside its prediction as a study: throughput, delays, deadlines, faults in time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy import stats

from tidings.model.outcome import CAUSES, Outcome
from tidings.model.study import Curves, Finding, Section, Study, TextTable, Timeline
from tidings.testbed.calibrating import CALIBRATION_LOAD
from tidings.testbed.outages import merged
from tidings.testbed.reality import (
    MOST_ERRORS,
    MOST_LATENCY,
    MOST_SHARE,
    Reality,
    Repetition,
)

NOT_KNOWN = "–"
_CHANCE = 2.5  # a mean error so many times what is usual happens to one run in a hundred or so
_SHOWN = 0.0005  # smaller losses round to nothing
_MOST_NAMED = 5  # subscribers beyond chance, the worst first
_MOST_CURVES = 12  # subscribers whose delays are drawn, the worst first


def reality_study(reality: Reality, title: str) -> Study:
    """Make the study that shows what was measured beside what was predicted."""
    return Study(
        paper="",
        title=title,
        summary=f"{_runs(reality)} on real servers of one machine, predicted from a separate run "
        f"at a utilisation of {CALIBRATION_LOAD:g} at most; the busiest broker has "
        f"{reality.load:.2f}.",
        settings={},
        choices=tuple(_notes(reality)),
        findings=tuple(_findings(reality)),
        sections=tuple(_sections(reality)),
        tables={},
        plan={},
    )


def _runs(reality: Reality) -> str:
    number = len(reality.repetitions)
    return "One run" if number == 1 else f"{number} runs"


def runs_together(reality: Reality) -> str:
    """Say which runs a verdict is of."""
    number, believed = len(reality.repetitions), len(reality.trusted)
    if believed in (0, number):
        return f"{number} runs together"
    return f"{believed} of {number} runs, the others not reliable"


def nothing_believed(reality: Reality) -> str:
    """Say that there is no verdict, and why; empty where there is one."""
    if reality.trusted:
        return ""
    doubts = "; ".join(reality.all_doubts)
    return f"the calibration, or every run, is not reliable on this machine now: {doubts}"


def interval_text(values: Sequence[float], digits: int, scale: float = 1.0) -> str:
    """Write a mean over repetitions with half its confidence interval (95 %), if there are several.

    What a run does not tell (NaN) is left out.

    >>> interval_text([1.0, 3.0], 1), interval_text([0.25, math.nan], 2), interval_text([], 1)
    ('2.0 ± 12.7', '0.25', '–')
    """
    scaled = scale * np.asarray(values, dtype=np.float64)
    known = scaled[~np.isnan(scaled)]
    if not known.size:
        return NOT_KNOWN
    mean = float(known.mean())
    if known.size < 2:
        return f"{mean:.{digits}f}"
    spread = float(known.std(ddof=1)) / math.sqrt(known.size)
    half = float(stats.t.ppf(0.975, known.size - 1)) * spread
    return f"{mean:.{digits}f} ± {half:.{digits}f}"


def _notes(reality: Reality) -> Iterator[str]:
    yield (
        "One machine, one clock: no error of synchronisation, and all servers share its "
        "processors. How late relays and timers are is in the calibrated delays of links, a stage "
        "of the prediction; nothing is subtracted."
    )
    yield "± is half a confidence interval (95 %, Student's t over the runs)."
    if len(reality.counted) < len(reality.repetitions):
        yield "Measured values are of the reliable runs only."
    yield from rejoining(reality)
    yield from reality.notes


def rejoining(reality: Reality) -> Iterator[str]:
    """Say how long what was repaired took to join again, where anything fails."""
    if (joined := reality.reconnection) is None:
        return
    kinds = {
        "brokers": (joined.brokers_s, joined.brokers_sd_s),
        "links": (joined.links_s, joined.links_sd_s),
    }
    times = (
        f"{mean_s:.2g} s ({kind}{'' if math.isnan(sd_s) else f'; standard deviation {sd_s:.2g} s'})"
        for kind, (mean_s, sd_s) in kinds.items()
        if mean_s > 0.0
    )
    yield (
        f"After a repair, reconnecting took {' and '.join(times) or '0 s'} on average "
        f"over {joined.repairs} repairs in a separate run, at random moments between two "
        "attempts; predicted down times include it."
    )


def _findings(reality: Reality) -> Iterator[Finding]:
    steady = reality.is_steady
    if steady:
        says = f"On-time shares are within {MOST_SHARE}, mean delays within {MOST_LATENCY:.0%}."
        errors = means_text(reality)
    else:
        says = f"On-time shares and mean delays are within {MOST_ERRORS:g} standard errors."
        errors = errors_text(reality)
    if len(reality.repetitions) > 1 or not reality.trusted:
        errors = nothing_believed(reality) or errors
        case = runs_together(reality)
        yield Finding(section="–", says=says, case=case, found=errors, holds=reality.agrees)
    for number, one in enumerate(reality.repetitions, 1):
        doubts = "".join(f"; NOT RELIABLE: {doubt}" for doubt in one.doubts)
        yield Finding(
            section="–",
            says=says,
            case=f"run {number}",
            found=f"{how_far_off(one)}; {late_text(one)}{doubts}"
            + (why_shares(one) + why_latency(one) if steady else ""),
            holds=one.agrees,
        )


def means_text(reality: Reality) -> str:
    """Say how far all runs together are off, mean and largest over subscribers.

    Subscribers that are off beyond chance are named.
    """
    return (
        f"shares off by {reality.share_error:.4f} (mean over subscribers; largest "
        f"{reality.largest_share_error:.4f}), mean delays by {reality.latency_error:.1%} (largest "
        f"{reality.largest_latency_error:.1%}){_beyond(reality)}"
    )


def _beyond(reality: Reality) -> str:
    """Say who is beyond chance though the means agree; empty where nobody is."""
    if not (reality.is_steady and reality.agrees and reality.beyond_chance):
        return ""
    ordered = sorted(reality.beyond_chance.items(), key=lambda each: -each[1])
    named = ", ".join(f"{name} ({off:.1f})" for name, off in ordered[:_MOST_NAMED])
    more = f" and {len(ordered) - _MOST_NAMED} more" if len(ordered) > _MOST_NAMED else ""
    return (
        f"; the means agree, yet beyond chance, in standard errors of the runs: {named}{more} "
        "(what the calibration leaves open is not in them)"
    )


def late_text(one: Repetition) -> str:
    """Say how late relays and publishers of a run were, in milliseconds (99 % quantile)."""
    return (
        f"99 % of the time relays were at most {1e3 * one.relays_late_s:.2g} ms late, "
        f"publishers {1e3 * one.publishers_late_s:.2g} ms"
    )


def first_text(reality: Reality) -> str:
    """Say which run is shown where only one can be."""
    number, runs = reality.first[0], len(reality.repetitions)
    believed = ", the first reliable one" if reality.trusted and number > 1 else ""
    played = not reality.is_steady and reality.simulated is not None
    chance = "; its ± is how much such runs differ when simulated" if played else ""
    return f"measured: run {number} of {runs}{believed}{chance}"


def errors_text(reality: Reality) -> str:
    """Say how far all runs together are off at most, in standard errors."""
    return (
        f"shares off by {reality.most_share_errors:.1f}, mean delays by "
        f"{number_text(reality.most_delay_errors)} standard errors of all of them at most"
    )


def number_text(value: float, digits: int = 1) -> str:
    """Write a number, or that it is not known."""
    return NOT_KNOWN if math.isnan(value) else f"{value:.{digits}f}"


def how_far_off(one: Repetition) -> str:
    """Say how far the prediction of a run is off."""
    summary = one.against_predicted.summary
    chance = f"by chance such runs are off by {one.share_by_chance:.4f}"
    errors = waits = ""
    if not one.is_steady:
        errors = f", {one.most_share_errors:.1f} standard errors of such a run at most"
        waits = f", {number_text(one.most_delay_errors)} standard errors at most"
    return (
        f"on-time shares off by {summary.mean_absolute:.4f} (mean over subscribers; {chance}; "
        f"largest {summary.maximum:.4f}{errors}), mean delays by {one.latency_error:.1%} (by "
        f"chance {one.latency_by_chance:.1%}{waits})"
    )


def why_shares(one: Repetition) -> str:
    """Say why on-time shares are not as near as they should be; empty where they are."""
    played = one.against_simulated
    simulated = math.nan if played is None else played.summary.mean_absolute
    off = one.against_predicted.summary.mean_absolute
    return "" if off <= MOST_SHARE else _why(off, one.share_by_chance, simulated <= MOST_SHARE)


def why_latency(one: Repetition) -> str:
    """Say why mean delays are not as near as they should be; empty where they are."""
    off, fits = one.latency_error, one.simulated_latency_error <= MOST_LATENCY
    return "" if off <= MOST_LATENCY else _why(off, one.latency_by_chance, fits)


def _why(off: float, by_chance: float, simulation_fits: bool) -> str:
    if off <= _CHANCE * by_chance:
        return "; outside, and not beyond chance: let runs be longer"
    if simulation_fits:
        return "; outside by the formulae: what is simulated from the same parameters is within"
    return (
        "; outside, and not by the formulae alone: what is simulated from the same parameters is "
        "too, so what was calibrated is not what was run"
    )


def _sections(reality: Reality) -> Iterator[Section]:
    yield Section(
        title="Throughput",
        words="In a stable network this only repeats the routing, so agreement proves little. "
        "Predicted arrivals do not subtract what failures lose on the path.",
        exhibits=(_grid(reality, "brokers", "broker", "arrivals_per_s", "Arrivals per second"),),
    )
    yield Section(
        title="On time",
        exhibits=(
            _grid(reality, "subscribers", "subscriber", "on_time", "On-time share"),
            _grid(reality, "subscribers", "subscriber", "delivered", "Delivered share"),
            _grid(reality, "subscribers", "subscriber", "delay_mean_s", "Mean delay in ms"),
        ),
    )
    if any(_losses(reality)):
        yield Section(
            title="Lost",
            words="Shares of the events wanted, by cause. Traces show what links lost by "
            "chance; for the rest they show only that it did not arrive.",
            exhibits=(
                TextTable(
                    title="Losses by cause",
                    columns=("subscriber", "cause", "measured", *_predictions(reality)),
                    rows=tuple(_losses(reality)),
                    names=2,
                ),
            ),
        )
    yield Section(title="Delays", words="Share of the wanted events that have arrived.",
                  exhibits=tuple(_curves(reality)))  # fmt: skip
    if spreads := tuple(_spreads(reality)):
        yield Section(
            title="How subscriptions and events spread",
            words="T_sub: until a broker has learnt of a subscription; T_diff: until an event "
            "has come to it. A broker that learns of it too late misses what was "
            "published meanwhile.",
            exhibits=spreads,
        )
    if any(one.timeline for one in reality.repetitions):
        yield Section(
            title="Faults over time",
            words="When brokers were killed and links cut.",
            exhibits=tuple(
                Timeline(
                    title=f"Run {number}",
                    spans=_down_spans(one),
                    x_label="seconds",
                    end=one.duration_s,
                )
                for number, one in enumerate(reality.repetitions, 1)
            ),
        )


def _spreads(reality: Reality) -> Iterator[TextTable]:
    for number, one in enumerate(reality.repetitions, 1):
        tables = {"T_sub of": one.subscription_spread, "T_diff of events of": one.event_spread}
        for title, table in tables.items():
            if table is not None and len(table):
                rows = tuple(
                    (
                        str(row[1]),
                        str(row[2]),
                        _spread_text(row.measured_s, row.standard_error_s),
                        number_text(1e3 * row.predicted_s),
                        f"{row.times}",
                    )
                    for row in table.itertuples()
                )
                yield TextTable(
                    title=f"{title} {table.columns[0]}s, run {number}",
                    columns=(str(table.columns[0]), "broker", "ms", "predicted", "times"),
                    rows=rows,
                    names=2,
                )


def _spread_text(mean_s: float, error_s: float) -> str:
    """Write a mean in ms with half its confidence interval (95 %), where one is known."""
    half = "" if math.isnan(error_s) else f" ± {1.96e3 * error_s:.1f}"
    return f"{number_text(1e3 * mean_s)}{half}"


def _losses(reality: Reality) -> Iterator[tuple[str, ...]]:
    """Yield rows of losses by subscriber and cause, where there are any: measured and predicted."""
    beside = [each.subscribers.set_index("subscriber") for each in _predictions(reality).values()]
    runs = [one.measured.subscribers.set_index("subscriber") for one in reality.counted]
    for name in beside[0].index:
        for cause, words in CAUSES.items():
            measured = [float(run[f"lost_{cause}"][name]) for run in runs if name in run.index]
            others = [float(each[f"lost_{cause}"][name]) for each in beside]
            if any(share >= _SHOWN for share in (*measured, *others)):
                texts = (number_text(share, 3) for share in others)
                # None of a cause that traces cannot tell does not say that there was none.
                known = any(measured) or cause == "link"
                yield str(name), words, interval_text(measured if known else (), 3), *texts


def _predictions(reality: Reality) -> dict[str, Outcome]:
    known = {"predicted": reality.predicted, "simulated": reality.simulated}
    return {name: outcome for name, outcome in known.items() if outcome is not None}


def _grid(reality: Reality, table: str, key: str, value: str, title: str) -> TextTable:
    scale, digits = (1e3, 2) if value.endswith("_mean_s") else (1.0, 3)
    beside = {
        name: getattr(outcome, table).set_index(key)[value]
        for name, outcome in _predictions(reality).items()
    }
    runs = [getattr(one.measured, table).set_index(key)[value] for one in reality.counted]
    rows = tuple(
        (
            str(name),
            interval_text([float(run[name]) for run in runs if name in run.index], digits, scale),
            *(number_text(scale * float(column[name]), digits) for column in beside.values()),
        )
        for name in beside["predicted"].index
        if any(name in run.index for run in runs)
    )
    return TextTable(title=title, columns=(key, "measured", *beside), rows=rows)


def _curves(reality: Reality) -> Iterator[Curves]:
    outcomes = _predictions(reality)
    outcomes |= {f"run {n}": one.measured for n, one in enumerate(reality.repetitions, 1)}
    for subscriber in reality.predicted.worst(_MOST_CURVES)["subscriber"]:
        lines = {}
        for name, outcome in outcomes.items():
            mine = outcome.delays[outcome.delays["subscriber"] == subscriber]
            points = zip(mine["delay_s"], mine["arrived"], strict=True)
            lines[name] = tuple((float(x), float(y)) for x, y in points)
        if any(lines.values()):
            yield Curves(
                title=str(subscriber), lines=lines, x_label="delay in s", y_label="share arrived"
            )


def _down_spans(one: Repetition) -> dict[str, tuple[tuple[float, float], ...]]:
    """List when each component was down, in seconds from the beginning of the window to its end."""
    begun: dict[str, float] = {}
    spans: dict[str, list[tuple[float, float]]] = {}
    for change in one.timeline:
        mine = spans.setdefault(change.component, [])
        if change.is_up:
            mine.append((begun.pop(change.component, 0.0), change.at_s))
        else:
            begun[change.component] = change.at_s
    for component, begin_s in begun.items():
        spans[component].append((begin_s, one.duration_s))
    return {
        component: tuple(
            (max(begin_s, 0.0), min(end_s, one.duration_s))
            for begin_s, end_s in merged(mine)
            if end_s > 0.0 and begin_s < one.duration_s
        )
        for component, mine in spans.items()
    }
