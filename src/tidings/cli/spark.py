"""Spark as the commands start it: ended with the command, however that ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tidings.cli import interrupts
from tidings.traces.session import end_java, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def started(
    master: str | None, *, memory: str | None = None, small: bool = False
) -> Iterator[SparkSession]:
    """A session for one command. Interrupted, it takes the embedded Java with it at once."""
    try:
        session = spark_session(master, memory=memory, small=small)
        interrupts.heed()  # Spark has taken Ctrl-C over, and would wait for its jobs
        try:
            yield session
        finally:
            if not interrupts.asked():
                session.stop()
    finally:
        if interrupts.asked():
            end_java()
