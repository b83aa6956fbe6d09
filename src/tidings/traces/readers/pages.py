"""Pages of brokers in JSON as people save them: one to a file, to a line, or one after the other.

Pages are often indented, so that a document has many lines. A new one begins with a brace at the
beginning of a line, in which all inner lines of an indented one do not begin.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.traces.quarantine import REASON
from tidings.traces.readers import lines
from tidings.traces.readers.json_text import with_object
from tidings.traces.readers.opening import NOT_JSON
from tidings.traces.readers.reading import Reading, candidates
from tidings.traces.readers.times import ISO, nanoseconds

SEPARATOR = "\n{"
NOTHING_SAID = "it speaks of no queue"
POLLED = "polled_ns bigint"  # whoever polls may add when
_BLANK = "\ufeff \t\r\n"


def read_pages(spark: SparkSession, files: Sequence[str], schema: str) -> DataFrame:
    """Read every page with its origin, ``page`` by the schema, and the reason where it is none.

    A list of documents is read as the field ``rows`` of one.
    """
    split = lines.read_dated_lines(spark, files, SEPARATOR)
    begin = F.ltrim(F.col(lines.TEXT), F.lit(_BLANK))
    whole = (
        F.when(begin.startswith("{"), begin)
        .when(begin.startswith("["), F.concat(F.lit('{"rows":'), begin, F.lit("}")))
        .otherwise(F.concat(F.lit("{"), F.col(lines.TEXT)))
    )
    kept = split.withColumns({"saved": F.col(lines.TEXT), lines.TEXT: whole})
    parsed = with_object(kept, "object").withColumn(
        REASON,
        F.coalesce(lines.not_utf8(), F.when(F.col("object").isNull(), F.lit(NOT_JSON))),
    )
    page = F.from_json(F.when(F.col(REASON).isNull(), F.col(lines.TEXT)), schema)
    return parsed.select(
        *(name for name in lines.ORIGIN if name != lines.TEXT),
        F.col("saved").alias(lines.TEXT),
        REASON,
        page.alias("page"),
        "written_ns",
    )


def levels_reading(
    pages: DataFrame,
    counters: Column,
    files: Sequence[str],
    *columns: Column,
    notes: tuple[str, ...] = (),
) -> Reading:
    """Read what pages say of queues: ``told`` is an array with an element for each.

    ``columns`` are those of levels, from ``each`` element; a page without any is passed over.
    """
    asked = pages.withColumn("told", counters)
    silent = F.coalesce(F.size("told"), F.lit(-1)) <= 0
    reason = F.coalesce(F.col(REASON), F.when(silent, F.lit(NOTHING_SAID)))
    rows = asked.where(reason.isNull()).select("*", F.explode("told").alias("each"))
    levels = rows.select(*columns, *lines.ORIGIN)
    return Reading(
        tables={"levels": candidates(levels, "levels", files[0])},
        records=asked.select(reason.alias(REASON), *lines.ORIGIN),
        noun="pages",
        separator=SEPARATOR,
        passed_over=(NOTHING_SAID,),
        notes=notes,
    )


def moment_of(page_time: str) -> Column:
    """Give when a page was read, in nanoseconds: as whoever polled says, else as the page does."""
    return F.coalesce(F.col("page.polled_ns"), nanoseconds(F.col(page_time), ISO)).alias("at_ns")
