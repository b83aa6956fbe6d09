"""Refreshes of other homes: whoever wants the same events behind a link keeps its broker informed.

A broker sends an event over a link as long as it knows of any subscription behind it. So the
brokers that the ways to several homes have in common are refreshed by all of them, each at moments
of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from tidings.theory.faults.components import Components, Path

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_MOMENTS = 0.5 * (1.0 + _NODES)


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherHome:
    """Where the subscriptions of another home come to a way, and what they pass before."""

    joins: int  # the position of a broker on the way; those before it are refreshed too
    branch: Path  # from the home up to, and without, that broker; its last link leads there


def helped_per_s(
    components: Components, path: Path, others: Sequence[OtherHome], every_s: float
) -> tuple[float, ...]:
    """How often other homes refresh each broker of a way, per second, as a random stream.

    Others are taken to come at random moments, at the rate that gives the right mean time since
    the last refresh of all; what lies between them and the way is taken to be up by chance each
    time anew.
    """
    shares = [
        (other.joins, components.all_up(_processes(components, other.branch))) for other in others
    ]
    known: dict[int, float] = {}
    found = []
    for place in range(len(path.brokers)):
        mine = [share for joins, share in shares if joins > place]
        if len(mine) not in known:  # those of later brokers are among those of earlier ones
            known[len(mine)] = stream_per_interval(mine) / every_s
        found.append(known[len(mine)])
    return tuple(found)


def _processes(components: Components, branch: Path) -> set[int]:
    needed = [components.of_broker[broker] for broker in branch.brokers]
    needed += [components.of_link[link] for link in branch.links]
    return {each for element in needed for each in element}


def stream_per_interval(shares: Sequence[float]) -> float:
    """Refreshes in an interval of a random stream that does as much as others with these shares.

    With one's own refreshes at V, uniform on an interval, and others that each come once in it
    with a probability, the mean time since the last is ∫ (1 − x) Π (1 − share x) dx intervals;
    with a random stream of rate r it is ∫ (1 − x) exp(−r x) dx.

    >>> round(stream_per_interval([1.0]), 2)  # a third of an interval, instead of half of it
    1.36
    """
    if not any(share > 0.0 for share in shares):
        return 0.0
    left = (1.0 - _MOMENTS) * math.prod((1.0 - share * _MOMENTS for share in shares), start=1.0)
    wanted = 0.5 * float(_WEIGHTS @ left)

    def missing(rate: float) -> float:
        return 1.0 / rate + math.expm1(-rate) / rate**2 - wanted

    return float(optimize.brentq(missing, 1e-3, 4.0 + 2.0 * len(shares)))
