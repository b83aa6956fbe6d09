"""Budgets of lost and late events as tables for a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidings.reporting import wording
from tidings.reporting.terminal import Column, FittingTable, name_column, points
from tidings.reporting.what_ifs import number

Row = Mapping[str, Any]


def effect_table(document: Row) -> FittingTable:
    """What each effect costs all events together, dearest first."""
    rows = sorted(document["effects"], key=lambda row: -number(row, "share"))
    return FittingTable(
        title=f"On time: {wording.percent(document['on_time'])}. Gain if one effect is switched "
        "off",
        columns=[
            Column(title="effect", cells=[row["effect"] for row in rows], left=True),
            Column(title="", cells=[row["meaning"] for row in rows], left=True, spare=1),
            Column(title="gain", cells=[points(number(row, "share")) for row in rows]),
        ],
        caption="each effect is switched off alone; effects overlap, so gains do not add up",
    )


def worst_table(document: Row) -> FittingTable:
    """The worst subscribers, and what each effect costs them."""
    rows = document["subscribers"]
    effects = [row["effect"] for row in document["effects"]]
    return FittingTable(
        title="Worst subscribers: on-time share, and gain if one effect is switched off",
        columns=[
            name_column([row["subscriber"] for row in rows], "subscriber"),
            name_column([row["broker"] for row in rows], "at", spare=9),
            Column(
                title="on time", cells=[wording.percent(number(row, "on_time")) for row in rows]
            ),
            *(
                Column(
                    title=effect,
                    cells=[points(number(row["costs"][effect], "share")) for row in rows],
                    spare=rank,
                )
                for rank, effect in enumerate(_dearest_first(document, effects))
            ),
        ],
    )


def delay_table(document: Row) -> FittingTable:
    """The mean delay of the worst subscribers, and how much shorter it would be."""
    rows = document["subscribers"]
    effects = _dearest_first(document, [row["effect"] for row in document["effects"]])
    return FittingTable(
        title="Worst subscribers: mean delay, and reduction if one effect is switched off",
        columns=[
            name_column([row["subscriber"] for row in rows], "subscriber"),
            Column(title="delay", cells=[_time(row, "delay_mean_s") for row in rows]),
            *(
                Column(
                    title=effect,
                    cells=[_time(row["costs"][effect], "delay_s") for row in rows],
                    spare=rank,
                )
                for rank, effect in enumerate(effects)
            ),
        ],
    )


def remedy_table(document: Row, limit: int) -> FittingTable:
    """Single changes, those that help most first."""
    rows = document["remedies"][:limit]
    return FittingTable(
        title="Single changes that help most",
        columns=[
            name_column([row["change"] for row in rows], "change"),
            Column(
                title="on time", cells=[wording.percent(number(row, "on_time")) for row in rows]
            ),
            Column(title="gain", cells=[points(number(row, "gain")) for row in rows]),
        ],
    )


def _dearest_first(document: Row, effects: list[str]) -> list[str]:
    shares = {row["effect"]: number(row, "share") for row in document["effects"]}
    return sorted(effects, key=lambda effect: -shares[effect])


def _time(row: Row, name: str) -> str:
    return wording.seconds(number(row, name))
