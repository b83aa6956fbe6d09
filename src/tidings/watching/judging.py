"""Judge what was measured: against the promise, against the prediction, and by what waits.

Nothing in here reads or writes anything. Shares have Wilson's interval, widened to that of batch
means over stretches of time where these differ by more than single events would. Whether a
parameter has moved is a test in standard errors with Student's t, of as many degrees of freedom as
there are batches but one. All tests of a day share one level: a day on which nothing changes raises
no alarm with 99 %.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from tidings.model.standard_errors import Reals, ratio_se
from tidings.watching.counts import Counts, Stretch
from tidings.watching.state import EVERYBODY, Share

WINDOWS_S = {"5m": 300.0, "30m": 1800.0, "1h": 3600.0, "6h": 21600.0}
# A month's budget in two days, or in five: a long window to be sure and a short one to be current
# (the multiwindow, multi-burn-rate alerts of the SRE workbook). Last, any breach that is certain.
RULES = (("1h", "5m", 14.4), ("6h", "30m", 6.0), ("6h", "30m", 1.0))
USUAL = 1.96
MOST_BURN = 1e9  # stands for the burn rate of a budget of nothing
DAY_S = 86_400.0
# A day in which nothing changes has an alarm with probability .01: in equal parts by parameters,
# silent publishers, subscribers who get nothing, shares that were not predicted, promises that are
# just kept, and queues.
FALSE_ALARMS = 0.01 / 6
FREEDOM = 31  # degrees of freedom of standard errors, from 32 batches
LEAST_COUNT = 30  # observations behind a mean that is tested
# What is too small to matter, however certain: a share of rates and times, seconds, a share lost.
LEAST_RATIO, LEAST_S, LEAST_LOSS, LEAST_SHARE = 0.1, 1e-3, 0.005, 0.01
NEXT_TO_NOTHING = 0.1  # of events, that a link carries: parts begin before a consumer goes
LASTING = 0.5  # of the bound at which an alarm begins: where it ends
TOGETHER = (1, 2, 4)  # stretches that make a batch: queues and outages outlast a single one
LEAST_BATCHES = 8  # of several stretches; of fewer, next to nothing would be certain
NOTHING = Counts(wanted=0, delivered=0, on_time=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A number, its standard error, and from how many observations it comes; 0: not from any."""

    value: float
    error: float = 0.0
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A parameter that is no longer what it was; ``distance`` is in standard errors."""

    path: str
    was: float
    now: float
    distance: float

    @property
    def kind(self) -> str:
        """What it is: rate, service, delay or reliability."""
        return self.path.rpartition(".")[2]

    @property
    def name(self) -> str:
        """Of whom it is, without the kind: a broker, a link, a publisher.

        >>> Moved(path="links.hub--east.back.delay", was=1.0, now=2.0, distance=9.0).name
        'east--hub'
        """
        own = self.path.partition(".")[2].rpartition(".")[0].removesuffix(".link")
        if self.path.startswith("links.") and own.endswith(".back"):
            return "--".join(own.removesuffix(".back").split("--")[::-1])
        return own

    @property
    def size(self) -> float:
        """How many times it is what it was, of reliability what is lost; from nothing, how much."""
        was, now = self.was, self.now
        if self.kind == "reliability":
            was, now = 1.0 - was, 1.0 - now
        return now / was if was else now

    @property
    def unit(self) -> str:
        """What its size is in."""
        nothing_before = self.was == (1.0 if self.kind == "reliability" else 0.0)
        nouns = {"rate": "rate", "service": "service time", "delay": "delay", "reliability": "loss"}
        amounts = {"rate": "per second", "reliability": "of events lost"}
        if nothing_before:
            return amounts.get(self.kind, "s")
        return f"times the {nouns[self.kind]}"

    @property
    def words(self) -> str:
        """Say what has changed, without numbers."""
        more = self.now > self.was
        match self.kind:
            case "rate":
                return f"publisher {self.name} publishes {'more' if more else 'less'} often"
            case "service":
                return f"broker {self.name} is {'slower' if more else 'faster'}"
            case "delay":
                return f"link {self.name} is {'slower' if more else 'faster'}"
        return f"link {self.name} loses {'less' if more else 'more'}"


# ---- shares --------------------------------------------------------------------------------------


def wilson(hits: int, trials: int, z: float = USUAL) -> Share:
    """Give a share of trials with Wilson's interval of so many standard errors.

    >>> found = wilson(9, 10)
    >>> round(found.low, 3), found.share, round(found.high, 3)
    (0.596, 0.9, 0.982)
    """
    if trials <= 0:
        return Share(share=math.nan, low=0.0, high=1.0)
    share, z2 = hits / trials, z * z
    middle = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = z / (1 + z2 / trials) * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    return Share(share=share, low=max(middle - half, 0.0), high=min(middle + half, 1.0))


def measured_share(stretches: Sequence[Counts], z: float = USUAL) -> Share:
    """Give the on-time share of all stretches together, with the widest of its intervals.

    Events of one stretch share queues, and so do stretches that follow each other: beside Wilson's
    interval stand those of batch means, of one stretch, two and four.
    """
    wanted = np.array([each.wanted for each in stretches], dtype=np.float64)
    on_time = np.array([each.on_time for each in stretches], dtype=np.float64)
    found = wilson(int(on_time.sum()), int(wanted.sum()), z)
    half = max((_batch_half(on_time, wanted, size, z) for size in TOGETHER), default=0.0)
    low, high = max(found.share - half, 0.0), min(found.share + half, 1.0)
    return Share(share=found.share, low=min(found.low, low), high=max(found.high, high))


def _batch_half(on_time: Reals, wanted: Reals, size: int, z: float) -> float:
    """Compute half the interval by batches of so many periods; 0 where there are too few."""
    starts = np.arange(0, len(wanted), size)
    if size > 1 and len(starts) < LEAST_BATCHES:
        return 0.0
    hits, trials = (np.add.reduceat(each, starts) for each in (on_time, wanted))
    freedom = int((trials > 0).sum()) - 1
    if freedom < 1:
        return 0.0
    return -float(special.stdtrit(freedom, special.ndtr(-z))) * float(ratio_se(hits, trials))


def counts_of(stretches: Iterable[Stretch], name: str) -> list[Counts]:
    """Count what a subscriber, or everybody, got in each of some periods."""
    if name != EVERYBODY:
        return [each.counts.get(name, NOTHING) for each in stretches]
    return [
        Counts(
            wanted=sum(one.wanted for one in each.counts.values()),
            delivered=sum(one.delivered for one in each.counts.values()),
            on_time=sum(one.on_time for one in each.counts.values()),
        )
        for each in stretches
    ]


def burn_rate(share: float, promised: float) -> float:
    """Compute how many times as fast as planned the budget of late and lost events is spent.

    >>> burn_rate(0.98, 0.99)
    2.0
    """
    missed, budget = 1.0 - share, 1.0 - promised
    if budget <= 0:
        return MOST_BURN if missed > 0 else 0.0
    return min(round(missed / budget, 12), MOST_BURN)


def burn_rates(
    stretches: Sequence[Stretch], name: str, promised: float, now_ns: int, z: float = 0.0
) -> dict[str, float]:
    """Give burn rates by window; with ``z``, those that are certain by so many standard errors.

    Nothing is certain of few events, nor of a single stretch: what made one of them late may have
    made all of them so. A window that is longer than has been watched is what has been watched.
    """
    rates = {}
    for window, length_s in WINDOWS_S.items():
        since_ns = now_ns - round(length_s * 1e9)
        counts = counts_of([each for each in stretches if each.until_ns > since_ns], name)
        wanted = [each.wanted for each in counts if each.wanted]
        if sum(wanted) < (LEAST_COUNT if z else 1) or (z and len(wanted) < 2):
            rates[window] = 0.0
            continue
        share = measured_share(counts, z or USUAL)
        rates[window] = burn_rate(share.high if z else share.share, promised)
    return rates


def breaks_promise(sure: Mapping[str, float], rates: Mapping[str, float], promised: float) -> bool:
    """Test whether burn rates of a long window (``sure`` ones) and of a short one want an alarm.

    The long window is there to be sure, the short one to know that it still goes on. Where the
    budget is large no burn rate reaches those of the rules: half of the way from 1 to the largest
    possible is enough there.
    """
    most = math.inf if promised >= 1.0 else 1.0 / (1.0 - promised)
    return any(
        min(sure[long], rates[short]) > max(min(factor, 0.5 * (1.0 + most)), 1.0)
        for long, short, factor in RULES
    )


# ---- changes -------------------------------------------------------------------------------------


def bound(tests: int, looks_per_day: float) -> float:
    """Compute how many standard errors a parameter must have moved.

    All tests of a day share one level.

    >>> bound(1, 1.0) < bound(20, 1440.0) < 9.0
    True
    """
    level = FALSE_ALARMS / (2.0 * max(tests, 1) * max(looks_per_day, 1.0))
    return -float(special.stdtrit(FREEDOM, level))


def certain(tests: int, looks_per_day: float) -> float:
    """Compute how many standard errors a share must be away.

    All tests of a day share one level.

    >>> 4.0 < certain(1, 1440.0) < certain(100, 1440.0) < 7.0
    True
    """
    level = FALSE_ALARMS / (2.0 * max(tests, 1) * max(looks_per_day, 1.0))
    return -float(special.ndtri(level))


def find_moved(
    found: Mapping[str, Value],
    reference: Mapping[str, Value],
    looks_per_day: float,
    lasting: Collection[str] = (),
) -> list[Moved]:
    """Find parameters that differ from the reference by more than chance and by enough to matter.

    Paths in ``lasting`` had moved already, and have until they are well within the bound again.
    """
    both = [
        path
        for path in reference
        if path in found and found[path].count >= LEAST_COUNT and _kind(path) in _LEAST
    ]
    limit = bound(len(both), looks_per_day)
    moved = []
    for path in both:
        was, now = reference[path], found[path]
        error = math.hypot(_error_at(path, was.value, now), was.error)
        distance = abs(now.value - was.value) / error if error > 0 else math.inf
        share = LASTING if path in lasting else 1.0
        if distance > share * limit and _LEAST[_kind(path)](was.value, now.value, share):
            moved.append(Moved(path=path, was=was.value, now=now.value, distance=distance))
    return sorted(moved, key=lambda each: -each.distance)


def _error_at(path: str, was: float, now: Value) -> float:
    """Compute an estimate's standard error, or what the reference's would be if that is larger."""
    if _kind(path) == "reliability":
        share = (was * now.count + 2.0) / (now.count + 4.0)
        return max(now.error, math.sqrt(share * (1.0 - share) / (now.count + 4.0)))
    if now.value <= 0:
        return now.error
    power = 0.5 if _kind(path) == "rate" else 1.0
    return float(now.error * max((was / now.value) ** power, 1.0))


def _kind(path: str) -> str:
    return path.rpartition(".")[2]


def _relative(was: float, now: float, share: float) -> bool:
    return abs(now - was) >= share * LEAST_RATIO * was


def _of_time(was: float, now: float, share: float) -> bool:
    return abs(now - was) >= share * max(LEAST_RATIO * was, LEAST_S)


def _of_loss(was: float, now: float, share: float) -> bool:
    return abs(now - was) >= share * max(LEAST_LOSS, LEAST_RATIO * (1.0 - was))


_LEAST = {"rate": _relative, "service": _relative, "delay": _of_time, "reliability": _of_loss}


def find_silent(
    reference: Mapping[str, Value], heard: Collection[str], watched_s: float, looks_per_day: float
) -> list[str]:
    """Find publishers of whom nothing came, though by their rate something must have."""
    rates = {
        path.split(".")[1]: value.value
        for path, value in reference.items()
        if path.startswith("publishers.") and _kind(path) == "rate"
    }
    level = FALSE_ALARMS / max(len(rates) * looks_per_day, 1.0)
    return [
        name
        for name, rate_per_s in rates.items()
        if name not in heard and math.exp(-rate_per_s * watched_s) < level
    ]


def find_gone(
    counts: Mapping[str, Counts], delivered: Mapping[str, float], looks_per_day: float
) -> list[str]:
    """Find subscribers who got nothing, though by the prediction they must have got something."""
    level = FALSE_ALARMS / max(len(counts) * looks_per_day, 1.0)
    return [
        name
        for name, each in counts.items()
        if each.delivered == 0
        and each.wanted > 0
        and (1.0 - min(delivered.get(name, 0.0), 1.0 - 1e-9)) ** each.wanted < level
    ]


def find_cut_off(found: Mapping[str, Value], reference: Mapping[str, Value]) -> list[str]:
    """Find subscribers whose own links, by the newest part alone, carry next to nothing.

    What was measured of them may reach back to when they still got everything.
    """
    return [
        path.split(".")[1]
        for path, now in found.items()
        if path.startswith("subscribers.")
        and path.endswith(".link.reliability")
        and now.count >= LEAST_COUNT
        and now.value <= NEXT_TO_NOTHING
        and (path not in reference or reference[path].value >= LASTING)
    ]


def differs_from_predicted(
    stretches: Sequence[Counts], predicted: Share, tests: int, looks_per_day: float
) -> float | None:
    """Compute by how much a measured share lies outside the predicted interval.

    Give None where that is not certain.

    How far a share strays by chance is told by how far stretches differ, and by nothing else: a
    queue that is long for a minute makes hundreds of events late. Of one stretch nobody can tell.
    """
    told = [each for each in stretches if each.wanted]
    if len(told) < 2 or sum(each.wanted for each in told) < LEAST_COUNT:
        return None
    measured = measured_share(told, certain(tests, looks_per_day))
    if measured.high < predicted.low - LEAST_SHARE:
        return measured.share - predicted.share
    if measured.low > predicted.high + LEAST_SHARE:
        return measured.share - predicted.share
    return None


# ---- what waits ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Events that wait at a broker: how many in the mean, how fast they come and can go."""

    name: str
    rate_per_s: float
    service_s: float
    wait_s: float
    servers: int = 1

    @property
    def waiting(self) -> float:
        """How many wait in the mean, by Little's law."""
        return self.rate_per_s * self.wait_s

    @property
    def catch_up_s(self) -> float:
        """How long it takes until they are gone, if arrivals and services were steady flows.

        >>> Queue(name="hub", rate_per_s=50.0, service_s=0.01, wait_s=2.0).catch_up_s
        2.0
        """
        if self.service_s <= 0:
            return 0.0
        spare_per_s = self.servers / self.service_s - self.rate_per_s
        return self.waiting / spare_per_s if spare_per_s > 0 else math.inf


def unusual_wait_s(wait_s: float, utilisation: float, tests: int, looks_per_day: float) -> float:
    r"""Compute how long a mean wait must be that does not come by chance, in seconds.

    The queue is as it was.

    Waits have a tail that is about exponential, with the mean of those who wait at all,
    :math:`W / \rho`: exactly in M/M/1, and in heavy traffic whatever the laws are. A queue that is
    long may stay so for a look. All looks of a day at all queues share one level.

    >>> unusual_wait_s(0.1, 0.5, 1, 1.0) > 0.2
    True
    """
    level = FALSE_ALARMS / (max(tests, 1) * max(looks_per_day, 1.0))
    return wait_s / utilisation * -math.log(level) if utilisation > 0 else 0.0


def is_behind(queue: Queue, usual_s: float, longest_s: float) -> bool:
    """Test whether a queue takes too long to catch up, and waits are longer than usual for it."""
    unusual = queue.waiting >= 10.0 and queue.wait_s > usual_s
    return unusual and queue.catch_up_s > longest_s
