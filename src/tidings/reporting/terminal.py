"""Outcomes, comparisons and fitted parameters as tables for a terminal.

A table knows which of its columns matter most and leaves out the others where the terminal is too
narrow for them, so that numbers are never cut; below it stands which are left out. Names and words
that still do not fit are folded. Colours are the caller's console's affair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from tidings.model.causes import causes_of
from tidings.model.outcome import LOSSES, SOURCES, Outcome, by_share
from tidings.reporting import wording
from tidings.validation.comparison import Comparison, compare
from tidings.validation.parameters import parameter_z

_WIDEST_NAME = 32
_EASILY_SPARED = 3  # and above
_LEAST_FOLDED = 16  # characters of a column of names or words that is folded
_LEFT_OUT = "left out for want of room:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column: its title, a cell for every row, and how soon it may be left out (0: never)."""

    title: str
    cells: Sequence[str]
    left: bool = False  # names stand left, numbers right
    spare: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FittingTable:
    """A table that leaves out what it can spare until it fits the width it is given.

    Sentences ``below`` its title are as wide as they may be.
    """

    title: str
    columns: Sequence[Column]
    caption: str = ""
    below: Sequence[str] = ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns, left_out = list(self.columns), list[str]()
        while True:
            spare = max(columns, key=lambda column: column.spare)
            # What can be spared easily goes before words are folded, the rest after.
            folded = spare.spare < _EASILY_SPARED
            if spare.spare == 0 or self._width(columns, folded) <= options.max_width:
                break
            columns.remove(spare)
            left_out.append(spare.title)
        if self.below:
            yield from map(Text, (self.title, *self.below))
        yield self._draw(columns, left_out)

    @staticmethod
    def _width(columns: Sequence[Column], folded: bool) -> int:
        """Compute how wide a table is, as it is or with its words folded as far as they may be."""
        widths = []
        for column in columns:
            widest = max(map(cell_len, (column.title, *column.cells)))
            least = max(cell_len(column.title), _LEAST_FOLDED)
            widths.append(min(widest, least) if folded and column.left else widest)
        return sum(widths) + 3 * len(columns)

    def _draw(self, columns: Sequence[Column], left_out: Sequence[str]) -> Table:
        caption = self.caption
        if left_out:
            more = f"{_LEFT_OUT} {', '.join(left_out)} (a wider terminal or --json shows all)"
            caption = f"{caption}; {more}" if caption else more
        drawn = Table(
            title=None if self.below else Text(self.title),
            caption=Text(caption) if caption else None,
            box=box.SIMPLE_HEAD,
            title_justify="left",
            caption_justify="left",
            pad_edge=False,
        )
        for column in columns:
            side: dict[str, object] = {"justify": "left" if column.left else "right"}
            # Only names and words are folded, and only where nothing else can give way.
            fold = {"overflow": "fold", "no_wrap": not column.left}
            drawn.add_column(Text(column.title), **side, **fold)  # type: ignore[arg-type]
        for row in zip(*(column.cells for column in columns), strict=True):
            drawn.add_row(*(Text(cell) for cell in row))
        return drawn


# ---- tables of rows: what a column is called, and how a row is written in it --------------------

Row = Mapping[str, Any]
Head = Callable[[Sequence[Row]], Column]  # a column of the rows that are shown


def fitting(
    title: str,
    rows: Sequence[Row],
    *heads: Head,
    limit: int | None = None,
    noun: str = "",
    caption: str = "",
) -> FittingTable:
    """Write the first rows as a table; with a noun it says below how many of how many these are."""
    shown = rows[:limit]
    said = hidden(len(shown), len(rows), noun) if noun else ""
    return FittingTable(
        title=title,
        columns=[head(shown) for head in heads],
        caption=". ".join(filter(None, (caption, said))),
    )


def cells(title: str, write: Callable[[Row], str], *, left: bool = False, spare: int = 0) -> Head:
    """Write a column of whatever is written of each row."""
    return lambda rows: Column(
        title=title, cells=[write(row) for row in rows], left=left, spare=spare
    )


def names(key: str, title: str = "", *, spare: int = 0, widest: int = _WIDEST_NAME) -> Head:
    """Write a column of names, cut where they are long."""
    return lambda rows: name_column([row[key] for row in rows], title or key, spare, widest)


def texts(title: str, key: str, *, spare: int = 0) -> Head:
    """Write a column of words as they are."""
    return cells(title, lambda row: str(row[key]), left=True, spare=spare)


def shares(title: str, key: str, *, spare: int = 0) -> Head:
    """Write a column of shares in percent."""
    return cells(title, lambda row: wording.percent(number(row, key)), spare=spare)


def times(title: str, key: str, *, spare: int = 0) -> Head:
    """Write a column of times, given in seconds."""
    return cells(title, lambda row: wording.seconds(number(row, key)), spare=spare)


def rates(title: str, key: str, *, spare: int = 0) -> Head:
    """Write a column of rates, given per second."""
    return cells(title, lambda row: wording.rate(number(row, key)), spare=spare)


def gains(title: str, key: str, *, spare: int = 0) -> Head:
    """Write a column of differences of shares, in percentage points with their sign."""
    return cells(title, lambda row: points(number(row, key)), spare=spare)


def formatted(title: str, key: str, form: str, *, spare: int = 0) -> Head:
    """Write a column of numbers in a form such as ``,.0f``."""
    return cells(title, lambda row: format(row[key], form), spare=spare)


def number(row: Row, key: str) -> float:
    """Read a number of a row; NaN where JSON has none."""
    value = row[key]
    return math.nan if value is None else float(value)


# ---- what commands show --------------------------------------------------------------------------


def outcome_table(
    outcome: Outcome,
    limit: int | None = None,
    worst_first: bool = True,
    below: Sequence[str] = (),
) -> RenderableType:
    """Show one outcome, a row per subscriber: what arrives in time or not, how long it takes.

    What is to be read first stands ``below`` the headline, above the rows.
    """
    rows = outcome.subscribers
    if worst_first:
        rows = by_share(rows)
    shown = rows if limit is None else rows.head(limit)
    columns = [
        name_column(shown["subscriber"], "subscriber"),
        name_column(shown["broker"], "at", spare=3),
        Column(title="wanted", cells=_cells(wording.rate, shown["wanted_per_s"]), spare=5),
        *_answers(outcome.source, shown),
        Column(title="late", cells=_cells(wording.percent, shown["late"])),
        Column(title="lost", cells=_cells(wording.percent, shown[list(LOSSES)].sum(axis=1))),
        Column(title="mean delay", cells=_cells(wording.seconds, shown["delay_mean_s"]), spare=2),
        Column(title="p95", cells=_cells(wording.seconds, shown["delay_p95_s"]), spare=5),
        Column(title="p99", cells=_cells(wording.seconds, shown["delay_p99_s"]), spare=6),
        Column(title=_cause_title(outcome), cells=_causes(outcome, shown), left=True, spare=1),
    ]
    if shown["why"].any():
        columns.append(name_column(shown["why"], "why", spare=4, widest=60))
    on_time = wording.percent(outcome.on_time)
    number = wording.plural(len(rows), "subscriber")
    title = f"{outcome.source.capitalize()}: {on_time} of wanted events arrive on time ({number})"
    caption = hidden(len(shown), len(rows))
    return FittingTable(title=title, columns=columns, caption=caption, below=below)


def _answers(source: str, rows: pd.DataFrame) -> list[Column]:
    """Make the columns of shares on time; for predicted ones also their error, and who says so."""
    if source != "predicted" or not rows["by"].any():
        unsure = rows["on_time_se"]
        if source == "measured":  # what counters leave open can be more than what chance does
            unsure = rows[["on_time_se", "error"]].max(axis="columns")
        return [Column(title="on time", cells=_cells(wording.percent, rows["on_time"], unsure))]
    # Of a simulated row only what standard errors of parameters add: the error says the rest.
    by_parameters = (rows["by"] == "theory") | (rows["on_time_se"] > rows["error"])
    noise = rows["on_time_se"].where(by_parameters)
    return [
        Column(title="on time", cells=_cells(wording.percent, rows["on_time"], noise)),
        Column(title="error", cells=[_error(each) for each in rows["error"]]),
        name_column(rows["by"], "by", spare=2),
    ]


def _error(half_width: float) -> str:
    """Write half a 95 % interval of a share, in percentage points with two digits."""
    if np.isnan(half_width):
        return wording.UNKNOWN
    return f"± {100 * half_width:.{2 if half_width < 0.1 else 3}g} %"


def interval_table(
    intervals: pd.DataFrame, level: float, limit: int | None = None
) -> RenderableType:
    """List between which shares each subscriber's true one lies with a probability, worst first."""
    return fitting(
        f"{wording.percent(level)} intervals of on-time shares",
        by_share(intervals).to_dict("records"),
        names("subscriber"),
        shares("on time", "on_time"),
        shares("at least", "low"),
        shares("at most", "high"),
        limit=limit,
        noun="subscribers",
    )


def broker_table(outcome: Outcome, limit: int | None = None) -> RenderableType:
    """List how busy each broker is and how long events wait and are served, the busiest first."""
    rows = outcome.brokers.sort_values("utilisation", ascending=False, kind="stable")
    return fitting(
        f"Brokers, {outcome.source}",
        rows.to_dict("records"),
        names("broker"),
        cells("busy", lambda row: wording.percent(row["utilisation"], row["utilisation_se"])),
        rates("arrivals", "arrivals_per_s", spare=2),
        cells("mean wait", lambda row: wording.seconds(row["wait_mean_s"], row["wait_mean_se_s"])),
        times("service", "service_mean_s", spare=1),
        limit=limit,
        noun="brokers",
    )


def link_table(outcome: Outcome, limit: int | None = None) -> RenderableType:
    """List what each link carries, loses and takes, the lossiest first."""
    carried = outcome.links["events_per_s"] != 0.0  # what carries nothing loses nothing
    rows = outcome.links.assign(lost=outcome.links["lost"].where(carried))
    return fitting(
        f"Links, {outcome.source}",
        rows.sort_values("lost", ascending=False, kind="stable").to_dict("records"),
        names("source", "from"),
        names("target", "to"),
        rates("events", "events_per_s"),
        shares("lost", "lost"),
        times("mean delay", "delay_mean_s", spare=1),
        shares("busy", "utilisation", spare=2),
        limit=limit,
        noun="links",
    )


def comparison_table(comparison: Comparison, limit: int = 10) -> RenderableType:
    """Show how far two outcomes are apart, and for which subscribers they are farthest apart."""
    a, b = comparison.source_a, comparison.source_b
    a, b = (f"{a} A", f"{b} B") if a == b else (a, b)
    worst = fitting(
        f"Largest differences, of {len(comparison.subscribers)}",
        comparison.worst(limit).to_dict("records"),
        names("subscriber"),
        names("broker", "at", spare=2),
        shares(a, "on_time_a"),
        shares(b, "on_time_b"),
        cells("difference", lambda row: f"{100 * row['on_time_difference']:+.2f} %"),
        cells("in standard errors", lambda row: _signed(row["on_time_z"]), spare=1),
    )
    return Group(Text(agreement(comparison)), worst)


def agreement(comparison: Comparison) -> str:
    """Say how far two outcomes are apart, in percent, in a sentence or two.

    Errors of shares are in percentage points, written ``%`` as the shares are.
    """
    summary = comparison.summary
    if not summary.compared:
        return _nothing_compared(comparison)
    words = [
        f"{comparison.source_a.capitalize()} against {comparison.source_b}, on-time shares of "
        f"{wording.plural(summary.compared, 'subscriber')}: mean absolute error "
        f"{100 * summary.mean_absolute:.2g} %, largest {100 * summary.maximum:.2g} %, "
        f"mean difference {points(summary.mean_signed)}."
    ]
    if summary.with_se:
        words.append(
            f"{wording.percent(summary.within_2se)} agree within two combined standard errors."
        )
    if summary.with_error:
        words.append(f"{wording.percent(summary.within_error)} agree within their stated errors.")
    return " ".join([*words, *_left_out(comparison)])


def _nothing_compared(comparison: Comparison) -> str:
    a, b = comparison.source_a.capitalize(), comparison.source_b
    return " ".join([f"{a} against {b}: no subscriber could be compared.", *_left_out(comparison)])


def _left_out(comparison: Comparison) -> Iterator[str]:
    one_side = comparison.summary.undefined_in_one
    if one_side:
        yield f"{one_side} could not be compared: one result has no events for them."
    missing = len(comparison.only_a) + len(comparison.only_b)
    if missing:
        yield f"{wording.plural(missing, 'subscriber')} in only one of the results."


def side_by_side(outcomes: Sequence[Outcome], limit: int | None = 10) -> RenderableType:
    """Show several outcomes of one system in one table, and below it how well they agree."""
    ordered = sorted(outcomes, key=lambda each: SOURCES.index(each.source))
    reference = ordered[-1]
    rows = by_share(reference.subscribers)
    shown = rows if limit is None else rows.head(limit)
    columns = [
        name_column(shown["subscriber"], "subscriber"),
        name_column(shown["broker"], "at", spare=3),
    ]
    for each in ordered:
        mine = each.subscribers.set_index("subscriber").reindex(shown["subscriber"])
        cells = _cells(wording.percent, mine["on_time"], mine["on_time_se"])
        columns.append(Column(title=each.source, cells=cells))
    for each in ordered:
        mine = each.subscribers.set_index("subscriber").reindex(shown["subscriber"])
        cells = _cells(wording.seconds, mine["delay_mean_s"])
        spare = 5 if each.source == "simulated" else 4  # what is predicted and what is true matter
        columns.append(Column(title=f"{each.source} delay", cells=cells, spare=spare))
    totals = ", ".join(f"{each.source} {wording.percent(each.on_time)}" for each in ordered)
    table = FittingTable(
        title=f"On time: {totals}", columns=columns, caption=hidden(len(shown), len(rows))
    )
    lines = [Text(agreement(compare(each, reference))) for each in ordered[:-1]]
    return Group(table, *lines)


def parameters_table(parameters: pd.DataFrame, limit: int | None = None) -> RenderableType:
    """List fitted parameters with standard errors; with the truth, where it is known, and z."""

    def quantity(title: str, key: str, error: str | None = None, spare: int = 0) -> Head:
        def write(row: Row) -> str:
            se = math.nan if error is None else float(row[error])
            return wording.quantity(float(row[key]), str(row["unit"]), se)

        return cells(title, write, spare=spare)

    heads = [
        names("path", "parameter", widest=60),
        quantity("estimate", "estimate", "standard_error"),
        names("family", spare=2),
        cells("from", lambda row: wording.number(row["count"]), spare=3),
        cells("misfit", lambda row: wording.number(row["goodness"]), spare=4),
    ]
    rows = parameters.assign(unit=parameters["unit"].fillna("").astype(str))
    if "source" in parameters and (parameters["source"] != "traces").any():
        heads += [names("source", spare=1), quantity("bound", "bound", spare=1)]
    if "truth" in parameters:
        heads.append(quantity("truth", "truth", spare=1))
        heads.append(cells("z", lambda row: _signed(row["z"])))
        rows["z"] = parameter_z(parameters)
    listed = rows.to_dict("records")
    return fitting("Fitted parameters", listed, *heads, limit=limit, noun="parameters")


def quality_table(quality: pd.DataFrame) -> RenderableType:
    """List what became of the rows of every trace table: used, set aside and why, or duplicates."""
    return fitting(
        "Rows of the traces",
        quality.to_dict("records"),
        names("table"),
        formatted("rows", "rows", ","),
        names("fate"),
        names("reason", widest=60),
    )


def coverage_table(coverage: pd.DataFrame) -> RenderableType:
    """List how much of what was published could be followed to those who want it."""
    return fitting(
        "Coverage",
        coverage.to_dict("records"),
        names("what", widest=60),
        formatted("number", "number", ","),
        formatted("of", "of", ",", spare=1),
        cells("share", lambda row: "—" if pd.isna(row["share"]) else f"{row['share']:.2%}"),
    )


def traffic_table(traffic: pd.DataFrame, *, limit: int) -> RenderableType:
    """List which kind of traffic publishers are, and how far counts of their events vary."""
    return fitting(
        "Traffic that is not independent intervals",
        traffic.to_dict("records"),
        names("publisher"),
        names("kind"),
        times("over", "scale_s", spare=2),
        formatted("dispersion", "dispersion", ".3g"),
        formatted("expected", "expected", ".3g", spare=1),
        names("why", spare=3, widest=60),
        limit=limit,
        noun="subscribers",
    )


def name_column(
    values: Iterable[Any], title: str, spare: int = 0, widest: int = _WIDEST_NAME
) -> Column:
    """Make a column of names, cut where they are long; empty where one is missing."""
    # Control characters in a name must not reach the terminal.
    clean = [
        "".join(c if c.isprintable() else "�" for c in str(v))
        for v in pd.Series(list(values)).fillna("")
    ]
    cut = [v if len(v) <= widest else v[: widest - 1] + "…" for v in clean]
    return Column(title=title, cells=cut, left=True, spare=spare)


def _cells(write: Callable[..., str], *columns: pd.Series) -> list[str]:
    return [write(*values) for values in zip(*columns, strict=True)]


def _cause_title(outcome: Outcome) -> str:
    """Name the column of causes; where none are known it holds what becomes of missed events."""
    return "main cause" if len(outcome.causes) else "mostly"


def _causes(outcome: Outcome, rows: pd.DataFrame) -> list[str]:
    """Name what costs each row most; where not known, what becomes of most that it misses."""
    if not len(rows):
        return []
    if len(outcome.causes):
        of = causes_of(outcome)
        first = [of.get(name, [])[:1] for name in rows["subscriber"]]
        return [" ".join(each.cause.words for each in causes) for causes in first]
    missed = rows[["late", *LOSSES]].fillna(0.0)
    names = missed.idxmax(axis=1).str.removeprefix("lost_").str.replace("_", " ")
    most = missed.max(axis=1)
    return [name if share > 0 else "" for name, share in zip(names, most, strict=True)]


def _signed(z: float) -> str:
    return wording.UNKNOWN if np.isnan(z) else f"{z:+.1f}"


def points(difference: float) -> str:
    """Write a difference of two shares, in percentage points with its sign."""
    return wording.UNKNOWN if np.isnan(difference) else f"{100 * difference:+.2f} %"


def hidden(shown: int, total: int, noun: str = "subscribers") -> str:
    """Say how many of all rows a table shows; empty if all."""
    return "" if shown == total else f"{shown} of {total} {noun} (--json has all)"
