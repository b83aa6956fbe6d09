"""How sure a prediction is, given how sure the parameters are that it was made from.

To first order, parameters being independent: each parameter θ with standard error s is moved by s,
and se(f)² = Σ (f(θ + s) − f(θ))². A moved system shares with the first one its dispersion and all
queues that the parameter does not touch, and distributions are worked out only around lifetimes,
unless something weighs all of them: who is still there, or what fails meanwhile.
Parameters that concern one subscriber each, as those of its own link, are moved together: nobody
else's share depends on them. A number that one standard error makes unknown, as the delay behind a
broker that is then overloaded, has an infinite error.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tidings.model import topology
from tidings.model.arrays import Floats
from tidings.model.progress import Progress
from tidings.model.record_tables import names
from tidings.model.system import System
from tidings.model.uncertainty import Uncertain, uncertain_parameters, with_values
from tidings.prediction.arriving import Leaving, arriving
from tidings.prediction.network import Network

UNASKED_S = 30.0  # CPU seconds up to which error bars are worked out unasked
_AROUND = 1.3  # factor around lifetimes up to which distributions are worked out

Numbers = dict[str, Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Standard errors of columns of the result, and what they came from."""

    subscribers: Numbers = field(default_factory=dict)
    brokers: Numbers = field(default_factory=dict)
    parameters: int = 0
    left_out: tuple[str, ...] = ()  # paths whose influence is not known
    overloading: dict[int, str] = field(default_factory=dict)  # broker: the first path that may


def parameter_errors(
    network: Network,
    left_s: Sequence[tuple[float, float]],
    *,
    asked: bool | None,
    progress: Progress,
) -> Bars:
    """Compute standard errors of the result from those of the parameters.

    ``left_s`` is what is left of lifetimes after what is certain of delays, least and most.
    """
    if asked is False or not network.system.standard_errors:
        return Bars()
    groups = _groups(network.system)
    weighed = network.churns or network.failing is not None  # by all of distributions
    near = replace(network, only_s=None if weighed else _times_s(left_s), solved={})
    began = time.process_time()
    known = _numbers(near)
    if asked is None and (time.process_time() - began) * len(groups) > UNASKED_S:
        return Bars()
    squares = [{name: np.zeros(each.size) for name, each in part.items()} for part in known]
    overloading: dict[int, str] = {}
    place_of = {name: index for index, name in enumerate(names(network.system.subscribers))}
    for number, group in enumerate(groups):
        progress(f"error bars, {number} of {len(groups)}")
        moved = _numbers(_moved(near, group))
        touched = _touched(group, place_of)
        for square, before, after in zip(squares, known, moved, strict=True):
            _add(square, before, after, touched if square is squares[0] else slice(None))
        for broker in np.flatnonzero(np.isinf(squares[1]["wait_mean_se_s"])).tolist():
            overloading.setdefault(broker, group[0].path)
    subscribers, brokers = (
        {name: np.sqrt(square) for name, square in part.items()} for part in squares
    )
    return Bars(
        subscribers=subscribers,
        brokers=brokers,
        parameters=sum(map(len, groups)),
        left_out=tuple(uncertain_parameters(network.system)[1]),
        overloading=overloading,
    )


def _groups(system: System) -> list[tuple[Uncertain, ...]]:
    """Parameters to be moved together: each alone, those of single subscribers all at once."""
    alone: list[tuple[Uncertain, ...]] = []
    by_field: dict[str, list[Uncertain]] = {}
    for one in uncertain_parameters(system)[0]:
        if one.section == "subscribers":
            by_field.setdefault(one.field, []).append(one)
        else:
            alone.append((one,))
    return alone + [tuple(group) for group in by_field.values()]


def _touched(group: tuple[Uncertain, ...], place_of: dict[str, int]) -> slice | list[int]:
    """Which subscribers a group of parameters concerns."""
    if group[0].section != "subscribers":
        return slice(None)
    return [place_of[one.owner] for one in group]


def _moved(near: Network, group: tuple[Uncertain, ...]) -> Network:
    """The network with some parameters a standard error higher, or lower where they cannot be."""
    values = {one: one.high if one.high > one.value else one.low for one in group}
    system = with_values(near.system, values)
    routes = replace(near.routes, arcs=topology.arcs(system))
    return replace(near, system=system, routes=routes, base=near)


def _times_s(left_s: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The times that are left of lifetimes after what is certain of delays: least and most."""
    least = min((each[0] for each in left_s), default=np.inf)
    most = max((each[1] for each in left_s), default=0.0)
    if not np.isfinite(least) or most <= 0.0:
        return 1.0, 2.0
    return float(max(least, 1e-4 * most)) / _AROUND, float(most) * _AROUND


def _numbers(network: Network) -> tuple[Numbers, Numbers]:
    """What error bars are given for, by subscriber and by broker."""
    on_time, mean_s = (np.full(len(network.system.subscribers), np.nan) for _ in range(2))
    for group in network.by_home():
        came = arriving(network, group, by_publisher=False)
        for audience in group:
            shares, delays_s = Leaving(came=came, audience=audience).on_time_and_mean()
            on_time[audience.subscribers] = shares[audience.filter_of]
            mean_s[audience.subscribers] = delays_s[audience.filter_of]
    brokers = {
        "utilisation_se": np.minimum(network.rates.loads, 1.0),
        "wait_mean_se_s": network.mean_waits_s,
    }
    return {"on_time_se": on_time, "delay_mean_se_s": mean_s}, brokers


def _add(square: Numbers, before: Numbers, after: Numbers, touched: slice | list[int]) -> None:
    """Add what one move makes of every number's squared error."""
    for name, total in square.items():
        one, other = before[name][touched], after[name][touched]
        with np.errstate(invalid="ignore"):
            change = np.where(one == other, 0.0, other - one)
        unknown = np.isnan(change) & ~np.isnan(one)
        change = np.where(np.isnan(one), np.nan, np.where(unknown, np.inf, change))
        total[touched] += change**2
