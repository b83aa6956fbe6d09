"""Ways around what is down, without and with buffers.

At publication the event takes its usual way as far as that is up, and goes round what is not. With
buffers it waits, where there is no way, on its usual one; so does an event whose copy was lost by
chance on its way round, which nobody acknowledges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from tidings.theory.faults.alternatives import one_of
from tidings.theory.faults.buffer_delays import TabulatedWait, buffer_delay
from tidings.theory.faults.buffered_ways import acknowledged, hops, kept_before, stationary_wait
from tidings.theory.faults.components import Components, Path
from tidings.theory.faults.disjoint_products import Network, ways_used
from tidings.theory.faults.passages import is_tractable
from tidings.theory.faults.reachability import cut_off
from tidings.theory.faults.refreshed_reachability import Known
from tidings.theory.faults.static_ways import HOME_DOWN, NOT_RESTORED, PATH_DOWN
from tidings.theory.faults.waiting import Start, Wait, wait
from tidings.theory.stages import Delay, Stage, in_series

Pieces = Callable[[Path], Sequence[Stage]]

_UNKNOWN_WAYS, _CELLS, _MOST_WAYS = 1e-4, 2_000, 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Detours:
    """The ways that events take, their shares, and what becomes of copies that go round."""

    ways: tuple[tuple[float, Path], ...]  # shares of the events that find a way
    survives: float = 1.0  # share of the copies sent round that chance lets through
    spread: float = 0.0  # mean distance from that over all ways, times how often they are taken


def bypassing_way(
    ways: Sequence[tuple[float, Path]], home: float, known: Known, pieces_of: Pieces
) -> Stage:
    """Whatever way is up; ``home`` is the probability that the home broker is."""
    forgotten = home - known.reached - known.cut_off
    lost = {HOME_DOWN: 1.0 - home, PATH_DOWN: known.cut_off, NOT_RESTORED: forgotten}
    stages = [(known.reached * share, reduce(in_series, pieces_of(way))) for share, way in ways]
    return one_of(stages, {cause: share for cause, share in lost.items() if share > 0.0})


def bypassing_buffered_way(
    detours: Detours, usual: Path, home: float, waiting: Wait | TabulatedWait, pieces_of: Pieces
) -> Stage:
    """Whatever way is up, else the usual one with its buffers.

    ``home`` is the probability that the home broker is up; ``waiting`` is the wait of an event
    then, and none if it gets through at once.
    """
    lost = {HOME_DOWN: 1.0 - home} if home < 1.0 else {}
    plain = reduce(in_series, acknowledged(pieces_of(usual)))
    delay = buffer_delay(waiting)
    if len(detours.ways) == 1:  # all ways take equally long: only the wait tells them apart
        found = one_of([(home, plain)], lost)
        if delay is None:
            return found
        return kept_before(found, delay)
    at_once = home * waiting.atom
    shares = [
        share * survival(usual, way, pieces_of) if way != usual else share
        for share, way in detours.ways
    ]
    parts = [
        (at_once * share / sum(shares), reduce(in_series, acknowledged(pieces_of(way))))
        for share, (_, way) in zip(shares, detours.ways, strict=True)
    ]
    if delay is not None:
        kept = kept_before(plain, _always(waiting))
        parts.append((home - at_once, kept))
    return one_of(parts, lost)


def _always(waiting: Wait | TabulatedWait) -> Delay:
    """The wait of those that wait at all."""
    if isinstance(waiting, TabulatedWait):
        return waiting.given_waiting()
    found = buffer_delay(waiting.scaled(1.0 / float(waiting.initial.sum())))
    assert found is not None
    return found


def exact_wait(known: Network, usual: Path, survives: float) -> Wait | None:
    """The wait given the real partition at publication; None where that is too large.

    P[b_0 on, cut off, wait ≤ t]: from the joint phases of all the way's processes, each weighted
    with the probability that beside them there is no way around, or that it loses the event.
    """
    start = cut_off(known, usual, survives)
    return None if start is None else wait_from(known, usual, start)


def wait_from(known: Network, usual: Path, start: Start) -> Wait | None:
    """The wait on the usual way from known joint phases; None where that takes too long."""
    processes, needed = known.components.processes, hops(known.components, usual)
    feasible = is_tractable(processes, needed, start.processes)
    return wait(processes, needed, start) if feasible else None


def approximate_wait(components: Components, usual: Path, at_once: float) -> Wait:
    """The published wait: cut off, an event waits as on the usual way when that is down.

    P[wait ≤ t] = r_A/a_b0 + (1 − r_A/a_b0) · P[0 < d ≤ t]/P[d > 0], the form of its equation (13)
    that has the right limits at 0 and ∞; r_A is the probability of getting through at once.
    """
    home = components.of_broker[usual.brokers[0]]
    alone = stationary_wait(components, usual).wait
    held = float(alone.initial.sum())
    share = max(1.0 - at_once / components.all_up(home), 0.0)
    factor = share / held if held > 0.0 else 0.0
    return alone.scaled(factor)


def detours(known: Network, usual: Path, pieces_of: Pieces) -> Detours:
    """The ways that are used where it matters which, with their shares of the events."""
    if not _matters(pieces_of, known):
        return Detours(ways=((1.0, usual),))
    found = ways_used(known, usual, gap=_UNKNOWN_WAYS, most_cells=_CELLS).shares
    likely = sorted(found.items(), key=lambda item: -item[1])[:_MOST_WAYS]
    total = sum(share for _, share in likely)
    ways = tuple((share / total, way) for way, share in likely)
    around = [(share, survival(usual, way, pieces_of)) for share, way in ways if way != usual]
    taken = sum(share for share, _ in around)
    mean = sum(share * survives for share, survives in around) / taken if taken > 0.0 else 1.0
    spread = sum(share * abs(survives - mean) for share, survives in around)
    return Detours(ways=ways, survives=mean, spread=spread)


def survival(usual: Path, way: Path, pieces_of: Pieces) -> float:
    """P[no link loses a copy by chance from where a way leaves the usual one]."""
    same = 0
    while same < min(len(usual.links), len(way.links)) and usual.links[same] == way.links[same]:
        same += 1
    links = pieces_of(way)[1::2][same:]
    return math.prod(1.0 - link.lost.get("link", 0.0) for link in links)


def _matters(pieces_of: Pieces, known: Network) -> bool:
    """Whether it makes a difference which way an event takes."""
    for link, (first, second) in enumerate(known.ends):
        for ends in ((first, second), (second, first)):
            for piece in pieces_of(Path(brokers=ends, links=(link,))):
                if piece.survives < 1.0 or piece.shift_s > 0.0 or piece.delays:
                    return True
    return False
