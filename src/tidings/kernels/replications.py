"""What every simulator does around its kernel: replications side by side, warm-up, precision."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from tidings.model.progress import Progress
from tidings.model.remarks import Remark

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


PILOTS = 20
PILOT_SAMPLES = 2_000
MOST_PILOT_DOUBLINGS = 6


def usable_cores() -> int:
    """How many cores this process may run on: fewer than there are, where it was given fewer."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def side_by_side(work: Callable[[int], Any], numbers: Iterable[int]) -> Iterator[Any]:
    """Results in order, a few under way at a time: memory does not grow with their number.

    Compiled code does not hold the interpreter, so replications run on all cores. What they give
    and in which order does not depend on how many these are.
    """
    workers = usable_cores()
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
    pilot: Callable[[int, float], ArrayLike],
    length_s: float,
    tell: Progress = lambda _: None,
    most_doublings: int = MOST_PILOT_DOUBLINGS,
) -> tuple[float, list[Remark]]:
    """Find how long the start of a run shows in a series, by MSER-5 on pilot runs, in seconds.

    ``pilot`` gives ``PILOT_SAMPLES`` values at regular moments of a run of a number and a length.
    The pilots are averaged (many short ones show a start better than few long ones) and are not
    used again. Where the answer lies in their second half they were too short, and are run again
    at twice the length, ``most_doublings`` times at most. The rule stops where the start drowns in
    the noise of the pilots; the runs to come have less noise, so twice as much is left out.
    """
    for doubling in range(most_doublings + 1):

        def run(number: int, length_s: float = length_s) -> ArrayLike:
            return pilot(number, length_s)

        pilots = []
        # Replications count from 0; pilots have numbers of their own, below.
        for each in side_by_side(run, range(-PILOTS, 0)):
            pilots.append(each)
            tell(f"pilot run {len(pilots)} of {PILOTS} for the warm-up")
        series = np.mean(pilots, axis=0)
        cut = mser(series)
        if cut <= PILOT_SAMPLES // 2 or doubling == most_doublings:
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


FEWEST = 2  # replications: fewer say nothing of how much they differ
SAFELY = 1.1  # times the replications needed by what is known: they may show a larger error


def more_replications(done: int, reached: float, wanted: float, most: int) -> int:
    """How many replications to add so that a half-width comes down to what is wanted.

    It shrinks with the root of their number; never more than as many again at once.

    >>> more_replications(10, reached=0.02, wanted=0.01, most=1000)
    10
    """
    needed = SAFELY * done * (reached / wanted) ** 2 if reached > 0 else SAFELY * 2.0 * done
    return max(1, min(most - done, done, math.ceil(needed) - done))


Counts = TypeVar("Counts")
Counted = TypeVar("Counted", contravariant=True)


class Clock:
    """The CPU seconds that replications have taken, and how many they may take."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds, self.spent_s = seconds, 0.0

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to spend."""
        return self.seconds is not None and self.spent_s >= self.seconds

    @property
    def left_s(self) -> float:
        """CPU seconds that are left to spend."""
        return math.inf if self.seconds is None else max(self.seconds - self.spent_s, 0.0)

    def spend(self, cpu_s: float) -> None:
        """Add what one replication took."""
        self.spent_s += cpu_s

    def watched(self, results: Iterator[Counts]) -> Iterator[Counts]:
        """Give results of another machine, whose time is taken by the clock on the wall."""
        start_s = time.perf_counter()
        for each in results:
            self.spend(time.perf_counter() - start_s)
            start_s = time.perf_counter()
            yield each


class Adding(Protocol[Counted]):
    """Totals that counts of replications are added to."""

    replications: int

    def add(self, counts: Counted) -> None:
        """Add what one replication counted."""


class Series(Generic[Counts]):
    """Replications of one kind, added to totals until these are precise enough."""

    def __init__(
        self,
        totals: Adding[Counts],
        run: Callable[[range], Iterator[Counts]],
        clock: Clock,
        tell: Progress,
    ) -> None:
        self._totals, self._run = totals, run
        self.clock, self.tell = clock, tell
        self.spent_s, self._ran = 0.0, 0

    def add(self, more: int, of: str = "") -> None:
        """Run more replications, fewer if the seconds end; ``of`` how many in the end, in words."""
        done = self._totals.replications
        last = done + more
        while done < last and (some := self._affordable(last - done)) > 0:
            before_s = self.clock.spent_s
            for counts in self._run(range(done, done + some)):
                done += 1
                self._totals.add(counts)
                self.tell(f"replication {done} of {of or last}")
                if self.clock.is_over and done > 1:
                    break
            self._ran += some
            self.spent_s += self.clock.spent_s - before_s

    def _affordable(self, most: int) -> int:
        """Count the replications that can be begun and ended: two in any case, which tell more.

        What is begun when the seconds end is run to its end, for nothing.
        """
        if self.clock.seconds is None:
            return most
        if self._ran < FEWEST:
            return min(most, FEWEST - self._ran)
        if self.spent_s <= 0.0:
            return most
        return min(most, math.floor(self.clock.left_s * self._ran / self.spent_s + 1e-9))

    @property
    def is_out_of_time(self) -> bool:
        """Whether the seconds allow no replication more."""
        return self._affordable(1) < 1

    def until(self, shortfall: Callable[[], float], most: int) -> bool:
        """Add replications until errors are at most those wanted; say whether that was reached.

        ``shortfall`` is the largest error in units of what is wanted of it, and NaN where none is
        known. The number of replications grows by at most as many again, so that errors are
        looked at a few times only.
        """
        while (short := shortfall()) > 1.0:
            done = self._totals.replications
            if most <= done or self.is_out_of_time:
                return False
            self.tell(f"{short:.2g} times the error wanted after {done}")
            more = more_replications(done, short, 1.0, most)
            self.add(more, f"about {self._expected(short, most)}")
        return True

    def _expected(self, short: float, most: int) -> int:
        """Estimate how many replications there will be: as many as needed, or may be afforded."""
        done, clock = self._totals.replications, self.clock
        needed = min(SAFELY * done * short**2, most)
        if clock.seconds is not None and self.spent_s > 0:
            needed = min(needed, done * (1.0 + (clock.seconds - clock.spent_s) / self.spent_s))
        return max(done + 1, math.ceil(needed))
