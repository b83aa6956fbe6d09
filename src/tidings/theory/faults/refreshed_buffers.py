"""Waits in buffers of brokers that after a crash know no subscriptions until the next refresh."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from tidings.theory.faults.buffer_delays import TabulatedWait
from tidings.theory.faults.evolution import Evolution
from tidings.theory.faults.processes import Floats, Process
from tidings.theory.faults.refresh_chain import RefreshChain, moved
from tidings.theory.faults.refreshed_journeys import RefreshedJourney, refreshed_journey
from tidings.theory.faults.waiting import Wait

_MOMENTS, _MOST_MOMENTS = 16, 64  # of an interval between refreshes, for publications
_LONG_REPAIRS = 20.0  # intervals; where repairs take longer, refreshes might as well be random
_LEFT = 1e-3  # share of the waits that the table leaves to its exponential tail
_MOST_INTERVALS = 400


def refreshed_wait(chain: RefreshChain, waits: Floats | None = None) -> TabulatedWait | Wait:
    """The wait of an event whose home is up, on its usual way.

    ``waits`` is, where an event may go other ways, the probability that it has to wait for its
    usual one, by joint state of the chain.
    """
    states, own = chain.surroundings.states, chain.refreshes.own
    home_up = states.broker_up(states.values, chain.surroundings.path.brokers[0])
    chosen = home_up if waits is None else home_up * waits
    going = refreshed_journey(chain)

    def starting(shares: Floats) -> Floats:
        return going.initial(shares * chosen / (shares @ home_up))

    exact = starting(chain.mean_shares)
    if not np.any(exact > 0.0):
        return Wait(initial=np.zeros(1), generator=sparse.csr_array([[-1.0]]))
    processes = states.components.processes
    longest_s = max((_mean_down_s(processes[each]) for each in states.processes), default=0.0)
    if longest_s > _LONG_REPAIRS * own.every_s and own.timeout_s is None:
        return _with_random_refreshes(exact, going, own.every_s)
    walk = Evolution(going.generator)
    count = min(max(_MOMENTS, math.ceil(walk.per_s * own.every_s)), _MOST_MOMENTS)
    steps = None
    if own.oldest_gone_s is not None:
        count, steps = _in_steps(own.oldest_gone_s / own.every_s, count)
    rows = np.array([starting(shares) for shares in _middles(chain, count, steps)])
    found = _Table(going=going, walk=walk, every_s=own.every_s, gone=steps).tabulated(rows)
    return found.with_held(float(exact.sum()))


def _mean_down_s(process: Process) -> float:
    """The mean time of a repair, in seconds."""
    breaks_per_s = process.breaks_per_s
    return (1.0 - process.availability) / breaks_per_s if breaks_per_s > 0.0 else 0.0


def _in_steps(share: float, count: int) -> tuple[int, int]:
    """Into how many steps to cut an interval so that a share of it is nearly so many whole ones."""
    best = min(range(count, 2 * count), key=lambda each: abs(round(share * each) / each - share))
    return best, min(max(round(share * best), 1), best - 1)


def _middles(chain: RefreshChain, count: int, gone: int | None) -> list[Floats]:
    """Shares of joint states in the middle of so many equal parts of an interval."""
    evolution, step_s = chain.evolution, chain.refreshes.own.every_s / count
    found = [evolution.shares(chain.after, 0.5 * step_s)]
    for place in range(1, count):
        if place == gone:
            edge = evolution.shares(found[-1], 0.5 * step_s)
            after = moved(chain.oldest_gone, edge)
            found.append(evolution.shares(after, 0.5 * step_s))
        else:
            found.append(evolution.shares(found[-1], step_s))
    return found


def _with_random_refreshes(initial: Floats, going: RefreshedJourney, every_s: float) -> Wait:
    """Refreshes at random moments, with the same mean time to the next."""
    stays = sparse.eye_array(going.generator.shape[0])
    rates = sparse.csr_array(going.generator + (going.renewal - stays) * (2.0 / every_s))
    inside = slice(0, going.waiting)
    return Wait(initial=initial[inside], generator=sparse.csr_array(rates[inside, inside]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """P[wait > t] at regular moments, for events published in the middle between these.

    In half steps: an event published (j + ½) steps after a refresh meets the next one in the
    middle of a step, and so all others.
    """

    going: RefreshedJourney
    walk: Evolution
    every_s: float
    gone: int | None  # steps after a refresh at which the oldest tables time out

    def tabulated(self, rows: Floats) -> TabulatedWait:
        """The table from the shares of states at publication, [moment, state]."""
        count = len(rows)
        half_s = 0.5 * self.every_s / count
        begun = float(rows.mean(axis=0).sum())
        lines, refreshed = self._until_refreshed(rows, half_s)
        remains = self._remains(2 * count, half_s)
        for _ in range(_MOST_INTERVALS):
            for line, block in zip(lines, refreshed @ remains, strict=True):
                line.append(block)
            refreshed = self._next_interval(refreshed, count)
            if float(refreshed[:, : self.going.waiting].sum()) <= _LEFT * begun * count:
                break
        left = _averaged(lines)
        return TabulatedWait(
            step_s=2.0 * half_s,
            left=left,
            tail_per_s=_falling(left[-1 - count], left[-1]) / self.every_s,
        )

    def _until_refreshed(self, rows: Floats, half_s: float) -> tuple[list[list[Floats]], Floats]:
        """What is left of each row until the first refresh, half step by half step, and after."""
        count, waiting = len(rows), self.going.waiting
        lines = [[rows[place, :waiting].sum(keepdims=True)] for place in range(count)]
        refreshed = np.empty_like(rows)
        now = rows
        for elapsed in range(1, 2 * count):
            now = self.walk.shares(now, half_s)
            if elapsed % 2:  # then rows are at whole steps after a refresh
                if self.gone is not None and (place := self.gone - (elapsed + 1) // 2) >= 0:
                    now[place] = now[place] @ self.going.oldest_gone
                refreshed[len(now) - 1] = now[-1] @ self.going.renewal
                now = now[:-1]
            for line, left in zip(lines, now[:, :waiting].sum(axis=1, keepdims=True), strict=False):
                line.append(left)
        return lines, refreshed

    def _remains(self, halves: int, half_s: float) -> Floats:
        """P[still waiting] so many half steps after a refresh, [state, half step]."""
        size = int(self.going.generator.shape[0])
        seen = [np.where(np.arange(size) < self.going.waiting, 1.0, 0.0)]
        for _ in range(halves - 1):
            seen.append(self.walk.means(seen[-1], half_s))
        found = np.array(seen).T
        if self.gone is not None:
            before = 2 * self.gone
            after = self.going.oldest_gone @ found[:, 1 : halves - before]
            found[:, before + 1 :] = self.walk.means(after, before * half_s)
        return found

    def _next_interval(self, rows: Floats, count: int) -> Floats:
        """Rows just after a refresh, just after the next one."""
        if self.gone is None:
            return np.asarray(self.walk.shares(rows, self.every_s) @ self.going.renewal)
        gone_s = self.every_s * self.gone / count
        first = self.walk.shares(rows, gone_s) @ self.going.oldest_gone
        return np.asarray(self.walk.shares(first, self.every_s - gone_s) @ self.going.renewal)


def _averaged(lines: Sequence[Sequence[Floats]]) -> Floats:
    """The mean over publications, every second half step as far as all of them are known."""
    length = min(sum(part.size for part in line) for line in lines)
    found: Floats = np.mean([np.concatenate(line)[:length:2] for line in lines], axis=0)
    return found


def _falling(before: float, after: float) -> float:
    """By how much the logarithm of what is left falls in an interval."""
    if after <= 0.0:
        return 1.0
    return max(math.log(before / after), 1e-6)
