"""Failing components for the tests, and slow, obvious twins of their analysis."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tidings.model.behaviour import Failure
from tidings.model.laws import Exponential, residual
from tidings.theory.faults.components import Components
from tidings.theory.faults.processes import exponential


def failure(availability, period_s=60_000.0):
    return Failure(
        up=Exponential(mean_s=availability * period_s),
        down=Exponential(mean_s=(1.0 - availability) * period_s),
    )


def row(availabilities, period_s=60_000.0):
    """Components of one way: broker, link, broker, … each with a process of its own."""
    count = len(availabilities)
    return Components(
        processes=tuple(exponential(failure(each, period_s)) for each in availabilities),
        of_broker=tuple((index,) for index in range(0, count, 2)),
        of_link=tuple((index,) for index in range(1, count, 2)),
    )


class NaiveProcesses:
    """Many independent copies of some up/down processes of any laws, followed toggle by toggle."""

    def __init__(self, failures, copies, rng):
        self.failures, self.rng = failures, rng
        self.up = np.array([rng.random(copies) < f.availability for f in failures])
        self.toggle = np.array(
            [
                np.where(
                    up, residual(f.up).sample(rng, copies), residual(f.down).sample(rng, copies)
                )
                for f, up in zip(failures, self.up, strict=True)
            ]
        )

    def advance(self, process, copies, until):
        """Move one process of the chosen copies on to a time of each."""
        failure = self.failures[process]
        while True:
            due = self.toggle[process, copies] <= until
            if not due.any():
                return
            chosen = copies[due]
            self.up[process, chosen] = ~self.up[process, chosen]
            more = np.where(
                self.up[process, chosen],
                failure.up.sample(self.rng, chosen.size),
                failure.down.sample(self.rng, chosen.size),
            )
            self.toggle[process, chosen] += more

    def waits(self, hops, home):
        """When each copy's event reaches the last broker; infinite where its home was down."""
        copies = self.up.shape[1]
        arrival = np.zeros(copies)
        alive = np.flatnonzero(self.up[list(home)].all(axis=0)) if home else np.arange(copies)
        lost = np.ones(copies, dtype=bool)
        lost[alive] = False
        for needed in hops:
            waiting = alive
            while waiting.size:
                for process in needed:
                    self.advance(process, waiting, arrival[waiting])
                met = self.up[np.ix_(needed, waiting)].all(axis=0)
                waiting = waiting[~met]
                arrival[waiting] = self.toggle[np.ix_(needed, waiting)].min(axis=0)
        arrival[lost] = math.inf
        return arrival


def connected(up_brokers, up_links, ends, source, target):
    """Whether two brokers can reach each other over what is up."""
    if source not in up_brokers or target not in up_brokers:
        return False
    reached, waiting = {source}, [source]
    while waiting:
        here = waiting.pop()
        for link in up_links:
            if here in ends[link]:
                there = ends[link][0] if ends[link][1] == here else ends[link][1]
                if there in up_brokers and there not in reached:
                    reached.add(there)
                    waiting.append(there)
    return target in reached


def states(availabilities):
    """Every combination of up and down with its probability."""
    for combination in itertools.product((True, False), repeat=len(availabilities)):
        share = math.prod(
            a if up else 1.0 - a for a, up in zip(availabilities, combination, strict=True)
        )
        yield combination, share


class Faulty:
    failure = staticmethod(failure)
    row = staticmethod(row)
    naive_processes = NaiveProcesses
    connected = staticmethod(connected)
    states = staticmethod(states)


@pytest.fixture(scope="session")
def faulty() -> type[Faulty]:
    return Faulty
