"""Pages of brokers in JSON as people save them: one to a file, to a line, or one after the other.

Pages are often indented, so that a document has many lines. A new one begins with a brace at the
beginning of a line, in which all inner lines of an indented one do not begin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.traces.quarantine import REASON
from tidings.traces.readers import lines
from tidings.traces.readers.json_text import with_object
from tidings.traces.readers.opening import NOT_JSON
from tidings.traces.readers.owners import kept_apart
from tidings.traces.readers.reading import Reading, candidates
from tidings.traces.readers.times import ISO, nanoseconds

SEPARATOR = "\n{"
NOTHING_SAID = "it speaks of no queue"
POLLED = "polled_ns bigint"  # whoever polls may add when
# Of a counter: sums of two may be above 2^63, which is told where they become whole numbers.
COUNT = "decimal(20,0)"
_BLANK = "\ufeff \t\r\n"


def read_pages(spark: SparkSession, files: Sequence[str], schema: str) -> DataFrame:
    """Read every page with its origin, ``page`` by the schema, and the reason where it is none.

    A list of documents is read as the field ``rows`` of one. What in a page is not of its type is
    null, and costs nothing beside it.
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
    page = F.try_variant_get("object", "$", f"struct<{schema}>")
    return parsed.select(
        *(name for name in lines.ORIGIN if name != lines.TEXT),
        F.col("saved").alias(lines.TEXT),
        REASON,
        F.when(F.col(REASON).isNull(), page).alias("page"),
        "written_ns",
    )


def levels_reading(
    pages: DataFrame,
    counters: Column,
    files: Sequence[str],
    *columns: Column,
    owners: str,
    counted: Callable[[DataFrame], DataFrame] = lambda rows: rows,
    notes: tuple[str, ...] = (),
) -> Reading:
    """Read what pages say of queues: ``counters`` is an array with an element for each.

    ``columns`` are those of levels and ``owner``, one of the ``owners``, from ``each`` element, or
    what ``counted`` makes these of, which may look at all polls of a queue; a page without any is
    passed over.
    """
    asked = pages.withColumn("told", counters)
    silent = F.coalesce(F.size("told"), F.lit(-1)) <= 0
    reason = F.coalesce(F.col(REASON), F.when(silent, F.lit(NOTHING_SAID)))
    rows = asked.where(reason.isNull()).select("*", F.explode("told").alias("each"))
    levels, apart = kept_apart(counted(rows.select(*columns, *lines.ORIGIN)), owners)
    return Reading(
        tables={"levels": candidates(levels, "levels", files[0])},
        records=asked.select(reason.alias(REASON), *lines.ORIGIN),
        noun="pages",
        separator=SEPARATOR,
        passed_over=(NOTHING_SAID,),
        notes=(*notes, *apart),
    )


def moment_of(page_time: str) -> Column:
    """Give when a page was read, in nanoseconds: as whoever polled says, else as the page does."""
    return F.coalesce(F.col("page.polled_ns"), nanoseconds(F.col(page_time), ISO)).alias("at_ns")
