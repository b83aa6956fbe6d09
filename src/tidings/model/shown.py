"""Results as notebooks show them: a headline and one table; pandas, Arrow and a chart of it."""

from __future__ import annotations

import html
import importlib
from collections.abc import Mapping
from typing import Any, ClassVar

import pandas as pd

from tidings.errors import InvalidInputError, missing_extra
from tidings.model.parquet_files import load_arrow
from tidings.model.units import format_seconds

MOST_ROWS = 10
MOST_BARS = 30
_SHARES = frozenset(
    {"on_time", "error", "late", "delivered", "gain", "target", "share", "margin", "change",
     "utilisation", "satisfied", "on_time_a", "on_time_b", "on_time_difference", "on_time_before",
     "on_time_after", "best"}
)  # fmt: skip


class Shown:
    """A result that says which of its tables is shown, and which columns of that.

    The first column names the rows; the second is what :meth:`plot` draws, with the column
    ``error`` where there is one.
    """

    __slots__ = ()
    _table: ClassVar[str]
    _columns: ClassVar[tuple[str, ...]]

    def columns(self) -> tuple[str, ...]:
        """Name the columns that are shown."""
        return self._columns

    def headline(self) -> str:
        """Say in a few words what the result is, and its verdict where it has one."""
        verdict = getattr(self, "verdict", "")
        return f"{type(self).__name__}: {verdict}" if verdict else type(self).__name__

    def to_pandas(self, table: str = "") -> pd.DataFrame:
        """Copy a table of the result, by default the one that is shown, as a pandas frame."""
        name = table or self._table
        value = getattr(self, name, None)
        if callable(value):
            value = value()
        if isinstance(value, pd.DataFrame):
            return value.reset_index(drop=True)
        document = self.to_document() if hasattr(self, "to_document") else {}
        rows = document.get(name)
        if isinstance(rows, Mapping) and all(isinstance(each, Mapping) for each in rows.values()):
            rows = [{"name": key, **each} for key, each in rows.items()]
        if not isinstance(rows, list):
            raise InvalidInputError(f"{type(self).__name__} has no table '{name}'")
        return pd.DataFrame(rows, columns=None if rows else list(self.columns()))

    def to_arrow(self, table: str = "") -> Any:
        """Copy a table of the result, by default the one that is shown, as an Arrow table."""
        return load_arrow().Table.from_pandas(self.to_pandas(table), preserve_index=False)

    def plot(self, ax: Any = None) -> Any:
        """Draw what is shown as bars, on a Matplotlib axis of its own or a given one."""
        if ax is None:
            _, ax = _pyplot().subplots()
        rows = self._rows().head(MOST_BARS).iloc[::-1]
        label, value = self.columns()[:2]
        error = rows["error"].fillna(0.0) if "error" in self.columns() else None
        ax.barh([_text(label, each) for each in rows[label]], rows[value], xerr=error)
        ax.set_xlabel(_words(value))
        ax.set_title(self.headline())
        if value == "on_time":
            ax.set_xlim(0.0, 1.0)
        return ax

    def _rows(self) -> pd.DataFrame:
        """Give the rows in the order in which they are shown."""
        return self.to_pandas()

    def __repr__(self) -> str:
        return f"<{self.headline()}>"

    def _repr_html_(self) -> str:
        rows = self._rows()
        names = [each for each in self.columns() if each in rows]
        head = "".join(f"<th>{html.escape(_words(name))}</th>" for name in names)
        lines = [
            "".join(f"<td>{html.escape(_text(name, row[name]))}</td>" for name in names)
            for row in rows.head(MOST_ROWS).to_dict("records")
        ]
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        left_out = f"<p>{MOST_ROWS} of {len(rows)} rows</p>" if len(rows) > MOST_ROWS else ""
        return (
            f"<p><b>{html.escape(self.headline())}</b></p><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{left_out}"
        )


def _pyplot() -> Any:
    try:
        return importlib.import_module("matplotlib.pyplot")
    except ImportError as error:
        raise missing_extra(error) or error from None


def _words(name: str) -> str:
    """Write the name of a column as a heading, without its unit.

    >>> _words("delay_mean_s"), _words("on_time")
    ('delay mean', 'on time')
    """
    return name.removesuffix("_s").replace("_", " ")


def _text(name: str, value: Any) -> str:
    """Write a cell as a person reads it: shares in percent, times with a unit, few digits.

    >>> _text("on_time", 0.87351), _text("delay_mean_s", 0.0123), _text("size", 1.41421356)
    ('87.35 %', '12.3 ms', '1.414')
    """
    if not isinstance(value, float):
        return "" if value is None else str(value)
    if value != value:
        return "–"
    if name in _SHARES:
        return f"{100 * value:.2f} %"
    return format_seconds(value) if name.endswith("_s") else f"{value:.4g}"
