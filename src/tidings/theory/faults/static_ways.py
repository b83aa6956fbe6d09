"""Schemes that send an event along its one way and lose it where something is down.

What an event meets on its way is a row of *checks*: is the broker up, has it the subscription, is
the link up. The probability of passing the first k checks together gives, check by check, what is
lost there and why: the first cause in time, even where components fail together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidings.theory.faults.components import Components, Path
from tidings.theory.faults.refresh import Passed
from tidings.theory.stages import NOTHING, Stage, in_series

HOME_DOWN, PATH_DOWN, NOT_RESTORED = "broker_down", "path_down", "not_restored"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that must hold for an event to go on."""

    element: int  # position on the way: 0 the home broker, 1 the first link, 2 the next broker …
    cause: str
    passed: float  # probability that this check and all before it are passed


def up_checks(components: Components, path: Path) -> list[Check]:
    """All brokers and links of a way up at once: Π availabilities, each process counted once."""
    seen: set[int] = set()
    found = []
    for element, needed in enumerate(components.of_path(path)):
        seen.update(needed)
        passed = components.all_up(seen)
        cause = PATH_DOWN if element else HOME_DOWN
        found.append(Check(element=element, cause=cause, passed=passed))
    return found


def lost_for_good(components: Components, path: Path) -> list[Check]:
    """Without any recovery: a broker that can crash has lost the subscription long ago."""
    found: list[Check] = []
    gone = False
    needs = components.of_path(path)
    for check in up_checks(components, path):
        found.append(
            Check(element=check.element, cause=check.cause, passed=0.0 if gone else check.passed)
        )
        if check.element % 2 == 0 and needs[check.element]:
            gone = True
            found.append(Check(element=check.element, cause=NOT_RESTORED, passed=0.0))
    return found


def refreshed_checks(passed: Passed) -> list[Check]:
    """Up, and with the subscription."""
    found = []
    for element, (up, table) in enumerate(zip(passed.up, passed.table, strict=True)):
        cause = PATH_DOWN if element else HOME_DOWN
        found.append(Check(element=element, cause=cause, passed=up))
        if element % 2 == 0:
            found.append(Check(element=element, cause=NOT_RESTORED, passed=table))
    return found


def checked_way(pieces: Sequence[Stage], checks: Iterable[Check]) -> Stage:
    """The stages of a way, each after the checks of its element."""
    at: list[list[Stage]] = [[] for _ in pieces]
    before = 1.0
    for check in checks:
        share = check.passed / before if before > 0.0 else 1.0
        if share < 1.0:
            at[check.element].append(Stage(survives=share, lost={check.cause: 1.0 - share}))
        before = check.passed
    found = NOTHING
    for piece, losses in zip(pieces, at, strict=True):
        for each in (*losses, piece):
            found = in_series(found, each)
    return found
