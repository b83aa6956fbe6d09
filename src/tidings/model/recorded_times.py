"""Recorded publishing times, from a table that a system file names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tidings.errors import InvalidInputError
from tidings.model.arrays import Floats
from tidings.model.named_tables import read_named_table, stamp_of, wrong_table

_WHAT = "recorded times"
_NS = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """When one publisher published, in seconds after the record begins, and how long it is."""

    times_s: Floats
    length_s: float


def recorded_times(name: str, publisher: str, length_s: float | None) -> Record:
    """Read when a publisher published, in seconds.

    It takes the publisher's own rows of a table, or all rows of one that has one publisher only.
    The record begins with the first event of any publisher in it, so that all of them keep their
    times to each other. Without ``length_s`` it lasts until the last one and a mean interval.
    """
    times, spans_s = _read(name, stamp_of(_WHAT, name))
    own = times.get(publisher)
    if own is None and len(times) == 1:
        own = next(iter(times.values()))
    if own is None:
        saw = f"{len(times)} publishers and none of them '{publisher}'"
        raise _wrong(name, saw=saw, want="events of that publisher, or of one only")
    last_s, count = spans_s
    if length_s is not None and length_s < last_s:
        saw = f"events over {last_s:.6g} s where its length is to be {length_s:.6g} s"
        raise _wrong(name, saw=saw, want="a length of no less")
    if length_s is None and not last_s > 0.0:
        raise _wrong(name, saw="all events at one moment", want="a 'length' to be given")
    return Record(times_s=own, length_s=length_s or last_s * count / (count - 1))


@lru_cache(maxsize=8)
def _read(name: str, stamp: int) -> tuple[dict[str, Floats], tuple[float, int]]:
    """Read the times of each publisher of a table, in seconds; of all, the last and the count."""
    want = "the column published_ns, and publisher if it has several"
    table = read_named_table(_WHAT, name, ("published_ns",), want)
    at_ns = table["published_ns"]
    if "publisher" in table and table["publisher"].isna().any():
        raise _wrong(name, saw="rows without a publisher", want=want)
    if at_ns.dtype.kind not in "iu":
        saw = f"published_ns that are not all whole numbers, {int(at_ns.isna().sum())} of them gaps"
        raise _wrong(name, saw=saw, want="whole nanoseconds in every row")
    since_ns = at_ns.to_numpy(dtype=np.int64)
    times_s = (since_ns - since_ns.min()) * _NS
    span = (float(times_s.max()), len(times_s))
    if "publisher" not in table:
        return {"": np.sort(times_s)}, span
    import pandas as pd  # here: whoever has no such table need not wait for it

    codes, names = pd.factorize(table["publisher"])
    order = np.lexsort((times_s, codes))
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    parts = np.split(times_s[order], ends[:-1])
    return dict(zip(map(str, names), parts, strict=True)), span


def _wrong(name: str, *, saw: str, want: str) -> InvalidInputError:
    return wrong_table(_WHAT, name, saw=saw, want=want)
