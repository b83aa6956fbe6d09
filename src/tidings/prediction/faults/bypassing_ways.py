"""Ways around what is down, without and with buffers.

At publication the event takes its usual way if that is up, else the shortest that is. With buffers
it waits, where there is no way, on its usual one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

from tidings.prediction.faults.alternatives import one_of
from tidings.prediction.faults.buffer_delays import buffer_delay
from tidings.prediction.faults.buffered_ways import acknowledged, hops, stationary_wait
from tidings.prediction.faults.components import Components, Path
from tidings.prediction.faults.disjoint_products import Network, ways_used
from tidings.prediction.faults.reachability import cut_off
from tidings.prediction.faults.static_ways import HOME_DOWN, NOT_RESTORED, PATH_DOWN
from tidings.prediction.faults.waiting import Wait, wait
from tidings.prediction.stages import Stage, in_series

Pieces = Callable[[Path], Sequence[Stage]]

_UNKNOWN_WAYS, _CELLS, _MOST_WAYS = 1e-4, 2_000, 24


def bypassing_way(
    known: Network, usual: Path, shares: tuple[float, float, float], pieces_of: Pieces
) -> Stage:
    """Whatever way is up.

    ``shares`` are the probabilities that the home broker is up, that there is a way, and that there
    is one whose brokers know the subscription.
    """
    home, reached, known_to = shares
    lost = {HOME_DOWN: 1.0 - home, PATH_DOWN: home - reached, NOT_RESTORED: reached - known_to}
    ways = [(known_to * share, way) for share, way in _ways(known, usual, pieces_of)]
    return one_of(ways, {cause: share for cause, share in lost.items() if share > 0.0})


def bypassing_buffered_way(
    known: Network,
    usual: Path,
    shares: tuple[float, float],
    waiting: Wait,
    pieces_of: Pieces,
) -> Stage:
    """Whatever way is up, else the usual one with its buffers.

    ``shares`` are the probabilities that the home broker is up and that there is a way; ``waiting``
    is the wait of an event whose home is up, and none if there is a way.
    """
    home, reached = shares

    def acknowledged_pieces(path: Path) -> list[Stage]:
        return acknowledged(pieces_of(path))

    lost = {HOME_DOWN: 1.0 - home} if home < 1.0 else {}
    ways = _ways(known, usual, acknowledged_pieces)
    delay = buffer_delay(waiting)
    if len(ways) == 1:  # all ways take equally long: only the wait tells them apart
        found = one_of([(home, ways[0][1])], lost)
        if delay is None:
            return found
        return replace(found, delays=(delay, *found.delays), unbuffered=found)
    parts = [(reached * share, way) for share, way in ways]
    held = float(waiting.initial.sum())
    if held > 0.0:
        always = buffer_delay(Wait(initial=waiting.initial / held, generator=waiting.generator))
        assert always is not None
        plain = reduce(in_series, acknowledged_pieces(usual))
        kept = replace(plain, delays=(always, *plain.delays), unbuffered=plain)
        parts.append((home - reached, kept))
    return one_of(parts, lost)


def exact_wait(known: Network, usual: Path) -> Wait | None:
    """The wait given the real partition at publication; None where that is too large.

    P[b_0 on, cut off, wait ≤ t]: from the joint phases of all the way's processes, each weighted
    with the probability that beside them there is no way around.
    """
    start = cut_off(known, usual)
    if start is None:
        return None
    return wait(known.components.processes, hops(known.components, usual), start)


def approximate_wait(components: Components, usual: Path, reached: float) -> Wait:
    """The published wait: cut off, an event waits as on the usual way when that is down.

    P[wait ≤ t] = r_A/a_b0 + (1 − r_A/a_b0) · P[0 < d ≤ t]/P[d > 0], the form of its equation (13)
    that has the right limits at 0 and ∞.
    """
    home = components.of_broker[usual.brokers[0]]
    alone, _ = stationary_wait(components, usual)
    held = float(alone.initial.sum())
    share = max(1.0 - reached / components.all_up(home), 0.0)
    factor = share / held if held > 0.0 else 0.0
    return Wait(initial=alone.initial * factor, generator=alone.generator)


def _ways(known: Network, usual: Path, pieces_of: Pieces) -> list[tuple[float, Stage]]:
    """The ways that are used, with their shares of the events that find one."""
    plain = reduce(in_series, pieces_of(usual))
    if not _matters(pieces_of, known):
        return [(1.0, plain)]
    found = ways_used(known, usual, gap=_UNKNOWN_WAYS, most_cells=_CELLS).shares
    likely = sorted(found.items(), key=lambda item: -item[1])[:_MOST_WAYS]
    total = sum(share for _, share in likely)
    return [(share / total, reduce(in_series, pieces_of(way))) for way, share in likely]


def _matters(pieces_of: Pieces, known: Network) -> bool:
    """Whether it makes a difference which way an event takes."""
    for link, (first, second) in enumerate(known.ends):
        for ends in ((first, second), (second, first)):
            for piece in pieces_of(Path(brokers=ends, links=(link,))):
                if piece.survives < 1.0 or piece.shift_s > 0.0 or piece.delays:
                    return True
    return False
