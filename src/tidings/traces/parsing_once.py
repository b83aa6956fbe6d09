"""Text parsed once, however often its rows are read.

Statistics read a table several times. Where it is text, every reading would parse it again, and
Spark would plan the parsing of every column wherever the column is used: that alone costs more than
all statistics. So rows are kept as Spark keeps them, in columns, in memory and beyond it on disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark import StorageLevel

from tidings.traces.places import TEXT_KINDS
from tidings.traces.reading import Traces


@contextmanager
def parsed_once(traces: Traces) -> Iterator[Traces]:
    """Keep the parsed rows of tables that are text as long as the context lasts.

    What somebody keeps already stays kept.
    """
    text = {name for name, place in traces.places.items() if place.kind in TEXT_KINDS}
    ours = {
        name: frame.persist(StorageLevel.MEMORY_AND_DISK)
        for name, frame in traces.tables.items()
        if name in text and frame.storageLevel == StorageLevel.NONE
    }
    try:
        yield replace(traces, tables={**traces.tables, **ours})
    finally:
        for frame in ours.values():
            frame.unpersist()
