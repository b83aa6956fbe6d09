"""What becomes of the events an audience wants: shares on time, delivered, lost by cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidings.model.outcome import CAUSES
from tidings.model.routes import Routes
from tidings.prediction.audiences import Audience, Floats, Stream, Streams
from tidings.prediction.faults.expiry import fate
from tidings.prediction.lifetimes import shorter
from tidings.prediction.path_laws import Workshop
from tidings.prediction.stages import Stage
from tidings.prediction.ways import Ways


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """By filter of an audience: what it wants and gets, from the streams it wants anything of."""

    audience: Audience
    streams: tuple[Stream, ...]
    stages: tuple[Stage, ...]  # the way of each stream
    lifetimes_s: Floats  # of each stream's events for this audience; NaN where that is random
    wanted: Floats  # [filter, stream], events per second
    on_time: Floats  # [stream], share of what is published
    error: Floats  # [stream], bound of the numerical error of on_time
    expired: Floats  # [stream], share that expires in a buffer
    means_s: Floats  # [stream], mean delay of what is delivered, in seconds

    @property
    def delivered(self) -> Floats:
        """Share of each stream that is delivered, in time or not."""
        return np.array([stage.survives for stage in self.stages]) - self.expired

    def cuts(self, chosen: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Of what survives the chosen streams' ways: the share in time, and what buffers leave
        of the rest.
        """
        survives = np.array([stage.survives for stage in self.stages])[chosen]
        in_time, expired = self.on_time[chosen], self.expired[chosen]
        rest = np.where(expired > 0.0, survives - in_time, 1.0)
        return in_time / survives, 1.0 - expired / rest

    @property
    def lost(self) -> Mapping[str, Floats]:
        """Shares lost of each stream, by cause; only causes that occur."""
        causes = [cause for cause in CAUSES if any(cause in stage.lost for stage in self.stages)]
        found = {
            cause: np.array([stage.lost.get(cause, 0.0) for stage in self.stages])
            for cause in causes
        }
        if np.any(self.expired):
            found["expired_in_buffer"] = self.expired
        return found


def shares(
    audience: Audience, streams: Streams, routes: Routes, ways: Ways, workshop: Workshop
) -> Shares:
    """Follow every stream that the audience wants anything of to its exit."""
    wanted = streams.wanted(routes, audience.filters)
    used = np.flatnonzero(wanted.any(axis=0))
    chosen = tuple(streams.each[index] for index in used)
    # A stream and its twin with another lifetime share their way.
    found: dict[tuple[int, int], Stage] = {}
    stages = []
    for stream in chosen:
        key = (id(stream.entry), stream.tree)
        if key not in found:
            found[key] = ways.way(stream.entry, audience.exit, stream.tree)
        stages.append(found[key])
    lifetimes = [shorter(stream.lifetime, audience.lifetime) for stream in chosen]
    on_time, error, expired = np.zeros((3, len(chosen)))
    means_s = np.array([stage.mean_s for stage in stages])
    for index, (stage, lifetime) in enumerate(zip(stages, lifetimes, strict=True)):
        if stage.survives > 0.0:
            (value, off), expired[index], means_s[index] = fate(stage, lifetime, workshop)
            on_time[index], error[index] = float(value), float(off)
    return Shares(
        audience=audience,
        streams=chosen,
        stages=tuple(stages),
        lifetimes_s=np.array([lifetime.value_s for lifetime in lifetimes]),
        wanted=wanted[:, used],
        on_time=on_time,
        error=error,
        expired=expired,
        means_s=means_s,
    )
