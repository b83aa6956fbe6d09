"""How far theory is off, as it was measured: read from a table that is kept as data.

The table is a binary decision tree over numbers that describe where a row lies (its *regime*): at a
node, rows whose feature is at or below the threshold go left, the others right. A leaf has a slope
and a floor: the stated error (half-width, 95 %) of a row is slope × sensitivity + floor. Where a
feature lies outside what was measured, nothing is known, and the error is infinite.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FILE = "theory_errors.json"
SENSITIVITY = "sensitivity"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorTable:
    """A tree over features of rows; a leaf has −1 for its feature."""

    features: tuple[str, ...]
    feature: Ints  # of each node
    threshold: Floats
    left: Ints
    right: Ints
    slope: Floats
    floor: Floats
    low: Floats  # of each feature, as measured
    high: Floats

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> ErrorTable:
        """Make the table from its plain data."""
        kinds = dict.fromkeys(("feature", "left", "right"), np.int64)
        arrays: dict[str, Any] = {
            field.name: np.array(document[field.name], dtype=kinds.get(field.name, np.float64))
            for field in fields(cls)
            if field.name != "features"
        }
        return cls(features=tuple(document["features"]), **arrays)

    def errors(self, regime: pd.DataFrame) -> Floats:
        """State the error (half-width, 95 %) of each row's on-time share by theory."""
        values = self._values(regime)
        leaf = self._leaves(values)
        stated = self.slope[leaf] * regime[SENSITIVITY].to_numpy(np.float64) + self.floor[leaf]
        return np.where(self._outside(values).any(axis=1) | np.isnan(stated), np.inf, stated)

    def unmeasured(self, regime: pd.DataFrame) -> list[str]:
        """Name for each row the first feature that lies outside what was measured; '' if none."""
        outside = self._outside(self._values(regime))
        return [self.features[int(row.argmax())] if row.any() else "" for row in outside]

    def _values(self, regime: pd.DataFrame) -> Floats:
        values: Floats = regime[list(self.features)].to_numpy(np.float64)
        return values

    def _outside(self, values: Floats) -> NDArray[np.bool_]:
        return ~((values >= self.low) & (values <= self.high))

    def _leaves(self, values: Floats) -> Ints:
        """Find the leaf of each row: all go down one level at a time."""
        node = np.zeros(len(values), dtype=np.int64)
        while True:
            inner = np.flatnonzero(self.feature[node] >= 0)
            if not inner.size:
                return node
            here = node[inner]
            below = values[inner, self.feature[here]] <= self.threshold[here]
            node[inner] = np.where(below, self.left[here], self.right[here])


@cache
def measured_errors() -> ErrorTable:
    """Read the table that comes with this version."""
    text = resources.files("tidings.prediction").joinpath(FILE).read_text(encoding="utf-8")
    return ErrorTable.from_document(json.loads(text))


def stated_errors(regime: pd.DataFrame) -> Floats:
    """State the error (half-width, 95 %) of each row by theory; infinity where not measured."""
    return measured_errors().errors(regime)
