"""Plans as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from tidings.reporting import wording
from tidings.reporting.terminal import (
    FittingTable,
    Head,
    Row,
    cells,
    fitting,
    formatted,
    gains,
    hidden,
    names,
    shares,
    texts,
)

BESIDE = 3  # so many sizes on either side of the answer are shown
_SAID = {"meets": "met", "misses": "not met", "undecided": "undecided"}


def scheme_tables(advice: Row) -> list[FittingTable]:
    """Show all recovery schemes side by side: what subscribers get, then what that costs."""
    chosen, equal = advice["choice"], advice["equally_cheap"]

    def mark(row: Row) -> str:
        return "◀" if row["scheme"] == chosen else "=" if row["scheme"] in equal else _open(row)

    def share(name: str) -> Callable[[Row], str]:
        return lambda row: f"{row['on_time'][name]:.4f}"

    def count(name: str) -> Callable[[Row], str]:
        return lambda row: _for_each(row[name])

    return [
        fitting(
            "On-time shares under each recovery scheme",
            advice["schemes"],
            texts("scheme", "scheme"),
            cells("on time", _on_time),
            *(cells(name, share(name)) for name in ("worst", "p05", "p50")),
            cells("error", _error, spare=1),
            cells("simulated", _simulated, spare=2),
            cells("on target", lambda row: f"{100 * row['satisfied']:.1f} %"),
            cells("simulated", _satisfied_simulated, spare=3),
            cells("", mark, left=True),
            caption="on time: mean over events, by theory (~: partly by simulation); worst, p05, "
            "p50: lowest, 5th percentile and median of the subscribers; error: largest "
            "error of a subscriber's share; on target: share of subscribers that reach "
            "their target; simulated: with its error (95 %), or from where to where it may lie",
        ),
        fitting(
            "Messages between brokers for each delivery, simulated",
            advice["schemes"],
            texts("scheme", "scheme"),
            cells("messages", _cost),
            cells("events", count("transmissions")),
            cells("acknowledgements", count("acknowledgements"), spare=2),
            cells("refreshes", count("refreshes"), spare=1),
            cells("duplicates", count("duplicates")),
            cells("", mark, left=True),
            caption="messages (± standard error): events, acknowledgements and refreshed "
            "subscriptions; not counted: how brokers that bypass learn what is up; ◀: "
            "chosen; ?: undecided whether the target is met; =: same cost within the "
            "error",
        ),
    ]


def _for_each(count: float | None) -> str:
    """Write a count for each delivery; a dash where nothing arrives."""
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
    """Write the share and, where its error leaves more, from where to where it may lie."""
    least, most = (100 * row[f"satisfied_simulated_{each}"] for each in ("least", "most"))
    between = "" if least == most else f" ({least:.0f}–{most:.0f})"
    return f"{100 * row['satisfied_simulated']:.1f}{between} %"


def deadline_table(document: Row, limit: int | None = None) -> FittingTable:
    """List the shortest lifetimes, longest first."""
    levels = {f"{100 * level:g} %": f"p{100 * level:g}_s" for level in document["levels"]}
    last = [*levels.values()][-1]

    def time(name: str) -> Callable[[Row], str]:
        return lambda row: wording.UNKNOWN if row[name] is None else wording.seconds(row[name])

    return fitting(
        "Shortest lifetime for a given share on time",
        sorted(document["subscribers"], key=lambda row: -_time_s(row, last)),
        names("subscriber"),
        names("broker", "at", spare=2),
        *(cells(title, time(name)) for title, name in levels.items()),
        shares("delivered", "best", spare=1),
        limit=limit,
        noun="subscribers",
        caption="–: no lifetime is long enough; delivered: share that arrives at all, however late",
    )


def capacity_table(document: Row) -> FittingTable:
    """List the sizes around the answer, the present and the largest, with how far each is off.

    That is how far each is from the target.
    """
    rows, choice = document["options"], document["choice"]
    shown = _around(rows, document["best"] if choice is None else choice)
    return _standings(
        "Sizes that were tried",
        shown,
        formatted(
            "times as fast" if document["what"] == "speed" else document["what"], "size", ".4g"
        ),
        lambda row: "◀" if row["size"] == choice else _open(row),
        hidden(len(shown), len(rows), "sizes"),
    )


def settings_table(document: Row) -> FittingTable:
    """List what becomes of redelivery under other settings of a consumer group."""
    return fitting(
        "Settings against handling events twice",
        document["settings"],
        names("change"),
        shares("handled again", "handled_again"),
        shares("on time", "on_time"),
        cells("", lambda row: "◀" if row["chosen"] else "", left=True, spare=1),
        caption="handled again: share of its events that are handled more than once",
    )


def helps_table(document: Row) -> FittingTable:
    """List what meets the target beyond members and partitions of a consumer group."""

    def simulated(row: Row) -> str:
        played = row["simulated"]
        return "" if played is None else wording.percent(played["on_time"])

    return fitting(
        "What else meets the target",
        document["helps"],
        cells("changes", lambda row: "; ".join(row["changes"]), left=True),
        shares("on time", "on_time"),
        cells("simulated", simulated),
        caption="keys even: hot keys split until all partitions have as much; processing: faster "
        "members",
    )


def targets_table(document: Row) -> FittingTable:
    """Compare the system with its targets, by each engine that was asked."""
    return _standings(
        f"Targets {_SAID[document['verdict']]}",
        [each for each in (document["predicted"], document["simulated"]) if each is not None],
        texts("by", "source"),
        lambda row: _SAID[row["tells"]],
    )


def mix_table(document: Row) -> FittingTable:
    """List the brokers that must be faster, the dearest first."""
    return fitting(
        "Brokers to make faster" if document["mix"] else "No broker needs to be faster",
        document["mix"],
        names("broker"),
        formatted("times as fast", "size", ".3g"),
        formatted("cost", "cost", ".3g"),
        shares("load", "load"),
        shares("then", "load_after"),
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
    """List which subscribers should move where."""
    moves = [{"subscriber": name, **move} for name, move in document["moves"].items()]
    return fitting(
        "Subscribers to move" if moves else "No subscriber needs to move",
        moves,
        names("subscriber"),
        names("from"),
        names("to"),
        limit=limit,
        noun="moves",
    )


def admission_table(document: Row, limit: int | None = None) -> FittingTable:
    """List what a newcomer would get at each broker, and who would be nearest to its target."""
    return fitting(
        f"{wording.plural(document['count'], 'new subscriber')} like "
        f"{document['subscriber'].removeprefix('newcomer like ')}",
        document["places"],
        names("broker", "at"),
        shares("gets", "share"),
        gains("lowest margin", "margin"),
        names("who", "of subscriber", spare=1),
        cells("", lambda row: _open(row, "admitted" if row["admits"] else ""), left=True),
        limit=limit,
        noun="brokers",
    )


def _open(row: Row, otherwise: str = "") -> str:
    """Mark where it cannot be decided whether the target is met."""
    return "?" if row.get("verdict") == "undecided" else otherwise


def _standings(
    title: str, rows: Sequence[Row], first: Head, mark: Callable[[Row], str], left_out: str = ""
) -> FittingTable:
    said = (
        "on target: share of subscribers that reach their target; margin: on-time share minus "
        "target, of the subscriber named; ◀: chosen; ?: undecided"
    )
    return fitting(
        title,
        rows,
        first,
        shares("on time", "on_time"),
        shares("on target", "satisfied"),
        gains("lowest margin", "margin"),
        names("worst", "of subscriber", spare=1),
        cells("", mark, left=True),
        caption=f"{said}. {left_out}" if left_out else said,
    )


def _time_s(row: Row, name: str) -> float:
    return math.inf if row[name] is None else float(row[name])
