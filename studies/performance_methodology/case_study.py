"""The fifteen brokers of the performance-methodology paper, as its tables tell them.

The paper's figure of the deployment is lost to us and the paper says neither topology nor rates nor
service times. Its two tables do: throughputs fit a binary tree numbered as a heap (1 the root, the
children of j are 2j and 2j + 1, leaves 8 to 15), a publisher at every leaf, all at one rate (that
of the root over 8), and events that always go up, and down every edge they did not come by with a
probability of its own. That meets Table 1 exactly, though other routings do too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from studies.harness import Texts
from tidings.model.laws import Exponential, Law
from tidings.model.workload import Centre, Connection, Flow, Node, Source, Workload

ROOT, LEAVES, BROKERS = 1, range(8, 16), range(1, 16)
SERVICE_S = 0.00341  # one for all; what fits Table 2 best
SERVICE_ALONE_S = 0.00393  # what fits it best without a stage for the delivery


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One of the two load scenarios: the paper's tables, and where its subscriber must be."""

    name: str
    throughput_per_s: tuple[float, ...]  # model, of brokers 1 to 15
    throughput_measured_per_s: tuple[float, ...]
    latency_s: tuple[float, ...]  # model, of publishers 1 to 8
    latency_measured_s: tuple[float, ...]
    subscriber: int  # the leaf whose latencies are those of Table 2

    @property
    def rate_per_s(self) -> float:
        """Of each publisher: every event passes the root."""
        return self.throughput_per_s[0] / len(LEAVES)

    def down(self, broker: int) -> float:
        """The probability that an event at a broker's parent, not from below it, goes down to it.

        >>> round(SCENARIOS[0].down(8), 4)
        0.8538
        """
        own = self.rate_per_s * len(leaves_below(broker))
        at_parent = self.throughput_per_s[broker // 2 - 1]
        return (self.throughput_per_s[broker - 1] - own) / (at_parent - own)


def _scenario(row: dict[str, Any]) -> Scenario:
    """Read the tables of a scenario; latencies are in ms there."""
    values: dict[str, Any] = {}
    for name, each in row.items():
        scale = 1000.0 if name.endswith("_ms") else 1.0
        values[name.replace("_ms", "_s")] = (
            tuple(number / scale for number in each) if isinstance(each, list) else each
        )
    return Scenario(**values)


SCENARIOS = tuple(_scenario(row) for row in Texts("performance-methodology").all["scenarios"])


def leaves_below(broker: int) -> list[int]:
    """The leaves at or below a broker.

    >>> leaves_below(5), leaves_below(9)
    ([10, 11], [9])
    """
    return [leaf for leaf in LEAVES if broker in way_up(leaf)]


def way_up(leaf: int) -> list[int]:
    """The brokers from a leaf to the root, both included."""
    return [leaf >> level for level in range(leaf.bit_length())]


def way_between(home: int, broker: int) -> list[int]:
    """The brokers that an event published at a leaf visits on its way to a broker.

    >>> way_between(8, 11)
    [8, 4, 2, 5, 11]
    """
    up, down = way_up(home), way_up(broker)
    meeting = next(each for each in up if each in down)
    return up[: up.index(meeting) + 1] + down[: down.index(meeting)][::-1]


def case_workload(
    scenario: Scenario,
    *,
    service: Law | None = None,
    every: Law | None = None,
    delivering: bool = True,
) -> Workload:
    """The scenario as a workload: a flow for each publisher.

    ``delivering`` gives the measured subscriber's leaf a node ``delivery`` of the brokers' own
    service time, which everything that comes to the leaf passes before it counts as delivered.
    """
    served = service or Exponential(mean_s=SERVICE_S)
    names = [f"b{broker}" for broker in BROKERS] + (["delivery"] if delivering else [])
    edges = [(broker, broker // 2) for broker in BROKERS if broker != ROOT]
    connections = [Connection(source=one - 1, target=two - 1) for one, two in edges]
    connections += [Connection(source=two - 1, target=one - 1) for one, two in edges]
    if delivering:
        connections.append(Connection(source=scenario.subscriber - 1, target=len(BROKERS)))
    return Workload(
        nodes=tuple(Node(name=name, centres=(at,)) for at, name in enumerate(names)),
        centres=tuple(Centre(name=name) for name in names),
        connections=tuple(connections),
        sources=tuple(
            Source(
                name=f"p{leaf - LEAVES[0] + 1}",
                home=leaf - 1,
                every=every or Exponential(mean_s=1.0 / scenario.rate_per_s),
            )
            for leaf in LEAVES
        ),
        flows=tuple(
            Flow(
                source=leaf - LEAVES[0],
                event_type="",
                forwarding=tuple(_forwarding(scenario, leaf, connections)),
                services=tuple((at, served) for at in range(len(names))),
            )
            for leaf in LEAVES
        ),
    )


def _forwarding(
    scenario: Scenario, home: int, connections: list[Connection]
) -> list[tuple[int, float]]:
    """Up always; down every edge that does not lead back."""
    path = way_up(home)
    found = []
    for index, each in enumerate(connections):
        source, target = each.source + 1, each.target + 1
        if target > len(BROKERS):
            found.append((index, 1.0))
        elif target == source // 2:
            if source in path:
                found.append((index, 1.0))
        elif target not in path:
            found.append((index, scenario.down(target)))
    return found
