"""Publishing times of real streams, from public data in Parquet tables, in seconds.

Each folder of the data is optional: what is not there is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from tidings.model.arrays import Floats


def streams(data: Path) -> Iterator[tuple[str, Floats]]:
    """Give the name and the sorted times, in seconds since 1970 or a midnight, of every stream."""
    for folder, read in _READERS.items():
        if (data / folder).is_dir():
            for name, times_s in read(data / folder):
                yield f"{folder}: {name}", np.sort(times_s)


def _seconds(moments: pd.Series) -> Floats:
    return pd.to_datetime(moments, utc=True).dt.as_unit("ns").astype("int64").to_numpy() / 1e9


def _requests(folder: Path) -> Iterator[tuple[str, Floats]]:
    rows = pd.read_parquet(folder / "requests.parquet")
    for service, part in rows.groupby("service"):
        yield str(service), part["ticks_100ns"].to_numpy() / 1e7


def _calls(folder: Path) -> Iterator[tuple[str, Floats]]:
    rows = pd.read_parquet(folder / "calls.parquet").dropna(subset=["arrival"])
    for month, part in rows.groupby(rows["arrival"].dt.month):
        yield f"month {month}", _seconds(part["arrival"])


def _frames(folder: Path) -> Iterator[tuple[str, Floats]]:
    rows = pd.read_parquet(folder / "frames.parquet")
    for device, part in rows.groupby("device"):
        yield str(device)[-4:], _seconds(part["ts"])


def _departures(folder: Path) -> Iterator[tuple[str, Floats]]:
    rows = pd.read_parquet(folder / "flights.parquet").dropna(subset=["dep_time", "dep_delay"])
    scheduled = rows["sched_dep_time"].astype(int)
    minutes = scheduled // 100 * 60 + scheduled % 100 + rows["dep_delay"]
    left = pd.to_datetime(rows[["year", "month", "day"]]) + pd.to_timedelta(minutes, unit="m")
    for origin, part in left.groupby(rows["origin"]):
        yield str(origin), _seconds(part)


_READERS: dict[str, Callable[[Path], Iterator[tuple[str, Floats]]]] = {
    "azure_llm": _requests,
    "call_centre": _calls,
    "lorawan": _frames,
    "airport_weather": _departures,
}
