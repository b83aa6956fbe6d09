"""How far theory is off, as it was measured: a function that is kept as data.

The function is a sum of small binary trees over the numbers that describe where a row lies (its
*regime*): at a node, rows whose feature is at or below the threshold go left, the others right. The
sum is the logarithm of the error to be expected; the *margin* added to it covers all but a few of
the rows that the function was not fitted to. Where nothing is approximate, the largest error that
was measured there is stated, if that is less. Where a feature lies outside what was measured,
nothing is known, and the error is infinite.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd

from tidings.model.arrays import Bools, Floats, Ints, Texts
from tidings.theory.feature_names import NEVER_BELIEVED, NEVER_TOGETHER

FILE = "theory_errors.json"
# By which part of themselves misses are off where all waits are exact, beside arithmetic: a little
# more than one standard error of the simulations that theory was held against, from which it does
# not differ (studies/tails/theory.py).
TAIL = 0.03
FEWEST, MOST = 1e-4, 0.02  # misses of which that was measured
# Others wait behind what a publisher hands over on its return, which theory leaves out: it is off
# by about the share of time in which they do, and by no more than this many times as much.
BEHIND = 1.2
ROUNDING = 1e-9  # change of a share by longer waits that is none, only arithmetic


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionTree:
    """A binary tree over features of rows; a leaf has −1 for its feature."""

    feature: Ints  # of each node
    threshold: Floats
    left: Ints
    right: Ints
    value: Floats

    def at(self, columns: Floats, low: Floats, high: Floats, node: int = 0) -> Floats:
        """Give the value of each row's leaf, of [feature, row]; features lie from low to high.

        A number where all rows have the same: nodes that send all of them one way, as most do
        within one system, look at none.
        """
        feature, threshold = self.feature[node], self.threshold[node]
        if feature < 0:
            return np.asarray(self.value[node])
        if high[feature] <= threshold:
            return self.at(columns, low, high, self.left[node])
        if low[feature] > threshold:
            return self.at(columns, low, high, self.right[node])
        left, right = (self.at(columns, low, high, to[node]) for to in (self.left, self.right))
        return np.where(columns[feature] <= threshold, left, right)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorTable:
    """The measured error of theory as a function of a row's regime."""

    features: tuple[str, ...]
    low: Floats  # of each feature, as measured
    high: Floats
    start: float  # logarithm of an error, to which the trees add
    margin: float
    trees: tuple[RegressionTree, ...]
    absent: tuple[str, ...] = ()  # features that are all 0 where nothing is approximate
    exact: float = np.inf  # the largest error measured there

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> ErrorTable:
        """Make the table from its plain data."""
        return cls(
            features=tuple(document["features"]),
            low=np.array(document["low"], dtype=np.float64),
            high=np.array(document["high"], dtype=np.float64),
            start=float(document["start"]),
            margin=float(document["margin"]),
            trees=tuple(_tree(*each) for each in document["trees"]),
            absent=tuple(document["absent"]),
            exact=float(document["exact"]),
        )

    def expected(self, regimes: pd.DataFrame) -> Floats:
        """Compute the error to be expected of each row, whether measured there or not."""
        return self._expected(self._columns(regimes))

    def _expected(self, columns: Floats) -> Floats:
        ends = columns.min(axis=1, initial=np.inf), columns.max(axis=1, initial=-np.inf)
        logs: Floats = np.full(columns.shape[1], self.start)
        for tree in self.trees:
            logs += tree.at(columns, *ends)
        return np.exp(logs)

    def errors(self, regimes: pd.DataFrame) -> Floats:
        """State the error (half-width, 95 %) of each row's on-time share by theory."""
        columns = self._columns(regimes)
        stated = self._expected(columns) * np.exp(self.margin)
        if self.absent:
            known = (regimes[list(self.absent)] == 0.0).all(axis=1).to_numpy()
            stated = np.where(known, np.minimum(stated, self.exact), stated)
        if "handed_over" in regimes:
            stated = np.maximum(stated, BEHIND * regimes["handed_over"].to_numpy(np.float64))
        unknown = np.zeros(len(regimes), dtype=np.bool_)
        for rows in self._outside(columns):
            unknown |= rows
        for rows in _never_believed(regimes).values():
            unknown |= rows
        return np.where(unknown, np.inf, stated)

    def tail_errors(self, regimes: pd.DataFrame, missed: Floats, roughness: Floats) -> Floats:
        """State the error (half-width, 95 %) of each row with its misses, if few, in view.

        Where nothing is approximate misses are off by a part of themselves and by arithmetic; the
        latter is what inversion leaves (``roughness``). Elsewhere the errors are those of shares.
        """
        of_shares = self.errors(regimes)
        stated = np.maximum(of_shares, roughness)
        is_exact = self.are_exact(regimes) & np.isfinite(of_shares)
        is_tail = is_exact & (missed >= FEWEST) & (missed <= MOST)
        return np.where(is_tail, np.minimum(stated, TAIL * missed + roughness), stated)

    def are_exact(self, regimes: pd.DataFrame) -> Bools:
        """Find the rows in which nothing is approximate, not even waits that are short."""
        if not self.absent:
            return np.zeros(len(regimes), dtype=np.bool_)
        nothing = (regimes[list(self.absent)] == 0.0).all(axis=1)
        known: Bools = (nothing & (regimes["sensitivity"] <= ROUNDING)).to_numpy()
        return known

    def unmeasured(self, regimes: pd.DataFrame) -> Texts:
        """Name for each row the first feature that lies outside what was measured; '' if none."""
        first = np.full(len(regimes), "", dtype=object)
        outside = list(self._outside(self._columns(regimes)))
        for feature, rows in zip(self.features[::-1], outside[::-1], strict=True):
            first[rows] = feature
        for feature, rows in _never_believed(regimes).items():
            first[rows] = feature
        return first

    def _columns(self, regimes: pd.DataFrame) -> Floats:
        """Make an array [feature, row], in which a feature of all rows lies together."""
        return np.ascontiguousarray(regimes[list(self.features)].to_numpy(np.float64).T)

    def _outside(self, columns: Floats) -> Iterator[Bools]:
        """Find for one feature after the other where it is not among what was measured."""
        for column, low, high in zip(columns, self.low, self.high, strict=True):
            yield ~((column >= low) & (column <= high))


def _never_believed(regimes: pd.DataFrame) -> dict[str, Bools]:
    guards = {name: {name: 0.0} for name in NEVER_BELIEVED} | NEVER_TOGETHER
    return {
        name: np.all([regimes[each] > least for each, least in limits.items()], axis=0)
        for name, limits in guards.items()
        if limits.keys() <= set(regimes)
    }


def _tree(
    feature: Sequence[int],
    threshold: Sequence[float],
    left: Sequence[int],
    right: Sequence[int],
    value: Sequence[float],
) -> RegressionTree:
    return RegressionTree(
        feature=np.array(feature, dtype=np.int64),
        threshold=np.array(threshold, dtype=np.float64),
        left=np.array(left, dtype=np.int64),
        right=np.array(right, dtype=np.int64),
        value=np.array(value, dtype=np.float64),
    )


@cache
def measured_errors() -> ErrorTable:
    """Read the table that comes with this version."""
    text = resources.files("tidings.theory").joinpath(FILE).read_text(encoding="utf-8")
    return ErrorTable.from_document(json.loads(text))


def stated_errors(regimes: pd.DataFrame) -> Floats:
    """State the error (half-width, 95 %) of each row by theory; infinity where not measured."""
    return measured_errors().errors(regimes)
