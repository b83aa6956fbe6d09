"""Fit how peers connect and go away, and subscribers subscribe and leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pandas as pd

from tidings.characterisation.fit.durations import (
    LEAST_PERIODS,
    cycle_means_s,
    durations_by_path,
)
from tidings.characterisation.fit.parameters import FittedPeriods, Parameter
from tidings.characterisation.fit.periods import fit_periods
from tidings.model.behaviour import Connectivity
from tidings.model.naming import few
from tidings.model.system import Publisher, Subscriber

MOST_SHAPES = 100  # peers whose laws are looked at for more than their mean
Peer = TypeVar("Peer", Publisher, Subscriber)
_AT_ONCE_S = 1e-9  # as short as traces tell; back at once


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPeer:
    """How one peer comes and goes."""

    on: FittedPeriods
    off: FittedPeriods

    def connectivity(self, base: Connectivity | None) -> Connectivity:
        """Make the connectivity with these periods.

        Sessions do not say how long handing over takes: as in ``base``.
        """
        known = base or Connectivity()
        return replace(known, on=self.on.law, off=self.off.law, trace=None, replay="resample")


def fit_connectivity(
    cells: pd.DataFrame, *, there: str = "connected"
) -> tuple[dict[str, FittedPeer], list[str]]:
    """Fit times there and away of every peer, and note those that came and went too rarely.

    ``there`` is what a peer is while it is there.
    """
    seen = durations_by_path(cells)
    enough = {
        name: states
        for name, states in seen.items()
        if all(state in states and states[state].whole >= LEAST_PERIODS for state in (True, False))
    }
    shaped = len(enough) <= MOST_SHAPES
    peers = {}
    for name, states in enough.items():
        on_s, off_s = cycle_means_s(states[True], states[False])
        peers[name] = FittedPeer(
            on=fit_periods(states[True], on_s, shaped=shaped),
            off=fit_periods(states[False], off_s, shaped=shaped),
        )
    thin = sorted(set(seen) - set(enough))
    notes = []
    if thin:
        notes.append(
            f"{few(thin)} connected and disconnected too rarely to fit (fewer than "
            f"{LEAST_PERIODS} complete periods each {there} and away); taken from the "
            f"base system, or assumed to be always {there}"
        )
    if not shaped:
        notes.append(
            f"{len(enough)} peers connect and disconnect: their times {there} and away "
            "are fitted as exponential (other distributions are tried for up to "
            f"{MOST_SHAPES} peers)"
        )
    return peers, notes


def with_connectivity(
    peers: Sequence[Peer], section: str, fitted_peers: Mapping[str, FittedPeer]
) -> tuple[tuple[Peer, ...], list[Parameter], list[str]]:
    """Make peers come and go as fitted; list the parameters of that, and what was assumed."""
    changed: list[Peer] = []
    parameters: list[Parameter] = []
    instant = []
    for peer in peers:
        fitted = fitted_peers.get(peer.name)
        if fitted is None:
            changed.append(peer)
            continue
        changed.append(replace(peer, connectivity=fitted.connectivity(peer.connectivity)))
        parameters += [
            fitted.on.parameter(f"{section}.{peer.name}.connectivity.on"),
            fitted.off.parameter(f"{section}.{peer.name}.connectivity.off"),
        ]
        if peer.connectivity is None or peer.connectivity.service is None:
            instant.append(peer.name)
    if not instant:
        return tuple(changed), parameters, []
    note = f"the hand-over time of {few(instant)} was not recorded; 0 is assumed"
    return tuple(changed), parameters, [note]


def fit_stays(cells: pd.DataFrame) -> tuple[dict[str, FittedPeer], list[str]]:
    """Fit how long each subscriber is subscribed and away; note those who came too rarely."""
    least_s = cells["count"] * _AT_ONCE_S
    return fit_connectivity(
        cells.assign(total_s=cells["total_s"].clip(lower=least_s)), there="subscribed"
    )


def with_stays(
    subscribers: Sequence[Subscriber], fitted_peers: Mapping[str, FittedPeer]
) -> tuple[tuple[Subscriber, ...], list[Parameter]]:
    """Make subscribers subscribe and leave as fitted; list the parameters of that.

    Whoever is mobile as well keeps its connectivity alone: no engine handles both at once.
    """
    changed, parameters = [], []
    for each in subscribers:
        fitted = fitted_peers.get(each.name)
        if fitted is None or each.connectivity is not None:
            changed.append(each)
            continue
        parameters.append(fitted.on.parameter(f"subscribers.{each.name}.stays"))
        away = None if fitted.off.law.mean_s <= _AT_ONCE_S else fitted.off.law
        if away is not None:
            parameters.append(fitted.off.parameter(f"subscribers.{each.name}.away"))
        changed.append(replace(each, stays=fitted.on.law, away=away))
    return tuple(changed), parameters
