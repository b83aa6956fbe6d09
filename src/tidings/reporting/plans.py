"""Plans as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidings.reporting import wording
from tidings.reporting.terminal import Column, FittingTable, hidden, name_column, points
from tidings.reporting.what_ifs import number

Row = Mapping[str, Any]
BESIDE = 3  # so many sizes on either side of the answer are shown


def scheme_tables(advice: Mapping[str, Any]) -> list[FittingTable]:
    """All recovery schemes side by side: what subscribers get, then what that costs."""
    rows = advice["schemes"]

    def column(title: str, write: Callable[[Row], str], **how: Any) -> Column:
        return Column(title=title, cells=[write(row) for row in rows], **how)

    chosen, equal = advice["choice"], advice["equally_cheap"]

    def mark(row: Row) -> str:
        return "◀" if row["scheme"] == chosen else "=" if row["scheme"] in equal else _open(row)

    def share(name: str) -> Callable[[Row], str]:
        return lambda row: f"{row['on_time'][name]:.4f}"

    def count(name: str) -> Callable[[Row], str]:
        return lambda row: _for_each(row[name])

    name = column("scheme", lambda row: str(row["scheme"]), left=True)
    given = [
        name,
        column("on time", _on_time),
        column("worst", share("worst")),
        column("p05", share("p05")),
        column("p50", share("p50")),
        column("error", _error, spare=1),
        column("simulated", _simulated, spare=2),
        column("on target", lambda row: f"{100 * row['satisfied']:.1f} %"),
        column("simulated", _satisfied_simulated, spare=3),
        column("", mark, left=True),
    ]
    costs = [
        name,
        column("messages", _cost),
        column("events", count("transmissions")),
        column("acknowledgements", count("acknowledgements"), spare=2),
        column("refreshes", count("refreshes"), spare=1),
        column("duplicates", count("duplicates")),
        column("", mark, left=True),
    ]
    return [
        FittingTable(
            title="On-time shares under each recovery scheme",
            columns=given,
            caption="on time: mean over events, by theory (~: partly by simulation); worst, p05, "
            "p50: lowest, 5th percentile and median of the subscribers; error: largest "
            "error of a subscriber's share; on target: share of subscribers that reach "
            "their target; simulated: with its error (95 %)",
        ),
        FittingTable(
            title="Messages between brokers for each delivery, simulated",
            columns=costs,
            caption="messages (± standard error): events, acknowledgements and refreshed "
            "subscriptions; not counted: how brokers that bypass learn what is up; ◀: "
            "chosen; ?: undecided whether the target is met; =: same cost within the "
            "error",
        ),
    ]


def _for_each(count: float | None) -> str:
    """Of nothing that arrives there is nothing for each delivery."""
    return "–" if count is None else f"{count:.3f}"


def _cost(row: Row) -> str:
    error = row["cost_se"]
    return _for_each(row["cost"]) + (f" ± {error:.3f}" if error is not None else "")


def _on_time(row: Row) -> str:
    return f"{'' if row['by'] == 'theory' else '~'}{row['on_time']['mean']:.4f}"


def _error(row: Row, name: str = "error", percent: float = 1.0) -> str:
    return "± ?" if row[name] is None else f"± {percent * row[name]:.2g}"


def _simulated(row: Row) -> str:
    return f"{row['simulated']:.4f} {_error(row, 'simulated_error')}"


def _satisfied_simulated(row: Row) -> str:
    error = _error(row, "satisfied_simulated_error", 100.0)
    return f"{100 * row['satisfied_simulated']:.1f} {error} %"


def deadline_table(document: Row, limit: int | None = None) -> FittingTable:
    """The shortest lifetimes, longest first."""
    levels = [f"p{100 * level:g}_s" for level in document["levels"]]
    rows = sorted(document["subscribers"], key=lambda row: -_time_s(row, levels[-1]))
    shown = rows if limit is None else rows[:limit]
    return FittingTable(
        title="Shortest lifetime for a given share on time",
        columns=[
            name_column([row["subscriber"] for row in shown], "subscriber"),
            name_column([row["broker"] for row in shown], "at", spare=2),
            *(
                Column(title=f"{100 * level:g} %", cells=[_time(row, name) for row in shown])
                for level, name in zip(document["levels"], levels, strict=True)
            ),
            Column(
                title="delivered",
                cells=[wording.percent(number(row, "best")) for row in shown],
                spare=1,
            ),
        ],
        caption=". ".join(
            each
            for each in (
                "–: no lifetime is long enough; delivered: share that arrives at all, however late",
                hidden(len(shown), len(rows)),
            )
            if each
        ),
    )


def capacity_table(document: Row) -> FittingTable:
    """The sizes around the answer, the present and the largest: how far each is from the target."""
    rows = document["options"]
    shown = _around(rows, document["best"] if document["choice"] is None else document["choice"])
    return _standings(
        "Sizes that were tried",
        shown,
        Column(
            title="times as fast" if document["what"] == "speed" else document["what"],
            cells=[f"{row['size']:.4g}" for row in shown],
        ),
        marks=["◀" if row["size"] == document["choice"] else _open(row) for row in shown],
        left_out=hidden(len(shown), len(rows), "sizes"),
    )


def settings_table(document: Row) -> FittingTable:
    """What becomes of redelivery under other settings of a consumer group."""
    rows = document["settings"]
    return FittingTable(
        title="Settings against handling events twice",
        columns=[
            name_column([row["change"] for row in rows], "change"),
            Column(
                title="handled again",
                cells=[wording.percent(number(row, "handled_again")) for row in rows],
            ),
            Column(
                title="on time", cells=[wording.percent(number(row, "on_time")) for row in rows]
            ),
            Column(
                title="", cells=["◀" if row["chosen"] else "" for row in rows], left=True, spare=1
            ),
        ],
        caption="handled again: share of its events that are handled more than once",
    )


def targets_table(document: Row) -> FittingTable:
    """How the system stands to its targets, by each engine that was asked."""
    rows = [each for each in (document["predicted"], document["simulated"]) if each is not None]
    said = {"meets": "met", "misses": "not met", "undecided": "undecided"}
    return _standings(
        title=f"Targets {said[document['verdict']]}",
        rows=rows,
        first=Column(title="by", cells=[str(row["source"]) for row in rows], left=True),
        marks=[said[row["tells"]] for row in rows],
        left_out="",
    )


def mix_table(document: Row) -> FittingTable:
    """The brokers that must be faster, the dearest first."""
    rows = document["mix"]
    return FittingTable(
        title="Brokers to make faster" if rows else "No broker needs to be faster",
        columns=[
            name_column([row["broker"] for row in rows], "broker"),
            Column(title="times as fast", cells=[f"{row['size']:.3g}" for row in rows]),
            Column(title="cost", cells=[f"{row['cost']:.3g}" for row in rows]),
            Column(title="load", cells=[wording.percent(row["load"]) for row in rows]),
            Column(title="then", cells=[wording.percent(row["load_after"]) for row in rows]),
        ],
        caption="cost: of the added speed, in present speeds of a broker of cost 1; load: share of "
        "the present speed that is needed",
    )


def _around(rows: Sequence[Row], size: float) -> list[Row]:
    place = [row["size"] for row in rows].index(size)
    return [
        row
        for index, row in enumerate(rows)
        if abs(index - place) <= BESIDE or row["size"] == 1 or index == len(rows) - 1
    ]


def homes_table(document: Row, limit: int | None = None) -> FittingTable:
    """Who should move where."""
    moves = list(document["moves"].items())
    shown = moves if limit is None else moves[:limit]
    return FittingTable(
        title="Subscribers to move" if moves else "No subscriber needs to move",
        columns=[
            name_column([name for name, _ in shown], "subscriber"),
            name_column([move["from"] for _, move in shown], "from"),
            name_column([move["to"] for _, move in shown], "to"),
        ],
        caption=hidden(len(shown), len(moves), "moves"),
    )


def admission_table(document: Row, limit: int | None = None) -> FittingTable:
    """What a newcomer would get at each broker, and who would be nearest to its target."""
    rows = document["places"]
    shown = rows if limit is None else rows[:limit]
    return FittingTable(
        title=f"{wording.plural(document['count'], 'new subscriber')} like "
        f"{document['subscriber'].removeprefix('newcomer like ')}",
        columns=[
            name_column([row["broker"] for row in shown], "at"),
            Column(title="gets", cells=[wording.percent(number(row, "share")) for row in shown]),
            Column(title="lowest margin", cells=[points(number(row, "margin")) for row in shown]),
            name_column([row["who"] for row in shown], "of subscriber", spare=1),
            Column(title="", cells=[_open(row, _admitted(row)) for row in shown], left=True),
        ],
        caption=hidden(len(shown), len(rows), "brokers"),
    )


def _admitted(row: Row) -> str:
    return "admitted" if row["admits"] else ""


def _open(row: Row, otherwise: str = "") -> str:
    """A mark where it cannot be told whether the target is met."""
    return "?" if row.get("verdict") == "undecided" else otherwise


def _standings(
    title: str, rows: Sequence[Row], first: Column, marks: list[str], left_out: str
) -> FittingTable:
    return FittingTable(
        title=title,
        columns=[
            first,
            Column(title="on time", cells=[wording.percent(number(r, "on_time")) for r in rows]),
            Column(
                title="on target", cells=[wording.percent(number(r, "satisfied")) for r in rows]
            ),
            Column(title="lowest margin", cells=[points(number(r, "margin")) for r in rows]),
            name_column([row["worst"] for row in rows], "of subscriber", spare=1),
            Column(title="", cells=marks, left=True),
        ],
        caption="on target: share of subscribers that reach their target; margin: on-time share "
        "minus target, of the subscriber named; ◀: chosen; ?: undecided"
        + (f". {left_out}" if left_out else ""),
    )


def _time(row: Row, name: str) -> str:
    return wording.UNKNOWN if row[name] is None else wording.seconds(float(row[name]))


def _time_s(row: Row, name: str) -> float:
    return math.inf if row[name] is None else float(row[name])
