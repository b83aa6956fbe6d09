r"""An ON/OFF centre whose events come at rates that change from slot to slot, exactly.

Poisson arrivals of rate λ(t), constant within a slot; service, ON and OFF exponential. Events there
and the peer's state are a Markov chain whose generator changes at the slots' ends only, followed
through the slots again and again until a round ends as it began. By Little's law over a whole round

.. math:: E[R] = \int E[N(t)] \, dt \Big/ \int \lambda(t) \, dt

is the mean response of an event, whatever happens in single slots: one may well be overloaded if
others make up for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

from studies.mobile_onoff.centre import OnOff
from tidings.errors import UnstableError, UnsupportedError
from tidings.model.arrays import Floats, Ints
from tidings.model.behaviour import DailyRates
from tidings.model.loads import FULL_LOAD

_LEAST_STEPS, _PER_TIME = 64, 3.0  # steps of a slot: at least, and in the time of an absence
_RUN_IN = 0.1  # of a round, gone through before the first one
_MOST_ROUNDS = 200
_SETTLED = 1e-7  # how far the state may change over a round
_LOST = 1e-9  # share of time at the bound of the chain from which on the bound is moved
_FIRST_BOUND, _MOST_EVENTS = 128, 1 << 15


@dataclass(frozen=True, slots=True, kw_only=True)
class VaryingResponse:
    """Mean response of an event in a round of slots, in seconds, and events there in each slot."""

    response_s: float
    present: Floats  # mean number of events there, by slot
    rates_per_s: Floats
    # Whether a round ended as it began; if not (close to saturation, or slots that are short beside
    # what the queue remembers) the figures are those of the last round that was followed.
    settled: bool

    @property
    def by_slot_s(self) -> Floats:
        """Events there over their rate, in seconds; NaN in slots without any."""
        rates = np.where(self.rates_per_s > 0.0, self.rates_per_s, np.nan)
        waited_s: Floats = self.present / rates
        return waited_s


def varying_response(centre: OnOff, rates: DailyRates) -> VaryingResponse:
    """Compute the mean response under rates that repeat, in seconds; exact to about 1e-4 of it.

    >>> from studies.mobile_onoff.centre import exponential_centre
    >>> constant = DailyRates(slot_s=600.0, per_s=(2.0, 2.0))
    >>> round(varying_response(exponential_centre(0.125, 20.0, 20.0), constant).response_s, 4)
    20.5
    """
    if not centre.all_exponential:
        raise UnsupportedError(
            "rates by time of day are followed only where service, ON and OFF are exponential; "
            "give them as {exponential: ...}, or simulate"
        )
    if not rates.repeat:
        raise UnsupportedError(
            "rates that end (repeat: false) are not followed: give them with repeat: true, or "
            "simulate"
        )
    per_s = np.array(rates.per_s, dtype=np.float64)
    if centre.load(float(per_s.mean())) >= FULL_LOAD:
        raise UnstableError(
            f"an ON/OFF centre is offered {per_s.mean():.4g} events/s on average; from "
            f"{centre.most_per_s:.4g}/s on it never catches up: lower the rates, or shorten the "
            "service or the time OFF"
        )
    bound = _FIRST_BOUND
    while True:
        last = _round_of(centre, per_s, rates.slot_s, bound)
        if last.at_bound <= _LOST or bound >= _MOST_EVENTS:
            break
        bound *= 2
    return VaryingResponse(
        response_s=float(last.present.mean() / per_s.mean()),
        present=last.present,
        rates_per_s=per_s,
        settled=last.settled and last.at_bound <= _LOST,
    )


class _Round(NamedTuple):
    """Mean number of events by slot, the time at the bound, whether it ended as it began."""

    present: Floats
    at_bound: float
    settled: bool


def _round_of(centre: OnOff, per_s: Floats, slot_s: float, bound: int) -> _Round:
    """A round that repeats, or the last one that was followed."""
    chain = _Chain.of(centre, slot_s, bound)
    state = chain.stationary(float(per_s.mean()))
    begin = per_s.size - math.ceil(_RUN_IN * per_s.size)  # the end of a round leads into the next
    for _ in range(_MOST_ROUNDS):
        present, full = np.zeros(per_s.size), 0.0
        before = state
        for slot in range(begin, per_s.size):
            state, present[slot], there = chain.through(state, float(per_s[slot]))
            full += there / per_s.size
        if begin == 0 and np.abs(state - before).sum() <= _SETTLED:
            return _Round(present=present, at_bound=full, settled=True)
        begin = 0
    return _Round(present=present, at_bound=full, settled=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chain:
    """Probabilities of (events, ON) and (events, OFF), followed by the trapezoidal rule.

    A rate that stays the same is met exactly, so that only what follows a change is approximated,
    with the square of the step. The first step after a change is two backward ones of half its
    length: they damp what the rule would let swing.
    """

    empty: sparse.csc_array  # rates of change, transposed, without arrivals
    arriving: sparse.csc_array  # by one arrival per second
    half_s: float  # of a step
    steps: int
    numbers: Floats

    @classmethod
    def of(cls, centre: OnOff, slot_s: float, bound: int) -> _Chain:
        """The chain of a centre with at most ``bound`` events."""
        on, off = 2 * np.arange(bound + 1), 2 * np.arange(bound + 1) + 1
        both = np.arange(2 * bound)
        serving = _moves(on[1:], on[:-1], 1.0 / centre.service.mean_s, bound)
        leaving = _moves(on, off, 1.0 / centre.on.mean_s, bound)
        coming = _moves(off, on, 1.0 / centre.off.mean_s, bound)
        slow_s = min(centre.on.mean_s, centre.off.mean_s) + centre.demand_s
        steps = max(_LEAST_STEPS, math.ceil(_PER_TIME * slot_s / slow_s))
        return cls(
            empty=(serving + leaving + coming).tocsc(),
            arriving=_moves(both, both + 2, 1.0, bound),
            half_s=0.5 * slot_s / steps,
            steps=steps,
            numbers=np.repeat(np.arange(bound + 1, dtype=np.float64), 2),
        )

    def stationary(self, rate_per_s: float) -> Floats:
        """The state after a long time of one rate."""
        balance = (self.empty + rate_per_s * self.arriving).tolil()
        balance[0, :] = 1.0  # one equation follows from the others: the sum takes its place
        wanted = np.zeros(self.numbers.size)
        wanted[0] = 1.0
        state: Floats = linalg.spsolve(balance.tocsc(), wanted)
        return state

    def through(self, state: Floats, rate_per_s: float) -> tuple[Floats, float, float]:
        """The state after a slot; in it the mean number of events, and the share at the bound."""
        change = self.half_s * (self.empty + rate_per_s * self.arriving)
        eye = sparse.eye_array(state.size, format="csc")
        forward, backward = (eye + change).tocsr(), linalg.splu(eye - change)
        middle = backward.solve(state)
        after = backward.solve(middle)
        spent = 0.5 * (middle + after)
        for _ in range(self.steps - 1):
            state, after = after, backward.solve(forward @ after)
            spent += 0.5 * (state + after)
        spent /= self.steps
        return after, float(self.numbers @ spent), float(spent[-2:].sum())


def _moves(source: Ints, target: Ints, per_s: float, bound: int) -> sparse.csc_array:
    """The rates of change, transposed, by moves from each source to its target."""
    rates = np.full(source.size, per_s)
    values = np.concatenate([rates, -rates])
    places = np.concatenate([target, source]), np.concatenate([source, source])
    return sparse.csc_array((values, places), shape=(2 * bound + 2, 2 * bound + 2))
