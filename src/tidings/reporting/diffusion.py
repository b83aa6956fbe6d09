"""How things spread, and what was missed meanwhile, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.console import RenderableType

from tidings.reporting.terminal import FittingTable, Head, Row, cells, fitting, formatted, texts
from tidings.reporting.wording import UNKNOWN

_HOW = {
    "worst": "longest T_sub and T_diff",
    "typical": "mean T_sub and T_diff",
    "notified": "curves f and g, longest T_sub and T_diff",
}


def diffusion_tables(measured: Row) -> Iterator[RenderableType]:
    """Yield tables of times to spread with B(t), r by area, f and g, and d by length of stay."""
    both = [{"of": name, **measured[name]} for name in ("subscriptions", "publications")]
    yield fitting(
        "Spreading over brokers",
        both,
        texts("of", "of"),
        formatted("spreads", "spreads", ","),
        formatted("partial", "partial", ",", spare=1),
        formatted("nowhere", "nowhere", ",", spare=2),
        formatted("cut off", "cut_off", ",", spare=3),
        formatted("brokers", "brokers", ".1f", spare=4),
        _errors("mean", "mean_s", "mean_se_s", " s"),
        _errors("last broker, mean", "typical_s", "typical_se_s", " s"),
        _errors("worst", "worst_s", "worst_se_s", " s"),
        caption="T_sub (subscriptions) and T_diff (publications): time until the last other "
        "broker is reached, on average (last broker, mean) or at worst (worst; ± is its "
        "scatter between recordings of this length). Counted only: partial (reached "
        "fewer brokers than others from there), nowhere, cut off (began too late to be "
        "seen to its end).",
    )
    yield fitting(
        "B(t): share of the other brokers reached after a time",
        [{"of": each["of"], **point} for each in both for point in each["points"]],
        texts("of", "of"),
        cells("after", lambda point: f"{point['time_s']:.3g} s"),
        _errors("reached", "reached", "reached_se"),
    )
    yield fitting(
        "Rapidity r, from the area under B(t)",
        [{"by": _HOW[name], **fit} for name, fit in measured["rapidity"].items()],
        texts("by", "by"),
        _errors("T_sub + T_diff", "within_s", "within_se_s", " s"),
        _errors("r", "value", "error"),
    )
    for name, title in (
        ("f", "f: share delivered, by time from subscribe to publication"),
        ("g", "g: share delivered, by time from T_ON − T_diff to publication"),
    ):
        rows = [row for row in measured["curves"] if row["curve"] == name]
        if rows:
            yield _shares(title, rows, lambda row: f"{row['from_s']:.3g} – {row['to_s']:.3g} s")
    if measured["shares"]:
        yield _shares(
            "d: share delivered of what was published during a subscription, by its length",
            measured["shares"],
            lambda row: f"{row['stay_mean_s']:.3g} s",
            cells("closed form", lambda row: _share(row["closed_form"])),
            cells("by delays", lambda row: _share(row["by_couples"])),
            caption="By delays: E[(T − X)⁺]/T for the mean length T, where X is the sum of both "
            f"measured delays between two brokers ({measured['couples']:,} pairs), "
            "without the last hop to the subscriber.",
        )


def _share(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.4f}"


def _shares(
    title: str, rows: Sequence[Row], time: Callable[[Row], str], *more: Head, caption: str = ""
) -> FittingTable:
    return fitting(
        title,
        rows,
        cells("time", time),
        formatted("events", "events", ",.0f"),
        _errors("share", "notified", "notified_se"),
        *more,
        caption=caption,
    )


def _errors(title: str, key: str, error: str, unit: str = "") -> Head:
    def write(row: Row) -> str:
        known = UNKNOWN if row[key] is None else f"{row[key]:.4g}"
        noise = UNKNOWN if row[error] is None else f"{row[error]:.2g}"
        return f"{known} ± {noise}{unit}"

    return cells(title, write)
