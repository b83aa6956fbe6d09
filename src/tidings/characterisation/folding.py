"""Contents with only the attributes that filters ask for, where the whole ones are too many.

Contents that differ in nothing that anybody asks for reach the same subscribers, so that to put
them together changes no prediction: ids and time stamps inside contents do no harm then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pyspark.sql import DataFrame
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


def folding_note(distinct: str, attributes: Collection[str]) -> str:
    """What must be said where contents were folded."""
    asked = ", ".join(attributes) or "none"
    return (
        f"{distinct} distinct contents are more than a system can hold; they are told apart by the "
        f"attributes that filters ask for alone ({asked}), which changes nothing for subscribers"
    )
