"""Spark as the commands start it: ended with the command, however that ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from tidings.cli import console, interrupts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CHOSEN: dict[str, str] = {}  # settings from the command line


def choose(settings: Sequence[str]) -> None:
    """Take Spark's settings from the command line, for the one command that follows."""
    _CHOSEN.clear()
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.startswith("spark."):
            raise typer.BadParameter(
                f"--spark-conf: got {setting!r}; wants KEY=VALUE with a key that begins with "
                "'spark.', such as spark.sql.shuffle.partitions=64"
            )
        _CHOSEN[key] = value


@contextmanager
def started(
    master: str | None, *, memory: str | None = None, small: bool = False
) -> Iterator[SparkSession]:
    """Start a session for one command. Interrupted, it takes the embedded Java with it at once."""
    from tidings.traces.session import end_java, is_exposed, spark_session

    if is_exposed(master):
        console.note(
            f"Spark now listens on the network so that the workers of {master} can reach "
            "it; anyone else who can reach it could run code on this machine: use only a "
            "trusted network"
        )
    try:
        with interrupts.kept():  # else Ctrl-C would wait for Spark's jobs
            session = spark_session(master, memory=memory, small=small, settings=_CHOSEN)
        try:
            yield session
        finally:
            if not interrupts.asked():
                session.stop()
    finally:
        if interrupts.asked():
            end_java()
