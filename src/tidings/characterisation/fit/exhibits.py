"""Show what was fitted to traces, and how far to trust it, as tables and plots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from tidings.characterisation.fit.laws import FittedLaw
from tidings.model.delay_grid import EDGES_S
from tidings.model.study import Curves, Points, Section, TextTable
from tidings.model.units import format_seconds

MOST_LAWS = 8  # that are drawn, those that fit worst first
MOST_KINDS = 100  # publishers whose kind of traffic is listed
MOST_PUBLISHERS = 6  # whose rates are drawn, those that drift most first
_POINTS = 160
SEEN = "measured"
_ROWS = "Rows used, set aside with a reason, and duplicates add up to all rows that were read."
_CLOCKS = (
    "Delays are never below 0, so traffic in both directions between two hosts limits by "
    "how much one clock can be ahead of the other. Clocks that may be equal are assumed "
    "to be equal; if they are not, delays are too long in one direction and too short in "
    "the other, by their difference. Early: arrived before it left, according to the two "
    "clocks."
)
_LAWS = (
    "First the histogram (points) and the fitted distribution (line), then the share of "
    "times longer than a given time. The worst fit comes first and is open."
)
_TRAFFIC = (
    "The simplest description that the counts of events do not reject. Dispersion is the variance "
    "of counts over a length of time, divided by their mean, where it is furthest above what "
    "independent intervals allow (expected)."
)
_RATES = (
    "Events per second in equal parts of the observed time. One rate is fitted to each "
    "publisher; publishers whose rate clearly changes are listed in the warnings."
)


def quality_sections(  # noqa: PLR0913 (what there is to show, each a table)
    quality: pd.DataFrame,
    coverage: pd.DataFrame,
    laws: Mapping[str, FittedLaw],
    rates: pd.DataFrame,
    *,
    examples: pd.DataFrame | None = None,
    clocks: pd.DataFrame | None = None,
    traffic: pd.DataFrame | None = None,
) -> tuple[Section, ...]:
    """Make the data-quality part of a page: what was read, what could be followed, fits, rates.

    ``rates`` has a row per publisher and part of the time: ``publisher``, ``at_s`` and ``per_s``;
    ``examples`` are rows that were set aside: ``table``, ``reason``, ``file``, ``line``, ``text``;
    ``clocks`` has one per pair of hosts between whose clocks messages went; ``traffic`` one per
    publisher.
    """
    chosen = sorted(laws.items(), key=lambda item: (-_misfit(item[1]), item[0]))[:MOST_LAWS]
    drawn = tuple(each for path, law in chosen for each in _drawn(path, law))
    aside = () if examples is None or examples.empty else (_set_aside(examples),)
    read = (_rows(quality), *aside, _covered(coverage))
    sections = [Section(title="What was read", words=_ROWS, exhibits=read)]
    if clocks is not None and len(clocks):
        sections.append(Section(title="Clocks", words=_CLOCKS, exhibits=(_offsets(clocks),)))
    if drawn:
        sections.append(Section(title="Fitted distributions", words=_LAWS, exhibits=drawn))
    if traffic is not None and len(traffic):
        words, exhibits = _TRAFFIC, (_kinds(traffic),)
        sections.append(Section(title="Traffic", words=words, exhibits=exhibits))
    if len(rates):
        sections.append(
            Section(title="Rates over time", words=_RATES, exhibits=(_rates_over_time(rates),))
        )
    return tuple(sections)


def _kinds(traffic: pd.DataFrame) -> TextTable:
    rows = traffic.assign(
        over=traffic["scale_s"].map(format_seconds),
        events=traffic["events"].map("{:,}".format),
        **{name: traffic[name].map("{:.3g}".format) for name in ("dispersion", "expected")},
    )
    shown = rows[["publisher", "kind", "events", "over", "dispersion", "expected", "why"]]
    return _grid("When publishers publish", shown.head(MOST_KINDS), names=2)


def _rows(quality: pd.DataFrame) -> TextTable:
    rows = quality.assign(rows=quality["rows"].map("{:,}".format))
    return _grid("Rows of the traces", rows[["table", "fate", "reason", "rows"]], names=3)


def _set_aside(examples: pd.DataFrame) -> TextTable:
    place = examples["file"].astype(str) + ":" + examples["line"].astype(str)
    rows = examples.assign(**{"file and line": place})
    shown = rows[["table", "reason", "file and line", "text"]]
    return _grid("Some rows that were set aside", shown, names=4)


def _covered(coverage: pd.DataFrame) -> TextTable:
    shares = coverage["share"].map(lambda share: "—" if np.isnan(share) else f"{share:.2%}")
    counts = {name: coverage[name].map("{:,}".format) for name in ("number", "of")}
    rows = coverage.assign(**counts, share=shares)
    return _grid("Coverage", rows[["what", "number", "of", "share"]])


def _offsets(clocks: pd.DataFrame) -> TextTable:
    def bound(offset_s: float) -> str:
        return "—" if np.isnan(offset_s) else format_seconds(offset_s)

    counts = ("there", "early_there", "back", "early_back")
    rows = clocks.assign(
        **{name: clocks[name].map("{:,}".format) for name in counts},
        **{name: clocks[name].map(bound) for name in ("low_s", "high_s")},
    )
    titles = (
        "clock of", "is ahead of that of", "by at least", "by at most",
        "there", "early", "back", "early", "result",
    )  # fmt: skip
    shown = rows[["target", "source", "low_s", "high_s", *counts, "verdict"]]
    return _grid("How far clocks may differ", shown.set_axis(titles, axis="columns"), names=2)


def _grid(title: str, cells: pd.DataFrame, *, names: int = 1) -> TextTable:
    """Make a table as it is shown: every cell as a text."""
    rows = tuple(tuple(map(str, row)) for row in cells.itertuples(index=False, name=None))
    return TextTable(title=title, columns=tuple(map(str, cells.columns)), rows=rows, names=names)


def _misfit(fitted: FittedLaw) -> float:
    """Give the distance of the nearest family, also where the histogram was taken instead."""
    return fitted.alternatives[0].distance if fitted.alternatives else 0.0


def _drawn(path: str, fitted: FittedLaw) -> Iterator[Curves]:
    """Yield the histogram and the tail of what was measured, with the distribution over both."""
    bins = np.flatnonzero(fitted.sample.bins)
    if bins.size < 2:
        return
    edges_s = EDGES_S[bins[0] : bins[-1] + 1]
    counts = fitted.sample.bins[bins[0] : bins[-1] + 1] / fitted.sample.count
    families = {each.family: each.law for each in fitted.alternatives[:2]}
    laws = {fitted.family: fitted.law, **families}
    fold = f"{path}: {fitted.family}, misfit {_misfit(fitted):.2g}"
    yield Curves(
        title="Shares by time",
        lines={name: _percents(law.cdf(edges_s), edges_s) for name, law in laws.items()},
        marks={SEEN: _points(edges_s, 100.0 * counts)},
        x_label="seconds",
        y_label="% of times in a bin",
        x_log=True,
        fold=fold,
    )
    left = 1.0 - np.cumsum(counts)
    least = 1.0 / fitted.sample.count
    times_s = np.geomspace(edges_s[0], edges_s[-1], _POINTS)
    yield Curves(
        title="Longer than a time",
        lines={  # in the order, and so in the colours, of the histogram
            **{name: _above(times_s, 1.0 - law.cdf(times_s), least) for name, law in laws.items()},
            SEEN: _above(edges_s[:-1], left[:-1], least / 2),
        },
        x_label="seconds",
        y_label="share of times",
        x_log=True,
        y_log=True,
        fold=fold,
    )


def _percents(cdf: np.ndarray, edges_s: np.ndarray) -> Points:
    return _points(edges_s[1:], 100.0 * np.diff(cdf))


def _above(times_s: np.ndarray, shares: np.ndarray, least: float) -> Points:
    return _points(times_s[shares >= least], shares[shares >= least])


def _points(times_s: np.ndarray, shares: np.ndarray) -> Points:
    return tuple(zip(times_s.tolist(), shares.tolist(), strict=True))


def _rates_over_time(rates: pd.DataFrame) -> Curves:
    spread = rates.groupby("publisher")["per_s"].agg(lambda each: each.std() / each.mean())
    chosen = spread.sort_values(ascending=False, kind="stable").index[:MOST_PUBLISHERS]
    unit, unit_s = _unit_of(float(rates["at_s"].max()))
    lines = {
        str(name): _points((part["at_s"] / unit_s).to_numpy(), part["per_s"].to_numpy())
        for name, part in rates[rates["publisher"].isin(chosen)].groupby("publisher")
    }
    return Curves(
        title="Events of publishers", lines=lines, x_label=unit, y_label="events per second"
    )


def _unit_of(length_s: float) -> tuple[str, float]:
    """Choose the unit in which a length of time is drawn, and give how many seconds that is.

    >>> _unit_of(7200.0)
    ('hours', 3600.0)
    """
    units = {"days": 86_400.0, "hours": 3_600.0, "minutes": 60.0}
    return next(((unit, s) for unit, s in units.items() if length_s >= 2 * s), ("seconds", 1.0))
