"""When brokers and links are down: drawn before the run from the failure laws of a system."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from tidings.errors import InvalidInputError
from tidings.model.behaviour import Channel, Failure
from tidings.model.laws import Law, shifted
from tidings.model.system import System

_CYCLES_BEFORE = (
    20.0  # so long before the run failures begin, so that it starts in no special state
)
_PURPOSE = 11

Change = Callable[[Failure], Failure]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A broker or link (``a--b``) that is down; times in seconds from the beginning of the run."""

    component: str
    begin_s: float
    end_s: float


def draw_outages(system: System, length_s: float, seed: int) -> list[Outage]:
    """Draw all outages of a run, in order of time; those of one component do not overlap.

    A component is down while it or a group that it belongs to is.
    """
    spans: dict[str, list[tuple[float, float]]] = {}
    for index, (members, failure) in enumerate(_processes(system)):
        times = list(_down_times(failure, length_s, np.random.default_rng([seed, _PURPOSE, index])))
        for member in members:
            spans.setdefault(member, []).extend(times)
    outages = [
        Outage(component=component, begin_s=begin_s, end_s=end_s)
        for component, times in spans.items()
        for begin_s, end_s in merged(times)
    ]
    return sorted(outages, key=lambda each: each.begin_s)


def expected_outages(system: System, length_s: float) -> float:
    """Compute the mean number of outages in so many seconds."""
    return sum(
        len(members) * length_s / (failure.up.mean_s + failure.down.mean_s)
        for members, failure in _processes(system)
    )


def down_laws(system: System) -> dict[str, Law]:
    """Give, by component that fails, the distribution of its down times.

    Of what fails by several processes, it is that of the first.
    """
    laws: dict[str, Law] = {}
    for members, failure in _processes(system):
        for member in members:
            laws.setdefault(member, failure.down)
    return laws


def _processes(system: System) -> Iterator[tuple[tuple[str, ...], Failure]]:
    for broker in system.brokers:
        if broker.failure is not None:
            yield (broker.name,), broker.failure
    for link in system.links:
        if link.there.failure is not None:
            yield (link.name,), link.there.failure
    for group in system.failure_groups:
        yield group.members, group.failure


def _down_times(
    failure: Failure, length_s: float, generator: np.random.Generator
) -> Iterator[tuple[float, float]]:
    """Yield begin and end, in seconds, of down times that reach into the run.

    The run begins as if all had been going on for ever.
    """
    cycle_s = failure.up.mean_s + failure.down.mean_s
    now_s = -cycle_s * (_CYCLES_BEFORE + generator.random())
    while now_s < length_s:
        begin_s = now_s + float(np.asarray(failure.up.sample(generator, 1))[0])
        now_s = begin_s + float(np.asarray(failure.down.sample(generator, 1))[0])
        if now_s > 0.0 and begin_s < length_s:
            yield max(begin_s, 0.0), now_s


def merged(times: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Merge spans of time into their union, in order, in seconds.

    >>> merged([(5, 6), (0, 2), (1, 3)])
    [(0, 3), (5, 6)]
    """
    union: list[tuple[float, float]] = []
    for begin_s, end_s in sorted(times):
        if union and begin_s <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], end_s))
        else:
            union.append((begin_s, end_s))
    return union


def compressed(system: System, factor: float) -> System:
    """Divide times between failures and times of repair by a factor.

    Availabilities stay; services, delays, rates and lifetimes are not touched.
    """
    if not factor >= 1.0:
        raise InvalidInputError(f"--compress is {factor:g}; wants 1 or more")
    return _with_failures(
        system,
        lambda failure: Failure(
            up=failure.up.scaled(1.0 / factor), down=failure.down.scaled(1.0 / factor)
        ),
    )


def with_reconnection(system: System, brokers_s: float, links_s: float) -> System:
    """Lengthen every repair by the time to join again, in seconds: the system as events meet it.

    Every time down grows by it, and times up shrink, so that cycles stay as long as they are.
    """

    def later(failure: Failure, after_s: float) -> Failure:
        up_s = failure.up.mean_s
        if after_s >= up_s:
            raise InvalidInputError(
                f"reconnecting takes {after_s:.2g} s and the next failure comes after "
                f"{up_s:.2g} s on average; use a smaller --compress"
            )
        return Failure(
            up=failure.up.scaled(1.0 - after_s / up_s),
            down=shifted(failure.down, after_s),
        )

    return _with_failures(
        system, lambda failure: later(failure, brokers_s), lambda failure: later(failure, links_s)
    )


def without_failures(system: System) -> System:
    """Remove all failures from a system; brokers stay set up for what they would do about them.

    Servers that store events pass them on more slowly, whether anything fails or not.
    """
    return replace(
        system,
        failure_groups=(),
        brokers=tuple(replace(each, failure=None) for each in system.brokers),
        links=tuple(
            replace(
                each, there=replace(each.there, failure=None), back=replace(each.back, failure=None)
            )
            for each in system.links
        ),
    )


def failing(system: System) -> list[str]:
    """List the brokers and links of a system that fail, by themselves or in a group."""
    return list(dict.fromkeys(name for members, _ in _processes(system) for name in members))


def _with_failures(system: System, change: Change, of_links: Change | None = None) -> System:
    link_change = of_links or change

    def channel(one: Channel) -> Channel:
        return one if one.failure is None else replace(one, failure=link_change(one.failure))

    return replace(
        system,
        brokers=tuple(
            each if each.failure is None else replace(each, failure=change(each.failure))
            for each in system.brokers
        ),
        links=tuple(
            replace(each, there=channel(each.there), back=channel(each.back))
            for each in system.links
        ),
        failure_groups=tuple(
            replace(each, failure=change(each.failure)) for each in system.failure_groups
        ),
    )
