"""Spark as the commands start it: ended with the command, however that ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tidings.cli import console, interrupts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def started(
    master: str | None, *, memory: str | None = None, small: bool = False
) -> Iterator[SparkSession]:
    """A session for one command. Interrupted, it takes the embedded Java with it at once."""
    from tidings.traces.session import end_java, is_exposed, spark_session

    if is_exposed(master):
        console.note(
            f"Spark now listens on the network so that the workers of {master} can reach "
            "it; anyone else who can reach it could run code on this machine: use only a "
            "trusted network"
        )
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
