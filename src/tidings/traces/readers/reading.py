"""What a reader is, is asked, and gives: candidate rows, each with where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from tidings.model.trace_tables import TRACE_TABLES
from tidings.traces.canonical import canonical
from tidings.traces.readers.lifetimes import Lifetimes
from tidings.traces.readers.lines import ORIGIN
from tidings.traces.readers.mapping import TraceMapping

# How a reader has something kept that it needs several times, under a name: parsed once.
Keep = Callable[[DataFrame, str], DataFrame]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Candidate rows by table, with ``unreadable`` and their origin; nothing is written yet.

    ``records`` has one row per record of the source (a line, a row, a span) with its origin and
    ``reason``: null where it gave rows to some table, else why it gave none. Records that do not
    speak of messages at all are ``passed_over``: counted, not kept. ``lines`` tells whether places
    are those of lines in text files, or of rows, ``in_lines`` of which files, if not of all;
    ``separator`` what parts these lines, if not their ends. ``window`` (one row: from_ns, until_ns)
    is what was observed, where the source knows it; ``sampled`` which share of all events.
    """

    tables: Mapping[str, DataFrame]
    records: DataFrame
    noun: str
    lines: bool = True
    in_lines: tuple[str, ...] | None = None
    separator: str | None = None
    passed_over: tuple[str, ...] = ()
    window: DataFrame | None = None
    sampled: float = 1.0
    notes: tuple[str, ...] = field(default=())


def as_it_is(frame: DataFrame, name: str) -> DataFrame:
    """Keep nothing: what is needed again is read again."""
    return frame


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What whoever imports asks of a reader."""

    keep: Keep = as_it_is
    unit: str = "s"  # of times whose columns tell none
    mapping: TraceMapping | None = None
    lifetimes: Lifetimes = field(default_factory=Lifetimes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A format that can be imported: which tables it may fill, and what reads files of it.

    It ``wants`` a mapping, a unit of times or lifetimes, where these mean anything to it. Where
    ``brokerless``, the format tells nothing of brokers: one stands for all of them.
    """

    about: str  # in a few words
    tables: tuple[str, ...]
    read: Callable[[SparkSession, Sequence[str], Asked], Reading]
    wants: tuple[str, ...] = ()
    brokerless: bool = False


def candidates(frame: DataFrame, table: str, where: str) -> DataFrame:
    """Turn a frame with canonical names into candidate rows of a table."""
    return canonical(frame, TRACE_TABLES[table], where, keep=ORIGIN)
