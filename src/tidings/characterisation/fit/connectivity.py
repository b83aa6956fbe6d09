"""Fit how peers connect and go away, and subscribers subscribe and leave."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pandas as pd

from tidings.characterisation.fit.duration_laws import fit, in_seconds, likeliest
from tidings.characterisation.fit.durations import (
    ENOUGH_PERIODS,
    LEAST_PERIODS,
    TRIED_FAMILIES,
    Durations,
    durations_by_path,
    measure,
)
from tidings.characterisation.fit.parameters import FittedPeriods, Parameter
from tidings.model.behaviour import Connectivity
from tidings.model.laws import Deterministic
from tidings.model.naming import few
from tidings.model.system import Publisher, Subscriber

MOST_SHAPES = 100  # peers whose laws are looked at for more than their mean
_ALIKE = 1e-4  # c² of periods that differ by no more than a bin of the delay grid is wide
Peer = TypeVar("Peer", Publisher, Subscriber)
_AT_ONCE_S = 1e-9  # as short as traces tell; back at once


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPeer:
    """How one peer comes and goes."""

    on: FittedPeriods
    off: FittedPeriods

    def connectivity(self, base: Connectivity | None) -> Connectivity:
        """With these periods; sessions do not say how long handing over takes: as in ``base``."""
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
    peers = {
        name: FittedPeer(
            on=_fitted(states[True], shaped=shaped), off=_fitted(states[False], shaped=shaped)
        )
        for name, states in enough.items()
    }
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


def _fitted(seen: Durations, *, shaped: bool) -> FittedPeriods:
    """The likeliest law with the measured mean; of few periods, or many peers, exponential.

    Where the longest period was cut off the measured mean stops there and is too short: the mean is
    then that of the likeliest law as well. Periods that are all alike are taken as constant.
    """
    measured = measure(seen)
    if seen.whole >= ENOUGH_PERIODS and measured.scv < _ALIKE:
        return FittedPeriods(
            law=Deterministic(value_s=measured.mean_s),
            count=seen.whole,
            mean_se_s=measured.mean_s * math.sqrt(max(measured.scv, 0.0) / seen.whole),
            family="deterministic",
            distance=0.0,
            verdict="all alike",
        )
    names = TRIED_FAMILIES if shaped and seen.whole >= ENOUGH_PERIODS else TRIED_FAMILIES[:1]
    best = likeliest([fit(name, seen, in_seconds) for name in names])
    open_ended = bool(
        seen.lengths_s[~seen.ended].max(initial=0.0) > seen.lengths_s[seen.ended].max()
    )
    law = best.free_law if open_ended else best.law
    scv = law.scv if open_ended else max(measured.scv, 0.0)
    return FittedPeriods(
        law=law,
        count=seen.whole,
        mean_se_s=law.mean_s * math.sqrt(scv / seen.whole),
        family=best.family,
        distance=best.distance if open_ended else best.kept_distance,
        verdict="periods cut off by the recording count as at least as long",
    )


def with_connectivity(
    peers: Sequence[Peer], section: str, fitted_peers: Mapping[str, FittedPeer]
) -> tuple[tuple[Peer, ...], list[Parameter], list[str]]:
    """The peers as they come and go, the parameters of that, and what had to be assumed."""
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
    note = (
        f"the time to hand an event over to {few(instant)} was not recorded; it is assumed to be 0"
    )
    return tuple(changed), parameters, [note]


def fit_stays(cells: pd.DataFrame) -> tuple[dict[str, FittedPeer], list[str]]:
    """How long each subscriber is subscribed and away, and a note of those who came too rarely."""
    least_s = cells["count"] * _AT_ONCE_S
    return fit_connectivity(
        cells.assign(total_s=cells["total_s"].clip(lower=least_s)), there="subscribed"
    )


def with_stays(
    subscribers: Sequence[Subscriber], fitted_peers: Mapping[str, FittedPeer]
) -> tuple[tuple[Subscriber, ...], list[Parameter]]:
    """The subscribers as they subscribe and leave, and the parameters of that.

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
