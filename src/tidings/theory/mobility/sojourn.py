r"""The whole law of the time an event spends at an ON/OFF centre with Poisson arrivals.

All times exponential: a mixture of two exponential laws, in closed form. With μ = 1/D,
g = 1/T_ON + 1/T_OFF and C = μ/T_OFF − λ g,

.. math:: T^*(z) = \frac{C}{g} \frac{z + g}{z^2 + (\mu + g - \lambda) z + C}.

Exponential ON, any OFF and service: three independent parts. What is left of an OFF period if the
event meets one; the wait of an M/G/1 queue whose services are completion times
(``completion``); the event's own completion time.

Other ON laws: phase-type by the age of the event at the head of the queue (Sengupta). With R the
rate matrix of the queue as a quasi-birth-and-death process, S₀ and S₁ the rates of its phases
without and with a departure, the age has the density π(0) exp((S₀ + R S₁) x), and turned round in
time that is a phase-type law with as many phases as the busy queue. Where a time is more regular
than phases can be, the work that waits is followed on a lattice of time (``backlog``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from tidings.errors import UnstableError
from tidings.model.laws import Exponential, HyperExponential, PhaseType
from tidings.theory.mobility.backlog import backlog_sojourn
from tidings.theory.mobility.centre import OnOff
from tidings.theory.mobility.completion import absence_stage, completion, completion_stage
from tidings.theory.mobility.periods import Regularity, more_regular, period_chain, regularity
from tidings.theory.queues import PoissonWait, fitted_law
from tidings.theory.stages import Chain, Floats, Stage, in_series, law_stage
from tidings.theory.workload import WaitMoments

_MOST_ROUNDS = 64  # of logarithmic reduction: each squares the number of levels looked at
_SETTLED = 1e-15

OVERLOADED = Stage(survives=0.0, lost={"overload": 1.0})


def sojourn_stage(centre: OnOff, rate_per_s: float) -> Stage:
    """Wait and service at an ON/OFF centre with Poisson arrivals; all is lost where overloaded."""
    if centre.is_overloaded(rate_per_s):
        return OVERLOADED
    if centre.all_exponential:
        return law_stage(sojourn_law(centre, rate_per_s))
    if not isinstance(centre.on, Exponential) and centre.service.mean_s > 0.0:
        return _phased_stage(centre, rate_per_s)
    return in_series(wait_stage(centre, rate_per_s), completion_stage(centre))


def _phased_stage(centre: OnOff, rate_per_s: float) -> Stage:
    if more_regular(centre):
        on_lattice = backlog_sojourn(centre, rate_per_s)
        if on_lattice is not None:
            return law_stage(on_lattice)
    return law_stage(phase_type_sojourn(centre, rate_per_s, regularity(centre)))


def wait_stage(centre: OnOff, rate_per_s: float) -> Stage:
    """How long an event waits until its service begins: for the peer, and for other events.

    Poisson arrivals, exponential ON, load below 1.
    """
    load = centre.load(rate_per_s)
    if load == 0.0:
        return absence_stage(centre)
    wait = PoissonWait(service=completion(centre), load=load, kinked=False)
    return in_series(absence_stage(centre), Stage(delays=(wait,)))


def fitted_sojourn_stage(centre: OnOff, wait: WaitMoments) -> Stage:
    """Wait and service where two moments of the wait for other events are known; load below 1.

    Arrivals of any kind. That wait is none, or exponential; waiting for the peer itself and the own
    service come on top, ON taken as exponential.
    """
    served = in_series(absence_stage(centre), completion_stage(centre))
    if centre.service.mean_s == 0.0:
        return served
    queued = fitted_law(Exponential(mean_s=centre.demand_s), *wait)
    waits = queued.delays[:-1]  # the service itself is a completion, not exponential
    return in_series(Stage(delays=waits), served)


def sojourn_law(centre: OnOff, rate_per_s: float) -> HyperExponential:
    """The sojourn where service, ON and OFF are exponential: two exponential laws mixed.

    The roots θ₁ < g < θ₂ are computed from their distances to g, whose product is μ/T_ON: no digits
    are lost whatever the scales of the times are.

    >>> from tidings.theory.mobility.centre import exponential_centre
    >>> round(sojourn_law(exponential_centre(0.125, 20.0, 20.0), 2.0).mean_s, 12)
    20.5
    """
    _refuse_overload(centre, rate_per_s)
    served_per_s = 1.0 / centre.service.mean_s
    leaving_per_s, back_per_s = 1.0 / centre.on.mean_s, 1.0 / centre.off.mean_s
    both_per_s = leaving_per_s + back_per_s
    offset = served_per_s - rate_per_s - both_per_s
    root = math.sqrt(offset**2 + 4.0 * served_per_s * leaving_per_s)
    far = 0.5 * (root + abs(offset))
    near = served_per_s * leaving_per_s / far
    below, above = (near, far) if offset >= 0.0 else (far, near)  # g − θ₁ and θ₂ − g
    fast_per_s = both_per_s + above
    share = served_per_s / centre.slowdown * (1.0 - centre.load(rate_per_s))  # C/g
    slow_per_s = share * both_per_s / fast_per_s
    weights = np.array([share * below / slow_per_s, share * above / fast_per_s])
    return HyperExponential(
        weights=tuple(weights / weights.sum()), means_s=(1.0 / slow_per_s, 1.0 / fast_per_s)
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Birth:
    """An ON/OFF queue as a quasi-birth-and-death process; phases are (period, service).

    ``staying`` and ``departing`` are S₀ and S₁ while events are there, ``idle`` the rates between
    periods while none is, ``starting`` the start of a service by period, ``ending`` its end.
    """

    staying: Floats
    departing: Floats
    idle: Floats
    starting: Floats
    ending: Floats


def phase_type_queue(centre: OnOff, taken: Regularity) -> Birth:
    """The phases of an ON/OFF queue: those of ON, then of OFF, each with those of a service."""
    on, off = period_chain(centre.on, taken.on), period_chain(centre.off, taken.off)
    periods, connected = _alternating(on, off)
    initial, work = period_chain(centre.service, taken.service)
    initial = initial / initial.sum()
    working = np.diag(connected.astype(np.float64))
    leaving = -work.sum(axis=1)
    begun = np.outer(leaving, initial)
    count, size = connected.size, initial.size
    return Birth(
        staying=np.kron(periods, np.eye(size)) + np.kron(working, work),
        departing=np.kron(working, begun).astype(np.float64),
        idle=periods,
        starting=np.kron(np.eye(count), initial[None, :]),
        ending=np.kron(working, leaving[:, None]).astype(np.float64),
    )


def _alternating(
    on: Chain, off: Chain
) -> tuple[Floats, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """The generator of periods in turn, and which phases are ON."""
    on_initial, off_initial = (chain[0] / chain[0].sum() for chain in (on, off))
    generator = np.block(
        [
            [on[1], np.outer(-on[1].sum(axis=1), off_initial)],
            [np.outer(-off[1].sum(axis=1), on_initial), off[1]],
        ]
    )
    return generator, np.arange(len(generator)) < on_initial.size


def phase_type_sojourn(centre: OnOff, rate_per_s: float, taken: Regularity) -> PhaseType:
    """The sojourn for phase-type ON, OFF and service; other laws by phases of the c² ``taken``."""
    _refuse_overload(centre, rate_per_s)
    queue = phase_type_queue(centre, taken)
    climbs = rate_matrix(queue, rate_per_s)
    empty = _empty(queue, rate_per_s, climbs)
    ageing = queue.staying + climbs @ queue.departing
    new = rate_per_s * empty @ queue.starting
    present = np.linalg.solve(-ageing.T, new)  # probability of each phase, somebody being there
    ends = present * queue.departing.sum(axis=1)
    turned = ageing.T * present[None, :] / present[:, None]
    # Rows end at the rate new/present: the diagonal says so exactly.
    np.fill_diagonal(turned, 0.0)
    np.fill_diagonal(turned, -(turned.sum(axis=1) + new / present))
    return PhaseType(initial=tuple(ends / ends.sum()), generator=tuple(map(tuple, turned)))


def rate_matrix(queue: Birth, rate_per_s: float) -> Floats:
    """R: how much a level's phases feed those of the next, by logarithmic reduction."""
    size = len(queue.staying)
    up, down = rate_per_s * np.eye(size), queue.departing
    local = queue.staying - up
    high, low = (np.linalg.solve(-local, each) for each in (up, down))
    reached, path = low.copy(), high.copy()
    for _ in range(_MOST_ROUNDS):
        mixed = np.eye(size) - high @ low - low @ high
        high, low = np.linalg.solve(mixed, high @ high), np.linalg.solve(mixed, low @ low)
        step = path @ low
        reached += step
        path = path @ high
        if np.abs(step).max() <= _SETTLED:
            break
    found: Floats = up @ np.linalg.inv(-(local + up @ reached))
    return found


def _empty(queue: Birth, rate_per_s: float, climbs: Floats) -> Floats:
    """Probabilities of each period with nobody there: balance of the two lowest levels."""
    periods, size = len(queue.idle), len(queue.staying)
    local = queue.staying - rate_per_s * np.eye(size)
    balance = np.block(
        [
            [queue.idle - rate_per_s * np.eye(periods), rate_per_s * queue.starting],
            [queue.ending, local + climbs @ queue.departing],
        ]
    )
    above = np.linalg.solve(np.eye(size) - climbs, np.ones(size))
    weights = np.concatenate([np.ones(periods), above])
    balance[:, 0] = weights  # one equation follows from the others: the sum takes its place
    wanted = np.zeros(len(weights))
    wanted[0] = 1.0
    found: Floats = linalg.solve(balance.T, wanted)[:periods]
    return found


def _refuse_overload(centre: OnOff, rate_per_s: float) -> None:
    if centre.is_overloaded(rate_per_s):
        raise UnstableError(
            f"an ON/OFF centre is offered {centre.load(rate_per_s):.4g} s of work per second "
            f"({rate_per_s:.4g} events/s; from {centre.most_per_s:.4g}/s on it never catches up): "
            "shorten the service or the time OFF, lengthen the time ON, or publish less"
        )
