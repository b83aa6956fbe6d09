"""A publisher that comes and goes, as a source of events: how many, how bursty, how fast at most.

Where a publisher is always connected, all of this is what its intervals say.
"""

from __future__ import annotations

import math

import numpy as np

from tidings.model.behaviour import Connectivity
from tidings.model.laws import Deterministic, Exponential, Law
from tidings.model.system import Publisher
from tidings.theory.mobility.buffers import Limits, fate
from tidings.theory.mobility.centre import OnOff
from tidings.theory.mobility.completion import completion
from tidings.theory.mobility.output import departing_dispersion, departing_scv
from tidings.theory.queues import FULL_LOAD
from tidings.theory.renewal import averaged_dispersion
from tidings.theory.stages import Floats
from tidings.theory.time_grid import TimeGrid

_INSTANT = 1e-3  # of an absence: what counts as instantaneous handing over, for a peak rate


def centre_of(connectivity: Connectivity) -> OnOff:
    """The ON/OFF centre of a peer whose periods are given as laws; no service takes no time."""
    assert connectivity.on is not None  # traces have become laws before
    assert connectivity.off is not None
    service: Law = connectivity.service or Deterministic(value_s=0.0)
    return OnOff(service=service, on=connectivity.on, off=connectivity.off)


def mobile_centre(publisher: Publisher) -> OnOff | None:
    """The centre of a publisher that comes and goes, or None."""
    return None if publisher.connectivity is None else centre_of(publisher.connectivity)


def reaching_share(publisher: Publisher) -> float:
    """The share of a publisher's events that reach its broker: its link's, and what it can send.

    An overloaded centre hands over as many as it can.
    """
    centre = mobile_centre(publisher)
    if centre is None:
        return publisher.link.reliability
    assert publisher.connectivity is not None
    buffer = publisher.connectivity.buffer
    if buffer is None:
        sent = min(1.0, centre.most_per_s / publisher.rate_per_s)
    else:
        sent = 1.0 - fate(centre, publisher.rate_per_s, Limits(buffer=buffer)).dropped
    return publisher.link.reliability * sent


def emitted_dispersion(publisher: Publisher, grid: TimeGrid) -> Floats:
    """I(t) − 1 of what a publisher hands to its link.

    That of Poisson events through its centre is exact; other intervals leave their mark on long
    times, where departures are as arrivals, and are added there.
    """
    assert publisher.every is not None  # rates by time of day are refused before
    published = averaged_dispersion(publisher.every, grid.times_s, grid.step) - 1.0
    centre = mobile_centre(publisher)
    if centre is None:
        return published
    if centre.is_overloaded(publisher.rate_per_s):
        return averaged_dispersion(completion(centre), grid.times_s, grid.step) - 1.0
    leaving = departing_dispersion(centre, publisher.rate_per_s, grid.times_s)
    if isinstance(publisher.every, Exponential):
        return leaving
    longer = grid.times_s / (grid.times_s + settling_s(centre, publisher.rate_per_s))
    found: Floats = leaving + longer * published
    return found


def settling_s(centre: OnOff, rate_per_s: float) -> float:
    """About how long a centre remembers, in seconds: an absence and what it takes to catch up."""
    spare = max(1.0 - centre.load(rate_per_s), 1.0 - FULL_LOAD)
    return (centre.off.mean_s + centre.demand_s) / spare


def emitted_scv(publisher: Publisher) -> float:
    """c² of the intervals of what a publisher hands to its link."""
    assert publisher.every is not None
    centre = mobile_centre(publisher)
    if centre is None:
        return publisher.every.scv
    return leaving_scv(centre, publisher.rate_per_s, publisher.every.scv)


def leaving_scv(centre: OnOff, rate_per_s: float, arriving_scv: float) -> float:
    """c² of what leaves a centre: exact for Poisson arrivals; others as QNA lets them through."""
    if centre.is_overloaded(rate_per_s):
        return completion(centre).scv
    kept = 1.0 - centre.load(rate_per_s) ** 2
    return max(departing_scv(centre, rate_per_s) + kept * (arriving_scv - 1.0), 0.0)


def peak_per_s(publisher: Publisher) -> float:
    """Events per second at most, over a time in which many come; infinite if bursts have no limit.

    A centre hands over one event a service; regular and Poisson streams stay near their rate.
    """
    assert publisher.every is not None
    centre = mobile_centre(publisher)
    if centre is not None:
        return centre_peak_per_s(centre)
    return publisher.rate_per_s if publisher.every.scv <= 1.0 else math.inf


def centre_peak_per_s(centre: OnOff) -> float:
    """Events per second that a centre hands over while it has any."""
    return 1.0 / (centre.service.mean_s or _INSTANT * centre.off.mean_s)


def reaching_shares(publishers: tuple[Publisher, ...]) -> Floats:
    """``reaching_share`` of every publisher."""
    return np.array([reaching_share(each) for each in publishers], dtype=np.float64)
