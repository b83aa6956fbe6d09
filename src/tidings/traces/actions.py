"""Small results of Spark brought here, and its failures in words instead of Java's stacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa
from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession

from tidings.errors import EngineError, InvalidTracesError, TidingsError

Result = TypeVar("Result")
# Starts a function with its arguments beside what else runs; its result is the future's.
Start = Callable[..., "Future[Any]"]

# What speaks of the machinery; whatever else fails while tables are read is the tables' fault.
_MACHINERY = (
    "OutOfMemory", "ExecutorLost", "No space left", "SparkContext was shut down",
    "stopped SparkContext", "Connection refused", "cancelled",
)  # fmt: skip
_LARGEST_EXACT = 2**53  # up to here a double holds every whole number
_WRAPPERS = ("Exception thrown in awaitResult", "Job aborted due to stage failure")


@contextmanager
def concurrent_queries(spark: SparkSession) -> Iterator[Start]:
    """Run queries side by side, for as long as the context lasts.

    A small query leaves most of a machine idle: it is planned and compiled by one thread, and its
    last task is waited for by all others. Tasks still run as many at once as there are cores, so
    that queries side by side need no more memory. Where the context is left by an error, queries
    that have not begun never will.
    """
    inherits = inheritable_thread_target(spark)
    with ThreadPoolExecutor(thread_name_prefix="tidings-query") as pool:
        try:
            yield lambda function, *arguments: pool.submit(inherits(function), *arguments)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def bring_here(frame: DataFrame, what: str) -> pd.DataFrame:
    """Collect a small table as pandas; ``what`` names its source tables, should they be broken."""
    return _as_pandas(run_action(frame.toArrow, what))


def _as_pandas(table: pa.Table) -> pd.DataFrame:
    """Convert a table to pandas; integers that a double would round stay integers beside nulls.

    >>> _as_pandas(pa.table({"at_ns": [2**62 + 1, None]}))["at_ns"][0] - 2**62
    np.int64(1)
    """
    frame: pd.DataFrame = table.to_pandas()
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count and pa.types.is_int64(column.type):
            whole = column.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
            if (whole.abs() > _LARGEST_EXACT).any():
                frame[name] = whole
    return frame


def run_action(action: Callable[[], Result], what: str) -> Result:
    """Run an action of Spark and give its result.

    Raises :class:`InvalidTracesError` in a line where the tables cannot be read to their end, and
    :class:`EngineError` where Spark itself failed.
    """
    try:
        return action()
    except TidingsError:
        raise
    except Exception as problem:
        said = list(_causes(problem))
        reason = reason_of(problem)
        if any(sign in line for line in said for sign in _MACHINERY):
            raise EngineError(f"Spark failed while reading {what}: {reason}") from None
        raise InvalidTracesError(f"{what} cannot be read: {reason}") from None


def reason_of(problem: Exception) -> str:
    """Say in one line why Spark failed: its message, and the cause of that."""
    said = list(_causes(problem))
    return f"{said[0]} ({said[1]})" if len(said) > 1 else said[0]


def _causes(problem: Exception) -> Iterator[str]:
    """Yield the first line of an error, then of its causes; wrappers are passed over."""
    lines = []
    java = getattr(problem, "java_exception", None)
    while java is not None:
        lines.append(_first_line(str(java.toString())))
        java = java.getCause()
    lines = lines or [_first_line(str(problem)) or type(problem).__name__]
    telling = [line for line in lines if not any(wrapper in line for wrapper in _WRAPPERS)]
    yield from (_without_class(line) for line in telling or lines)


def _first_line(text: str) -> str:
    r"""Find the first line of an error; where a Python worker failed, of what it raised.

    >>> _first_line("Failed:\nTraceback (most recent call last):\n  File ...\nE: no room\n")
    'E: no room'
    """
    _, _, trace = text.partition("Traceback (most recent call last):\n")
    lines = [line for line in (trace or text.strip()).splitlines() if not line.startswith(" ")]
    return (lines or [""])[0].strip()


def _without_class(line: str) -> str:
    """Remove the name of the Java class in front of a line.

    >>> _without_class("java.io.IOException: no more bytes")
    'no more bytes'
    """
    name, colon, rest = line.partition(": ")
    return rest if colon and rest and "." in name and " " not in name else line
