"""How sure a prediction is, given how sure the parameters are that it was made from.

To first order, parameters being independent: each parameter θ with standard error s is moved by s,
and se(f)² = Σ (∂f/∂θ · s)². What parameters of brokers, links, publishers and failures do is known
from derivatives, all of them at once; those of subscribers' own links change only the last stage.
Where subscribers come and go, and of failures that detours avoid, each parameter is moved and all
is predicted anew. A number that one standard error makes unknown, as the delay behind a broker that
is then overloaded, has an infinite error.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tidings.model import topology
from tidings.model.arrays import Floats
from tidings.model.progress import Progress
from tidings.model.record_tables import names
from tidings.model.uncertainty import Uncertain, changed, uncertain_parameters, with_values
from tidings.prediction.choices import MODELS
from tidings.prediction.delay.paths import Paths
from tidings.prediction.error_bars.bars import Bars, Numbers
from tidings.prediction.error_bars.influence import response, stages_of_streams
from tidings.prediction.error_bars.moves import Moves
from tidings.prediction.network.arriving import Leaving, arriving
from tidings.prediction.network.network import Network
from tidings.prediction.repairs.components import acknowledged
from tidings.prediction.repairs.schemes import FailingPaths

UNASKED_S = 30.0  # CPU seconds up to which error bars are worked out unasked
_AROUND = 1.3  # factor around lifetimes up to which distributions are worked out
_FASTER = 0.01  # relative change of what a subscriber wants, to see what its own queue makes of it


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
    parameters, left_out = uncertain_parameters(network.system)
    anew = [one for one in parameters if not _is_derived(network, one)]
    rest = [one for one in parameters if one not in anew]
    progress("error bars")
    began = time.process_time()
    known = _numbers(network) if anew else ({}, {})
    groups = _groups(anew)
    seconds = (time.process_time() - began) * len(groups)
    if asked is None and seconds > UNASKED_S:
        return Bars(seconds=seconds)
    derived = _Derived(
        network=network,
        paths=_near(network, left_s),
        parameters=[one for one in rest if one.section != "subscribers"],
        own=[one for one in rest if one.section == "subscribers"],
    )
    squares = derived.of_subscribers(), derived.of_brokers()
    overloading = derived.overloading()
    place_of = {name: index for index, name in enumerate(names(network.system.subscribers))}
    for number, group in enumerate(groups):
        progress(f"error bars, {number} of {len(groups)}")
        moved = _numbers(_moved(network, group))
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
        parameters=len(parameters),
        left_out=tuple(left_out),
        overloading=overloading,
    )


def _is_derived(network: Network, one: Uncertain) -> bool:
    """Whether derivatives reach a parameter: not who comes and goes, not how often detours help."""
    if network.churns or (network.model, network.faults) != MODELS:
        return False
    detours = network.repairs is not None and network.repairs.bypassing
    return not (detours and one.field.startswith("failure."))


def _near(network: Network, left_s: Sequence[tuple[float, float]]) -> Paths | FailingPaths:
    """Give paths around lifetimes, or at all times where something weighs all of them."""
    first = network.followed[0]
    if network.churns or isinstance(first, FailingPaths):
        return first
    least = min((each[0] for each in left_s), default=np.inf)
    most = max((each[1] for each in left_s), default=0.0)
    if not np.isfinite(least) or most <= 0.0:
        least, most = 1.0, 2.0
    return first.on(first.grid.between(max(least, 1e-4 * most) / _AROUND, most * _AROUND))


# ---- by derivatives ------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Derived:
    """Squared errors by derivatives."""

    network: Network
    paths: Paths | FailingPaths  # at the times that matter
    parameters: Sequence[Uncertain]  # of brokers, links and publishers
    own: Sequence[Uncertain]  # of single subscribers

    @cached_property
    def moves(self) -> Moves:
        paths = self.paths if isinstance(self.paths, Paths) else self.paths.paths
        return Moves(network=self.network, paths=paths, parameters=self.parameters)

    def overloading(self) -> dict[int, str]:
        """By broker, the path of the first parameter that decides whether it is overloaded."""
        return {broker: self.parameters[at].path for broker, at in reversed(self.moves.overloading)}

    def of_subscribers(self) -> Numbers:
        """Compute squared errors of what subscribers get."""
        count = len(self.network.system.subscribers)
        on_time, delay_s = np.zeros((2, count))
        some = bool(self.parameters or self.own)
        for group in self.network.by_home() if some else ():
            came = arriving(self.network, group, by_publisher=True)
            for audience in group:
                leaving = Leaving(came=came, audience=audience)
                mine = audience.subscribers
                for total, derivatives in zip(
                    (on_time, delay_s), self._of_filters(leaving), strict=True
                ):
                    total[mine] = (derivatives**2).sum(axis=1)[audience.filter_of]
                self._add_own(leaving, (on_time, delay_s))
        return {"on_time_se": on_time, "delay_mean_se_s": delay_s}

    def _of_filters(self, leaving: Leaving) -> tuple[Floats, Floats]:
        """By how much shares and mean delays change, [filter, parameter]."""
        answer = response(leaving, self.paths, self.moves.changes)
        rates = self.network.rates
        for broker, at in self.moves.overloading:
            met = stages_of_streams(leaving)[:, : rates.into.size]
            crossing = np.any(met[:, rates.into == broker], axis=1)
            # From a broker that may be overloaded nothing may come, from one that may not be, all.
            may_be = 1.0 if rates.overloaded[broker] else 0.0
            answer.on_time_by[crossing, at] = may_be - answer.on_time[crossing]
            answer.delay_by_s[crossing, at] = np.inf
        published = self.moves.of_published[leaving.came.publishers[leaving.rows]]
        on_time, delay_s = answer.of_filters(leaving.wanted, published)
        one = leaving.audience.example
        if one.processing is None and one.connectivity is None:
            return on_time, delay_s
        busiest = int(np.argmax(leaving.wanted.sum(axis=1)))
        more = (leaving.wanted[[busiest]] @ published)[0] / leaving.rate_per_s
        by_rate = self._differences(leaving, replace(leaving, faster=1.0 + _FASTER))
        return (
            on_time + np.outer(by_rate[0], more) / _FASTER,
            delay_s + np.outer(by_rate[1], more) / _FASTER,
        )

    def _differences(self, leaving: Leaving, moved: Leaving) -> tuple[Floats, Floats]:
        """By how much shares and mean delays differ behind another exit, [filter]."""
        known, other = (each.on_time_and_mean(self.paths) for each in (leaving, moved))
        return other[0] - known[0], other[1] - known[1]

    @cached_property
    def _own_of(self) -> dict[str, list[Uncertain]]:
        own: dict[str, list[Uncertain]] = {}
        for one in self.own:
            own.setdefault(one.owner, []).append(one)
        return own

    def _add_own(self, leaving: Leaving, totals: tuple[Floats, Floats]) -> None:
        """Add what subscribers' own links and periods make of it; all of an audience are alike."""
        if not self.own:
            return
        audience, subscribers = leaving.audience, self.network.system.subscribers
        by_field: dict[str, list[tuple[int, int, Uncertain]]] = {}
        for place, subscriber in enumerate(audience.subscribers.tolist()):
            for one in self._own_of.get(subscribers[subscriber].name, ()):
                row = int(audience.filter_of[place])
                by_field.setdefault(one.field, []).append((subscriber, row, one))
        for name, members in by_field.items():
            first = max((one for _, _, one in members), key=lambda each: each.standard_error)
            moved = changed(audience.example, name, first.moved)
            other = replace(leaving, audience=replace(audience, example=moved))
            for total, difference in zip(totals, self._differences(leaving, other), strict=True):
                for subscriber, row, one in members:
                    part = one.standard_error / first.standard_error
                    total[subscriber] += (part * difference[row]) ** 2

    def of_brokers(self) -> Numbers:
        """Compute squared errors of loads and of mean waits."""
        moves, rates = self.moves, self.network.rates
        loads = np.minimum(moves.loads, 1.0) - np.minimum(rates.loads, 1.0)[:, None]
        waits_s = moves.mean_waits_s
        for broker, at in moves.overloading:
            waits_s[broker, at] = np.inf
        return {
            "utilisation_se": (loads**2).sum(axis=1),
            "wait_mean_se_s": (waits_s**2).sum(axis=1),
        }


# ---- by predicting anew --------------------------------------------------------------------------


def _groups(parameters: Sequence[Uncertain]) -> list[tuple[Uncertain, ...]]:
    """Parameters to be moved together: each alone, those of single subscribers all at once."""
    alone: list[tuple[Uncertain, ...]] = []
    by_field: dict[str, list[Uncertain]] = {}
    for one in parameters:
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


def _moved(network: Network, group: tuple[Uncertain, ...]) -> Network:
    """The network with some parameters a standard error higher, or lower where they cannot be."""
    system = with_values(network.system, {one: one.moved for one in group})
    routes = acknowledged(system, replace(network.routes, arcs=topology.arcs(system)))
    return replace(network, system=system, routes=routes, base=network)


def _numbers(network: Network) -> tuple[Numbers, Numbers]:
    """What error bars are given for, by subscriber and by broker."""
    on_time, mean_s = (np.full(len(network.system.subscribers), np.nan) for _ in range(2))
    for group in network.by_home():
        came = arriving(network, group, by_publisher=False)
        for audience in group:
            leaving = Leaving(came=came, audience=audience)
            shares, delays_s = leaving.on_time_and_mean(network.followed[0])
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
