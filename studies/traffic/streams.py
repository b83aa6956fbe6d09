"""Publishing times of real streams, from public data in Parquet tables, in seconds.

Each folder of the data is optional: what is not there is left out. ``streams`` are those that rules
were found on; ``others`` were kept apart until the rules stood.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from tidings.model.arrays import Floats

Named = Iterator[tuple[str, Floats]]
LEAST = 800  # events of a stream


def streams(data: Path) -> Named:
    """Give the name and the sorted times, in seconds since 1970 or a midnight, of every stream."""
    return _read(data, _READERS)


def others(data: Path) -> Named:
    """Give streams that no rule was found on: kinds of calls, carriers, checks, failures, ..."""
    return _read(data, _OTHERS)


def _read(data: Path, readers: Mapping[str, Callable[[Path], Named]]) -> Named:
    for folder, read in readers.items():
        if (data / folder).is_dir():
            for name, times_s in read(data / folder):
                if len(times_s) >= LEAST:
                    yield f"{folder}: {name}", np.sort(times_s)


def _seconds(moments: pd.Series) -> Floats:
    return pd.to_datetime(moments, utc=True).dt.as_unit("ns").astype("int64").to_numpy() / 1e9


def _requests(folder: Path) -> Named:
    rows = pd.read_parquet(folder / "requests.parquet")
    for service, part in rows.groupby("service"):
        yield str(service), part["ticks_100ns"].to_numpy() / 1e7


def _parts_of_requests(folder: Path) -> Named:
    for service, times_s in _requests(folder):
        ordered_s = np.sort(times_s)
        yield f"{service}, first half", ordered_s[: len(ordered_s) // 2]
        yield f"{service}, last 20 minutes", ordered_s[ordered_s > ordered_s[-1] - 1200.0]


def _calls(folder: Path) -> Named:
    rows = pd.read_parquet(folder / "calls.parquet").dropna(subset=["arrival"])
    for month, part in rows.groupby(rows["arrival"].dt.month):
        yield f"month {month}", _seconds(part["arrival"])


def _calls_by_kind(folder: Path) -> Named:
    rows = pd.read_parquet(folder / "calls.parquet").dropna(subset=["arrival"])
    arrival = rows["arrival"].dt
    for (month, kind), part in rows.groupby([arrival.month, "type"]):
        yield f"{kind}, month {month}", _seconds(part["arrival"])
    for month, part in rows.groupby(arrival.month):
        moments = part["arrival"]
        yield f"days 4 to 8, month {month}", _seconds(moments[moments.dt.day.between(4, 8)])
        by_day = moments.dt.hour.between(9, 16)
        for day in (11, 13):
            yield f"day {day}, month {month}", _seconds(moments[by_day & (moments.dt.day == day)])


def _frames(folder: Path) -> Named:
    rows = pd.read_parquet(folder / "frames.parquet")
    for device, part in rows.groupby("device"):
        yield str(device)[-4:], _seconds(part["ts"])


def _flights(folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    rows = pd.read_parquet(folder / "flights.parquet").dropna(subset=["dep_time", "dep_delay"])
    scheduled = rows["sched_dep_time"].astype(int)
    minutes = scheduled // 100 * 60 + scheduled % 100 + rows["dep_delay"]
    left = pd.to_datetime(rows[["year", "month", "day"]]) + pd.to_timedelta(minutes, unit="m")
    return rows, left


def _departures(folder: Path) -> Named:
    rows, left = _flights(folder)
    for origin, part in left.groupby(rows["origin"]):
        yield str(origin), _seconds(part)


def _carriers(folder: Path) -> Named:
    rows, left = _flights(folder)
    for carrier in ("UA", "B6", "DL", "MQ", "WN"):
        yield carrier, _seconds(left[rows["carrier"] == carrier])
    for first in (1, 4, 9):
        chosen = rows["month"].between(first, first + 1)
        yield f"months {first} and {first + 1}", _seconds(left[chosen])


def _checks(folder: Path) -> Named:
    rows = pd.read_parquet(folder / "events.parquet")
    for monitor, part in rows.groupby("monitor"):
        if len(part) > 3000:
            yield str(monitor), _seconds(part["ts"])


def _responses(folder: Path) -> Named:
    """One client that sends the next message when it has the answer to the last."""
    rows = pd.read_parquet(folder / "responses.parquet").dropna(subset=["response_time_ms"])
    for run, part in rows.groupby("run"):
        yield str(run), part.sort_values("msg_id")["response_time_ms"].cumsum().to_numpy() / 1e3


def _failures(folder: Path) -> Named:
    rows = pd.read_parquet(folder / "lanl05_events.parquet")
    down = rows.loc[rows["event_type"] == 0, "event_start_time"]
    yield "failures of all nodes", down.to_numpy(np.float64)


_READERS: dict[str, Callable[[Path], Named]] = {
    "azure_llm": _requests,
    "call_centre": _calls,
    "lorawan": _frames,
    "airport_weather": _departures,
}
_OTHERS: dict[str, Callable[[Path], Named]] = {
    "azure_llm": _parts_of_requests,
    "call_centre": _calls_by_kind,
    "airport_weather": _carriers,
    "site_uptime": _checks,
    "mqtt_response": _responses,
    "fta": _failures,
}
