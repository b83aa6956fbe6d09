"""How sure a prediction is, given how sure the parameters are that it was made from.

To first order, parameters being independent: each parameter θ with standard error s is moved by s,
and se(f)² = Σ (∂f/∂θ · s)². What parameters do is known from derivatives,
all of them at once; those of subscribers' own links change only the last stage. Of failures that
detours avoid, each parameter is moved and all is predicted anew. A number that one standard error
makes unknown, as the delay behind a broker that is then overloaded, has an infinite error.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tidings.model import topology
from tidings.model.arrays import Floats
from tidings.model.progress import Progress
from tidings.model.record_tables import names
from tidings.model.system import Subscriber
from tidings.model.uncertainty import Uncertain, changed, uncertain_parameters, with_values
from tidings.theory.delay.paths import Paths
from tidings.theory.error_bars.bars import Bars, Numbers
from tidings.theory.error_bars.changes import (
    Changes,
    Response,
    StageChange,
    change,
    stage_order,
    stages_of_streams,
)
from tidings.theory.error_bars.influence import responses
from tidings.theory.error_bars.moves import Moves
from tidings.theory.error_bars.stay_influence import responses_of_stays
from tidings.theory.models import MODELS
from tidings.theory.network.arriving import (
    Leaving,
    around_lifetimes,
    arriving,
    on_time_and_mean,
)
from tidings.theory.network.network import Network
from tidings.theory.repairs.components import acknowledged
from tidings.theory.repairs.schemes import FailingPaths

UNASKED_S = 30.0  # CPU seconds up to which error bars are worked out unasked
PRESENCE = ("stays", "away")  # fields that change what flows, too
_FASTER = 0.01  # relative change of what a subscriber wants, to see what its own queue makes of it

Derivatives = tuple[Floats, Floats]  # of shares on time and of mean delays in seconds


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
        paths=around_lifetimes(network, left_s),
        parameters=[one for one in rest if one.section != "subscribers" or one.field in PRESENCE],
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
    """Test whether derivatives reach a parameter: not where detours avoid what fails."""
    if (network.model, network.faults) != MODELS:
        return False
    detours = network.repairs is not None and network.repairs.bypassing
    return not (detours and one.field.startswith("failure."))


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
        """Give, by broker, the path of the first parameter that decides if it is overloaded."""
        return {broker: self.parameters[at].path for broker, at in reversed(self.moves.overloading)}

    def of_subscribers(self) -> Numbers:
        """Compute squared errors of what subscribers get."""
        squares = np.zeros((2, len(self.network.system.subscribers)))
        for group in self.network.by_home() if self.parameters or self.own else ():
            came = arriving(self.network, group, by_publisher=True)
            for audience in group:
                leaving = Leaving(came=came, audience=audience)
                by_filter, of_own = self._of_filters(leaving)
                for square, each in zip(squares, by_filter, strict=True):
                    square[audience.subscribers] = (each**2).sum(axis=1)[audience.filter_of]
                self._add_own(leaving, squares, by_filter, of_own)
        return {"on_time_se": squares[0], "delay_mean_se_s": squares[1]}

    def _of_filters(self, leaving: Leaving) -> tuple[Derivatives, dict[str, Derivatives]]:
        """Compute by how much shares and mean delays change, [filter, parameter].

        And, [filter], by each field of subscribers, for the largest standard error of all of them.
        """
        fields = self._fields(leaving)
        stage, example = stage_order(self.network).exit, leaving.audience.example
        own = [
            self._own_change(leaving, changed(example, name, one.moved), stage, cause)
            for cause, (name, one) in enumerate(fields.items())
        ]
        own += self._of_queue(leaving, stage, len(own))
        groups = [self.moves.changes, Changes(each=own, moves=np.eye(len(own)))]
        with_own = groups if own else groups[:1]
        follow = responses if example.stays is None else responses_of_stays
        answer, *of_own = follow(leaving, self.paths, with_own)
        self._set_overloaded(leaving, answer)
        published = self.moves.of_published[leaving.came.publishers[leaving.rows]]
        on_time, delay_s = answer.of_filters(leaving.wanted, published)
        if not of_own:
            return (on_time, delay_s), {}
        unmoved = np.zeros((len(published), len(own)))
        shares, delays_s = of_own[0].of_filters(leaving.wanted, unmoved)
        if len(own) > len(fields):  # more events for its own queue
            busiest = int(np.argmax(leaving.wanted.sum(axis=1)))
            more = (leaving.wanted[[busiest]] @ published)[0] / (leaving.rate_per_s * _FASTER)
            on_time = on_time + np.outer(shares[:, -1], more)
            delay_s = delay_s + np.outer(delays_s[:, -1], more)
        by_field = {
            name: (shares[:, [place]], delays_s[:, [place]]) for place, name in enumerate(fields)
        }
        return (on_time, delay_s), by_field

    def _set_overloaded(self, leaving: Leaving, answer: Response) -> None:
        """Set the changes behind brokers of which a parameter decides whether they are overloaded.

        From a broker that may be overloaded nothing may come, from one that may not be, all.
        """
        rates = self.network.rates
        for broker, at in self.moves.overloading:
            met = stages_of_streams(leaving)[:, : rates.into.size]
            crossing = np.any(met[:, rates.into == broker], axis=1)
            may_be = 1.0 if rates.overloaded[broker] else 0.0
            answer.on_time_by[crossing, at] = may_be - answer.on_time[crossing]
            answer.delay_by_s[crossing, at] = np.inf

    def _own_change(
        self, leaving: Leaving, moved: Subscriber, stage: int, cause: int
    ) -> StageChange:
        """Compute what another value of a subscriber's own parameter makes of its last stage."""
        other = replace(leaving, audience=replace(leaving.audience, example=moved))
        grid = self.paths.grid
        one = change(stage, cause, leaving.exit.on(grid), other.exit.on(grid))
        before, after = leaving.audience.example.stays, moved.stays
        if before is None or after is None:
            return one
        return replace(one, stays=after.mean_s / before.mean_s - 1.0)

    def _of_queue(self, leaving: Leaving, stage: int, cause: int) -> list[StageChange]:
        """Compute what more events make of a subscriber's own queue, if it has one."""
        example = leaving.audience.example
        if example.processing is None and example.connectivity is None:
            return []
        faster, grid = replace(leaving, faster=1.0 + _FASTER), self.paths.grid
        return [change(stage, cause, leaving.exit.on(grid), faster.exit.on(grid))]

    @cached_property
    def _own_of(self) -> dict[str, list[Uncertain]]:
        own: dict[str, list[Uncertain]] = {}
        for one in self.own:
            own.setdefault(one.owner, []).append(one)
        return own

    def _members(self, leaving: Leaving) -> Iterator[tuple[int, int, Uncertain]]:
        """Give subscribers with a filter each and the parameters of their own."""
        audience, subscribers = leaving.audience, self.network.system.subscribers
        for place, subscriber in enumerate(audience.subscribers.tolist() if self.own else ()):
            for one in self._own_of.get(subscribers[subscriber].name, ()):
                yield subscriber, int(audience.filter_of[place]), one

    def _fields(self, leaving: Leaving) -> dict[str, Uncertain]:
        """Find, by field, the parameter of an audience with the largest standard error."""
        largest: dict[str, Uncertain] = {}
        for _, _, one in self._members(leaving):
            other = largest.setdefault(one.field, one)
            if one.standard_error > other.standard_error:
                largest[one.field] = one
        return largest

    @cached_property
    def _column_of(self) -> dict[Uncertain, int]:
        return {one: column for column, one in enumerate(self.parameters)}

    def _add_own(
        self,
        leaving: Leaving,
        squares: Floats,
        by_filter: Derivatives,
        of_own: dict[str, Derivatives],
    ) -> None:
        """Add what subscribers' own links and times make of it; all of an audience are alike."""
        largest = self._fields(leaving)
        for subscriber, row, one in self._members(leaving):
            part = one.standard_error / largest[one.field].standard_error
            column = self._column_of.get(one)  # that of rates, which it changes for everybody
            for square, own, each in zip(squares, of_own[one.field], by_filter, strict=True):
                others = 0.0 if column is None else each[row, column]
                square[subscriber] += (others + part * own[row, 0]) ** 2 - others**2

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
    """Group parameters to be moved together: each alone, those of subscribers all at once.

    Parameters of single subscribers that are of one field go together.
    """
    alone: list[tuple[Uncertain, ...]] = []
    by_field: dict[str, list[Uncertain]] = {}
    for one in parameters:
        if one.section == "subscribers":
            by_field.setdefault(one.field, []).append(one)
        else:
            alone.append((one,))
    return alone + [tuple(group) for group in by_field.values()]


def _touched(group: tuple[Uncertain, ...], place_of: dict[str, int]) -> slice | list[int]:
    """Find the subscribers that a group of parameters concerns."""
    if group[0].section != "subscribers":
        return slice(None)
    return [place_of[one.owner] for one in group]


def _moved(network: Network, group: tuple[Uncertain, ...]) -> Network:
    """Move some parameters up by a standard error, or down where they cannot be higher."""
    system = with_values(network.system, {one: one.moved for one in group})
    routes = acknowledged(system, replace(network.routes, arcs=topology.arcs(system)))
    return replace(network, system=system, routes=routes, base=network)


def _numbers(network: Network) -> tuple[Numbers, Numbers]:
    """Compute the numbers that error bars are given for, by subscriber and by broker."""
    on_time, mean_s = on_time_and_mean(network)
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
