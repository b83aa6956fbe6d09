"""Where the start of a run stops to matter: the marginal standard error rule (MSER-5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

BATCH = 5


def mser(series: ArrayLike) -> int:
    """How many leading values of a series to leave out, in steps of five (White, 1997).

    The values are averaged in batches of five; leaving out d of n batches is judged by the standard
    error of the mean of the rest, s²(d)/(n − d), and the least wins. The last batches are never
    candidates: with few values left the rule finds small variances by chance.

    >>> mser([9, 7, 5, 3, 2] + [1, 0, 1, 0, 1] * 19)
    5
    """
    values = np.asarray(series, dtype=np.float64)
    count = values.size // BATCH
    batches = values[: count * BATCH].reshape(count, BATCH).mean(axis=1)
    if count < 4:
        return 0
    kept = np.arange(count, 0, -1)
    # Sums from each batch to the end; of deviations, lest large means hide small variances.
    deviation = batches - batches.mean()
    total = np.cumsum(deviation[::-1])[::-1]
    squares = np.cumsum(deviation[::-1] ** 2)[::-1]
    error = np.maximum(squares - total**2 / kept, 0.0) / kept**2
    candidates = count - max(2, count // 10)
    return int(np.argmin(error[:candidates])) * BATCH
