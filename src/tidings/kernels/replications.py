"""What every simulator does around its kernel: replications side by side, warm-up, precision."""

from __future__ import annotations

import itertools
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tidings.kernels.warmup import mser
from tidings.model.remarks import Remark

PILOTS = 20
PILOT_SAMPLES = 2_000
MOST_PILOT_DOUBLINGS = 6


def side_by_side(work: Callable[[int], Any], numbers: Iterable[int]) -> Iterator[Any]:
    """Results in order, a few under way at a time: memory does not grow with their number.

    Compiled code does not hold the interpreter, so replications run on all cores.
    """
    workers = os.cpu_count() or 1
    left = iter(numbers)
    pool = ThreadPoolExecutor(max_workers=workers)
    wait = True
    try:
        waiting = deque(pool.submit(work, each) for each in itertools.islice(left, 2 * workers))
        while waiting:
            result = waiting.popleft().result()
            waiting.extend(pool.submit(work, each) for each in itertools.islice(left, 1))
            yield result
    except KeyboardInterrupt:
        wait = False  # nothing stops compiled code, and whoever interrupts it will not wait
        raise
    finally:
        pool.shutdown(wait=wait, cancel_futures=True)


def detect_warmup(
    pilot: Callable[[int, float], ArrayLike], length_s: float
) -> tuple[float, list[Remark]]:
    """Find how long the start of a run shows in a series, by MSER-5 on pilot runs, in seconds.

    ``pilot`` gives ``PILOT_SAMPLES`` values at regular moments of a run of a number and a length.
    The pilots are averaged (many short ones show a start better than few long ones) and are not
    used again. Where the answer lies in their second half they were too short, and are run again
    at twice the length. The rule stops where the start drowns in the noise of the pilots; the runs
    to come have less noise, so twice as much is left out.
    """
    for doubling in range(MOST_PILOT_DOUBLINGS + 1):

        def run(number: int, length_s: float = length_s) -> ArrayLike:
            return pilot(number, length_s)

        # Replications count from 0; pilots have numbers of their own, below.
        series = np.mean(list(side_by_side(run, range(-PILOTS, 0))), axis=0)
        cut = mser(series)
        if cut <= PILOT_SAMPLES // 2 or doubling == MOST_PILOT_DOUBLINGS:
            break
        length_s *= 2.0
    warmup_s = 2.0 * cut / PILOT_SAMPLES * length_s
    settled = cut <= PILOT_SAMPLES // 2
    return warmup_s, [] if settled else [_slow_to_settle(warmup_s)]


def _slow_to_settle(warmup_s: float) -> Remark:
    return Remark(
        kind="slow to settle",
        what="the system is slow to reach steady state: the warm-up may be too short, and "
        "results biased by the empty start",
        size=warmup_s,
        unit="s",
        do="simulate for longer, or set a longer warm-up",
    )


def more_replications(done: int, reached: float, wanted: float, most: int) -> int:
    """How many replications to add so that a half-width comes down to what is wanted.

    It shrinks with the root of their number; never more than as many again at once.

    >>> more_replications(10, reached=0.02, wanted=0.01, most=1000)
    10
    """
    needed = done * (reached / wanted) ** 2 if reached > 0 else 2.0 * done
    return max(1, min(most - done, done, math.ceil(1.1 * needed) - done))
