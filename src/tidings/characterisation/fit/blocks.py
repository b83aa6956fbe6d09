"""How long a stretch of traffic must be to tell nothing of the next."""

from __future__ import annotations

import math

from scipy import stats

from tidings.model.arrays import Floats

MOST_PART = 4  # blocks that a record has at least
ONE_SIDED = 1.645  # standard deviations that chance exceeds in 5 of 100 cases
TREND = 0.01  # chance of a rate that stays to seem to rise or fall


def block_batches(events: Floats) -> int:
    """Find how many batches a block needs to tell nothing of the next: a quarter of all at most.

    Of independent blocks, the correlation of neighbours is below 1.645/√m in 95 of 100 cases; so it
    must be of these blocks and of longer ones. Where counts rise or fall all along (Kendall), no
    block is long enough, and a quarter is taken.

    >>> import numpy as np
    >>> block_batches(np.arange(32.0))
    8
    """
    longest = max(len(events) // MOST_PART, 1)
    if stats.kendalltau(range(len(events)), events).pvalue < TREND:
        return longest
    size = longest
    while size > 1:
        shorter = size // 2
        counts = events[: len(events) // shorter * shorter].reshape(-1, shorter).sum(axis=1)
        if _correlation(counts) >= ONE_SIDED / math.sqrt(len(counts)):
            break
        size = shorter
    return size


def _correlation(counts: Floats) -> float:
    """Compute the correlation of neighbours."""
    spread = counts - counts.mean()
    total = float((spread**2).sum())
    return float((spread[1:] * spread[:-1]).sum()) / total if total else 0.0
