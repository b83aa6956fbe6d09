"""Consumer groups that redeliveries keep busy: how many events a second they handle at most.

A group that always has work holds events for longer than one that seldom has. Where it then
acknowledges too late, events are handled twice or more, and it handles fewer of them than its
members could. Offered more than that, it need not collapse, but once it has it never recovers.
"""

from __future__ import annotations

from tidings.errors import UnstableError
from tidings.kernels.replications import Clock
from tidings.model.loads import FULL_LOAD
from tidings.model.remarks import COLLAPSE
from tidings.model.system import System
from tidings.simulation.groups import Group
from tidings.simulation.network import compile_system
from tidings.simulation.options import SimulationOptions
from tidings.simulation.results import NOTHING
from tidings.simulation.run import simulate
from tidings.simulation.unsteady import saturated_rate
from tidings.simulation.world import overload_of_group

_CLEARLY = 1.1  # times what it can be done with; what is nearer is left to longer runs
_RUNS = 8
_LONG = 2_000  # times that each member handles something, in a run of the whole system ...
_MOST = 200_000  # ... in which no more events are published
_PART = 0.1  # of the seconds allowed for a prediction: what these runs may take


def collapsed_groups(system: System, seed: int = 0, clock: Clock | None = None) -> dict[str, str]:
    """Find the groups in which redeliveries leave too little time for new events, and say so.

    Groups that could collapse and have not after a short run are not among them, nor are those that
    are offered more than they could handle anyway. ``clock`` is told what the runs took.
    """
    clock = clock or Clock()
    compiled = compile_system(system)
    risky = [
        (number, group)
        for number, group in enumerate(compiled.groups)
        if group.consumers.acknowledges
        and not group.drops_events
        and _is_risky(group, float(compiled.group_arrivals[number]), seed)
    ]
    if not risky or compiled.drops_events:
        return {}
    slowest_s = max(len(group.members) / group.capacity_per_s for _, group in risky)
    length_s = min(_LONG * slowest_s, _MOST / float(compiled.publisher_rates.sum()))
    options = SimulationOptions(
        seed=seed,
        replications=_RUNS,
        warmup_s=length_s,
        duration_s=length_s,
        seconds=None if clock.seconds is None else _PART * clock.seconds,
    )
    try:
        played = simulate(system, options)
    except UnstableError:
        return {}
    clock.spend(played.provenance.get("cpu_s", 0.0))
    shares = played.subscribers.set_index("subscriber")["on_time"]
    collapsed = {
        name
        for each in played.remarks
        if each.kind == COLLAPSE
        for name in each.where
        if shares[name] <= NOTHING
    }
    return {
        group.subscriber.name: overload_of_group(compiled, number)
        for number, group in risky
        if group.subscriber.name in collapsed
    }


def _is_risky(group: Group, arriving_per_s: float, seed: int) -> bool:
    if arriving_per_s >= FULL_LOAD * group.capacity_per_s:
        return False
    return arriving_per_s >= _CLEARLY * saturated_rate(group, seed)
