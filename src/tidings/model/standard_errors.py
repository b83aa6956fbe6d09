"""How sure counted numbers are: standard errors of shares and of ratios."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]


def share_se(hits: npt.ArrayLike, trials: npt.ArrayLike) -> Reals:
    r"""Compute the standard error of a share of independent trials; NaN of none.

    .. math:: \sqrt{\tilde p (1 - \tilde p) / \tilde n}, \qquad
              \tilde p = \frac{k + 2}{n + 4}, \quad \tilde n = n + 4

    after Agresti and Coull: two hits and two misses are added. With many of both that changes
    nothing; with few losses seen, or none, the plain formula would claim far too much.

    >>> float(share_se(50_000, 100_000).round(6))
    0.001581
    >>> float(share_se(1000, 1000).round(5))  # no loss in a thousand is no proof that there is none
    0.00141
    """
    k, n = np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    share, count = (k + 2.0) / (n + 4.0), n + 4.0
    return np.where(n > 0, np.sqrt(share * (1.0 - share) / count), np.nan)


def ratio_se(parts: npt.ArrayLike, wholes: npt.ArrayLike) -> Reals:
    r"""Compute the standard error of the ratio Σ parts / Σ wholes over batches (last axis).

    .. math:: \frac{1}{\sum_i w_i} \sqrt{\frac{m}{m - 1} \sum_i (x_i - R w_i)^2}, \quad
              R = \frac{\sum_i x_i}{\sum_i w_i}

    Batches may depend on what happens inside them, as events that queue together do; only different
    batches are taken as independent. NaN where fewer than two batches hold anything.

    >>> float(ratio_se([1.0, 3.0], [4.0, 4.0]))
    0.25
    """
    x, w = np.asarray(parts, dtype=np.float64), np.asarray(wholes, dtype=np.float64)
    filled = (w > 0).sum(axis=-1)
    total = w.sum(axis=-1)
    safe = np.where(total > 0, total, 1.0)
    ratio = x.sum(axis=-1) / safe
    spread = ((x - ratio[..., None] * w) ** 2).sum(axis=-1)
    batches = np.where(filled > 1, filled, 2)
    error: Reals = np.sqrt(spread * batches / (batches - 1)) / safe
    return np.where(filled > 1, error, np.nan)


def batch_share_se(hits: npt.ArrayLike, trials: npt.ArrayLike) -> Reals:
    """Compute the standard error of a share from its batches (last axis).

    It is at least that of single trials. Events that queue together depend on each other, which
    batches see and single trials do not; but where hardly any were late or lost, batches hardly
    differ, and :func:`share_se` knows better.
    """
    x, n = np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    error = ratio_se(x, n)
    return np.fmax(error, share_se(x.sum(axis=-1), n.sum(axis=-1)))
