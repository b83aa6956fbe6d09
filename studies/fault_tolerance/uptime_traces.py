"""Times up and down of real machines and services, from two public formats of traces.

- **Failure Trace Archive**: a row per period of a node, with ``event_type`` 1 (up) or 0 (down).
- **Checks** of sites: a row per check with ``status``; what is not ``down`` is up. A table
  ``sites.parquet`` beside it may name sites that are broken on purpose (``test_target``).

Observation cuts periods off. A period whose end was not seen counts with the length that was seen,
as at least that long. One whose beginning was not seen is older than we know and is left out. Both
are true to the law of whole periods; components that never changed say nothing about it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tidings.errors import InvalidInputError
from tidings.model.plain_files import open_plain

NODE_COLUMNS = ("node_id", "event_type", "event_start_time", "event_stop_time")
CHECK_COLUMNS = ("monitor", "site_id", "ts", "status")
SITE_COLUMNS = ("monitor", "site_id", "test_target")
SITES = "sites.parquet"
PERIOD_COLUMNS = ("scope", "component", "up", "begin_s", "length_s", "begun", "ended")
TOGETHER_S = 600.0
LEAST_PERIODS = 20  # of each kind, whole ones; a law from fewer means nothing

_WANTED = (
    f"Parquet tables with the columns {', '.join(NODE_COLUMNS)} (periods of nodes) or "
    f"{', '.join(CHECK_COLUMNS)} (checks of sites)"
)


@dataclass(frozen=True, kw_only=True)
class Uptimes:
    """Periods of one trace: whose (within which scope), up or down, when, how far seen."""

    name: str
    periods: pd.DataFrame  # PERIOD_COLUMNS
    empty: int = 0  # periods without length, left out

    def lengths(self, *, up: bool) -> tuple[np.ndarray, np.ndarray]:
        """Seconds of the periods whose beginning was seen, and whether their end was."""
        chosen = self.periods[(self.periods["up"] == up) & self.periods["begun"]]
        return chosen["length_s"].to_numpy(np.float64), chosen["ended"].to_numpy(np.bool_)

    @property
    def components(self) -> int:
        """How many nodes or sites there are."""
        return int(self.periods.groupby(["scope", "component"]).ngroups)


def read_uptimes(path: Path, leave_out: Collection[str] = ()) -> tuple[Uptimes, ...]:
    """The traces in a file, or in the files of a folder, without the scopes to be left out."""
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    found = [trace for file in files for trace in _read(file, set(leave_out))]
    if not found:
        raise InvalidInputError(f"{path} holds no times up and down; wants {_WANTED}")
    for trace in found:
        _check_enough(trace)
    return tuple(found)


def _read(file: Path, leave_out: set[str]) -> Iterator[Uptimes]:
    import pyarrow.parquet as parquet
    from pyarrow import ArrowException

    try:
        with open_plain(file, follow=True) as opened:
            names = set(parquet.read_schema(opened).names)
        if names.issuperset(NODE_COLUMNS):
            name = file.stem.removesuffix("_events")
            yield _of_nodes(name, _columns(file, NODE_COLUMNS))
        elif names.issuperset(CHECK_COLUMNS):
            checks = _columns(file, CHECK_COLUMNS)
            kept = checks[~checks["monitor"].isin(leave_out)]
            name = file.parent.name if file.stem == "events" else file.stem
            yield _of_checks(name, _meant(kept, file.parent / SITES))
    except (OSError, ArrowException, ValueError, TypeError) as problem:
        raise InvalidInputError(
            f"{file} cannot be read as times up and down: {problem}; wants {_WANTED}"
        ) from problem


def _columns(file: Path, names: Collection[str]) -> pd.DataFrame:
    with open_plain(file, follow=True) as opened:
        return pd.read_parquet(opened, columns=list(names))


def _of_nodes(name: str, rows: pd.DataFrame) -> Uptimes:
    if not rows["event_type"].isin((0, 1)).all():
        raise ValueError("event_type is not 0 (down) or 1 (up) everywhere")
    length_s = (rows["event_stop_time"] - rows["event_start_time"]).astype(np.float64)
    if not (length_s >= 0).all():
        raise ValueError("event_stop_time is not at or after event_start_time everywhere")
    periods = pd.DataFrame(
        {
            "scope": name,
            "component": rows["node_id"],
            "up": rows["event_type"] == 1,
            "begin_s": rows["event_start_time"].astype(np.float64),
            "length_s": length_s,
            "begun": True,  # an archive has whole periods, but for those that its end cuts off
            "ended": rows["event_stop_time"] < rows["event_stop_time"].max(),
        }
    )
    return _without_empty(name, periods)


def _meant(checks: pd.DataFrame, sites: Path) -> pd.DataFrame:
    """The checks of sites that were meant to work."""
    if not sites.exists():
        return checks
    known = _columns(sites, SITE_COLUMNS)
    broken = known[known["test_target"].fillna(False).astype(bool)]
    pairs = pd.MultiIndex.from_frame(broken[["monitor", "site_id"]])
    return checks[~pd.MultiIndex.from_frame(checks[["monitor", "site_id"]]).isin(pairs)]


def _of_checks(name: str, checks: pd.DataFrame) -> Uptimes:
    """A period lasts from the first check with its state to the first with another one."""
    whose = ["scope", "component"]
    rows = pd.DataFrame(
        {
            "scope": checks["monitor"].astype(str),
            "component": checks["site_id"].astype(str),
            "up": (checks["status"] != "down").astype(bool),
            "begin_s": (checks["ts"] - pd.Timestamp(0, tz="UTC")).dt.total_seconds(),
        }
    ).sort_values([*whose, "begin_s"])
    last_s = rows.groupby(whose)["begin_s"].transform("max")
    first = ~rows.duplicated(whose)
    changed = first | (rows["up"] != rows["up"].shift())
    periods = rows.assign(begun=~first, last_s=last_s)[changed]
    next_s = periods.groupby(whose)["begin_s"].shift(-1)
    seen_s = next_s.fillna(periods["last_s"]) - periods["begin_s"]
    return _without_empty(name, periods.assign(length_s=seen_s, ended=next_s.notna()))


def _without_empty(name: str, periods: pd.DataFrame) -> Uptimes:
    empty = periods["length_s"] <= 0
    kept = periods.loc[~empty, list(PERIOD_COLUMNS)].reset_index(drop=True)
    return Uptimes(name=name, periods=kept, empty=int(empty.sum()))


def _check_enough(trace: Uptimes) -> None:
    for up, word in ((True, "up"), (False, "down")):
        whole = int(trace.lengths(up=up)[1].sum())
        if whole < LEAST_PERIODS:
            raise InvalidInputError(
                f"{trace.name} has {whole} whole times {word}; wants {LEAST_PERIODS} or more"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Togetherness:
    """Outages that begin within ``TOGETHER_S`` of another component's in the same scope."""

    outages: int
    share: float
    by_chance: float  # share if every component failed at its own rate, on its own


def together(trace: Uptimes) -> Togetherness:
    """Which share of a trace's outages begins together with another component's."""
    periods = trace.periods
    outages = periods[~periods["up"] & periods["begun"]]
    with_others, by_chance = [], []
    for _, scope in outages.groupby("scope"):
        begins_s = np.sort(scope["begin_s"].to_numpy())
        span_s = max(float(begins_s[-1] - begins_s[0]), TOGETHER_S)
        for _, own in scope.groupby("component"):
            own_s = np.sort(own["begin_s"].to_numpy())
            others = _near(begins_s, own_s) - _near(own_s, own_s)
            rate_per_s = (begins_s.size - own_s.size) / span_s
            with_others.append(others > 0)
            by_chance.append(np.full(own_s.size, -np.expm1(-2.0 * TOGETHER_S * rate_per_s)))
    return Togetherness(
        outages=len(outages),
        share=float(np.concatenate(with_others).mean()),
        by_chance=float(np.concatenate(by_chance).mean()),
    )


def _near(all_s: np.ndarray, at_s: np.ndarray) -> np.ndarray:
    """How many of ``all_s`` (sorted) lie within ``TOGETHER_S`` of each of ``at_s``."""
    after = np.searchsorted(all_s, at_s + TOGETHER_S, side="right")
    return after - np.searchsorted(all_s, at_s - TOGETHER_S, side="left")
