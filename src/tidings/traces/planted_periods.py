"""Times off and on of components, peers and subscriptions, drawn here and planted into traces.

They are few beside events: each is drawn on this machine, and events look them up
(:mod:`tidings.traces.period_lookup`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from tidings.errors import UnsupportedError
from tidings.model.behaviour import Failure
from tidings.model.laws import Law
from tidings.model.system import Publisher, Subscriber, System
from tidings.model.trace_files import filter_text
from tidings.traces.window import NANOSECONDS, TraceWindow

MOST_PERIODS = 20_000  # of all components and peers together: every task is sent all of them
_CYCLES_BEFORE = 20  # after which nobody remembers how it began


class Period(NamedTuple):
    """From one moment (included) until another (excluded), in nanoseconds."""

    from_ns: int
    until_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Periods:
    """By name: when brokers and links are down, peers away, and subscriptions standing."""

    down: Mapping[str, Sequence[Period]] = field(default_factory=dict)
    away: Mapping[str, Sequence[Period]] = field(default_factory=dict)
    stays: Mapping[str, Sequence[Period]] = field(default_factory=dict)


def draw_periods(system: System, window: TraceWindow, seed: int) -> Periods:
    """All periods of a system in a window, each name with random numbers of its own."""
    check_periods(system, window.seconds)

    def off(kind: str, name: str, on: Law, away: Law) -> list[Period]:
        rng = np.random.default_rng([seed, *f"{kind} {name}".encode()])
        return _alternating(on, away, window, rng)

    down = {name: off("down", name, each.up, each.down) for name, each in _failures(system)}
    for group in system.failure_groups:
        shared = off("group", group.name, group.failure.up, group.failure.down)
        down |= {name: _united([*down.get(name, ()), *shared]) for name in group.members}
    away = {name: off("away", name, on, gone) for name, on, gone in _coming_and_going(system)}
    stays = {
        each.name: _between(off("stays", each.name, each.stays, each.away), window)
        for each in system.subscribers
        if each.stays is not None and each.away is not None
    }
    return Periods(down=down, away=away, stays=stays)


def _failures(system: System) -> Iterator[tuple[str, Failure]]:
    for broker in system.brokers:
        if broker.failure is not None:
            yield broker.name, broker.failure
    for link in system.links:
        if link.there.failure is not None:
            yield link.name, link.there.failure


def _coming_and_going(system: System) -> Iterator[tuple[str, Law, Law]]:
    peers: list[Publisher | Subscriber] = [*system.publishers, *system.subscribers]
    for peer in peers:
        way = peer.connectivity
        if way is None:
            continue
        if way.service is not None or way.on is None or way.off is None:
            raise UnsupportedError(
                f"traces are not generated of a peer that takes its time ({peer.name}."
                "connectivity.service), or whose periods come from a trace; leave it out, or "
                "simulate and record"
            )
        yield peer.name, way.on, way.off


def check_periods(system: System, span_s: float) -> None:
    """Refuse more periods than events can be held against."""
    cycles_s = [each.up.mean_s + each.down.mean_s for _, each in _failures(system)]
    groups = [each.failure for each in system.failure_groups]
    cycles_s += [each.up.mean_s + each.down.mean_s for each in groups]
    cycles_s += [on.mean_s + off.mean_s for _, on, off in _coming_and_going(system)]
    churners = [(each.stays, each.away) for each in system.subscribers]
    cycles_s += [
        on.mean_s + off.mean_s for on, off in churners if on is not None and off is not None
    ]
    expected = sum(span_s / each for each in cycles_s)
    if expected > MOST_PERIODS:
        raise UnsupportedError(
            f"components and peers change about {expected:.3g} times; traces are generated with at "
            f"most {MOST_PERIODS:,} such periods: take a shorter time, or fewer that come and go"
        )


def _alternating(on: Law, off: Law, window: TraceWindow, rng: np.random.Generator) -> list[Period]:
    """The periods off, as of something that has been coming and going for long."""
    cycle_s = on.mean_s + off.mean_s
    end_s = (window.until_ns - window.from_ns) / NANOSECONDS
    begin_s, found = -_CYCLES_BEFORE * cycle_s, []
    while begin_s < end_s:
        some = max(16, int((end_s - begin_s) / cycle_s))
        lasted = np.stack([on.sample(rng, some), off.sample(rng, some)], axis=1).ravel()
        turns_s = begin_s + lasted.cumsum()
        found += list(zip(turns_s[0::2], turns_s[1::2], strict=True))
        begin_s = float(turns_s[-1])
    whole = [Period(_ns(a, window), _ns(b, window)) for a, b in found if b > 0 and a < end_s]
    return [each for each in whole if each.from_ns < each.until_ns]


def _ns(seconds: float, window: TraceWindow) -> int:
    return window.from_ns + round(float(seconds) * NANOSECONDS)


def _united(periods: Sequence[Period]) -> list[Period]:
    """Periods that may overlap as ones that do not.

    >>> _united([Period(5, 9), Period(0, 2), Period(1, 6)])
    [Period(from_ns=0, until_ns=9)]
    """
    found: list[Period] = []
    for each in sorted(periods):
        if found and each.from_ns <= found[-1].until_ns:
            last = found.pop()
            each = Period(last.from_ns, max(last.until_ns, each.until_ns))
        found.append(each)
    return found


def _between(off: Sequence[Period], window: TraceWindow) -> list[Period]:
    """The periods on; one under way at the beginning counts from there, the last goes on."""
    begins = [window.from_ns, *(each.until_ns for each in off)]
    ends = [*(each.from_ns for each in off), 2**62]
    pairs = zip(begins, ends, strict=True)
    return [Period(a, b) for a, b in pairs if window.from_ns <= a < min(b, window.until_ns)]


# ---- as tables -----------------------------------------------------------------------------------


def changes(
    off: Mapping[str, Sequence[Period]], window: TraceWindow, who: str, states: tuple[str, str]
) -> pd.DataFrame:
    """Every change within a window; before them, how each was when the window began.

    ``states`` are the words for on and off, ``who`` the column of names.
    """
    rows = []
    for name, periods in off.items():
        begun_off = any(each.from_ns <= window.from_ns < each.until_ns for each in periods)
        rows.append((name, states[begun_off], window.from_ns))
        turns = [
            (state, at) for each in periods for state, at in zip(states[::-1], each, strict=True)
        ]
        rows += [(name, state, at) for state, at in turns if window.from_ns < at < window.until_ns]
    return pd.DataFrame(rows, columns=[who, "state", "at_ns"])


def subscription_steps(
    system: System, stays: Mapping[str, Sequence[Period]], window: TraceWindow
) -> pd.DataFrame:
    """Who subscribed to what when, and when that ended."""
    rows: list[tuple[str, str, str, str, int, str | None]] = []
    for each in system.subscribers:
        mine = stays.get(each.name, [Period(window.from_ns, 2**62)])
        for number, stay in enumerate(mine, start=1):
            who = (f"{each.name}/{number}", each.name, each.at)
            rows.append((*who, "subscribe", stay.from_ns, filter_text(each)))
            if stay.until_ns < window.until_ns:
                rows.append((*who, "unsubscribe", stay.until_ns, None))
    names = ["subscription", "subscriber", "broker", "action", "at_ns", "filter"]
    return pd.DataFrame(rows, columns=names)
