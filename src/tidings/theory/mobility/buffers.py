r"""Bounded buffers and exponential lifetimes at an ON/OFF centre: what is dropped, what expires.

An event *waits* until its handing over begins; one that was begun and interrupted waits no more.
At most ``buffer`` events wait, others are dropped; an event that expires while it waits leaves the
queue; what has been begun is finished.

With all times exponential and Poisson arrivals it is a Markov chain on the number of events there
and the peer's state (ON; OFF with an event begun; OFF with none), solved exactly. The delivered
event's own way through it is a smaller chain, which gives its response.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidings.errors import InvalidInputError, UnsupportedError
from tidings.theory.lattice import Lattice
from tidings.theory.mobility.centre import OnOff
from tidings.theory.mobility.sojourn import sojourn_stage
from tidings.theory.mobility.tables import tabulated
from tidings.theory.partial_delays import KnownByTransform
from tidings.theory.stages import Complexes, Floats, Stage

_ON, _BEGUN, _FRESH = range(3)
_REST = 1e-13  # of the probability that may lie beyond the levels of a chain without a bound
_MOST_LEVELS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What becomes of the events that arrive at a centre; the three shares sum to 1."""

    delivered: float
    expired: float
    dropped: float
    response_s: float  # mean, of those delivered


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many events may wait (None: any number) and at which rate each of them expires."""

    buffer: int | None = None
    expiring_per_s: float = 0.0


def fate(centre: OnOff, rate_per_s: float, limits: Limits) -> Fate:
    """What becomes of events under a bounded buffer, exponential lifetimes, or both; exact.

    All times exponential, arrivals Poisson. A centre without any limit must not be overloaded.
    """
    _refuse_impossible(rate_per_s, limits)
    chain = _chain(centre, rate_per_s, limits)
    shares = np.maximum(chain.stationary(), 0.0)  # rounding may leave less than nothing
    count = np.arange(chain.levels + 1)
    dropped = float(shares[chain.full()].sum())
    served = float(shares[count > 0, _ON].sum()) / centre.service.mean_s
    waiting = chain.waiting * shares
    expired = limits.expiring_per_s * float(waiting.sum()) / rate_per_s
    weights = np.where(chain.full(), 0.0, shares)
    delivered, delayed_s = chain.tagged(weights)
    return Fate(
        delivered=served / rate_per_s,
        expired=expired,
        dropped=dropped,
        response_s=delayed_s / delivered if delivered > 0.0 else math.nan,
    )


def _refuse_impossible(rate_per_s: float, limits: Limits) -> None:
    if not 0.0 < rate_per_s < math.inf:
        raise InvalidInputError(f"rate_per_s: got {rate_per_s:g}; wants a rate above 0 events/s")
    if limits.buffer is not None and limits.buffer < 0:
        raise InvalidInputError(f"buffer: got {limits.buffer}; wants 0 or more events, or None")
    if not 0.0 <= limits.expiring_per_s < math.inf:
        raise InvalidInputError(
            f"expiring_per_s: got {limits.expiring_per_s:g}; wants 0 (never) or more per second"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chain:
    """Events there, 0 … levels, and the state of the peer: ON, OFF begun, OFF with none begun."""

    rate_per_s: float
    served_per_s: float
    leaving_per_s: float
    back_per_s: float
    expiring_per_s: float
    levels: int  # most events that can be there
    buffer: int  # most that can wait

    @property
    def waiting(self) -> Floats:
        """[events there, state]: how many of them wait."""
        count = np.arange(self.levels + 1, dtype=np.float64)
        begun = np.maximum(count - 1.0, 0.0)
        return np.stack([begun, begun, count], axis=1)

    def full(self) -> NDArray[np.bool_]:
        """[events there, state]: whether one more is turned away.

        While ON and idle one more is begun at once, so there is always room for it.
        """
        found = self.waiting >= self.buffer
        found[0, _ON] = False
        return found

    def stationary(self) -> Floats:
        """The long-run share of time in each state, [events there, state].

        From the top: what a level does as seen while no more than that many events are there, with
        as many steps as levels and no difference of like numbers (Grassmann, Taylor and Heyman). A
        level's shares are those of the one below times ``climbs``, kept by their logarithms, since
        an overloaded queue is all but never empty.
        """
        up, down = self._up_and_down()
        climbs = np.zeros((self.levels + 1, 3, 3))
        seen = self._within(self.levels, np.zeros((3, 3)), down[-1])
        for level in range(self.levels, 0, -1):
            climbs[level] = up[level - 1][:, None] * np.linalg.inv(-seen)
            seen = self._within(level - 1, climbs[level] * down[level], down[level - 1])
        shares, scales = np.zeros((self.levels + 1, 3)), np.zeros(self.levels + 1)
        shares[0, [_ON, _FRESH]] = seen[_FRESH, _ON], seen[_ON, _FRESH]
        shares[0] /= shares[0].sum()
        for level in range(1, self.levels + 1):
            shares[level] = shares[level - 1] @ climbs[level]
            total = float(shares[level].sum())
            if total == 0.0:  # below what numbers can say, as is all above
                scales[level:] = -math.inf
                break
            shares[level] /= total
            scales[level] = scales[level - 1] + math.log(total)
        shares *= np.exp(scales - scales.max())[:, None]
        found: Floats = shares / shares.sum()
        return found

    def _up_and_down(self) -> tuple[Floats, Floats]:
        """[events there, state]: rates of one more, and of one less; the state stays as it is."""
        up = np.where(self.full(), 0.0, self.rate_per_s)
        up[-1] = 0.0
        down = self.expiring_per_s * self.waiting
        down[1:, _ON] += self.served_per_s
        return up, down

    def _within(self, level: int, above: Floats, down: Floats) -> Floats:
        """Rates between the states of a level, by way of those ``above`` too; rows sum to −down."""
        away = _BEGUN if level > 0 else _FRESH
        rates = above.copy()
        rates[_ON, away] += self.leaving_per_s
        rates[[_BEGUN, _FRESH], _ON] += self.back_per_s
        np.fill_diagonal(rates, 0.0)
        np.fill_diagonal(rates, -(rates.sum(axis=1) + down))
        return rates

    def tagged(self, found: Floats) -> tuple[float, float]:
        """P[delivered] and E[response; delivered] of an event that finds so many before it.

        ``found`` are the probabilities [events there, state]. What comes behind it does not matter:
        from the front to the back, each place asks the one before it.
        """
        own = self.expiring_per_s
        share, delay = np.zeros((self.levels + 1, 3)), np.zeros((self.levels + 1, 3))
        share[0], delay[0] = self._first()
        for ahead in range(1, self.levels + 1):
            share[ahead], delay[ahead] = self._next(ahead, share[ahead - 1], delay[ahead - 1], own)
        return float((found * share).sum()), float((found * delay).sum())

    def _first(self) -> tuple[Floats, Floats]:
        """With nobody before it: begun at once if ON, else when the peer is back."""
        served_s = (1.0 + self.leaving_per_s / self.back_per_s) / self.served_per_s
        back = self.back_per_s / (self.back_per_s + self.expiring_per_s)
        wait_s = 1.0 / (self.back_per_s + self.expiring_per_s)
        share = np.array([1.0, 0.0, back])
        return share, np.array([served_s, 0.0, back * (served_s + wait_s)])

    def _next(self, ahead: int, share: Floats, delay: Floats, own: float) -> tuple[Floats, Floats]:
        """With so many before it, from what holds with one less: a linear step in three states."""
        others = own * np.array([ahead - 1.0, ahead - 1.0, float(ahead)])
        forward = np.diag(others)
        forward[_ON, _ON] += self.served_per_s
        inside = np.zeros((3, 3))
        inside[_ON, _BEGUN] = self.leaving_per_s
        inside[_BEGUN, _ON] = inside[_FRESH, _ON] = self.back_per_s
        out = np.diag(forward.sum(axis=1) + inside.sum(axis=1) + own) - inside
        shares = np.linalg.solve(out, forward @ share).astype(np.float64)
        delays = np.linalg.solve(out, forward @ delay + shares).astype(np.float64)
        return shares, delays


def _chain(centre: OnOff, rate_per_s: float, limits: Limits) -> _Chain:
    if not centre.all_exponential:
        raise UnsupportedError(
            "bounded buffers and random lifetimes at a peer are predicted only where its service, "
            "ON and OFF are exponential; simulate it, or give these as {exponential: ...}"
        )
    buffer = limits.buffer
    if buffer is None:
        buffer = _enough(centre, rate_per_s, limits.expiring_per_s)
    return _Chain(
        rate_per_s=rate_per_s,
        served_per_s=1.0 / centre.service.mean_s,
        leaving_per_s=1.0 / centre.on.mean_s,
        back_per_s=1.0 / centre.off.mean_s,
        expiring_per_s=limits.expiring_per_s,
        levels=buffer + 1,
        buffer=buffer,
    )


def _enough(centre: OnOff, rate_per_s: float, expiring_per_s: float) -> int:
    """Levels beyond which a queue without a bound is all but never found.

    Patience makes it no longer than λ/θ on average, Poisson at most; without, it is geometric.
    """
    most = math.inf
    if expiring_per_s > 0.0:
        mean = rate_per_s / expiring_per_s
        most = mean + 9.0 * math.sqrt(mean) + 40.0
    if not centre.is_overloaded(rate_per_s):
        slowest_s = max(sojourn_stage(centre, rate_per_s).mean_s, centre.off.mean_s)
        most = min(most, 20.0 - math.log(_REST) * 2.0 * (1.0 + rate_per_s * slowest_s))
    if most > _MOST_LEVELS:
        raise UnsupportedError(
            f"about {most:.0f} events may wait at one peer, too many to be counted one by one; "
            "give it a buffer"
        )
    return math.ceil(most)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BufferedSojourn(KnownByTransform):
    """The sojourn of an event that found room, by how many it found and whether the peer was ON.

    With a completions ahead it takes a + 1 of them, after what is left of an absence.
    """

    centre: OnOff
    connected: Floats  # [events found]: probability, the peer ON
    away: Floats  # the same, the peer OFF

    @property
    def mean_s(self) -> float:
        """Of those that found room, in seconds."""
        number = np.arange(1, self.connected.size + 1)
        completions = float(number @ (self.connected + self.away))
        return completions * self.centre.demand_s + self.centre.off.mean_s * float(self.away.sum())

    @property
    def variance_s2(self) -> float:
        """By its parts: the number of completions, each of them, and the absence."""
        number = np.arange(1, self.connected.size + 1)
        total, absent = self.connected + self.away, float(self.away.sum())
        mean, demand_s, off_s = float(number @ total), self.centre.demand_s, self.centre.off.mean_s
        own_s2 = self.centre.demand_square_s2 - demand_s**2
        both = demand_s * off_s * (float(number @ self.away) - mean * absent)
        spread = float(number**2 @ total) - mean**2
        absence_s2 = off_s**2 * absent * (2.0 - absent)
        return mean * own_s2 + demand_s**2 * spread + absence_s2 + 2.0 * both

    @property
    def atom(self) -> float:
        """None."""
        return 0.0

    @property
    def order(self) -> float:
        """That of a single service."""
        return 1.0

    def transform(self, z: Complexes) -> Complexes:
        """Σ C*^(a+1) (on_a + away_a/(1 + z T_OFF)), by Horner's rule."""
        back = 1.0 / (1.0 + z * self.centre.off.mean_s)
        done = 1.0 / (1.0 + self.centre.service.mean_s * (z + (1.0 - back) / self.centre.on.mean_s))
        total: Complexes = np.zeros(z.shape, dtype=np.complex128)
        for connected, away in zip(self.connected[::-1], self.away[::-1], strict=True):
            total = done * (total + connected + away * back)
        return total

    def on_lattice(self, lattice: Lattice) -> tuple[Complexes, Complexes]:
        """From a table of the law, with its error on either side."""
        ends_s = (1e-4 * self.centre.service.mean_s, self.mean_s + 40.0 * self.variance_s2**0.5)
        return tabulated(self.transform, ends_s, 0.0).on_lattice(lattice)


def buffered_stage(centre: OnOff, rate_per_s: float, buffer: int) -> Stage:
    """A centre at which so many events may wait: what finds no room is lost as ``overflow``."""
    chain = _chain(centre, rate_per_s, Limits(buffer=buffer))
    shares = np.where(chain.full(), 0.0, chain.stationary())
    accepted = float(shares.sum())
    delay = BufferedSojourn(
        centre=centre,
        connected=shares[:, _ON] / accepted,
        away=shares[:, [_BEGUN, _FRESH]].sum(axis=1) / accepted,
    )
    return Stage(survives=accepted, lost={"overflow": 1.0 - accepted}, delays=(delay,))
