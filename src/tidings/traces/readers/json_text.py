"""Pieces of JSON as column expressions."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.traces.readers.lines import TEXT


def with_object(rows: DataFrame, name: str) -> DataFrame:
    """Parse each line as one JSON object, into a variant: null where it is none.

    Spark's parsers stop at the end of the first document and say nothing of what follows. The line
    is therefore parsed between brackets and before a last element, which has to be the second.
    """
    text = F.ltrim(F.col(TEXT), F.lit("\ufeff \t"))  # some tools mark the begin of a file
    listed = F.try_parse_json(F.concat(F.lit("["), text, F.lit(",0]")))
    second = F.try_variant_get("listed", "$[1]", "int")
    third = F.try_variant_get("listed", "$[2]", "variant")
    alone = text.startswith("{") & (second == 0) & third.isNull()
    first = F.try_variant_get("listed", "$[0]", "variant")
    return rows.withColumn("listed", listed).withColumn(name, F.when(alone, first)).drop("listed")


def quoted(text: Column) -> Column:
    """Write a text as a JSON string, with its quotes; null stays null."""
    listed = F.to_json(F.array(text))
    return F.when(text.isNotNull(), F.substr(listed, F.lit(2), F.length(listed) - 2))


def path_of(name: str) -> str:
    """Write the path of a field in a document: dots lead inside.

    >>> path_of("payload.user id")
    "$['payload']['user id']"
    """
    return "$" + "".join(f"['{part}']" for part in name.replace("'", "").split("."))


def object_json(pieces: Mapping[str, Column]) -> Column:
    """Write an object in JSON from pieces of JSON, by sorted name; null pieces are left out."""
    named = [
        F.concat(F.lit(f"{json.dumps(name, ensure_ascii=False)}:"), piece)
        for name, piece in sorted(pieces.items())
    ]
    return F.concat(F.lit("{"), F.concat_ws(",", *named), F.lit("}"))


def attributes_json(
    origins: Mapping[str, tuple[str | None, Column, Column]],
) -> tuple[Column, list[Column]]:
    """Write a content from (kind, value as JSON, value as text) by attribute.

    Also gives what is not of its kind. Without a kind the value stays what it is; empty texts of a
    number or flag count as absent.
    """
    pieces: dict[str, Column] = {}
    wrong: list[Column] = []
    for name, (kind, as_json, text) in origins.items():
        if kind is None:
            pieces[name] = as_json
        elif kind == "text":
            pieces[name] = quoted(text)
        else:
            given = F.nullif(F.trim(text), F.lit(""))
            read = given.try_cast("double" if kind == "number" else "boolean")
            if kind == "number":
                read = F.when(~F.isnan(read) & (F.abs(read) < float("inf")), read)
                # A number is written as it was: 12 stays 12, and long digits stay exact.
                proper = given.rlike(r"^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$")
                written = F.when(proper, given).otherwise(read.cast("string"))
                pieces[name] = F.when(read.isNotNull(), written)
            else:
                pieces[name] = read.cast("string")
            refused = given.isNotNull() & read.isNull()
            wrong.append(F.when(refused, F.lit(f"{name} is not a {kind}")))
    return object_json(pieces), wrong
