"""A queue whose server comes and goes, simulated the obvious way: on the server's own clock.

Time ON is the only time in which anything happens to a service, so arrivals are put on a clock that
runs only while ON, served by Lindley's recursion there, and put back on the true clock.
"""

from __future__ import annotations

import numpy as np

from tidings.model.laws import Law


class Clock:
    """Alternating periods that begin in their steady state (exponential ON) at time 0."""

    def __init__(self, rng, on: Law, off: Law, until_s: float) -> None:
        count = int(1.5 * until_s / (on.mean_s + off.mean_s)) + 200
        ons, offs = on.sample(rng, count), off.sample(rng, count)
        if rng.random() < off.mean_s / (on.mean_s + off.mean_s):
            ons[0] = 0.0  # in the middle of an absence; its age is forgotten during the warm-up
        self.begins = np.concatenate([[0.0], np.cumsum(ons + offs)])  # of each ON period
        self.worked = np.concatenate([[0.0], np.cumsum(ons)])  # ON time before it
        assert self.begins[-1] > until_s

    def on_time(self, t):
        period = np.searchsorted(self.begins, t, side="right") - 1
        return np.minimum(self.worked[period] + t - self.begins[period], self.worked[period + 1])

    def true_time(self, worked):
        period = np.searchsorted(self.worked, worked, side="right") - 1
        return self.begins[period] + worked - self.worked[period]


def fifo(arrivals, services):
    """Departures of a plain queue, first come first served."""
    before = np.cumsum(services) - services
    return np.maximum.accumulate(arrivals - before) + before + services


def onoff_departures(arrivals, services, clock: Clock):
    """When each event leaves an ON/OFF centre."""
    return clock.true_time(fifo(clock.on_time(arrivals), services))


def poisson_arrivals(rng, rate_per_s: float, until_s: float):
    count = rng.poisson(rate_per_s * until_s)
    return np.sort(rng.random(count) * until_s)


def sojourns(rng, centre, rate_per_s: float, *, until_s: float, warmup_s: float):
    """Times spent by the events that arrive after the warm-up."""
    arrivals = poisson_arrivals(rng, rate_per_s, until_s)
    clock = Clock(rng, centre.on, centre.off, 3.0 * until_s)
    departures = onoff_departures(arrivals, centre.service.sample(rng, arrivals.size), clock)
    late = arrivals > warmup_s
    return (departures - arrivals)[late]
