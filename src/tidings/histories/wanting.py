"""Which contents which filters want: every distinct content is looked at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pandas as pd
from pyspark.sql import DataFrame

from tidings.errors import InvalidInputError, InvalidTracesError
from tidings.model import json_text
from tidings.model.document import Place
from tidings.model.events import Event, parse_event
from tidings.model.filters import Filter, read_filter
from tidings.model.matching import match_matrix

WANTED = "content string, wanted array<int>"
_AT_ONCE = 4_000_000  # cells of the matrix of contents and filters that one batch may have


def parse_filters(texts: Sequence[str]) -> list[Filter]:
    """Read the filters that texts in JSON stand for; one that is none is an error of the traces."""
    filters = []
    for text in texts:
        try:
            place = Place(json_text.parse(text))
        except ValueError:
            raise InvalidTracesError(
                f"subscriptions: got the filter {text!r}; wants JSON"
            ) from None
        wanted = read_filter(place)
        if wanted is None:
            raise InvalidTracesError(f"subscriptions: the filter {text!r}: {place.problems[0]}")
        filters.append(wanted)
    return filters


def wanted_by(contents: DataFrame, filters: Sequence[Filter]) -> DataFrame:
    """List for each content the numbers of the filters that want it; null if it is no event.

    Numbers are in order. ``contents`` are distinct. Python, but once for each of them and in whole
    batches: filters have tests (substrings, numbers of any kind, absence) whose meaning is not that
    of SQL's comparisons.
    """
    return contents.select("content").mapInPandas(_matcher(filters), WANTED)


def _matcher(
    filters: Sequence[Filter],
) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    step = max(1, _AT_ONCE // max(1, len(filters)))

    def match(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            for first in range(0, len(batch), step):
                texts = batch["content"].iloc[first : first + step]
                events = [_event(text) for text in texts]
                matrix = match_matrix(filters, [event or {} for event in events])
                numbers = [
                    None if event is None else row.nonzero()[0].astype("int32")
                    for event, row in zip(events, matrix, strict=True)
                ]
                yield pd.DataFrame({"content": texts.to_numpy(), "wanted": numbers})

    return match


def _event(text: str) -> Event | None:
    try:
        return parse_event(text)
    except InvalidInputError:
        return None
