"""Planted traces made dirty, whole and cut into days, so that parts can be held against the whole.

Every row is on the day on which it happened: an event of one day may be received on the next.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

EPOCH_NS = 1_700_000_000_000_000_000
WINDOW_S = 32.0
DAYS = 2  # of which 32 batches are whole parts of those of all
TIMES = {
    "publications": "published_ns", "hops": "arrived_ns", "deliveries": "received_ns",
    "probes": "sent_ns", "subscriptions": "at_ns", "states": "at_ns", "sessions": "at_ns",
    "utilisation": "until_ns",
}  # fmt: skip


# When subscribers leave and come back: one over the end of a day, one on the second day only.
COME_AND_GO = {"carol": (5.0, 9.0, 14.0, 15.0, 20.0, 26.0), "bob": (18.0, 19.5)}


def with_copies(table: pd.DataFrame) -> pd.DataFrame:
    """Every seventh row twice, and every twenty-first another time."""
    return pd.concat([table, table.iloc[::7], table.iloc[::21]], ignore_index=True)


def changes_of(column: str, name: str, states: tuple[str, str], *seconds: float) -> pd.DataFrame:
    """A component or peer that begins in the first of two states and changes at these seconds."""
    rows = [
        (name, states[turn % 2], EPOCH_NS + round(second * 1e9))
        for turn, second in enumerate((0.0, *seconds))
    ]
    return pd.DataFrame(rows, columns=[column, "state", "at_ns"])


def dirty(tables: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The tables with copies, conflicts, bad contents, missing starts and impossible rows.

    What was delivered to those who were away stays there, as if it had come too late.
    """
    published, hops, deliveries = (tables[n] for n in ("publications", "hops", "deliveries"))
    copies = published.iloc[::97]
    later = published.iloc[::211].assign(published_ns=lambda t: t["published_ns"] + 1_000_000)
    nonsense = published.iloc[::301].assign(content="{", event=lambda t: t["event"] + "x")
    hops = hops.copy()
    hops["started_ns"] = hops["started_ns"].astype("Int64").mask(hops["broker"] == "east")
    hops.loc[hops.index[::53], "left_ns"] = 5
    strays = deliveries.iloc[::89].assign(event=lambda t: t["event"] + "?")
    steps = tables["subscriptions"]
    for name, turns_s in COME_AND_GO.items():
        mine = steps[steps["subscriber"] == name]
        turns = pd.concat([mine] * len(turns_s), ignore_index=True)
        turns["at_ns"] = [EPOCH_NS + round(second * 1e9) for second in turns_s]
        turns["action"] = ["unsubscribe", "subscribe"] * (len(turns_s) // 2)
        steps = pd.concat([steps, turns], ignore_index=True)
    return {
        **tables,
        "probes": with_copies(tables["probes"]),
        "subscriptions": with_copies(steps),
        "publications": pd.concat([published, copies, later, nonsense], ignore_index=True),
        "hops": with_copies(hops),
        "deliveries": pd.concat([deliveries, deliveries.iloc[::71], strays], ignore_index=True),
        "states": with_copies(
            changes_of("component", "hub", ("up", "down"), *np.arange(1.5, 32, 2.0))
        ),
        "utilisation": with_copies(
            pd.DataFrame(
                {
                    "broker": "hub",
                    "resource": "cpu",
                    "until_ns": [EPOCH_NS + round(second * 1e9) for second in np.arange(2.0, 33.0)],
                    "interval_ns": [1_000_000_000, 0] + 29 * [1_000_000_000],
                    "busy": 29 * [0.5] + [1.5, -0.5],
                }
            )
        ),
    }


def handled(tables):
    """The tables with a group: Alice is two members, and some of her events are handled twice."""
    deliveries = tables["deliveries"].copy()
    mine = deliveries["subscriber"] == "alice"
    member = deliveries["event"].map(lambda event: "mn"[hash_of(event) % 2])
    deliveries["member"] = member.where(mine, None)
    deliveries["part"] = deliveries["event"].map(lambda e: str(hash_of(e) // 2 % 3)).where(mine)
    took = deliveries["event"].map(lambda event: (1 + hash_of(event) % 7) * 10**5)
    deliveries["started_ns"] = (deliveries["received_ns"] - took).where(mine).astype("Int64")
    again = deliveries[mine].iloc[::13].copy()
    again["member"] = again["member"].map({"m": "n", "n": "m"})
    for time in ("received_ns", "started_ns"):
        again[time] += 60_000_000
    return {**tables, "deliveries": pd.concat([deliveries, again], ignore_index=True)}


def hash_of(event):
    """A number of an event that is the same in every run."""
    return sum(ord(letter) * (place + 1) for place, letter in enumerate(event))


def write_tables(
    tables: dict[str, pd.DataFrame], folder: Path, from_ns: int, until_ns: int
) -> Path:
    """The traces as Parquet tables with a manifest."""
    for name, table in tables.items():
        (folder / name).mkdir(parents=True)
        table.to_parquet(folder / name / "part-0.parquet", index=False)
    manifest = {"version": 1, "from_ns": from_ns, "until_ns": until_ns, "source": "planted"}
    (folder / "traces.json").write_text(json.dumps(manifest))
    return folder


def write_days(tables: dict[str, pd.DataFrame], place: Path) -> tuple[Path, list[Path]]:
    """All of it in one folder, and a folder a day."""
    length_ns = round(WINDOW_S * 1e9) // DAYS
    whole = write_tables(tables, place / "whole", EPOCH_NS, EPOCH_NS + DAYS * length_ns)
    days = []
    for day in range(DAYS):
        begin = EPOCH_NS + day * length_ns
        rows = {}
        for name, table in tables.items():
            number = ((table[TIMES[name]] - EPOCH_NS) // length_ns).clip(0, DAYS - 1)
            rows[name] = table[number == day]
        days.append(write_tables(rows, place / f"day{day}", begin, begin + length_ns))
    return whole, days
