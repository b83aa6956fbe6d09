"""Fit how peers connect and go away, and subscribers subscribe and leave."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pandas as pd

from tidings.characterisation.fit.duration_laws import fit, in_seconds, likeliest
from tidings.characterisation.fit.durations import Durations, measure
from tidings.characterisation.fit.parameters import FittedPeriods, Parameter
from tidings.model.behaviour import Connectivity
from tidings.model.laws import Deterministic
from tidings.model.naming import few
from tidings.model.system import Publisher, Subscriber


def durations_by_path(cells: pd.DataFrame) -> dict[str, dict[bool, Durations]]:
    """Collected cells as lengths: by path, and by whether peers are connected meanwhile.

    Lengths in one bin (they differ by less than 4.7 %) become their mean.
    """
    found: dict[str, dict[bool, Durations]] = {}
    for (path, connected), rows in cells.sort_values(["path", "bin"]).groupby(
        ["path", "connected"]
    ):
        found.setdefault(str(path), {})[bool(connected)] = durations_of(rows)
    return found


def durations_of(cells: pd.DataFrame) -> Durations:
    """Cells of one kind as lengths, each as long as the mean of its bin.

    Reads ``ended``, ``count`` (above 0) and ``total_s``.
    """
    counts = cells["count"].to_numpy(np.float64)
    return Durations(
        lengths_s=cells["total_s"].to_numpy(np.float64) / counts,
        ended=cells["ended"].to_numpy(np.bool_),
        counts=counts,
    )


LEAST_PERIODS = 5  # whole ones of each kind, to tell how a peer comes and goes
ENOUGH_PERIODS = 30  # to tell more than a mean
MOST_SHAPES = 100  # peers whose laws are looked at for more than their mean
_ALIKE = 1e-4  # c² of periods that differ by no more than a bin of the delay grid is wide
_FAMILIES = ("exponential", "weibull", "lognormal")
Peer = TypeVar("Peer", Publisher, Subscriber)


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPeer:
    """How one peer comes and goes."""

    on: FittedPeriods
    off: FittedPeriods

    def connectivity(self, base: Connectivity | None) -> Connectivity:
        """With these periods; sessions do not tell how long handing over takes: as in ``base``."""
        known = base or Connectivity()
        return replace(known, on=self.on.law, off=self.off.law, trace=None, replay="resample")


def fit_connectivity(
    cells: pd.DataFrame, *, there: str = "connected"
) -> tuple[dict[str, FittedPeer], list[str]]:
    """How every peer comes and goes, and a note of those of whom too little was seen to tell.

    ``there`` is what a peer is while it is there.
    """
    seen = durations_by_path(cells)
    told = {
        name: states
        for name, states in seen.items()
        if all(state in states and states[state].whole >= LEAST_PERIODS for state in (True, False))
    }
    shaped = len(told) <= MOST_SHAPES
    found = {
        name: FittedPeer(
            on=_fitted(states[True], shaped=shaped), off=_fitted(states[False], shaped=shaped)
        )
        for name, states in told.items()
    }
    thin = sorted(set(seen) - set(told))
    notes = []
    if thin:
        notes.append(
            f"{few(thin)} came and went too rarely to tell how (fewer than {LEAST_PERIODS} whole "
            f"times each {there} and away); taken as in the base system, or as always {there}"
        )
    if not shaped:
        notes.append(
            f"{len(told)} peers come and go: their times {there} and away are taken as "
            f"exponential (their shapes are looked at for up to {MOST_SHAPES} peers)"
        )
    return found, notes


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
    names = _FAMILIES if shaped and seen.whole >= ENOUGH_PERIODS else _FAMILIES[:1]
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
        verdict="periods cut off count as at least as long",
    )


def with_connectivity(
    peers: Sequence[Peer], section: str, found: Mapping[str, FittedPeer]
) -> tuple[tuple[Peer, ...], list[Parameter], list[str]]:
    """The peers as they come and go, the parameters of that, and what had to be assumed."""
    changed: list[Peer] = []
    parameters: list[Parameter] = []
    instant = []
    for peer in peers:
        fitted = found.get(peer.name)
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
    note = f"nothing tells how long it takes {few(instant)} to hand an event over; taken as no time"
    return tuple(changed), parameters, [note]


_AT_ONCE_S = 1e-9  # as short as traces tell; back at once


def fit_stays(cells: pd.DataFrame) -> tuple[dict[str, FittedPeer], list[str]]:
    """How long each subscriber is subscribed and away, and a note of those who came too rarely."""
    least_s = cells["count"] * _AT_ONCE_S
    return fit_connectivity(
        cells.assign(total_s=cells["total_s"].clip(lower=least_s)), there="subscribed"
    )


def with_stays(
    subscribers: Sequence[Subscriber], found: Mapping[str, FittedPeer]
) -> tuple[tuple[Subscriber, ...], list[Parameter]]:
    """The subscribers as they subscribe and leave, and the parameters of that.

    Of whoever is mobile as well only that is told: no engine handles both at once.
    """
    changed, parameters = [], []
    for each in subscribers:
        fitted = found.get(each.name)
        if fitted is None or each.connectivity is not None:
            changed.append(each)
            continue
        parameters.append(fitted.on.parameter(f"subscribers.{each.name}.stays"))
        away = None if fitted.off.law.mean_s <= _AT_ONCE_S else fitted.off.law
        if away is not None:
            parameters.append(fitted.off.parameter(f"subscribers.{each.name}.away"))
        changed.append(replace(each, stays=fitted.on.law, away=away))
    return tuple(changed), parameters
