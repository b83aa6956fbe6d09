"""What if: other rates or other hardware, without measuring again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tidings.errors import InvalidInputError
from tidings.model.laws import Law
from tidings.model.workload import Flow, Source, Workload

ALL = "all"


def scaled(
    workload: Workload,
    *,
    rates: Mapping[str, float] | None = None,
    speeds: Mapping[str, float] | None = None,
) -> Workload:
    """Multiply publication rates and speeds of queues of a workload by given factors.

    Rates are named by publisher, speeds by queue or by node (all its queues), or "all". Factors of
    several names that mean the same thing multiply.
    """
    faster = _factors(rates or {}, [source.name for source in workload.sources], "publishers")
    names = [node.name for node in workload.nodes] + [each.name for each in workload.centres]
    quicker = _factors(speeds or {}, names, "nodes and queues")
    speed = [quicker.get(ALL, 1.0) * quicker.get(each.name, 1.0) for each in workload.centres]
    for node in workload.nodes:
        for centre in node.centres:
            if node.name != workload.centres[centre].name:
                speed[centre] *= quicker.get(node.name, 1.0)
    return replace(
        workload,
        sources=tuple(
            _published(source, faster.get(ALL, 1.0) * faster.get(source.name, 1.0))
            for source in workload.sources
        ),
        flows=tuple(_served(workload, flow, speed) for flow in workload.flows),
    )


def _factors(given: Mapping[str, float], names: Iterable[str], what: str) -> dict[str, float]:
    known = {*names, ALL}
    for name, factor in given.items():
        if name not in known:
            listed = ", ".join(sorted(known - {ALL})[:12])
            raise InvalidInputError(
                f"there is no '{name}' among the {what}; wants one of {listed}, or {ALL}"
            )
        if not 0.0 < factor < float("inf"):
            raise InvalidInputError(f"the factor of '{name}' is {factor}; wants a number above 0")
    return dict(given)


def _published(source: Source, factor: float) -> Source:
    return replace(source, every=_over(source.every, factor))


def _served(workload: Workload, flow: Flow, speed: list[float]) -> Flow:
    wires = [each.centre for each in workload.connections]
    return replace(
        flow,
        services=tuple((at, _over(law, speed[at])) for at, law in flow.services),
        transfers=tuple(
            (at, law if (wire := wires[at]) is None else _over(law, speed[wire]))
            for at, law in flow.transfers
        ),
    )


def _over(law: Law, factor: float) -> Law:
    return law if factor == 1.0 else law.scaled(1.0 / factor)
