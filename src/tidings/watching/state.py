"""What is known of a watched system at one moment, as records; and the folder that keeps them.

Whoever watches writes the folder, whoever shows it (a page, metrics) reads it, in the same process
or in another one. ``now.json`` is the latest state, replaced whole; ``past.jsonl`` has a short line
for every earlier one, for time series.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

from tidings.model.json_text import parse, plain
from tidings.model.plain_files import open_plain, read_text
from tidings.model.writing import write_file

NOW_FILE = "now.json"
PAST_FILE = "past.jsonl"
EVERYBODY = ""  # the name under which all subscribers together are kept
# Kinds of alarms: the promise is being broken; the system is no longer the one that was predicted;
# events wait, and will be late until they are gone.
TARGET, CHANGED, BACKLOG = KINDS = ("target", "changed", "backlog")
# What a line of the past has of each name.
PAST_COLUMNS = (
    "promised", "measured", "low", "high", "predicted", "predicted_low", "predicted_high",
)  # fmt: skip
MOST_PAST_LINES = 10_000
MOST_IN_PAST = 21  # names in a line: everybody and the worst


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share of wanted events on time, and the interval in which it lies, 0 to 1."""

    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How one subscriber (or everybody) stands: promised, measured and predicted shares."""

    name: str
    promised: float | None = None  # by the service level objective
    measured: Share | None = None  # over the judged window
    predicted: Share | None = None
    wanted: int = 0  # events in the judged window
    burn_rates: Mapping[str, float] | None = (
        None  # by window ("5m", "1h"); 1 spends the budget just so
    )
    median_s: float | None = None  # of the delays measured
    p99_s: float | None = None
    cause: str = ""  # what costs most, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """Something is wrong: what, where, how large, since when, and what to do about it."""

    name: str  # the same as long as the same thing is wrong
    kind: str  # one of KINDS
    where: tuple[str, ...]  # subscribers, brokers, links, publishers
    what: str  # in words, without numbers
    size: float
    unit: str
    since_ns: int
    until_ns: int | None = None  # None while it lasts
    cause: str = ""
    do: str = ""  # the best single change against it
    count: int = 1  # of those that are told of as one

    def unnamed(self) -> list[str]:
        """List where it is, but for what its text names as a word of its own."""
        named = r"(?<!\w){}(?!\w)"
        return [
            each for each in self.where if not re.search(named.format(re.escape(each)), self.what)
        ]

    def sentence(self) -> str:
        """Say all of it in one line."""
        unnamed = self.unnamed()
        where = f" ({', '.join(unnamed)})" if unnamed else ""
        cause = f"; because {self.cause}" if self.cause else ""
        do = f"; {self.do}" if self.do else ""
        size = f"{self.size:,.0f}" if self.size >= 1000 else f"{self.size:.3g}"
        return f"{self.what}{where}: {size} {self.unit}".rstrip() + cause + do


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How the watching itself fares: whether it keeps up and what it could not read."""

    batch: int = -1  # number of the latest micro-batch
    rows: int = 0  # in it
    late_rows: int = 0  # beyond the margin, or dated when they cannot be, so far
    set_aside_rows: int = 0  # that nobody can use, in all parts counted so far
    set_aside_until_ns: int = 0  # where these parts end
    refused_files: int = 0  # that could not be read, so far
    batch_s: float = 0.0  # how long the latest batch took
    trigger_s: float = 0.0  # how often one is due
    judged_ns: int = 0  # where the newest part ends that has been judged
    behind_s: float = 0.0  # how old the newest event is
    fitted_ns: int = 0  # when the system was fitted last; 0 if never
    problem: str = ""  # what went wrong in the latest batch


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All that is known of a watched system at one moment."""

    at_ns: int
    system: str  # its name, or the name of its file
    window_s: float  # over which shares were measured
    standings: tuple[Standing, ...]  # everybody first, then the worst
    alarms: tuple[Alarm, ...]  # those that last, then those that ended lately
    health: Health
    backlogs: Mapping[str, int]  # events waiting, by broker or group
    system_file: str = ""  # of the system that predictions are of: the fitted one once there is one

    def to_document(self) -> dict[str, Any]:
        """Give all fields as plain data."""
        document = asdict(self)
        for alarm, record in zip(document["alarms"], self.alarms, strict=True):
            alarm["sentence"] = record.sentence()
        plain_document: dict[str, Any] = plain(document)
        return plain_document

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read a state from its plain data; raises ValueError where it is none."""
        try:
            return cls(
                **{
                    **document,
                    "standings": tuple(_standing(each) for each in document["standings"]),
                    "alarms": tuple(_alarm(each) for each in document["alarms"]),
                    "health": Health(**document["health"]),
                }
            )
        except (LookupError, TypeError, AttributeError) as problem:
            raise ValueError(f"not the state of a watched system: {problem}") from problem

    def past_line(self) -> str:
        """Give the line of ``past.jsonl``: time, shares by name, burn rates and batch time."""
        shares = {
            each.name: [
                each.promised,
                *_interval(each.measured),
                *_interval(each.predicted),
            ]
            for each in self.standings
        }
        line = {"at_ns": self.at_ns, "shares": shares, "batch_s": self.health.batch_s}
        return json.dumps(plain(line), separators=(",", ":"))


def read_state(folder: Path) -> State | None:
    """Read the latest state from a watched folder; None if there is none yet."""
    try:
        text = read_text(folder / NOW_FILE)
    except FileNotFoundError:
        return None
    return State.from_document(parse(text))


def write_state(folder: Path, state: State) -> None:
    """Write the latest state, and a line for time series; these are halved when they are many."""
    write_file(folder / NOW_FILE, json.dumps(state.to_document()).encode())
    path = folder / PAST_FILE
    short = replace(state, standings=state.standings[:MOST_IN_PAST])
    lines = _lines(path)
    if len(lines) >= MOST_PAST_LINES:
        write_file(path, b"".join(each + b"\n" for each in lines[MOST_PAST_LINES // 2 :]))
    elif lines and not _is_whole(lines[-1]):  # of a run that was killed
        write_file(path, b"".join(each + b"\n" for each in lines[:-1]))
    with path.open("ab") as stream:
        stream.write(short.past_line().encode() + b"\n")


def _lines(path: Path) -> list[bytes]:
    if not path.exists():
        return []
    with open_plain(path) as file:
        return file.read().splitlines()


def _is_whole(line: bytes) -> bool:
    try:
        parse(line)
    except ValueError:
        return False
    return True


def _interval(share: Share | None) -> tuple[float | None, float | None, float | None]:
    return (None, None, None) if share is None else (share.share, share.low, share.high)


def _standing(document: Mapping[str, Any]) -> Standing:
    shares = {
        name: None if document[name] is None else Share(**document[name])
        for name in ("measured", "predicted")
    }
    return Standing(**{**document, **shares})


def _alarm(document: Mapping[str, Any]) -> Alarm:
    fields = {name: each for name, each in document.items() if name != "sentence"}
    return Alarm(**{**fields, "where": tuple(document["where"])})
