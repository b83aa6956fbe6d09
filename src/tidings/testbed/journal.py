"""What relays write down: visits of events to brokers, interest that crossed, their lateness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class StationVisit:
    """An event at a broker's station; times of the loop's clock, in seconds."""

    event: str
    broker: str
    came_from: str
    arrived_s: float
    started_s: float
    left_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """A lane that has begun, or ceased, to be joined with all interest that should cross it."""

    at_s: float
    lane: str
    ready: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """A line of interest as it came to the far end of a lane."""

    at_s: float
    lane: str
    subject: str
    wanted: bool  # not: withdrawn


@dataclass(slots=True, kw_only=True)
class Journal:
    """What the relays write down; ``wanted`` are the subjects that should be asked for by lane."""

    wanted: Mapping[str, set[str]] = field(default_factory=dict)
    visits: list[StationVisit] = field(default_factory=list)
    sent: dict[tuple[str, str], list[str]] = field(default_factory=dict)  # by event and broker
    lateness_s: list[float] = field(default_factory=list)
    interest: dict[str, set[str]] = field(default_factory=dict)  # by lane: subjects asked for
    crossings: list[Crossing] = field(default_factory=list)
    readiness: list[Readiness] = field(default_factory=list)
    lost: dict[str, int] = field(default_factory=dict)  # by lane, by chance
    overflowed: dict[str, int] = field(default_factory=dict)  # by peer: refused by full buffers
    counts_lateness: bool = False  # not while the run is set up and taken down
    under_way: int = 0  # events that a relay or a stream holds
    problem: str | None = None  # why a relay ended that should not have

    def sends(self, event: str, source: str, target: str) -> None:
        """Note that an event was sent, perhaps again, over a lane to the broker at its end."""
        targets = self.sent.setdefault((event, source), [])
        if target not in targets:
            targets.append(target)

    def late(self, by_s: float) -> None:
        """Note that something was done so long after it was due, in seconds."""
        if self.counts_lateness:
            self.lateness_s.append(by_s)

    def joined(self, lane: str, at_s: float) -> None:
        """Note that a connection over a lane has come about."""
        self.interest[lane] = set()
        self._look(lane, at_s)

    def parted(self, lane: str, at_s: float) -> None:
        """Note that the connection over a lane has ended; forget what was asked for over it."""
        self.interest.pop(lane, None)
        self._look(lane, at_s)

    def crossed(self, lane: str, subject: str, at_s: float, *, wanted: bool) -> None:
        """Note that a line of interest has come to the end of a lane."""
        asked = self.interest.setdefault(lane, set())
        (asked.add if wanted else asked.discard)(subject)
        self.crossings.append(Crossing(at_s=at_s, lane=lane, subject=subject, wanted=wanted))
        self._look(lane, at_s)

    def unready(self) -> list[str]:
        """List the lanes over which not all has been asked for that is wanted behind them."""
        return [lane for lane in self.wanted if not self._is_ready(lane)]

    def _is_ready(self, lane: str) -> bool:
        asked = self.interest.get(lane)
        return asked is not None and self.wanted.get(lane, set()) <= asked

    def _look(self, lane: str, at_s: float) -> None:
        ready = self._is_ready(lane)
        before = next((each.ready for each in self._latest(lane)), False)
        if ready != before:
            self.readiness.append(Readiness(at_s=at_s, lane=lane, ready=ready))

    def _latest(self, lane: str) -> Iterator[Readiness]:
        return (each for each in reversed(self.readiness) if each.lane == lane)
