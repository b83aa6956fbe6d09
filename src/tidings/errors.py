"""Every error that Tidings raises on purpose.

    TidingsError
    ├── InvalidInputError     what was given is wrong (exit code 2)
    │   ├── InvalidSystemError    a system description, with all its problems
    │   ├── InvalidNetError       a queueing Petri net, with all its problems
    │   └── InvalidTracesError    trace tables that cannot be read as such
    │       └── StoreInUseError       a store that somebody else reads or changes just now
    ├── UnsupportedError      the input is right, but this engine does not handle it (exit code 3)
    ├── UnstableError         a queue grows without limit (exit code 4)
    └── EngineError           Spark, Java, a server is missing or failed (exit code 5)

A message says where, what was seen, what is wanted, and what to do. ``kind`` is a program's name
for the class.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with an input: where, what was seen, what is wanted, what to do.

    ``file`` is named where an input has several; ``line`` counts its lines from 1 or, in a Parquet
    table, which has no lines, its rows.

    >>> print(Problem(at="servers", saw="0", want="1 or more", line=3, file="brokers.csv"))
    brokers.csv line 3, servers: got 0; wants 1 or more
    """

    at: str
    saw: str
    want: str
    fix: str = ""
    line: int | None = None
    file: str = ""

    def __str__(self) -> str:
        unit = "row" if self.file.endswith(".parquet") else "line"
        line = f"{unit} {self.line}" if self.line is not None else ""
        where = ", ".join(each for each in (f"{self.file} {line}".strip(), self.at) if each)
        hint = f" ({self.fix})" if self.fix else ""
        return f"{where}: got {self.saw}; wants {self.want}{hint}"

    @property
    def order(self) -> tuple[object, ...]:
        """Sorts problems as one reads a file: by line, then by place, ``[2]`` before ``[10]``."""
        texts = re.split(r"([0-9]{1,18})", self.at)  # texts and numbers by turns
        place = [int(text) if at % 2 else text for at, text in enumerate(texts)]
        return self.file, self.line or 0, place


class TidingsError(Exception):
    """The root of all deliberate errors."""

    exit_code = 1
    kind = "error"


class InvalidInputError(TidingsError):
    """What was given is wrong; ``problems`` lists everything that is, in the order of its lines."""

    exit_code = 2
    kind = "invalid_input"

    def __init__(self, message: str, problems: Iterable[Problem] = ()) -> None:
        self.headline = message
        self.problems = tuple(sorted(dict.fromkeys(problems), key=lambda each: each.order))
        super().__init__("\n".join([message, *(f"  {problem}" for problem in self.problems)]))


class InvalidSystemError(InvalidInputError):
    """A system description with at least one problem."""

    kind = "invalid_system"


class InvalidNetError(InvalidInputError):
    """A queueing Petri net with at least one problem."""

    kind = "invalid_net"


class InvalidTracesError(InvalidInputError):
    """Trace tables that are missing, unreadable, or not what they should be."""

    kind = "invalid_traces"


class StoreInUseError(InvalidTracesError):
    """A store that another run reads or changes just now; later it can be used."""


class UnsupportedError(TidingsError):
    """The system is valid, but this engine cannot honour all of it, and will not ignore any.

    ``features`` names what it cannot.
    """

    exit_code = 3
    kind = "unsupported"

    def __init__(self, message: str, features: Iterable[str] = ()) -> None:
        self.features = tuple(features)
        super().__init__(message)


class UnstableError(TidingsError):
    """Work arrives faster than it can be done, so a queue grows without limit."""

    exit_code = 4
    kind = "unstable"


class EngineError(TidingsError):
    """Something Tidings runs on (Java, Spark, a cluster, a server) is missing or failed."""

    exit_code = 5
    kind = "engine"


# The extra of this package that brings a module.
_EXTRAS = {
    "pyspark": "spark",
    "py4j": "spark",
    "nats": "nats",
    "numba": "compile",
    "matplotlib": "notebook",
    "pyarrow": "spark",
    "google": "otlp",
    "opentelemetry": "otlp",
    "prometheus_client": "serve",
    "starlette": "serve",
    "uvicorn": "serve",
}


def missing_extra(error: ImportError, extra: str = "") -> EngineError | None:
    """Say which extra brings a missing module, by default the one listed; None where none does.

    >>> print(missing_extra(ModuleNotFoundError(name="pyspark.sql")))
    this needs 'pyspark', which is not installed; run: pip install 'tidings[spark]'
    """
    module = (error.name or "").partition(".")[0]
    if module not in _EXTRAS:
        return None
    needed = f"tidings[{extra or _EXTRAS[module]}]"
    return EngineError(
        f"this needs '{module}', which is not installed; run: pip install '{needed}'"
    )
