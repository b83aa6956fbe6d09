"""How peers come and go: laws of their times connected and away, from their sessions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.copies import ROW_COUNTS, row_counts
from tidings.characterisation.duration_laws import fit, in_seconds, likeliest
from tidings.characterisation.durations import Durations, measure
from tidings.characterisation.fitted_periods import FittedPeriods
from tidings.characterisation.parameters import Parameter
from tidings.characterisation.sessions import (
    PERIOD_CELLS,
    durations_by_path,
    period_cells,
    session_periods,
)
from tidings.model.behaviour import Connectivity
from tidings.model.laws import Deterministic
from tidings.model.naming import few
from tidings.model.system import Publisher, Subscriber
from tidings.model.trace_tables import SESSIONS
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.window import TraceWindow

# Periods of peers, and per reason all rows, of which no period is told.
PEER_PERIODS = f"{PERIOD_CELLS}, {ROW_COUNTS}"
TOO_LATE = "changed after the observed window"
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


def checked_sessions(sessions: DataFrame, window: TraceWindow) -> DataFrame:
    """Every change with the reason why it cannot be used, null where it can."""
    too_late = F.when(F.col("at_ns") > window.until_ns, F.lit(TOO_LATE))
    return with_reasons(sessions, SESSIONS).withColumn(REASON, F.coalesce(F.col(REASON), too_late))


def peer_periods(sessions: DataFrame, window: TraceWindow) -> DataFrame:
    """Periods of every peer that was ever seen to change, by length; and all rows, by reason.

    A row before the window says what the state was when it began; one after its end says nothing.
    """
    observed = sessions.groupBy("peer").agg(
        F.first("peer").alias("path"),
        F.lit(window.from_ns).alias("from_ns"),
        F.lit(window.until_ns).alias("until_ns"),
    )
    periods = period_cells(session_periods(sessions, observed))
    counted = row_counts(checked_sessions(sessions, window), SESSIONS)
    return periods.unionByName(counted, allowMissingColumns=True)


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
