"""Targets from an OpenSLO file: on-time shares for subscribers, groups, topics, or everybody.

An objective of kind ``SLO`` (``openslo/v1`` or its betas) says whom it is about by a label or
annotation ``subscriber``, ``group`` or ``topic`` (or ``tidings/subscriber`` and so on; none of
them: everybody), and how much by ``target`` or ``targetPercent`` of its one objective. A threshold
``op: lte, value: 0.25`` means within so many seconds, or within the subscriber's own lifetime where
that is shorter. Documents of other kinds are passed over. Of several objectives about one
subscriber the most particular holds alone, with its share and its time: its own before its group's,
that before its topic's, that before everybody's.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tidings.errors import InvalidInputError, Problem
from tidings.model import yaml_text
from tidings.model.covering import covers
from tidings.model.document import Place
from tidings.model.filters import as_filter
from tidings.model.laws import Deterministic
from tidings.model.plain_files import read_text
from tidings.model.system import Subscriber, System

SCOPES = ("everybody", "topic", "group", "subscriber")  # the more particular, the later
_PREFIX = "tidings/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """An on-time share that some subscribers should get, perhaps within a time of its own."""

    name: str
    scope: str  # one of SCOPES
    who: str
    share: float
    within_s: float | None = None


def read_objectives(path: str | os.PathLike[str]) -> tuple[Objective, ...]:
    """Read the objectives of a file; raises with all that is wrong with it."""
    try:
        text = read_text(path, follow=True)
    except (OSError, ValueError) as error:
        problem = Problem(at=str(path), saw=yaml_text.refusal(error), want="a readable text file")
        raise InvalidInputError(f"{path}: cannot be read", [problem]) from None
    problems: list[Problem] = []
    objectives = []
    for place in _documents(text):
        objective = _read(place)
        problems += place.problems
        if objective is not None:
            objectives.append(objective)
    if problems or not objectives:
        wrong = "invalid objectives" if problems else "no document is of kind SLO"
        raise InvalidInputError(f"{path}: {wrong}", problems)
    return tuple(objectives)


def with_objectives(system: System, objectives: tuple[Objective, ...]) -> System:
    """Give subscribers the targets (and times) of the objectives that concern them."""
    _check_alike(objectives)
    ordered = sorted(objectives, key=lambda each: SCOPES.index(each.scope))
    idle = set(ordered)
    subscribers = []
    for subscriber in system.subscribers:
        concerning = [each for each in ordered if _concerns(system, each, subscriber)]
        idle.difference_update(concerning)
        subscribers.append(_promised(subscriber, concerning[-1]) if concerning else subscriber)
    if idle:
        names = ", ".join(sorted(each.name for each in idle))
        raise InvalidInputError(
            f"these objectives match no subscriber of this system: {names}; check the "
            "subscriber, group or topic that they name"
        )
    return replace(system, subscribers=tuple(subscribers))


def _check_alike(objectives: tuple[Objective, ...]) -> None:
    """Refuse two objectives about the same, of which one would hide the other."""
    seen: dict[tuple[str, str], Objective] = {}
    for each in objectives:
        other = seen.setdefault((each.scope, each.who), each)
        if other is not each:
            whom = f"{each.scope} '{each.who}'" if each.who else each.scope
            raise InvalidInputError(
                f"objectives '{other.name}' and '{each.name}' both set a target for "
                f"{whom}; keep one of them"
            )


def _promised(subscriber: Subscriber, objective: Objective) -> Subscriber:
    """Give a subscriber what an objective promises; a time only ever shortens its lifetime."""
    lifetime, within_s = subscriber.lifetime, objective.within_s
    if within_s is not None:
        least_s, most_s = (
            (0.0, math.inf) if lifetime is None else map(float, lifetime.quantile([0.0, 1.0]))
        )
        if lifetime is None or within_s <= least_s:
            lifetime = Deterministic(value_s=within_s)
        elif within_s < most_s:
            raise InvalidInputError(
                f"objective '{objective.name}' wants events within {within_s:g} s of "
                f"'{subscriber.name}', whose own lifetime is random and may be shorter or longer; "
                "wants a fixed lifetime in the system file, or none"
            )
    return replace(subscriber, target=objective.share, lifetime=lifetime)


def _concerns(system: System, objective: Objective, subscriber: Subscriber) -> bool:
    match objective.scope:
        case "subscriber":
            return subscriber.name == objective.who
        case "group":
            return subscriber.group == objective.who
        case "topic":
            attribute = system.event_type or "topic"
            return covers(as_filter({attribute: objective.who}), subscriber.wants)
    return True


def _documents(text: str) -> Iterator[Place]:
    """Yield the documents of a text one by one, each with the line numbers of the whole."""
    lines = text.splitlines()
    starts = [0, *(at + 1 for at, line in enumerate(lines) if line.rstrip() == "---")]
    for first, last in zip(starts, [*(at - 1 for at in starts[1:]), len(lines)], strict=True):
        part = "\n" * first + "\n".join(lines[first:last])
        if part.strip():
            yield yaml_text.parse(part)


def _read(place: Place) -> Objective | None:
    if place.problems:
        return None
    version = place.inside("apiVersion")
    if not isinstance(version.value, str) or not version.value.startswith("openslo/"):
        version.report("an OpenSLO version, such as openslo/v1")
        return None
    if place.inside("kind").value != "SLO":
        return None
    name = place.inside("metadata", "name").text("the name of the objective")
    scope, who = _scope(place)
    goals = list(place.inside("spec", "objectives").items("a list of objectives"))
    if len(goals) != 1 and not place.problems:
        place.inside("spec", "objectives").report("exactly one objective")
    share, within_s = _goal(goals[0]) if len(goals) == 1 else (None, None)
    if place.problems or share is None:
        return None
    return Objective(name=str(name), scope=scope, who=who, share=share, within_s=within_s)


def _scope(place: Place) -> tuple[str, str]:
    for scope in reversed(SCOPES[1:]):
        for part in ("labels", "annotations"):
            for key in (scope, f"{_PREFIX}{scope}"):
                value = place.inside("metadata", part, key)
                if value.value is not None:
                    return scope, value.text(f"the name of a {scope}") or ""
    return "everybody", ""


def _goal(place: Place) -> tuple[float | None, float | None]:
    target, percent = place.inside("target"), place.inside("targetPercent")
    if (target.value is None) == (percent.value is None):
        place.report("either 'target' (a share) or 'targetPercent'")
        return None, None
    if target.value is not None:
        share = target.share()
    else:
        number = percent.number("a percentage from 0 to 100", least=0.0, most=100.0)
        share = None if number is None else number / 100.0
    value = place.inside("value")
    if value.value is None:
        return share, None
    if place.inside("op").value not in ("lte", "lt"):
        place.inside("op").report("lte: a number of seconds")
    return share, value.seconds(positive=True)
