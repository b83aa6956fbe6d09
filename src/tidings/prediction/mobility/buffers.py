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
from scipy import sparse
from scipy.sparse import linalg

from tidings.errors import UnsupportedError
from tidings.prediction.lattice import Lattice
from tidings.prediction.mobility.centre import OnOff
from tidings.prediction.mobility.sojourn import sojourn_stage
from tidings.prediction.mobility.tables import tabulated
from tidings.prediction.stages import Chain, Complexes, Floats, Stage

Ints = NDArray[np.int64]

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
    chain = _chain(centre, rate_per_s, limits)
    shares = chain.stationary()
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
        """The long-run share of time in each state, [events there, state]."""
        size = 3 * (self.levels + 1)
        balance = self._generator().T.tolil()
        impossible = [3 * 0 + _BEGUN]  # nothing can be begun where nothing is
        if self.buffer < self.levels:
            impossible.append(3 * self.levels + _FRESH)
        for state in impossible:
            balance[state, :] = 0.0
            balance[state, state] = 1.0
        balance[_ON, :] = 1.0
        wanted = np.zeros(size)
        wanted[_ON] = 1.0
        found: Floats = linalg.spsolve(balance.tocsc(), wanted).reshape(-1, 3)
        return np.maximum(found, 0.0)

    def _generator(self) -> sparse.csr_array:
        count = np.arange(self.levels + 1)
        row: list[Ints] = []
        column: list[Ints] = []
        rate: list[Floats] = []

        def move(before: Ints, state: int, after: Ints, to: int, per_s: float | Floats) -> None:
            rates = np.broadcast_to(np.asarray(per_s, dtype=np.float64), before.shape)
            row.extend((3 * before + state, 3 * before + state))
            column.extend((3 * after + to, 3 * before + state))
            rate.extend((rates, -rates))

        for state in (_ON, _BEGUN, _FRESH):
            room = count[~self.full()[:, state] & (count < self.levels)]
            move(room, state, room + 1, state, self.rate_per_s)
            some = count[self.waiting[:, state] > 0]
            expiring = self.expiring_per_s * self.waiting[some, state]
            move(some, state, some - 1, state, expiring)
        some = count[1:]
        move(some, _ON, some - 1, _ON, self.served_per_s)
        move(some, _ON, some, _BEGUN, self.leaving_per_s)
        move(some, _BEGUN, some, _ON, self.back_per_s)
        move(count[:1], _ON, count[:1], _FRESH, self.leaving_per_s)
        move(count, _FRESH, count, _ON, self.back_per_s)
        size = 3 * (self.levels + 1)
        places = (np.concatenate(row), np.concatenate(column))
        return sparse.coo_array((np.concatenate(rate), places), shape=(size, size)).tocsr()

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
class BufferedSojourn:
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

    @property
    def kinked(self) -> bool:
        """Smooth: sums of exponential times."""
        return False

    def chain(self) -> Chain | None:
        """None: phases would be as many as places."""
        return None

    def cdf(self, t_s: Floats) -> Floats | None:
        """None: there is no closed form."""
        return None

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
