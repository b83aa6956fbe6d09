"""Times ON and OFF of peers from a trace of their connections.

A trace is a ``sessions`` table (:mod:`tidings.model.trace_tables`) as CSV or Parquet: ``state``,
``at_ns`` and, where it tells of several peers, ``peer``. A state may come again while it lasts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import numpy as np

from tidings.errors import InvalidInputError
from tidings.model.behaviour import Connectivity
from tidings.model.laws import Empirical, Law
from tidings.model.named_tables import read_named_table, stamp_of, wrong_table

STATES = ("disconnected", "connected")
_WHAT = "connectivity trace"
Change = tuple[int, int]  # when in nanoseconds, whether connected


@dataclass(frozen=True, slots=True, kw_only=True)
class Periods:
    """How long a peer is ON and OFF: by laws or, with ``loop_s``, in turn, ON first, for ever."""

    on: Law
    off: Law
    loop_s: tuple[float, ...] = ()

    @property
    def connected(self) -> float:
        """The long-run share of time ON."""
        on_s, off_s = self.on.mean_s, self.off.mean_s
        if self.loop_s:
            on_s, off_s = sum(self.loop_s[::2]), sum(self.loop_s[1::2])
        return on_s / (on_s + off_s)


def periods_of(connectivity: Connectivity, peer: str) -> Periods:
    """Find the ON and OFF periods of a peer, by name, in seconds.

    A peer with rows of its own in a trace has the periods of these, any other those of all rows.
    Laws drawn from a trace have its whole periods as atoms: those that its beginning or its end cut
    off are left out. A loop is all that was seen of one peer, cut off or not. A moment at which
    both states are stated tells none.
    """
    if connectivity.trace is None:
        assert connectivity.on is not None
        assert connectivity.off is not None
        return Periods(on=connectivity.on, off=connectivity.off)
    changes = _changes(connectivity.trace)
    if connectivity.replay == "loop" and peer not in changes and len(changes) > 1:
        raise _wrong(
            connectivity.trace,
            saw=f"{len(changes)} peers and none of them '{peer}'",
            want="the trace of one peer to repeat, or replay: resample",
        )
    own = peer if peer in changes else None
    return _periods(connectivity.trace, _stamp(connectivity.trace), connectivity.replay, own)


@lru_cache(maxsize=4096)
def _periods(trace: str, stamp: int, replay: str, peer: str | None) -> Periods:
    """Find the periods of one peer of a trace, or those of all (None), in seconds."""
    changes = _read(trace, stamp)
    mine = list(changes.values()) if peer is None else [changes[peer]]
    runs = [_runs(rows) for rows in mine]
    lengths_s: dict[int, list[float]] = {0: [], 1: []}
    for run in runs:
        for is_on, length_s in run[1:-1]:
            lengths_s[is_on].append(length_s)
    if not (lengths_s[0] and lengths_s[1]):
        raise _wrong(
            trace,
            saw=f"{len(lengths_s[1])} complete periods connected and {len(lengths_s[0])} "
            "disconnected",
            want="at least one complete period of each" + (f", for '{peer}'" if peer else ""),
        )
    loop_s = _loop(runs[0]) if replay == "loop" else ()
    return Periods(on=resampled(lengths_s[1]), off=resampled(lengths_s[0]), loop_s=loop_s)


def resampled(times_s: Iterable[float]) -> Empirical:
    """Make the distribution that takes each of these times, in seconds, with equal probability.

    >>> resampled([2.0, 1.0, 2.0]).cdf([0.5, 1.0, 1.5, 2.0]).round(12).tolist()
    [0.0, 0.333333333333, 0.333333333333, 1.0]
    """
    values, counts = np.unique(np.array(list(times_s), dtype=np.float64), return_counts=True)
    weights = np.zeros(2 * values.size - 1)
    weights[::2] = counts / counts.sum()
    return Empirical(edges_s=tuple(np.repeat(values, 2)), weights=tuple(weights))


def _runs(rows: Iterable[Change]) -> list[tuple[int, float]]:
    """List the states of one peer in turn, each with the seconds it was seen to last."""
    rows = sorted(rows)
    certain = _uncontradicted(rows)
    if not certain:
        return []
    starts = [next(same) for _, same in groupby(certain, key=lambda row: row[1])]
    ends_ns = [at_ns for at_ns, _ in starts[1:]] + [rows[-1][0]]
    return [
        (is_on, (end_ns - at_ns) / 1e9)
        for (at_ns, is_on), end_ns in zip(starts, ends_ns, strict=True)
    ]


def _uncontradicted(rows: list[Change]) -> list[Change]:
    """List rows in order of time, without those of moments at which both states are stated.

    Gone and back at once is no change: the state before lasts, and no period has no length.

    >>> _uncontradicted([(0, 1), (5, 0), (5, 1), (8, 0)])
    [(0, 1), (8, 0)]
    """
    states: dict[int, set[int]] = {}
    for at_ns, is_on in rows:
        states.setdefault(at_ns, set()).add(is_on)
    return [(at_ns, seen.pop()) for at_ns, seen in states.items() if len(seen) == 1]


def _loop(runs: list[tuple[int, float]]) -> tuple[float, ...]:
    """List all observed times of one peer, in seconds, rotated to begin ON and end OFF."""
    whole = [run for run in runs if run[1] > 0.0]  # only the last can have no length
    if whole[0][0] == whole[-1][0]:  # the end goes on with the beginning
        (state, first_s), *between, (_, last_s) = whole
        whole = [*between, (state, first_s + last_s)]
    if whole[0][0] == 0:
        whole = [*whole[1:], whole[0]]
    return tuple(length_s for _, length_s in whole)


def _changes(trace: str) -> dict[str, list[Change]]:
    return _read(trace, _stamp(trace))


def _stamp(trace: str) -> int:
    return stamp_of(_WHAT, trace)


@lru_cache(maxsize=8)
def _read(trace: str, stamp: int) -> dict[str, list[Change]]:
    """Read the state changes of each peer from a trace, as it was when it was last changed."""
    want = "the columns state and at_ns, and peer if it has several"
    table = read_named_table(_WHAT, trace, ("state", "at_ns"), want)
    peers = table["peer"].tolist() if "peer" in table else [""] * len(table)
    columns = zip(peers, table["at_ns"].tolist(), table["state"].tolist(), strict=True)
    changes: dict[str, list[Change]] = {}
    for number, (peer, at_ns, state) in enumerate(columns, start=1):
        if state not in STATES:
            saw = f"the state {state!r} in row {number}"
            raise _wrong(trace, saw=saw, want="connected or disconnected")
        if not isinstance(at_ns, int):
            saw = f"at_ns {at_ns} in row {number}"
            raise _wrong(trace, saw=saw, want="whole nanoseconds")
        changes.setdefault(str(peer), []).append((at_ns, STATES.index(state)))
    return changes


def _wrong(trace: str, *, saw: str, want: str) -> InvalidInputError:
    return wrong_table(_WHAT, trace, saw=saw, want=want)
