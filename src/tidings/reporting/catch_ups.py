"""Catching up as sentences, a table and a curve, for a terminal or a page."""

from __future__ import annotations

import math

from tidings.model.study import Curves
from tidings.reporting import wording
from tidings.reporting.terminal import FittingTable, Row, cells, fitting, formatted, names, number

_WIDE, _HIGH = 60, 8  # characters of a curve
_EIGHTHS = " ▁▂▃▄▅▆▇█"


def sentences(document: Row) -> list[str]:
    """Write in words how long it takes and how many events are late."""
    answer = document["catch_up"]
    queue = f"{answer['what']} '{answer['queue']}'"
    offered = wording.rate(number(answer, "rate_per_s"), "events")
    handled = wording.rate(number(answer, "capacity_per_s"), "events")
    if not answer["replications"]:
        return [
            f"Never caught up: {queue} is offered {offered} and can handle {handled}, so that the "
            "backlog only grows. Add members or servers, make them faster, or send fewer events."
        ]
    backlog, usual = number(answer, "backlog"), answer["usual_backlog"]
    start = (
        f"From {answer['from']} of {queue} ({_events(backlog)} waiting, after "
        f"{wording.seconds(number(answer, 'stopped_s'))} in which none was handled)"
    )
    if answer["caught_up"] < answer["replications"]:
        stuck = answer["replications"] - answer["caught_up"]
        return [
            f"Not caught up: {start}, {stuck} of {answer['replications']} replications still had "
            f"more than {_events(usual)} waiting {wording.seconds(number(answer, 'waited_s'))} "
            f"later. It is offered {offered} and can handle {handled} if none is handled twice."
        ]
    gone = wording.seconds(number(answer, "gone_s"), number(answer, "gone_error_s"))
    words = [
        f"Caught up after {gone}. {start}. The backlog is gone the first time that no more than "
        f"{_events(usual)} wait{'s' if usual == 1 else ''}, the usual number."
    ]
    if answer["fluid_s"] is not None:
        words.append(
            f"Check: backlog / (capacity - rate) gives {wording.seconds(answer['fluid_s'])} "
            f"({handled} - {offered})."
        )
    late, error = number(answer, "late"), number(answer, "late_error")
    words.append(
        f"Late: {late:,.0f} ± {error:,.0f} of the events published from the stop until then."
    )
    return words


def _events(count: float) -> str:
    return f"{count:,.0f} event{'' if round(count) == 1 else 's'}"


def late_table(document: Row, limit: int | None = None) -> FittingTable:
    """List how many events of each subscriber are late or lost until the backlog is gone."""
    return fitting(
        "Published from the stop until then",
        sorted(document["subscribers"], key=lambda row: -(row["late"] + row["lost"])),
        names("subscriber"),
        *(formatted(name, name, ",.0f") for name in ("wanted", "late", "lost")),
        cells("late or lost", lambda row: wording.percent(_share(row))),
        limit=limit,
        noun="subscribers",
    )


def _share(row: Row) -> float:
    return (row["late"] + row["lost"]) / row["wanted"] if row["wanted"] else math.nan


def text_curve(document: Row) -> str:
    """Draw the backlog against time, as bars of characters.

    >>> points = [{"after_s": float(t), "backlog": 10.0 - 2 * t} for t in range(6)]
    >>> print(text_curve({"curve": points}).splitlines()[-1].strip())
    0 s                                                      5 s
    """
    curve = document["curve"]
    most = max(number(point, "backlog") for point in curve)
    heights = []
    for place in range(_WIDE):
        point = curve[min(round(place * (len(curve) - 1) / (_WIDE - 1)), len(curve) - 1)]
        share = number(point, "backlog") / most if most > 0.0 else 0.0
        heights.append(round(share * _HIGH * 8))
    lines = []
    for row in range(_HIGH - 1, -1, -1):
        label = f"{most:,.0f}" if row == _HIGH - 1 else "0" if row == 0 else ""
        bars = "".join(_EIGHTHS[min(max(height - 8 * row, 0), 8)] for height in heights)
        lines.append(f"{label:>9} {bars}".rstrip())
    first, last = (wording.seconds(number(curve[at], "after_s")) for at in (0, -1))
    lines.append(f"{'':>9} {first}{last:>{_WIDE - len(first)}}")
    return "\n".join(["Events waiting", *lines])


def exhibits(document: Row) -> list[FittingTable | Curves]:
    """List what a page shows: who gets late events, and the curve."""
    table = [late_table(document)] if document["subscribers"] else []
    points = [
        (number(point, "after_s"), number(point, "backlog"), number(point, "backlog_error"))
        for point in document["curve"]
    ]
    if not points:
        return [*table]
    ends = {
        "upper end (95 %)": tuple((t, n + e) for t, n, e in points),
        "lower end (95 %)": tuple((t, max(n - e, 0.0)) for t, n, e in points),
    }
    curve = Curves(
        title="Backlog after the queue goes on",
        lines={"backlog": tuple((t, n) for t, n, _ in points), **ends},
        x_label="seconds",
        y_label="events that wait",
    )
    return [*table, curve]
