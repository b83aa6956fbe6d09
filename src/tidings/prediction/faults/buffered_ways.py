"""Ways whose brokers keep an event until the next broker has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from tidings.prediction.faults.buffer_delays import buffer_delay
from tidings.prediction.faults.components import Components, Path
from tidings.prediction.faults.static_ways import HOME_DOWN
from tidings.prediction.faults.waiting import Hop, up_start, wait
from tidings.prediction.stages import NOTHING, Stage, in_series


def hops(components: Components, path: Path) -> list[Hop]:
    """What each hop of a way needs: both its brokers and its link up."""
    needs = components.of_path(path)
    found = []
    for first in range(0, len(needs) - 1, 2):
        together = {each for element in needs[first : first + 3] for each in element}
        found.append({each: components.processes[each].up for each in sorted(together)})
    return found


def home_up(components: Components, path: Path) -> Stage:
    """An event is lost for good if its home broker is down when it is published."""
    share = components.all_up(components.of_broker[path.brokers[0]])
    return Stage(survives=share, lost={HOME_DOWN: 1.0 - share}) if share < 1.0 else NOTHING


def buffered_way(components: Components, path: Path, pieces: Sequence[Stage]) -> Stage:
    """The stages of a way and the wait in its buffers: a_b0 · P[wait + all else ≤ t]."""
    start = up_start(components.processes, components.of_broker[path.brokers[0]])
    delay = buffer_delay(wait(components.processes, hops(components, path), start))
    plain = reduce(in_series, pieces)
    found = in_series(home_up(components, path), plain)
    if delay is None:
        return found
    return replace(found, delays=(delay, *found.delays), unbuffered=found)
