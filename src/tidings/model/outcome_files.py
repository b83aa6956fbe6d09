"""Outcomes to files and back: one JSON file, or a folder with a Parquet file per table."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from tidings.errors import InvalidInputError
from tidings.model import json_text
from tidings.model.causes import Cost, total_costs
from tidings.model.json_text import plain
from tidings.model.outcome import SOURCES, TABLES, TEXTS, Outcome, table
from tidings.model.outcome_checks import table_problems
from tidings.model.parquet_files import load_arrow, read_parquet, write_parquet
from tidings.model.plain_files import read_text
from tidings.model.remarks import Remark
from tidings.model.writing import check_place, new_folder, write_file

FORMAT_VERSION = 1
HEAD = "outcome.json"


def outcome_document(outcome: Outcome) -> dict[str, Any]:
    """Write an outcome as plain values, for JSON: unknown numbers are null, infinite ones "inf"."""
    return {
        "tidings_outcome": FORMAT_VERSION,
        "source": outcome.source,
        "on_time": plain(outcome.on_time),
        "delivered": plain(outcome.delivered),
        "why": plain(costs_document(total_costs(outcome))),
        **_story(outcome),
        **{name: _records(getattr(outcome, name)) for name in TABLES},
    }


def costs_document(costs: Sequence[Cost]) -> list[dict[str, Any]]:
    """Write causes, what each costs in on-time share, and how far that can be off, for JSON."""
    return [
        {
            "cause": each.cause.kind,
            "place": each.cause.place,
            "words": each.cause.words,
            "cost": each.cost,
            "error": each.error,
        }
        for each in costs
    ]


def _story(outcome: Outcome) -> dict[str, Any]:
    """Write how an outcome came about and what to know of it, as plain values."""
    return {
        "provenance": plain(dict(outcome.provenance)),
        "remarks": [plain(remark.to_document()) for remark in outcome.remarks],
    }


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {str(column): _cell(value) for column, value in row.items()}
        for row in frame.to_dict("records")
    ]


def _cell(value: Any) -> Any:
    """Convert a cell to plain JSON; infinity, as the wait at an overloaded broker, is "inf".

    Making a table of the cells again (:func:`tidings.model.outcome.table`) reads it as a number,
    where the column is one of numbers.
    """
    return str(value) if isinstance(value, float) and math.isinf(value) else plain(value)


def check_outcome_place(path: str | os.PathLike[str]) -> None:
    """Refuse a place where an outcome cannot be saved, before long work; changes nothing."""
    check_place(path, suffixes=(".json",), what="an outcome")
    if not Path(path).suffix:
        load_arrow()


def save_outcome(outcome: Outcome, path: str | os.PathLike[str]) -> None:
    """Write an outcome as one JSON file, or, where the path has no suffix, as a Parquet folder."""
    check_outcome_place(path)
    target = Path(path)
    if target.suffix:
        text = json.dumps(outcome_document(outcome), allow_nan=False, indent=1)
        write_file(target, text.encode())
    else:
        _save_folder(outcome, target)


def _save_folder(outcome: Outcome, target: Path) -> None:
    with new_folder(target) as folder:
        head = {
            "tidings_outcome": FORMAT_VERSION,
            "source": outcome.source,
            **_story(outcome),
        }
        (folder / HEAD).write_text(json.dumps(head, indent=1), encoding="utf-8")
        for name in TABLES:
            frame = getattr(outcome, name)
            write_parquet(
                {column: frame[column].to_numpy() for column in frame}, folder / f"{name}.parquet"
            )


def load_outcome(path: str | os.PathLike[str]) -> Outcome:
    """Read an outcome from a JSON file or a Parquet folder.

    Raises :class:`InvalidInputError` where it cannot be read or contradicts itself, with every
    problem at once.
    """
    source = Path(path)
    try:
        folder = source.is_dir()
        text = read_text(source / HEAD) if folder else read_text(source, follow=True)
        head = json_text.parse(text)
        _check_head(head, source)
        frames = {
            name: _saved(source / f"{name}.parquet") if folder else _frame(head, name)
            for name in TABLES
        }
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InvalidInputError(f"{error.filename or source}: {reason}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InvalidInputError(f"{source}: not a readable outcome: {reason}") from error
    problems = [each for name, frame in frames.items() for each in table_problems(name, frame)]
    if problems:
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        raise InvalidInputError(f"{source}: not a valid outcome: {count}", problems)
    tables = {name: table(name, _columns(frame)) for name, frame in frames.items()}
    return Outcome(
        source=head["source"],
        provenance=head.get("provenance", {}),
        remarks=_remarks(head, source),
        **tables,
    )


def _remarks(head: Mapping[str, Any], source: Path) -> tuple[Remark, ...]:
    rows = head.get("remarks", [])
    try:
        return tuple(Remark.from_document(row) for row in rows)
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise InvalidInputError(
            f"{source}: its remarks are {str(rows)[:60]!r} ({error}); wants a list of records with "
            "kind, what, where, size, unit, do"
        ) from error


def _check_head(head: Any, source: Path) -> None:
    if not isinstance(head, Mapping) or head.get("tidings_outcome") != FORMAT_VERSION:
        raise InvalidInputError(
            f"{source}: not an outcome of Tidings (no 'tidings_outcome: "
            f"{FORMAT_VERSION}'); create one with 'tidings predict --output FILE.json'"
        )
    if head.get("source") not in SOURCES:
        wanted = ", ".join(SOURCES)
        raise InvalidInputError(
            f"{source}: its source is {head.get('source')!r}; wants one of {wanted}"
        )
    provenance = head.get("provenance", {})
    warnings = provenance.get("warnings", []) if isinstance(provenance, Mapping) else None
    if not isinstance(warnings, list) or not all(isinstance(each, str) for each in warnings):
        raise InvalidInputError(
            f"{source}: provenance is {provenance!r}; wants names with values, warnings as texts"
        )


def _saved(path: Path) -> pd.DataFrame:
    return read_parquet(path).to_pandas()


def _frame(head: Mapping[str, Any], name: str) -> pd.DataFrame:
    """Read a table of a JSON file as its cells are there.

    It raises ValueError unless all rows have the same columns.
    """
    rows = head.get(name)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"table '{name}' is {str(rows)[:40]!r}; wants a list of rows")
    for number, row in enumerate(rows, start=1):
        if row.keys() != rows[0].keys():
            other = ", ".join(sorted(row.keys() ^ rows[0].keys()))
            raise ValueError(f"table '{name}', row {number} differs from row 1 in having {other}")
    return pd.DataFrame(rows, dtype=object)


def _columns(frame: pd.DataFrame) -> dict[str, Any]:
    return {
        str(name): cells if name in TEXTS else pd.to_numeric(cells).astype(float)
        for name, cells in frame.items()
    }
