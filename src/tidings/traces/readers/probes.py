"""Latency probes: who sent one to whom, when, and when it came or how long it took.

Columns ``source``, ``target``, ``sent`` and one of ``received``, ``delay`` or ``rtt``, each with
its unit in the name (``rtt_ms``) or in the unit given. An empty value is a lost probe. Of a
round trip half is taken as the way there.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tidings.errors import InvalidTracesError
from tidings.traces.quarantine import REASON, UNREADABLE
from tidings.traces.readers import lines
from tidings.traces.readers.known_columns import find, find_time, has_time, moment, not_a_time
from tidings.traces.readers.opening import Opened, open_flat
from tidings.traces.readers.reading import Reader, Reading, candidates

_SOURCES, _TARGETS = ("source", "src", "from"), ("target", "dst", "destination", "to")
_ARRIVALS = {
    "received": ("received", "arrived"),
    "delay": ("delay", "latency"),
    "rtt": ("rtt", "round_trip"),
}
_HALVED = "half of each round trip is taken as the delay of each direction"


def read_probes(spark: SparkSession, files: Sequence[str], unit: str = "s") -> Reading:
    """Read candidate probes; times are in ``unit`` where the names of their columns tell none."""
    opened = open_flat(spark, files)
    sent = find_time(opened, ("sent", "time", "at"), files[0], unit)
    meant, arrival = _arrival(opened, files[0], unit)
    rows = opened.rows.where(F.col(REASON).isNull()).select(
        opened.text(find(opened, _SOURCES, files[0])).alias("source"),
        opened.text(find(opened, _TARGETS, files[0])).alias("target"),
        moment(opened, *sent).alias("sent_ns"),
        moment(opened, *arrival).alias("told_ns"),
        "row",
        *lines.ORIGIN,
    )
    half = F.call_function("div", F.col("told_ns"), F.lit(2).cast("bigint"))
    received = {
        "received": F.col("told_ns"),
        "delay": F.try_add(F.col("sent_ns"), F.col("told_ns")),
        "rtt": F.try_add(F.col("sent_ns"), half),
    }
    wrong = F.coalesce(
        not_a_time(opened, *sent, "sent_ns"), not_a_time(opened, *arrival, "told_ns")
    )
    probes = rows.withColumns({"received_ns": received[meant], UNREADABLE: wrong})
    return Reading(
        tables={"probes": candidates(probes, "probes", files[0])},
        records=opened.rows.select(REASON, *lines.ORIGIN),
        noun=opened.noun,
        lines=opened.noun == "lines",
        notes=(_HALVED,) if meant == "rtt" else (),
    )


def _arrival(opened: Opened, file: str, unit: str) -> tuple[str, tuple[str, str]]:
    """Find what a file says of arrivals, and in which column and unit."""
    for meant, stems in _ARRIVALS.items():
        column_and_unit = has_time(opened, stems, unit)
        if column_and_unit is not None:
            return meant, column_and_unit
    raise InvalidTracesError(
        f"{file} has none of the columns received, delay and rtt, with or without a unit "
        f"as in rtt_ms (its columns: {', '.join(opened.names)}); rename one, or import it "
        "as 'table' with a mapping"
    )


READER = Reader(
    about="pings over links",
    tables=("probes",),
    read=lambda spark, files, asked: read_probes(spark, files, asked.unit),
    wants=("unit",),
)
