"""Contents with only the attributes that filters ask for, where the whole ones are too many.

Contents that differ in nothing that anybody asks for reach the same subscribers, so that to put
them together changes no prediction: ids and time stamps inside contents do no harm then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.model.filters import Filter


def asked_attributes(filters: Iterable[Filter]) -> tuple[str, ...]:
    """The attributes that any of the filters tests, sorted."""
    return tuple(
        sorted(
            {
                constraint.attribute
                for wants in filters
                for conjunction in wants.conjunctions
                for constraint in conjunction.constraints
            }
        )
    )


def folded_contents(publications: DataFrame, attributes: Collection[str]) -> DataFrame:
    """The publications with these attributes of their contents; what is no object stays as it is.

    Every content is parsed for it, row by row, which costs more than all other statistics.
    """
    parts = F.try_parse_json("content").try_cast("map<string, variant>")
    kept = F.map_filter(parts, lambda name, _: name.isin(*attributes))
    return publications.withColumn("content", F.coalesce(F.to_json(kept), F.col("content")))


def folding_statistics(publications: DataFrame, attributes: Collection[str]) -> DataFrame:
    """How many publications there are, how many lose an attribute so, and of how many contents.

    Contents are counted to about 2 %: their number may grow with the traces.
    """
    whole = publications.select(F.col("content").alias("whole"), "content")
    folded = folded_contents(whole, attributes)
    return folded.agg(
        F.count(F.lit(1)).alias("rows"),
        F.count_if(_attributes("whole") > _attributes("content")).alias("folded"),
        F.approx_count_distinct("whole", 0.02).alias("contents"),
    )


def _attributes(content: str) -> Column:
    return F.coalesce(F.size(F.json_object_keys(content)), F.lit(0))


def folding_note(counted: pd.DataFrame, attributes: Collection[str]) -> str:
    """What must be said where contents were folded: the mass of what was, and of how many."""
    asked = ", ".join(attributes) or "none"
    row = counted.iloc[0]
    return (
        f"about {row['contents']:,} distinct contents are more than a system can hold; they are "
        f"told apart by the attributes that filters ask for alone ({asked}), which changes nothing "
        f"for subscribers: {row['folded'] / max(row['rows'], 1):.2%} of {row['rows']:,} "
        "publications had others, too"
    )
