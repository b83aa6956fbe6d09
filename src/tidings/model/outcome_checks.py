"""What must hold of the tables of an outcome, so that a file that was altered is not believed.

Every problem names the table, the row and the column, what was seen and what is wanted; rows that
are wrong in the same way are one problem.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from tidings.errors import Problem
from tidings.model.arrays import Bools
from tidings.model.document import shorten
from tidings.model.outcome import ANSWERED, KEYS, LOSSES, REDELIVERED, TABLES, TEXTS

ROUNDING = 1e-6  # by which shares that were written and read again may miss their sum
_SHARES = {"on_time", "delivered", "late", "lost", "arrived", *LOSSES, *REDELIVERED}
# Columns that files of older versions lack.
_LATER = {*ANSWERED, *REDELIVERED, "lost_dead_letter"}
_ALWAYS_KNOWN = {"subscribers": ("count", "wanted_per_s"), "delays": ("delay_s", "arrived")}
_ENDLESS = ("inf", "-inf")  # as JSON files have them


def table_problems(name: str, frame: pd.DataFrame) -> Iterator[Problem]:
    """Yield everything that is wrong with a table as it was read; cells may be of any kind."""
    columns = [each for each in TABLES[name] if each in frame.columns or each not in _LATER]
    missing = [each for each in columns if each not in frame.columns] if len(frame) else []
    unknown = [str(each) for each in frame.columns if each not in columns]
    for kind, names in (("lacks", missing), ("has besides", unknown)):
        if names:
            yield Problem(
                at=f"table '{name}'",
                saw=f"a table that {kind} {', '.join(names)}",
                want=f"the columns {', '.join(columns)}",
                fix="run the command that made this outcome again, with this version of Tidings",
            )
    if missing or unknown or not len(frame):
        return
    wrong = {column: _wrong_kind(column, frame[column]) for column in columns}
    for column, rows in wrong.items():
        want = "a text" if column in TEXTS else "a number, at most 1.8e308"
        yield from _problem(name, frame, column, rows, want)
    # What is no number says nothing else; what is wrong with the other rows is told all the same.
    sound = ~np.any(list(wrong.values()), axis=0)
    numbers = frame.copy()
    for column in columns:
        if column in TEXTS:
            numbers[column] = [str(each) for each in frame[column]]
        else:
            readable = frame[column].where(~wrong[column])
            numbers[column] = pd.to_numeric(readable).astype(float)
    yield from _value_problems(name, numbers, wrong)
    yield from _sum_problems(name, numbers, sound)
    yield from _double_problems(name, numbers, sound)


def _wrong_kind(column: str, cells: pd.Series) -> Bools:
    """Find the cells that are no text, or no number, as the column wants them."""
    if column in TEXTS:
        return np.array([not isinstance(each, str) for each in cells])
    if pd.api.types.is_numeric_dtype(cells) and not pd.api.types.is_bool_dtype(cells):
        return np.zeros(len(cells), dtype=np.bool_)
    return np.array([not _is_number(each) for each in cells])


def _is_number(cell: object) -> bool:
    """Test whether a cell is unknown, infinite as a text, or a number that fits a float."""
    if cell is None or (isinstance(cell, str) and cell in _ENDLESS):
        return True
    if not isinstance(cell, int | float | np.number) or isinstance(cell, bool | np.bool_):
        return False
    try:
        return not math.isinf(cell)
    except OverflowError:
        return False


def _value_problems(
    name: str, frame: pd.DataFrame, wrong: Mapping[str, Bools]
) -> Iterator[Problem]:
    for column in wrong:
        if column in TEXTS:
            if column in KEYS[name] and column != "place":  # some causes have none
                yield from _problem(name, frame, column, frame[column] == "", "a name")
            continue
        values = frame[column].to_numpy()
        if column in _ALWAYS_KNOWN.get(name, ()):
            unknown = np.isnan(values) & ~wrong[column]
            yield from _problem(name, frame, column, unknown, "a known number")
            yield from _problem(name, frame, column, np.isinf(values), "a finite number")
        if column in _SHARES:
            outside = (values < -ROUNDING) | (values > 1 + ROUNDING)
            yield from _problem(name, frame, column, outside, "a share from 0 to 1")
        else:
            yield from _problem(name, frame, column, values < 0, "a number not below 0")


def _sum_problems(name: str, frame: pd.DataFrame, sound: Bools) -> Iterator[Problem]:
    """Yield problems of shares that contradict each other or what is wanted.

    Only rows whose cells are all of the right kind are checked.
    """
    if "on_time" not in frame:
        return
    shares = frame[["on_time", "late", "delivered"]]
    known, wanted = shares.notna().all(axis=1), frame["wanted_per_s"] > 0
    half = (shares.notna().any(axis=1) ^ known) & sound
    yield from _problem(name, frame, "delivered", half, "on_time, late, delivered known or none")
    want = "a known share, as events are wanted"
    yield from _problem(name, frame, "on_time", ~known & ~half & wanted & sound, want)
    known &= sound
    off = known & ((frame["on_time"] + frame["late"] - frame["delivered"]).abs() > ROUNDING)
    yield from _problem(name, frame, "delivered", off, "on_time + late")
    losses = frame[[each for each in LOSSES if each in frame.columns]].sum(axis=1)
    off = known & ((frame["delivered"] + losses - 1.0).abs() > ROUNDING)
    yield from _problem(name, frame, "delivered", off, "a share that adds up to 1 with all lost_*")


def _double_problems(name: str, frame: pd.DataFrame, sound: Bools) -> Iterator[Problem]:
    keys = list(KEYS[name])
    twice = frame.duplicated(keys) & sound
    yield from _problem(name, frame, keys[0], twice, f"one row for each {' and '.join(keys)}")


def _problem(
    name: str, frame: pd.DataFrame, column: str, wrong: Bools | pd.Series, want: str
) -> Iterator[Problem]:
    rows = np.flatnonzero(np.asarray(wrong, dtype=np.bool_))
    if rows.size:
        first = frame.iloc[int(rows[0])]
        who = ", ".join(str(first[key]) for key in KEYS[name] if key in TEXTS)
        more = f" (and {rows.size - 1} more rows like it)" if rows.size > 1 else ""
        cell = first[column]
        yield Problem(
            at=f"table '{name}', row {rows[0] + 1} ({who}), {column}",
            saw=f"{cell if isinstance(cell, float | np.number) else shorten(repr(cell))}{more}",
            want=want,
        )
