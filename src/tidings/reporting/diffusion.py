"""How things spread, and what was missed meanwhile, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import RenderableType

from tidings.reporting.terminal import Column, FittingTable
from tidings.reporting.wording import UNKNOWN

_HOW = {
    "worst": "longest T_sub and T_diff",
    "typical": "mean T_sub and T_diff",
    "notified": "curves f and g, longest T_sub and T_diff",
}


def diffusion_tables(measured: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Times to spread with B(t), r by area, f and g, and d by length of stay."""
    both = {name: measured[name] for name in ("subscriptions", "publications")}
    yield FittingTable(
        title="Spreading over brokers",
        columns=[
            Column(title="of", cells=list(both), left=True),
            Column(title="spreads", cells=[f"{each['spreads']:,}" for each in both.values()]),
            Column(
                title="partial", spare=1, cells=[f"{each['partial']:,}" for each in both.values()]
            ),
            Column(
                title="nowhere", spare=2, cells=[f"{each['nowhere']:,}" for each in both.values()]
            ),
            Column(
                title="cut off", spare=3, cells=[f"{each['cut_off']:,}" for each in both.values()]
            ),
            Column(
                title="brokers", spare=4, cells=[f"{each['brokers']:.1f}" for each in both.values()]
            ),
            _errors("mean", [(each["mean_s"], each["mean_se_s"]) for each in both.values()], " s"),
            _errors(
                "last broker, mean",
                [(each["typical_s"], each["typical_se_s"]) for each in both.values()],
                " s",
            ),
            _errors(
                "worst", [(each["worst_s"], each["worst_se_s"]) for each in both.values()], " s"
            ),
        ],
        caption="T_sub (subscriptions) and T_diff (publications): time until the last other "
        "broker is reached, on average (last broker, mean) or at worst (worst; ± is its "
        "scatter between recordings of this length). Counted only: partial (reached "
        "fewer brokers than others from there), nowhere, cut off (began too late to be "
        "seen to its end).",
    )
    points = [(name, point) for name, each in both.items() for point in each["points"]]
    yield FittingTable(
        title="B(t): share of the other brokers reached after a time",
        columns=[
            Column(title="of", cells=[name for name, _ in points], left=True),
            Column(title="after", cells=[f"{point['time_s']:.3g} s" for _, point in points]),
            _errors("reached", [(each["reached"], each["reached_se"]) for _, each in points]),
        ],
    )
    fits = measured["rapidity"]
    yield FittingTable(
        title="Rapidity r, from the area under B(t)",
        columns=[
            Column(title="by", cells=[_HOW[name] for name in fits], left=True),
            _errors(
                "T_sub + T_diff",
                [(fit["within_s"], fit["within_se_s"]) for fit in fits.values()],
                " s",
            ),
            _errors("r", [(fit["value"], fit["error"]) for fit in fits.values()]),
        ],
    )
    for name, title in (
        ("f", "f: share delivered, by time from subscribe to publication"),
        ("g", "g: share delivered, by time from T_ON − T_diff to publication"),
    ):
        rows = [row for row in measured["curves"] if row["curve"] == name]
        if rows:
            yield _shares(title, [f"{r['from_s']:.3g} – {r['to_s']:.3g} s" for r in rows], rows)
    rows = measured["shares"]
    if rows:
        table = _shares(
            "d: share delivered of what was published during a subscription, by its length",
            [f"{row['stay_mean_s']:.3g} s" for row in rows],
            rows,
        )
        expected = [
            Column(title=title, cells=[_share(row[name]) for row in rows])
            for name, title in (("closed_form", "closed form"), ("by_couples", "by delays"))
        ]
        yield FittingTable(
            title=table.title,
            columns=[*table.columns, *expected],
            caption="By delays: E[(T − X)⁺]/T for the mean length T, where X is the sum of both "
            f"measured delays between two brokers ({measured['couples']:,} pairs), "
            "without the last hop to the subscriber.",
        )


def _share(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.4f}"


def _shares(title: str, times: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> FittingTable:
    return FittingTable(
        title=title,
        columns=[
            Column(title="time", cells=list(times)),
            Column(title="events", cells=[f"{row['events']:,.0f}" for row in rows]),
            _errors("share", [(row["notified"], row["notified_se"]) for row in rows]),
        ],
    )


def _errors(
    title: str, values: Sequence[tuple[float | None, float | None]], unit: str = ""
) -> Column:
    cells = []
    for value, error in values:
        known = UNKNOWN if value is None else f"{value:.4g}"
        cells.append(f"{known} ± {UNKNOWN if error is None else f'{error:.2g}'}{unit}")
    return Column(title=title, cells=cells)
