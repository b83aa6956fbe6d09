"""Periods from a trace as laws: what a prediction makes of peers that come and go as recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from tidings.errors import UnsupportedError
from tidings.model.behaviour import Connectivity
from tidings.model.connectivity_traces import periods_of
from tidings.model.record_tables import column
from tidings.model.system import Publisher, Subscriber, System

Peer = TypeVar("Peer", Publisher, Subscriber)


def with_periods_as_laws(system: System) -> System:
    """The system with every trace of connections replaced by the laws of its whole periods.

    Periods are then drawn independently, as ``replay: resample`` does.
    """
    publishers, subscribers = _as_laws(system.publishers), _as_laws(system.subscribers)
    if publishers is system.publishers and subscribers is system.subscribers:
        return system
    return replace(system, publishers=tuple(publishers), subscribers=subscribers)


def _as_laws(peers: Sequence[Peer]) -> Sequence[Peer]:
    if column(peers, "connectivity").where(_traced).size == 0:
        return peers
    return tuple(_with_laws(peer) if _traced(peer.connectivity) else peer for peer in peers)


def _traced(connectivity: Connectivity | None) -> bool:
    return connectivity is not None and connectivity.trace is not None


def _with_laws(peer: Peer) -> Peer:
    connectivity = peer.connectivity
    assert connectivity is not None
    if connectivity.replay == "loop":
        raise UnsupportedError(
            f"'{peer.name}' goes through its trace of connections in turn, which is not predicted; "
            "write replay: resample, or simulate"
        )
    found = periods_of(connectivity, peer.name)
    laws = replace(connectivity, trace=None, on=found.on, off=found.off)
    return replace(peer, connectivity=laws)
