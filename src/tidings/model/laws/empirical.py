"""Laws from a histogram or from quantiles: uniform within a bin, an atom where a bin is a point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tidings.errors import Problem
from tidings.model.arrays import Complexes
from tidings.model.laws.law import (
    Reals,
    Size,
    as_floats,
    as_nodes,
    as_shares,
    as_times,
    check,
    check_number,
    mean_exponential,
    number_problems,
    weight_problems,
)

_BLOCK = 1 << 18  # (argument, bin) pairs handled at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Empirical:
    """With probability ``weights[i]`` uniform from ``edges_s[i]`` to ``edges_s[i + 1]``.

    Two equal edges enclose an atom.

    >>> law = Empirical(edges_s=(0.0, 1.0, 1.0), weights=(0.5, 0.5))  # half of it exactly at 1 s
    >>> law.cdf([0.5, 0.999, 1.0]).tolist()
    [0.25, 0.4995, 1.0]
    """

    edges_s: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges_s", as_floats(self.edges_s))
        object.__setattr__(self, "weights", as_floats(self.weights))
        numbers = [number_problems("Empirical.edges_s", e, positive=False) for e in self.edges_s]
        check(
            *numbers,
            weight_problems("Empirical.weights", self.weights),
            edge_problems(self.edges_s),
            bin_problems(len(self.edges_s), len(self.weights)),
        )

    @property
    def mean_s(self) -> float:
        """Σ wᵢ · middle of bin i, in seconds."""
        edges_s, shares = _bins(self)
        return float(shares @ (edges_s[1:] + edges_s[:-1])) / 2.0

    @property
    def scv(self) -> float:
        """The spread between the bins' middles and that within the bins."""
        edges_s, shares = _bins(self)
        mean_s = self.mean_s
        from_mean_s = (edges_s[1:] + edges_s[:-1]) / 2.0 - mean_s
        variance_s2 = float(shares @ (from_mean_s**2 + np.diff(edges_s) ** 2 / 12.0))
        return variance_s2 / mean_s**2 if mean_s > 0 else 0.0

    def cdf(self, t_s: npt.ArrayLike) -> Reals:
        """Compute P[X ≤ t]: linear within a bin, a step at an atom."""
        times = as_times(t_s)
        edges_s, shares = _bins(self)
        below = cumulative(shares)
        # The last edge at or before t; among equal edges that is the one after the atom.
        at = np.searchsorted(edges_s, times, side="right") - 1
        inside = np.clip(at, 0, len(shares) - 1)
        width_s = np.diff(edges_s)[inside]
        part = (times - edges_s[inside]) / np.where(width_s > 0, width_s, 1.0)
        share: Reals = below[inside] + shares[inside] * np.clip(part, 0.0, 1.0)
        return np.where(at < 0, 0.0, np.where(at >= len(shares), 1.0, share))

    def quantile(self, u: npt.ArrayLike) -> Reals:
        """Find the least t with P[X ≤ t] ≥ u, in seconds."""
        wanted = as_shares(u)
        edges_s, shares = _bins(self)
        filled = np.flatnonzero(shares)  # an empty bin holds no quantile
        below = cumulative(shares[filled])
        at = np.clip(np.searchsorted(below, wanted, side="left") - 1, 0, len(filled) - 1)
        part = np.clip((wanted - below[at]) / shares[filled][at], 0.0, 1.0)
        low_s, high_s = edges_s[filled][at], edges_s[filled + 1][at]
        return np.where(part == 1.0, high_s, low_s + part * (high_s - low_s))

    def transform(self, z: npt.ArrayLike) -> Complexes:
        """Compute E[exp(−zX)]: the bins' uniform transforms, weighted; for every z."""
        nodes = as_nodes(z)
        flat = nodes.ravel()
        edges_s, shares = _bins(self)
        width_s = np.diff(edges_s)
        value = np.empty(flat.shape, dtype=np.complex128)
        step = max(1, _BLOCK // len(shares))
        for begin in range(0, flat.size, step):
            part = flat[begin : begin + step, None]
            bins = np.exp(-part * edges_s[:-1]) * mean_exponential(part * width_s)
            value[begin : begin + step] = bins @ shares
        return value.reshape(nodes.shape)

    def sample(self, rng: np.random.Generator, size: Size) -> Reals:
        """Draw independent samples, in seconds."""
        return self.quantile(rng.random(size))

    def scaled(self, factor: float) -> Empirical:
        """Give the distribution of factor · X."""
        check_number("factor", factor)
        edges_s = tuple(factor * edge_s for edge_s in self.edges_s)
        return Empirical(edges_s=edges_s, weights=self.weights)


def from_quantiles(shares: Sequence[float], times_s: Sequence[float]) -> Empirical:
    """Make the distribution whose CDF is straight between quantiles, from share 0 to share 1.

    >>> from_quantiles([0, 0.5, 1], [0.001, 0.004, 0.08])
    Empirical(edges_s=(0.001, 0.004, 0.08), weights=(0.5, 0.5))
    """
    values = as_floats(shares)
    check(share_problems(values))
    weights = tuple(after - before for before, after in pairwise(values))
    return Empirical(edges_s=tuple(times_s), weights=weights)


def from_values(weights: Mapping[float, float]) -> Empirical:
    """Make a discrete distribution of times, in seconds, with given probabilities.

    >>> law = from_values({0.5: 0.25, 0.1: 0.75})
    >>> law.cdf([0.09, 0.1, 0.4, 0.5]).tolist(), round(law.mean_s, 12)
    ([0.0, 0.75, 0.75, 1.0], 0.2)
    """
    times_s = sorted(weights)
    atoms = [part for time_s in times_s for part in (weights[time_s], 0.0)]
    return Empirical(
        edges_s=tuple(time_s for time_s in times_s for _ in range(2)), weights=tuple(atoms[:-1])
    )


def edge_problems(edges_s: Sequence[float]) -> Iterator[Problem]:
    """Yield problems of edges that are less than the ones before them; equal ones hold an atom."""
    for before_s, after_s in pairwise(edges_s):
        if after_s < before_s:
            saw = f"{before_s:g}, then {after_s:g}"
            yield Problem(at="Empirical.edges_s", saw=saw, want="times that do not decrease")


def bin_problems(edges: int, weights: int) -> Iterator[Problem]:
    """Yield a problem unless there is one edge more than there are bins."""
    if edges != weights + 1:
        saw = f"{edges} edges and {weights} weights"
        yield Problem(at="Empirical", saw=saw, want="one edge more than weights")


def share_problems(shares: Sequence[float]) -> Iterator[Problem]:
    """Yield problems of shares that do not rise from 0 to 1."""
    if len(shares) < 2 or shares[0] != 0.0 or shares[-1] != 1.0:
        want = "shares that begin with 0 and end with 1"
        yield Problem(at="shares", saw=str(list(shares)), want=want)
    if any(not before < after for before, after in pairwise(shares)):
        yield Problem(at="shares", saw=str(list(shares)), want="increasing shares")


def cumulative(shares: Reals) -> Reals:
    """Compute the CDF at the edges of bins: from exactly 0 to exactly 1."""
    below = np.concatenate([[0.0], np.cumsum(shares)])
    below /= below[-1]
    return below


def _bins(law: Empirical) -> tuple[Reals, Reals]:
    """Give the edges, in seconds, and the shares, which sum to 1."""
    shares = np.array(law.weights)
    return np.array(law.edges_s), shares / shares.sum()
