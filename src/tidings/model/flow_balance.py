r"""Flows in balance: what comes to each of some stations that pass things on to each other.

With :math:`\nu_{ij}` the mean number of what comes to j for each one at i, and b what comes from
outside, :math:`x = b + \nu^T x`. Things may go in circles as long as less comes round than went:
the spectral radius of :math:`\nu`, among what is reached at all, must be below 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse import linalg as sparse_linalg

from tidings.model.arrays import Floats, Ints
from tidings.model.loads import FULL_LOAD

_DENSE = 200  # stations up to which plain matrices are as fast


def balanced(passing: sparse.csr_array, begin: Floats) -> Floats | None:
    """Compute the arrivals at each station, in the unit of ``begin``; None if they cannot balance.

    They cannot where what goes round a circle of stations does not become less. A solution without
    negative numbers exists just where the spectral radius is below 1. Rounding can hide that it is
    1, so the same is asked of circles that pass on a billionth more.

    >>> there_and_back = sparse.csr_array([[0.0, 0.5], [0.25, 0.0]])
    >>> [round(float(each), 12) for each in balanced(there_and_back, np.array([1.0, 0.0]))]
    [1.142857142857, 0.571428571429]
    >>> balanced(sparse.csr_array([[0.0, 1.0], [1.0, 0.0]]), np.array([1.0, 0.0])) is None
    True
    """
    arrivals = np.zeros(begin.size)
    part = np.flatnonzero(_reached(passing, begin))
    if part.size == 0:
        return arrivals
    inner = passing[part][:, part]
    for matrix in (inner / FULL_LOAD, inner):
        solution = _solved(matrix, begin[part])
        if not (np.isfinite(solution).all() and (solution >= 0.0).all()):
            return None
    arrivals[part] = solution
    return arrivals


def worst_circle(passing: sparse.csr_array, begin: Floats) -> tuple[float, Ints]:
    """Find the circle of stations where most comes round: how many for each one, and where.

    Only stations that something arrives at count.
    """
    part = np.flatnonzero(_reached(passing, begin))
    inner = passing[part][:, part]
    count, member = csgraph.connected_components(inner, directed=True, connection="strong")
    worst, stations = -1.0, np.zeros(0, dtype=np.int64)
    for circle in range(count):
        inside = np.flatnonzero(member == circle)
        block = inner[inside][:, inside].toarray()
        around = float(np.abs(np.linalg.eigvals(block)).max())
        if around > worst:
            worst, stations = around, part[inside]
    return worst, stations


def _reached(passing: sparse.csr_array, begin: Floats) -> NDArray[np.bool_]:
    """Find the stations that something arrives at; what nothing arrives at cannot multiply."""
    reached = begin > 0.0
    onwards = (passing.T > 0.0).astype(np.float64)
    while True:
        more = reached | ((onwards @ reached.astype(np.float64)) > 0.0)
        if (more == reached).all():
            return reached
        reached = more


def _solved(passing: sparse.csr_array, begin: Floats) -> Floats:
    """Compute (I − νᵀ)⁻¹ begin; NaN where there is no solution."""
    size = begin.size
    try:
        if size <= _DENSE:
            balance: Floats = np.linalg.solve(np.eye(size) - passing.toarray().T, begin)
            return balance
        matrix = sparse.eye_array(size, format="csc") - passing.T.tocsc()
        solution: Floats = sparse_linalg.splu(matrix).solve(begin)
        return solution
    except (np.linalg.LinAlgError, RuntimeError):  # singular
        return np.full(size, np.nan)
