"""Operational analysis of a workload: rates, utilisations, responses, latencies, the bottleneck.

Everything follows from means (and, first come first served, variances) of single queues, as if
each were fed by a Poisson stream of its own. Copies forked together do arrive together further on,
which this does not see: queueing Petri nets and the simulator do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from tidings.errors import InvalidInputError
from tidings.model.arrays import Floats
from tidings.model.laws import Law
from tidings.model.shown import Shown
from tidings.model.workload import NO_TIME, Centre, Workload
from tidings.operational.formulas import FORMULAS
from tidings.operational.paths import DeliveryPath, delivery_paths
from tidings.operational.responses import Demands, responses_s
from tidings.operational.visits import visit_ratios

# How queues respond: as their discipline says, or all as the paper has it (eqs. 4 and 8).
_POISSON = 0.05  # how far c² may be from 1 before it is worth a word


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """Events of a flow at a queue, at a node or on their way over a connection."""

    centre: int
    flow: int
    node: int | None
    connection: int | None
    rate_per_s: float
    service: Law
    response_s: float = np.nan


@dataclass(frozen=True, kw_only=True, repr=False)
class Analysis(Shown):
    """What operational analysis finds; rows of tables in the order of the workload."""

    _table = "centres"
    _columns = ("centre", "utilisation")

    workload: Workload
    formula: str
    visits: Floats  # [flow, node]: mean visits of a published event
    rates_per_s: Floats  # [flow, node]: arrivals
    at_centres: tuple[Visit, ...]

    @cached_property
    def centres(self) -> pd.DataFrame:
        """Every queue: arrivals, utilisation, mean response, and how far its load can grow."""
        rows = []
        by_centre: dict[int, list[Visit]] = {}
        for visit in self.at_centres:
            by_centre.setdefault(visit.centre, []).append(visit)
        for index, centre in enumerate(self.workload.centres):
            here = by_centre.get(index, [])
            arrivals = sum(visit.rate_per_s for visit in here)
            load = sum(v.rate_per_s * v.service.mean_s for v in here) / centre.servers
            total_s = sum(v.rate_per_s * v.response_s for v in here if v.rate_per_s > 0.0)
            infinite = centre.discipline == "infinite-server"
            rows.append(
                {
                    "centre": centre.name,
                    "servers": centre.servers,
                    "discipline": centre.discipline,
                    "arrivals_per_s": arrivals,
                    "utilisation": 0.0 if infinite else load,
                    "response_mean_s": total_s / arrivals if arrivals > 0.0 else np.nan,
                    "headroom": np.inf if infinite or load == 0.0 else 1.0 / load,
                }
            )
        return pd.DataFrame(rows, columns=list(_CENTRE_COLUMNS))

    @cached_property
    def flows(self) -> pd.DataFrame:
        """Every flow at every queue: how many per second, how long they are served and stay."""
        load = self.workload
        return pd.DataFrame(
            [
                {
                    "centre": load.centres[visit.centre].name,
                    "type": load.flows[visit.flow].event_type,
                    "publisher": load.sources[load.flows[visit.flow].source].name,
                    "rate_per_s": visit.rate_per_s,
                    "service_mean_s": visit.service.mean_s,
                    "response_mean_s": visit.response_s,
                }
                for visit in self.at_centres
            ]
        )

    @cached_property
    def connections(self) -> pd.DataFrame:
        """Every connection: what is sent over it, and how busy that alone keeps its network."""
        load = self.workload
        sent = np.zeros(len(load.connections))
        for index, flow in enumerate(load.flows):
            for connection, share in flow.forwarding:
                source = load.connections[connection].source
                sent[connection] += self.rates_per_s[index, source] * share
        busy = np.zeros(len(load.connections))
        for visit in self.at_centres:
            if visit.connection is not None:
                busy[visit.connection] += visit.rate_per_s * visit.service.mean_s
        names = [load.nodes[each.source].name for each in load.connections]
        centres = [each.centre for each in load.connections]
        return pd.DataFrame(
            {
                "source": names,
                "target": [load.nodes[each.target].name for each in load.connections],
                "network": ["" if at is None else load.centres[at].name for at in centres],
                "sent_per_s": sent,
                "utilisation": busy,
            }
        )

    @cached_property
    def paths(self) -> tuple[DeliveryPath, ...]:
        """Every delivery path of every flow."""
        flows = range(len(self.workload.flows))
        return tuple(path for flow in flows for path in delivery_paths(self.workload, flow))

    @cached_property
    def deliveries(self) -> pd.DataFrame:
        """Mean latency from publication until a node is done with an event, for flow and node."""
        load = self.workload
        by_end: dict[tuple[int, int], list[DeliveryPath]] = {}
        for path in self.paths:
            by_end.setdefault((path.flow, path.node), []).append(path)
        return pd.DataFrame(
            [
                {
                    "type": load.flows[flow].event_type,
                    "publisher": load.sources[load.flows[flow].source].name,
                    "broker": load.nodes[node].name,
                    "paths": len(paths),
                    "hops": min(len(path.connections) for path in paths),
                    "arrivals_per_s": self.rates_per_s[flow, node],
                    "latency_mean_s": self.mean_latency_s(paths, weighted=True),
                }
                for (flow, node), paths in by_end.items()
            ],
            columns=list(_DELIVERY_COLUMNS),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed although the workload says otherwise."""
        uneven = [each for each in self.workload.sources if abs(each.every.scv - 1.0) > _POISSON]
        if not uneven:
            return ()
        listed = ", ".join(f"{each.name} (c² = {each.every.scv:.3g})" for each in uneven[:5])
        more = f" and {len(uneven) - 5} more" if len(uneven) > 5 else ""
        return (
            f"mean values assume Poisson traffic, but {listed}{more} publish otherwise, "
            "so waiting times may be off; tidings petri generate and solve follow their "
            "distributions",
        )

    @property
    def bottleneck(self) -> str:
        """The queue that is the first to be overloaded when all rates grow alike; "" for none."""
        busy = self.centres["utilisation"]
        return (
            "" if not len(busy) or busy.max() == 0 else str(self.centres["centre"][busy.idxmax()])
        )

    @property
    def headroom(self) -> float:
        """By which factor all rates can grow until the bottleneck is overloaded."""
        spare = self.centres["headroom"]
        return float(spare.min()) if len(spare) else float("inf")

    def latency_s(self, path: DeliveryPath) -> float:
        """Sum mean times along one path, in seconds: queues of its nodes, connections between them.

        Every queue and every connection counts, and the delay of the source.
        """
        load = self.workload
        total = load.sources[load.flows[path.flow].source].delay.mean_s
        for node in path.nodes(load):
            total += sum(self._at_node.get((path.flow, node), ()))
        for connection in path.connections:
            total += load.connections[connection].delay.mean_s
            total += self._on_connection.get((path.flow, connection), 0.0)
        return total

    def mean_latency_s(self, paths: Iterable[DeliveryPath], *, weighted: bool = False) -> float:
        """Average latency over paths, in seconds: plainly, or by how many events take each."""
        chosen = list(paths)
        latencies = np.array([self.latency_s(path) for path in chosen])
        weights = np.array([path.probability for path in chosen]) if weighted else None
        return float(np.average(latencies, weights=weights))

    @cached_property
    def _at_node(self) -> dict[tuple[int, int], list[float]]:
        responses_s: dict[tuple[int, int], list[float]] = {}
        for visit in self.at_centres:
            if visit.node is not None:
                responses_s.setdefault((visit.flow, visit.node), []).append(visit.response_s)
        return responses_s

    @cached_property
    def _on_connection(self) -> dict[tuple[int, int], float]:
        return {
            (visit.flow, visit.connection): visit.response_s
            for visit in self.at_centres
            if visit.connection is not None
        }

    def to_document(self) -> dict[str, Any]:
        """Make plain data of the analysis, for JSON."""
        return {
            "formula": self.formula,
            "bottleneck": self.bottleneck,
            "headroom": self.headroom,
            "notes": list(self.notes),
            **{
                name: getattr(self, name).to_dict("records")
                for name in ("centres", "flows", "connections", "deliveries")
            },
        }


_CENTRE_COLUMNS = (
    "centre",
    "servers",
    "discipline",
    "arrivals_per_s",
    "utilisation",
    "response_mean_s",
    "headroom",
)
_DELIVERY_COLUMNS = (
    "type",
    "publisher",
    "broker",
    "paths",
    "hops",
    "arrivals_per_s",
    "latency_mean_s",
)


def analyse(workload: Workload, *, formula: str = FORMULAS[0]) -> Analysis:
    """Compute rates, utilisations, response times and latencies of a workload, in seconds.

    Where a queue is overloaded, responses and latencies through it are infinite; utilisations are
    offered loads, so that they say by how much.
    """
    if not isinstance(workload, Workload):
        raise InvalidInputError(
            f"td.analyse: got {type(workload).__name__}; wants a workload (td.workload_of(system) "
            "makes one)"
        )
    if formula not in FORMULAS:
        raise InvalidInputError(f"the formula '{formula}'; wants one of {', '.join(FORMULAS)}")
    visits = np.array([visit_ratios(workload, flow) for flow in workload.flows])
    visits = visits.reshape(len(workload.flows), len(workload.nodes))
    published = np.array([workload.rate_per_s(flow) for flow in workload.flows])
    rates = published[:, None] * visits
    at_centres = list(_visits(workload, rates))
    return Analysis(
        workload=workload,
        formula=formula,
        visits=visits,
        rates_per_s=rates,
        at_centres=tuple(_answered(workload, at_centres, formula)),
    )


def _visits(workload: Workload, rates: Floats) -> Iterator[Visit]:
    """Yield who comes to which queue, how often, for how long.

    Only queues that a flow does visit are listed.
    """
    for index, flow in enumerate(workload.flows):
        services, transfers = dict(flow.services), dict(flow.transfers)
        for position, node in enumerate(workload.nodes):
            if rates[index, position] == 0.0:
                continue
            for centre in node.centres:
                if centre not in services:
                    raise InvalidInputError(
                        f"{workload.name_of(flow)} comes to '{workload.centres[centre].name}', but "
                        "has no service time there"
                    )
                if services[centre] == NO_TIME:  # it does not use it, so it does not wait there
                    continue
                yield Visit(
                    centre=centre,
                    flow=index,
                    node=position,
                    connection=None,
                    rate_per_s=float(rates[index, position]),
                    service=services[centre],
                )
        for connection, share in flow.forwarding:
            ends = workload.connections[connection]
            rate = float(rates[index, ends.source]) * share
            if ends.centre is None or rate == 0.0:
                continue
            if connection not in transfers:
                name = workload.connection_name(connection)
                raise InvalidInputError(
                    f"{workload.name_of(flow)} is sent over {name}, but has no "
                    "transmission time there; give it a size"
                )
            yield Visit(
                centre=ends.centre,
                flow=index,
                node=None,
                connection=connection,
                rate_per_s=rate,
                service=transfers[connection],
            )


def _answered(workload: Workload, visits: list[Visit], formula: str) -> Iterator[Visit]:
    """Yield the visits with their response times, queue by queue, in the order they had."""
    responses = np.full(len(visits), np.nan)
    by_centre: dict[int, list[int]] = {}
    for index, visit in enumerate(visits):
        by_centre.setdefault(visit.centre, []).append(index)
    for centre, members in by_centre.items():
        here = [visits[index] for index in members]
        demands = Demands(
            rates_per_s=np.array([visit.rate_per_s for visit in here]),
            means_s=np.array([visit.service.mean_s for visit in here]),
            scvs=np.array([visit.service.scv for visit in here]),
            priorities=np.array(
                [dict(workload.flows[visit.flow].priorities).get(centre, 0) for visit in here]
            ),
        )
        queue = workload.centres[centre]
        if formula == "paper":
            queue = Centre(name=queue.name, servers=queue.servers, discipline="processor-sharing")
        responses[members] = responses_s(queue, demands)
    for visit, response_s in zip(visits, responses, strict=True):
        yield Visit(
            centre=visit.centre,
            flow=visit.flow,
            node=visit.node,
            connection=visit.connection,
            rate_per_s=visit.rate_per_s,
            service=visit.service,
            response_s=float(response_s),
        )
