"""List what is wrong in a watched system: what moved, what waits, which promises are broken."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from tidings.model.system import System
from tidings.model.units import format_seconds
from tidings.watching import judging
from tidings.watching.certainty import LEAST_COUNT, certain
from tidings.watching.grouping import MOST_NAMED, Found, grouped
from tidings.watching.reference import learnt_values, queue_values
from tidings.watching.shares import WINDOWS_S, breaks_promise, burn_rates, find_unforeseen
from tidings.watching.standing import Look, queues
from tidings.watching.state import BACKLOG, CHANGED, TARGET, Alarm


def alarms(look: Look) -> list[Alarm]:
    """List everything that is wrong now."""
    if not look.at_ns:
        return []
    changed = list(_changed(look))
    found = [*(changed or _unforeseen(look)), *_backlogs(look), *_broken_promises(look)]
    return grouped(found, [each.name for each in look.lasting if each.until_ns is None])


def _broken_promises(look: Look) -> Iterator[Found]:
    subscribers = look.known.system.subscribers
    promised = {each.name: each.target for each in subscribers if each.target is not None}
    if not promised:
        return
    counted = look.counted.of(promised)
    targets = np.array(list(promised.values()))
    z = certain(len(promised) * len(WINDOWS_S), look.looks_per_day)  # each window is a test
    sure = burn_rates(counted, targets, look.at_ns, z=z)
    rates = burn_rates(counted, targets, look.at_ns)
    names = list(promised)
    for n in np.argsort(-rates["1h"], kind="stable").tolist():  # the worst first
        name, target = names[n], promised[names[n]]
        surely, now = (
            {window: float(each[n]) for window, each in of.items()} for of in (sure, rates)
        )
        if breaks_promise(surely, now, target):
            yield Found(
                Alarm(
                    name=f"{TARGET} {name}",
                    kind=TARGET,
                    where=(name,),
                    what="fewer events are on time than promised",
                    size=now["1h"],
                    unit="times the budget",
                    since_ns=look.newest_ns,
                ),
                sort=f"{TARGET} *",
                many="subscribers get fewer events on time than promised",
            )


def _changed(look: Look) -> Iterator[Found]:
    if look.found is None:
        return
    counted, counted_before = queue_values(look.queues, look.queues_before)
    reference = look.known.values | counted_before
    learnt = learnt_values(look.found) | counted
    over_longer = {} if look.longer is None else learnt_values(look.longer)
    lasting = [
        each.name.partition(" ")[2]
        for each in look.lasting
        if each.kind == CHANGED and each.until_ns is None
    ]
    missed = judging.find_gone(look.newest, look.known.delivered, look.looks_per_day)
    gone = sorted({*missed, *judging.find_cut_off(learnt, reference)})
    heard = {name for name, _ in judging.owners(learnt, "publishers", "rate")}
    provenance = look.found.measured.provenance
    watched_s = (provenance["until_ns"] - provenance["from_ns"]) / 1e9
    silent = judging.find_silent(reference, heard, watched_s * look.sampled, look.looks_per_day)
    homes = {each.name: each.at for each in look.known.system.publishers}
    homes |= {each.name: each.at for each in look.known.system.subscribers}
    yield from _outages(look)
    yield from _unknown(look, look.found.system)
    for kind, names, words, many in (
        (
            "gone",
            gone,
            "subscriber receives next to nothing any more",
            "subscribers receive next to nothing any more",
        ),
        ("silent", silent, "publisher has fallen silent", "publishers have fallen silent"),
    ):
        for name in names:
            home = homes.get(name)
            yield Found(
                Alarm(
                    name=f"{CHANGED} {kind} {name}",
                    kind=CHANGED,
                    where=(name,),
                    what=words,
                    size=0.0,
                    unit="events",
                    since_ns=look.newest_ns,
                    cause=f"broker {home} is down" if home in look.down_since else "",
                ),
                sort=f"{CHANGED} {kind} *",
                many=many,
            )
    tests = (learnt, {path: value for path, value in over_longer.items() if _is_rare(path, learnt)})
    for moved in (
        each
        for values in tests
        for each in judging.find_moved(values, reference, look.looks_per_day, lasting)
    ):
        if not (moved.path.startswith("subscribers.") and moved.name in gone):
            yield Found(
                Alarm(
                    name=f"{CHANGED} {moved.path}",
                    kind=CHANGED,
                    where=(moved.name,),
                    what=moved.words,
                    size=moved.size,
                    unit=moved.unit,
                    since_ns=look.newest_ns,
                    cause=moved.story,
                ),
                sort=f"{CHANGED} {moved.sort}",
                many=moved.words_of_many,
            )


def _outages(look: Look) -> Iterator[Found]:
    """Yield alarms for brokers and links that are recorded to be down."""
    for name, since_ns in sorted(look.down_since.items()):
        component = "link" if "--" in name else "broker"
        yield Found(
            Alarm(
                name=f"{CHANGED} down {name}",
                kind=CHANGED,
                where=(name,),
                what=f"{component} is down",
                size=max(look.at_ns - since_ns, 0) / 1e9,
                unit="s",
                since_ns=since_ns,
            ),
            sort=f"{CHANGED} down {component}s",
            many=f"{component}s are down",
        )


def _unknown(look: Look, found: System) -> Iterator[Found]:
    """Yield alarms for publishers, brokers and subscribers that the known system does not have."""
    known = look.known.system
    for word, before, now in (
        ("publishers", known.publishers, found.publishers),
        ("brokers", known.brokers, found.brokers),
        ("subscribers", known.subscribers, found.subscribers),
    ):
        names = sorted({each.name for each in now} - {each.name for each in before})
        if names:
            yield Found(
                Alarm(
                    name=f"{CHANGED} unknown {word}",
                    kind=CHANGED,
                    where=tuple(names[:MOST_NAMED]),
                    what=f"{word} that the system does not have",
                    size=len(names),
                    unit="of them",
                    since_ns=look.newest_ns,
                ),
                sort=f"{CHANGED} unknown {word}",
            )


def _is_rare(path: str, learnt: Mapping[str, judging.Value]) -> bool:
    """Test whether the newest part has too little of something to tell."""
    return path not in learnt or learnt[path].count < LEAST_COUNT


def _unforeseen(look: Look) -> Iterator[Found]:
    """Yield alarms for shares that are not as predicted, where no parameter says why."""
    foretold = look.known.shares
    counted, looks_per_day = look.counted.of(foretold), 2 * look.looks_per_day  # two tests each
    recent = counted.since(look.since_ns)
    found = find_unforeseen(recent, foretold, looks_per_day)
    # What began minutes ago is a part of the window, and makes its stretches differ. That for some
    # minutes nothing is late is no news where queues come and go.
    newest = counted.since(look.at_ns - round(WINDOWS_S["5m"] * 1e9))
    off_lately = find_unforeseen(newest, foretold, looks_per_day)
    sudden = {name: by for name, by in off_lately.items() if by < 0}
    found |= sudden
    for name, by in sorted(found.items(), key=lambda each: -abs(each[1])):
        more_or_fewer = "fewer" if by < 0 else "more"
        yield Found(
            Alarm(
                name=f"{CHANGED} share {name}",
                kind=CHANGED,
                where=(name,),
                what=f"{more_or_fewer} events are on time than predicted",
                size=by,
                unit="of events",
                since_ns=int((newest if name in sudden else recent).from_ns[0]),
            ),
            sort=f"{CHANGED} share * {more_or_fewer}",
            many=f"subscribers get {more_or_fewer} events on time than predicted",
        )


def _backlogs(look: Look) -> Iterator[Found]:
    waits = look.known.waits
    usual = {
        name: judging.unusual_wait_s(wait_s, busy, len(waits), look.looks_per_day)
        for name, (wait_s, busy) in waits.items()
        if math.isfinite(wait_s)
    }
    for queue in queues(look):
        if judging.is_behind(queue, usual.get(queue.name, 0.0), look.look_s):
            cause = "events come faster than they are served, so that soon all will be late"
            if math.isfinite(queue.catch_up_s):
                late = look.known.late_until_gone(queue.name, queue.wait_s)
                cause = (
                    f"they are gone after {format_seconds(queue.catch_up_s)} if nothing changes; "
                    f"{100.0 * late:.0f} % of what passes until then will be late"
                )
            yield Found(
                Alarm(
                    name=f"{BACKLOG} {queue.name}",
                    kind=BACKLOG,
                    where=(queue.name,),
                    what="events wait",
                    size=queue.waiting,
                    unit="events",
                    since_ns=look.newest_ns,
                    cause=cause,
                ),
                sort=f"{BACKLOG} *",
                many="brokers have events waiting",
            )
