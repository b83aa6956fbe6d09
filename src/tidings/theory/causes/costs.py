"""What each cause costs each subscriber: the on-time share that it would gain without it.

The transform of a path is the product of those of its stages. Without one of them it is divided by
that one, and inverted again: what waits elsewhere stays as it is. Costs overlap (an event that is
late for two reasons is late once), so they need not add up to what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from tidings.model.arrays import Bools, Floats, Ints
from tidings.model.causes import LEAST, MOST_OF_ONE, Cause, Cost, in_order
from tidings.model.outcome import table
from tidings.model.record_tables import names
from tidings.theory.causes.parts import (
    Stages,
    exits_without,
    parts_of_paths,
    unavailable,
)
from tidings.theory.delay.delays import Delays, stack
from tidings.theory.error_bars.changes import stages_of_streams
from tidings.theory.network.arriving import (
    Leaving,
    around_lifetimes,
    arriving,
    on_time_and_mean,
)
from tidings.theory.network.audiences import Audience
from tidings.theory.network.network import Network
from tidings.theory.peers.stay_weights import Meeting, weighed_by_stay

_SHORT = 0.005  # part of a mean delay: taking out less is not tried
_MOST_BURSTY = 3  # publishers made even, one by one

Shares = dict[Cause, Floats]  # [filter] or [subscriber]


def costs_of_subscribers(
    network: Network, left_s: Sequence[tuple[float, float]], audiences: Sequence[Audience]
) -> pd.DataFrame:
    """Make the table of causes: what each costs each subscriber of audiences, the dearest first.

    ``left_s`` is what is left of lifetimes after what is certain of delays, least and most.
    """
    stages = Stages(network=network, paths=around_lifetimes(network, left_s))
    every: list[dict[str, object]] = []
    bursts = _costs_of_bursts(network)
    everybody = names(network.system.subscribers)
    chosen = {id(each) for each in audiences}
    for everyone in network.by_home():
        group = [each for each in everyone if id(each) in chosen]
        if not group:
            continue
        came = arriving(network, group, by_publisher=True)
        for audience in group:
            leaving = Leaving(came=came, audience=audience)
            if not leaving.rows.size:
                continue
            by_filter = _Costs(stages=stages, leaving=leaving).by_filter()
            for subscriber, which in zip(audience.subscribers, audience.filter_of, strict=True):
                mine = {cause: float(cost[which]) for cause, cost in by_filter.items()}
                mine |= {cause: float(cost[subscriber]) for cause, cost in bursts.items()}
                if audience.example.lifetime is not None:  # a deadline of its own, not the events'
                    theirs = [cause for cause in mine if cause.kind == "deadline"]
                    own = sum(mine.pop(cause) for cause in theirs)
                    mine[Cause("deadline", everybody[subscriber])] = own
                dearest = in_order(Cost(*each) for each in mine.items())[:MOST_OF_ONE]
                every += [each.row(everybody[subscriber]) for each in dearest]
    return table("causes", every)


def _costs_of_bursts(network: Network) -> Shares:
    """Compute the gain if a publisher published as often, but at random, [subscriber]."""
    publishers = network.system.publishers
    uneven = {
        place: each.rate_per_s * (each.every.scv - 1.0)
        for place, each in enumerate(publishers)
        if each.every is not None and each.connectivity is None and each.is_uneven
    }
    chosen = sorted(uneven, key=lambda place: -uneven[place])[:_MOST_BURSTY]
    before = on_time_and_mean(network)[0] if chosen else np.zeros(0)
    gained = {}
    for place in chosen:
        even = publishers[place].evenly()
        system = replace(
            network.system, publishers=(*publishers[:place], even, *publishers[place + 1 :])
        )
        calm = Network(
            system=system, routes=network.routes, model=network.model, faults=network.faults
        )
        gained[Cause("bursts", even.name)] = on_time_and_mean(calm)[0] - before
    return gained


@dataclass(frozen=True, kw_only=True)
class _Costs:
    """The causes on the paths of one audience."""

    stages: Stages
    leaving: Leaving

    @cached_property
    def _everything(self) -> Ints:
        return np.arange(self.leaving.rows.size)

    @cached_property
    def _whole(self) -> Delays:
        """[row]: to subscribers that never go."""
        return self.leaving.staying(self.stages.paths, self.leaving.rows)

    @cached_property
    def _on_time(self) -> Floats:
        return self._shares(self._whole, self._everything)

    def by_filter(self) -> Shares:
        """Compute what would be gained without each cause, [filter]."""
        wanted = self.leaving.wanted
        total = np.asarray(wanted.sum(axis=1))
        rate = np.where(total > 0.0, total, np.nan)
        costs: Shares = {}
        for cause, gained in self._gains():
            share = wanted @ gained / rate
            costs[cause] = np.maximum(costs.get(cause, 0.0), np.nan_to_num(share))
        return costs

    def _gains(self) -> Iterator[tuple[Cause, Floats]]:
        """Yield by how much on-time shares would be higher without each cause, [row]."""
        yield from self._of_deadline()
        if not self._late.any():
            return
        for part in parts_of_paths(self.stages, self.leaving):
            rows = part.rows
            taken_s = part.delays.shift_s + part.delays.mean_s
            lossy = part.delays.survival < 1.0
            if not np.any(self._late[rows] & ((taken_s > _SHORT * self._delay_s[rows]) | lossy)):
                continue
            gained = np.zeros(self._everything.size)
            rest = self._whole.take(rows).without(part.delays)
            gained[rows] = self._shares(rest, rows) - self._on_time[rows]
            yield part.cause, gained
        for cause, rest in exits_without(self.stages, self.leaving):
            came = self.leaving.came.along(self.stages.paths, self.leaving.rows)
            yield cause, self._gained(came.series(rest))
        yield from self._of_overload()
        yield from self._of_outages()
        if self.leaving.audience.example.stays is not None:
            yield Cause("churn"), self._counted(self._whole, self._everything) - self._on_time

    @cached_property
    def _late(self) -> Bools:
        """[row]: whether there is anything to gain."""
        return self._on_time < 1.0 - LEAST

    @cached_property
    def _delay_s(self) -> Floats:
        return self._whole.shift_s + self._whole.mean_s

    def _of_deadline(self) -> Iterator[tuple[Cause, Floats]]:
        """Yield what is late on an empty path in which nothing is slower than elsewhere."""
        along = self.leaving.came.along(self.stages.usual, self.leaving.rows)
        usual = along.series(self.stages.own_link(self.leaving.audience.example.link))
        late = np.maximum(usual.survival - self._counted(usual, self._everything), 0.0)
        publisher_of = self.leaving.came.publishers[self.leaving.rows]
        publishers = self.stages.network.system.publishers
        own = [place for place in np.unique(publisher_of) if publishers[int(place)].has_deadline]
        for place in own:
            cause = Cause("deadline", publishers[int(place)].name)
            yield cause, np.where(publisher_of == place, late, 0.0)
        yield Cause("deadline"), np.where(np.isin(publisher_of, own), 0.0, late)

    def _of_overload(self) -> Iterator[tuple[Cause, Floats]]:
        """Yield what would come through if the brokers that cannot serve everything could."""
        into, brokers = self.stages.network.rates.into, self.stages.brokers
        met = stages_of_streams(self.leaving)[:, : into.size]
        crossed = met & self.stages.overloaded
        guilty = sorted({int(each) for each in into[np.flatnonzero(crossed.any(axis=0))]})
        if guilty:
            relieved = self.leaving.staying(self.stages.without_overload, self.leaving.rows)
            named = ", ".join(brokers[each] for each in guilty)
            yield Cause("overload", named), self._gained(relieved)

    def _of_outages(self) -> Iterator[tuple[Cause, Floats]]:
        """Yield what failures cost altogether, shared out by how long each component is down."""
        owners, down = unavailable(self.stages, self.leaving)
        if not owners:
            return
        gained = self._gained(self.leaving.staying(self.stages.plain, self.leaving.rows))
        total = down.sum(axis=1)
        for place, owner in enumerate(owners):
            part = np.divide(down[:, place], total, out=np.zeros_like(total), where=total > 0.0)
            if part.any():
                yield Cause("outages", owner), gained * part

    def _gained(self, delays: Delays) -> Floats:
        return self._shares(delays, self._everything) - self._on_time

    def _shares(self, delays: Delays, rows: Ints) -> Floats:
        """Compute on-time shares with these delays, [of rows].

        Who comes and goes misses some more.
        """
        if self.leaving.audience.example.stays is None:
            return self._counted(delays, rows)
        weighed = [
            weighed_by_stay(delays.take([place]), self._meetings[int(row)])
            for place, row in enumerate(rows)
        ]
        return self._counted(stack(weighed), rows)

    @cached_property
    def _meetings(self) -> list[Meeting]:
        return [self.leaving.meeting(self.stages.paths, int(row)) for row in self.leaving.rows]

    def _counted(self, delays: Delays, rows: Ints) -> Floats:
        """Compute the shares within the lifetimes of these rows, [of rows]."""
        arrivals, codes = delays.distributions, self.leaving.lifetime_codes[rows]
        shares = np.zeros(rows.size)
        for code, lifetimes_s in self.leaving.lifetimes_s.items():
            chosen = np.flatnonzero(codes == code)
            if chosen.size:
                shares[chosen] = arrivals.on_time(lifetimes_s, chosen)
        return shares
