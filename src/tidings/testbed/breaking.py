"""Breaks and mends a running testbed as its outages say, and finds how long joining again takes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace

from tidings.testbed.layout import TestbedLayout
from tidings.testbed.outages import Outage
from tidings.testbed.runs import Rejoining, Run, StateChange
from tidings.testbed.servers import Servers

Change = Callable[[str, bool], Awaitable[None]]  # of a component: whether it is up from now on


async def follow_outages(run: Run, change: Change) -> None:
    """Break and mend components, each at its moment; writes down when it came about."""
    loop = asyncio.get_running_loop()
    for at_s, component, is_up in _changes(run.outages):
        if (left_s := run.start_s + at_s - loop.time()) > 0.0:
            await asyncio.sleep(left_s)
        await change(component, is_up)
        run.states.append(StateChange(component=component, is_up=is_up, at_s=loop.time()))


def plain_change(layout: TestbedLayout, running: Servers) -> Change:
    """Make the function that kills and restarts servers, and cuts and mends the relays of links."""

    async def change(component: str, is_up: bool) -> None:
        if component in layout.links:
            for relay in layout.links[component]:
                if is_up:
                    relay.mend()
                else:
                    await relay.cut()
        elif is_up:
            await asyncio.to_thread(running.start, component)
        else:
            await asyncio.to_thread(running.kill, component)
            layout.stations[component].free_s = 0.0  # its queue is gone

    return change


def _changes(outages: list[Outage]) -> list[tuple[float, str, bool]]:
    return sorted(
        change
        for each in outages
        for change in (
            (each.begin_s, each.component, False),
            (each.end_s, each.component, True),
        )
    )


def rejoinings(run: Run) -> list[Rejoining]:
    """List every repair whose end was seen before anything else failed.

    It is over when over every lane at the component there is again all the interest that should
    have crossed it; of stores, when they answer.
    """
    if run.rejoined:
        return run.rejoined
    failures_s = [each.at_s for each in run.states if not each.is_up]
    rejoined = []
    for change in run.states:
        if change.is_up and _alone(run, change):
            until_s = min((at for at in failures_s if at > change.at_s), default=float("inf"))
            ready_s = _ready_s(run, set(_lanes_at(run.layout, change.component)), change.at_s)
            if ready_s is not None and ready_s <= until_s:
                took_s = ready_s - change.at_s
                rejoined.append(Rejoining(component=change.component, took_s=took_s))
    return rejoined


def usable_changes(run: Run) -> list[StateChange]:
    """List the changes of components, each up from when events could pass it again.

    What is repaired takes a while to join again, and what is sent to it meanwhile is lost as in the
    outage. What fails again before it has joined was down all the time.
    """
    if run.rejoined:  # stores: nothing is lost while they join
        return list(run.states)
    changes: list[StateChange] = []
    down: set[str] = set()
    still_down: set[str] = set()  # repaired, and failed again too soon
    for number, change in enumerate(run.states):
        component = change.component
        if not change.is_up:
            down.add(component)
            if component not in still_down:
                changes.append(change)
            still_down.discard(component)
            continue
        down.discard(component)
        later = (each.at_s for each in run.states[number + 1 :] if each.component == component)
        ready_s = _ready_s(run, _usable_lanes(run.layout, component, down), change.at_s)
        if ready_s is None:
            changes.append(change)  # nobody knows when
        elif ready_s < next(later, float("inf")):
            changes.append(replace(change, at_s=ready_s))
        else:
            still_down.add(component)
    return sorted(changes, key=lambda each: each.at_s)


def _usable_lanes(layout: TestbedLayout, component: str, down: AbstractSet[str]) -> set[str]:
    """Find the lanes at a component over which events can pass while some others are down."""
    unusable = {name for each in down for name in _lanes_at(layout, each)}
    return set(_lanes_at(layout, component)) - unusable


def _alone(run: Run, repair: StateChange) -> bool:
    """Test whether everything else was up at a repair."""
    is_up: dict[str, bool] = {}
    for each in run.states:
        if each.at_s <= repair.at_s:
            is_up[each.component] = each.is_up
    return all(is_up.values())


def _lanes_at(layout: TestbedLayout, component: str) -> Iterator[str]:
    if component in layout.links:
        yield from (lane.name for relay in layout.links[component] for lane in relay.lanes)
        return
    for relay in layout.relays:
        inward, outward = relay.lanes
        if component in (inward.source, outward.source):
            yield from (inward.name, outward.name)


def _ready_s(run: Run, lanes: set[str], after_s: float) -> float | None:
    """Find when all these lanes were ready at once, at or after a moment; None if never.

    Moments are in seconds of the loop's clock.
    """
    if not lanes:
        return after_s
    ready = dict.fromkeys(lanes, False)
    for each in run.layout.journal.readiness:
        if each.lane in ready:
            ready[each.lane] = each.ready
            if each.at_s >= after_s and all(ready.values()):
                return each.at_s
    return None
