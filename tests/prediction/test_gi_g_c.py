"""Queues of any intervals and services at 1 to 64 servers keep the promise of a prediction.

What is predicted, by whichever engine, is held against the recursion of Kiefer and Wolfowitz (when
the next of c servers is free) over draws that are none of ours, and against Ciw.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import ciw
import numpy as np
import pytest
from numba import njit

from tidings.model.reading import loads
from tidings.prediction.predict import predict

SERVICE_S, WITHIN, BATCHES = 0.01, 0.01, 50
AT_NIGHT = 30  # systems drawn


# ---- families of laws: their words in a file, and draws of mean 1 --------------------------------


def _two_speeds(scv):
    """Give shares and means of a hyperexponential law of mean 1 with balanced means."""
    quick = 0.5 * (1.0 + math.sqrt((scv - 1.0) / (scv + 1.0)))
    return (quick, 1.0 - quick), (0.5 / quick, 0.5 / (1.0 - quick))


def _hyperexponential(mean_s, scv):
    parts = zip(*_two_speeds(scv), strict=True)
    inside = ", ".join(f"{{p: {share}, mean: {part * mean_s}s}}" for share, part in parts)
    return f"{{hyperexponential: [{inside}]}}"


def _hyperexponential_draws(rng, scv, size):
    shares, means = _two_speeds(scv)
    return np.where(rng.random(size) < shares[0], *means) * rng.standard_exponential(size)


def _lognormal_draws(rng, scv, size):
    spread = math.log1p(scv)
    return rng.lognormal(-0.5 * spread, math.sqrt(spread), size)


FAMILIES = {  # name: squared coefficients of variation, words, draws
    "constant": ((0.0,), lambda m, c: f"{m}s", lambda rng, c, n: np.ones(n)),
    "uniform": (
        (1 / 3,), lambda m, c: f"{{uniform: [0s, {2 * m}s]}}", lambda rng, c, n: 2 * rng.random(n)
    ),
    "exponential": (
        (1.0,), lambda m, c: f"{{exponential: {m}s}}", lambda rng, c, n: rng.standard_exponential(n)
    ),
    "gamma": (
        (0.25, 2.0),
        lambda m, c: f"{{gamma: {{mean: {m}s, scv: {c}}}}}",
        lambda rng, c, n: c * rng.standard_gamma(1.0 / c, n),
    ),
    "lognormal": (
        (0.5, 3.0), lambda m, c: f"{{lognormal: {{mean: {m}s, scv: {c}}}}}", _lognormal_draws
    ),
    "hyperexponential": ((2.0, 4.0), _hyperexponential, _hyperexponential_draws),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A system that was drawn; laws are (family, squared coefficient of variation)."""

    every: tuple[str, float]
    service: tuple[str, float]
    servers: int
    load: float
    patience: float  # lifetime beyond a service, in waits of M/M/c's size

    @property
    def mean_s(self):
        return SERVICE_S / (self.servers * self.load)

    @property
    def lifetime_s(self):
        usual_s = SERVICE_S / (self.servers * (1.0 - self.load))
        return SERVICE_S * (1.0 + 0.2 * self.service[1]) + self.patience * usual_s

    def words(self):
        every = FAMILIES[self.every[0]][1](self.mean_s, self.every[1])
        service = FAMILIES[self.service[0]][1](SERVICE_S, self.service[1])
        return (
            f"tidings: 1\nlifetime: {self.lifetime_s}s\n"
            f"brokers: {{hub: {{service: {service}, servers: {self.servers}}}}}\n"
            f"publishers: {{p: {{at: hub, every: {every}, content: {{event: {{k: 1}}}}}}}}\n"
            "subscribers: {s: {at: hub, wants: {}}}\n"
        )


def drawn(number):
    rng = np.random.default_rng(7_000 + number)

    def law():
        family = rng.choice(list(FAMILIES))
        return str(family), float(rng.choice(FAMILIES[family][0]))

    every, service = law(), law()
    if every[0] == service[0] == "constant":
        service = ("exponential", 1.0)  # two constants never wait
    return Queue(
        every=every,
        service=service,
        servers=int(np.exp(rng.uniform(0.0, math.log(64.999)))),
        load=float(rng.uniform(0.3, 0.9)),
        patience=float(rng.uniform(0.2, 2.0)),
    )


# ---- what is compared with -----------------------------------------------------------------------


@njit
def late(gaps, services, free, lifetime):
    """Count the late; ``free`` is when each server is, in order of time, from the first gap on."""
    now, count = 0.0, 0
    for event in range(gaps.size):
        now += gaps[event]
        left = max(now, free[0]) + services[event]
        place = 0
        while place + 1 < free.size and free[place + 1] < left:
            free[place] = free[place + 1]
            place += 1
        free[place] = left
        count += left - now > lifetime
    return count


def times(queue, seed, size):
    """Draw intervals and services, in seconds, without Tidings' own sampling."""
    rng = np.random.default_rng(seed)
    (every, of_every), (service, of_service) = queue.every, queue.service
    gaps = FAMILIES[every][2](rng, of_every, size) * queue.mean_s
    return gaps, FAMILIES[service][2](rng, of_service, size) * SERVICE_S


def recursion(queue, size=100_000):
    """Compute the on-time share and its standard error by the recursion, batch by batch."""
    free, shares = np.zeros(queue.servers), []
    for batch in range(BATCHES + 1):
        gaps, services = times(queue, batch, size)
        shares.append(1.0 - late(gaps, services, free, queue.lifetime_s) / size)
        free -= gaps.sum()  # the clock begins anew with each batch
    return mean_and_error(shares[1:])  # the first is the warm-up


def of_ciw(queue, runs=10, size=5_000):
    """Compute the on-time share and its standard error by Ciw, in runs that begin empty."""
    shares = []
    for run in range(runs):
        gaps, services = (each.tolist() for each in times(queue, 100 + run, size))
        network = ciw.create_network(
            arrival_distributions=[ciw.dists.Sequential([*gaps, math.inf])],
            service_distributions=[ciw.dists.Sequential(services)],
            number_of_servers=[queue.servers],
        )
        simulation = ciw.Simulation(network)
        simulation.simulate_until_max_customers(size)
        records = sorted(simulation.get_all_records(), key=lambda each: each.arrival_date)
        spent = np.array([each.exit_date - each.arrival_date for each in records[size // 5 :]])
        shares.append(np.mean(spent <= queue.lifetime_s))
    return mean_and_error(shares)


def mean_and_error(shares):
    return np.mean(shares), np.std(shares, ddof=1) / math.sqrt(len(shares))


def assert_kept(queue, **longer):
    exact, unsure = recursion(queue, **longer)
    assert unsure < 0.15 * WITHIN, "the recursion is sharp enough to tell"
    assert 0.02 < exact < 0.999, "some are late, some on time"
    row = predict(loads(queue.words())).subscribers.iloc[0]
    off = abs(row["on_time"] - exact)
    assert off < WITHIN, (queue, row["on_time"], exact)
    # Of 100, 95 lie within the error, and 997 of 1000 within half as much again.
    assert off < 1.5 * row["error"] + 3.0 * unsure, (queue, row["on_time"], exact, row["error"])


@pytest.mark.statistical
def test_many_servers_that_are_busy_and_uneven():
    assert_kept(
        Queue(
            every=("lognormal", 3.0), service=("gamma", 2.0), servers=64, load=0.9, patience=1.0
        )
    )  # fmt: skip


@pytest.mark.statistical
@pytest.mark.parametrize("number", range(3))
def test_a_queue_that_was_drawn(number):
    assert_kept(drawn(number))


@pytest.mark.nightly  # three of them in every run
@pytest.mark.parametrize("number", range(3, AT_NIGHT))
def test_many_queues_that_were_drawn(number):
    assert_kept(drawn(number), size=400_000)


@pytest.mark.statistical
def test_ciw_has_the_same_share():
    """Gamma intervals, services of two speeds, 12 servers that are 0.7 busy."""
    queue = Queue(
        every=("gamma", 2.0), service=("hyperexponential", 2.0), servers=12, load=0.7, patience=1.0
    )
    theirs, unsure = of_ciw(queue)
    row = predict(loads(queue.words())).subscribers.iloc[0]
    together = math.hypot(unsure, row["error"] / 1.96)
    assert together < WITHIN
    assert abs(row["on_time"] - theirs) < 4.0 * together, (row["on_time"], theirs, together)
