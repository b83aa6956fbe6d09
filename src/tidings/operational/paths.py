"""Delivery paths: the ways, without repetition, by which events of a flow reach a node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidings.errors import UnsupportedError
from tidings.model.workload import Flow, Workload

MOST_PATHS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryPath:
    """One way from the publisher's home to a node, by the connections it takes."""

    flow: int
    connections: tuple[int, ...]
    node: int
    probability: float  # that a published event takes it: Π ν along the path

    def nodes(self, workload: Workload) -> tuple[int, ...]:
        """List the nodes that the path visits, in order."""
        home = workload.sources[workload.flows[self.flow].source].home
        return (home, *(workload.connections[each].target for each in self.connections))


def delivery_paths(workload: Workload, flow: int) -> Iterator[DeliveryPath]:
    """Yield all delivery paths of a flow, to every node it can reach; on a tree one to each.

    They may be very many where there are many ways round; then they are refused.
    """
    chosen = workload.flows[flow]
    leaving = _leaving(workload, chosen)
    source = workload.sources[chosen.source]
    waiting = [
        DeliveryPath(flow=flow, connections=(), node=source.home, probability=source.reliability)
    ]
    left = MOST_PATHS
    while waiting:
        path = waiting.pop()
        left -= 1
        if left < 0:
            raise UnsupportedError(
                f"{workload.name_of(chosen)} has more than {MOST_PATHS:,} delivery paths, "
                "which is too many to list; ask for single ones by name"
            )
        yield path
        visited = path.nodes(workload)
        for connection, share in reversed(leaving.get(path.node, ())):
            ends = workload.connections[connection]
            if ends.target not in visited:
                waiting.append(
                    DeliveryPath(
                        flow=flow,
                        connections=(*path.connections, connection),
                        node=ends.target,
                        probability=path.probability * share * ends.reliability,
                    )
                )


def _leaving(workload: Workload, flow: Flow) -> dict[int, list[tuple[int, float]]]:
    onwards: dict[int, list[tuple[int, float]]] = {}
    for connection, share in flow.forwarding:
        if share > 0.0:
            onwards.setdefault(workload.connections[connection].source, []).append(
                (connection, share)
            )
    return onwards
