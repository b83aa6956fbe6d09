"""Contents and filters with their texts replaced by pseudonyms, so that traces can be handed on.

A pseudonym is the beginning of the SHA-256 of a secret and the text: equal texts have equal ones,
so that filters still want what they wanted; without the secret nobody can try texts out. Names of
attributes, numbers and flags stay as they are.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.errors import InvalidInputError, InvalidTracesError
from tidings.model import json_text
from tidings.model.filters import BOUNDS
from tidings.model.plain_files import read_text
from tidings.model.wildcards import WILD_TESTS
from tidings.traces.actions import bring_here
from tidings.traces.quarantine import REASON, UNREADABLE
from tidings.traces.readers import lines
from tidings.traces.readers.reading import Reading

LENGTH = 16  # of a pseudonym, in hexadecimal digits
NO_OBJECT = "content is not an event in JSON"
_SHORTEST_SECRET = 16
# Tests that look into a text or compare it: they mean nothing to a pseudonym.
_LOOKS_INSIDE = (*BOUNDS, "between", "prefix", "contains", *WILD_TESTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pseudonyms:
    """Pseudonyms by one secret.

    >>> Pseudonyms(secret="sixteen letters!").of("stock")
    '4b3fd53121464ab3'
    """

    secret: str

    @classmethod
    def from_file(cls, path: Path) -> Pseudonyms:
        """Make pseudonyms by the secret in a file."""
        try:
            secret = read_text(path, follow=True).strip()
        except (OSError, UnicodeDecodeError) as problem:
            raise InvalidInputError(f"{path}: the secret cannot be read ({problem})") from None
        if len(secret) < _SHORTEST_SECRET:
            raise InvalidInputError(
                f"{path}: got a secret of {len(secret)} characters; wants {_SHORTEST_SECRET} or "
                "more, such as those of: openssl rand -hex 16"
            )
        return cls(secret=secret)

    def of(self, text: str) -> str:
        """Compute the pseudonym of a text."""
        return hashlib.sha256((self.secret + text).encode()).hexdigest()[:LENGTH]

    def column(self, text: Column) -> Column:
        """Compute the pseudonyms of a column."""
        return F.substring(F.sha2(F.concat(F.lit(self.secret), text), 256), 1, LENGTH)

    def of_filter(self, text: str) -> str:
        """Replace the texts of a filter in JSON by pseudonyms.

        Raises :class:`InvalidTracesError` for a test that looks into a text.
        """
        try:
            document = json_text.parse(text)
        except ValueError:
            return text  # it will be set aside as no filter
        either = document if isinstance(document, list) else [document]
        hidden = [
            {name: self._within(tests, "", text) for name, tests in each.items()}
            if isinstance(each, dict)
            else each
            for each in either
        ]
        return json.dumps(
            hidden if isinstance(document, list) else hidden[0], separators=(",", ":")
        )

    def _within(self, value: Any, test: str, whole: str) -> Any:
        if isinstance(value, str):
            if test in _LOOKS_INSIDE:
                raise InvalidTracesError(
                    f"the filter {whole[:200]} uses '{test}' on a text, which does not "
                    "work on pseudonyms; import without pseudonyms, or remove this "
                    "subscription"
                )
            return self.of(value)
        if isinstance(value, list):
            return [self._within(each, test, whole) for each in value]
        if isinstance(value, dict):
            return {key: self._within(each, key, whole) for key, each in value.items()}
        return value


def with_pseudonyms(reading: Reading, names: Pseudonyms) -> Reading:
    """Replace texts in contents and filters by pseudonyms; texts set aside are not kept."""
    tables = dict(reading.tables)
    if "publications" in tables:
        tables["publications"] = _in_contents(tables["publications"], names)
    if "subscriptions" in tables:
        tables["subscriptions"] = _in_filters(tables["subscriptions"], names)
    hidden = F.lit(None).cast("string")
    return replace(
        reading,
        tables={name: frame.withColumn(lines.TEXT, hidden) for name, frame in tables.items()},
        records=reading.records.withColumn(lines.TEXT, hidden).select(REASON, *lines.ORIGIN),
        notes=(*reading.notes, "texts in contents and filters are pseudonyms"),
    )


def _in_contents(publications: DataFrame, names: Pseudonyms) -> DataFrame:
    """Replace every text of a content; a content that is no object is set aside, not shown."""
    parts = F.try_parse_json("content").try_cast("map<string, variant>")
    hidden = F.transform_values(
        "parts",
        lambda _, value: F.when(
            F.schema_of_variant(value) == "STRING",
            F.parse_json(
                F.concat(F.lit('"'), names.column(F.variant_get(value, "$", "string")), F.lit('"'))
            ),
        ).otherwise(value),
    )
    wrong = F.when(F.col("content").isNotNull() & F.col("parts").isNull(), F.lit(NO_OBJECT))
    return (
        publications.withColumn("parts", parts)
        .withColumn(UNREADABLE, F.coalesce(F.col(UNREADABLE), wrong))
        .withColumn("content", F.to_json(hidden))
        .drop("parts")
    )


def _in_filters(subscriptions: DataFrame, names: Pseudonyms) -> DataFrame:
    """Replace the texts of filters by pseudonyms.

    Distinct filters are few: they are looked into here, one by one.
    """
    texts = bring_here(subscriptions.select("filter").distinct(), "the filters")["filter"].dropna()
    known = pd.DataFrame({"filter": texts, "hidden": [names.of_filter(str(t)) for t in texts]})
    if known.empty:
        return subscriptions
    table = pa.table({name: pa.array(known[name], pa.string()) for name in known.columns})
    small = subscriptions.sparkSession.createDataFrame(table)
    joined = subscriptions.join(F.broadcast(small), "filter", "left")
    return joined.withColumn("filter", F.col("hidden")).drop("hidden")
