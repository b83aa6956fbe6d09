"""What may be changed in a system, and the short sentences that say it: ``rate all x2``.

    rate nasdaq x2             publishers: times a factor, or to a rate (5/s) or a law
    speed hub x2               brokers: all their work is done so much faster
    service hub 3ms            brokers: another law, or times a factor
    delay hub--east x2         links between brokers and of peers; also bandwidth hub--east x2,
                               reliability hub--east 0.9
    availability hub 0.99      brokers, links, failure groups: repairs stay, times up change
    failure hub {mtbf: 9h, mttr: 5min}          the same; none: never
    scheme bypass              what is done about failures; also refresh, timeout, detection
    on alice x2                mobile peers: also off; connectivity alice {...} or none
    members workers 6          consumer groups: also prefetch, ack_wait 30s, deliveries 5,
                               partitions workers 12 (hot keys stay as hot as they are), keys
                               workers even, choose workers least busy, member workers {m1: 5ms},
                               crashes workers none
    batch agent none           publishers: what they send as one; or {size: 10, linger: 5ms}
    bursts cron none           publishers that publish unevenly: as often, but at random times
    processing alice x0.5      the time that a subscriber takes for an event
    stays all x0.5             subscriptions that come and go; also away
    lifetime all x0.5          of all events, of a publisher's, or what a subscriber takes as late
    servers hub 4              brokers
    target alice 0.99          the share that a subscriber should get
    move at:east to west       peers to another home broker
    remove east                a broker with its links and peers, a link, or a peer
    add 100 like alice at east subscribers
    broker new {...}           a record as in the system file, new or instead; also link a--b,
                               publisher and subscriber

Changes that are made together may stand in one text: ``speed hub x2; rate all x2``.

A target is a name (in quotes where it has spaces), ``all``, ``at:BROKER``, or ``group:NAME``. With
one of many, those without what is to be changed are left as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tidings.errors import InvalidInputError
from tidings.model import reading, records, units
from tidings.model.document import Place, meant_name
from tidings.model.named_files import kept_below
from tidings.model.record_tables import names
from tidings.model.records import Kind
from tidings.model.system import LINK, Broker, Link, Publisher, Subscriber, System
from tidings.planning.adjustments import (
    ADJUSTMENTS,
    NOTHING,
    RECOVERIES,
    SETTINGS,
    adjust,
    read_setting,
    read_value,
)
from tidings.planning.change_kinds import Change, Factor
from tidings.planning.choices import ALL
from tidings.planning.selections import check_target, edited, means

PUTS = {"broker": Broker, "link": Link, "publisher": Publisher, "subscriber": Subscriber}
_ALL = ("brokers", "links", "publishers", "subscribers")


def check_whole(system: System, name: str) -> System:
    """Read the system anew; what no longer fits together is reported as for any system file."""
    return reading.from_document(reading.system_document(system), name)


def remove(system: System, target: str) -> System:
    """Remove a broker (with its links and peers), a link or a peer, and all that mentions them."""
    check_target(system, _ALL, target)
    gone = {broker.name for broker in system.brokers if means(target, broker)}
    kept: dict[str, Any] = {
        "brokers": _kept(system.brokers, target),
        "links": tuple(
            link for link in _kept(system.links, target) if not gone & set(link.between)
        ),
        "publishers": tuple(p for p in _kept(system.publishers, target) if p.at not in gone),
        "subscribers": tuple(s for s in _kept(system.subscribers, target) if s.at not in gone),
    }
    left = {record.name for section in kept.values() for record in section}
    groups = (
        replace(group, members=tuple(name for name in group.members if name in left))
        for group in system.failure_groups
    )
    return replace(
        system,
        **kept,
        failure_groups=tuple(group for group in groups if group.members),
        standard_errors=_known_errors(system, left),
    )


def _kept(records: Iterable[Any], target: str) -> tuple[Any, ...]:
    return tuple(record for record in records if not means(target, record))


def _known_errors(system: System, left: set[str]) -> tuple[tuple[str, float], ...]:
    def owner_is_left(path: str) -> bool:
        _, *steps = path.split(".")
        return any(".".join(steps[:length]) in left for length in range(1, len(steps) + 1))

    return tuple(each for each in system.standard_errors if owner_is_left(each[0]))


def move(system: System, target: str, home: str) -> System:
    """Move peers to another home broker."""
    peers = tuple(s for s in ("publishers", "subscribers") if _has(system, s, target))
    return edited(system, peers or ("subscribers",), target, lambda peer: replace(peer, at=home))


def _has(system: System, section: str, target: str) -> bool:
    return any(means(target, record) for record in getattr(system, section))


def add(system: System, count: int, model: str, home: str | None) -> System:
    """Add so many subscribers like an existing one, at its broker or at another."""
    check_target(system, ("subscribers",), model)
    like = next((each for each in system.subscribers if each.name == model), None)
    if like is None:
        raise InvalidInputError(f"wants the name of one subscriber, not '{model}'")
    at = home or like.at
    taken = set(names(system.subscribers))
    name = f"{count} like {model} at {at}"
    while name in taken:
        name += " again"
    new = replace(like, name=name, at=at, count=count)
    return replace(system, subscribers=(*system.subscribers, new))


def put(system: System, section: str, record: Any) -> System:
    """Put in a record: new, or in place of the one of that name."""
    old = tuple(getattr(system, section))
    at = next((index for index, each in enumerate(old) if means(record.name, each)), len(old))
    changes: dict[str, Any] = {section: (*old[:at], record, *old[at + 1 :])}
    return replace(system, **changes)


# ---- sentences -----------------------------------------------------------------------------------

VERBS = (*SETTINGS, *PUTS, "add", "move", "remove")
_WORD = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|(\S+))""")
# What "; " stands in and parts nothing: quotes, as they begin a word or a text in a record.
_PARTING = re.compile(r"""(?<![^\s\[{:,])(?:"(?:\\.|[^"\\])*"|'[^']*')|(;(?:\s+|$))""")
_FORMS = {
    "add": "add NUMBER like SUBSCRIBER, or add NUMBER like SUBSCRIBER at BROKER",
    "move": "move PEER to BROKER",
    "remove": "remove NAME",
}


def read_changes(text: str) -> list[Change]:
    """Make out changes that are made together, one or more, as :func:`sentences` writes them.

    >>> [change.target for change in read_changes("speed 'a; b' x2; remove c")]
    ['a; b', 'c']
    """
    return [read_change(each) for each in _parted(text)]


def _parted(text: str) -> list[str]:
    """Part a text at each semicolon that space follows and no quotes hold."""
    ends = [match for match in _PARTING.finditer(text) if match.group(1)]
    starts = [0, *(match.end() for match in ends)]
    stops = [*(match.start() for match in ends), len(text)]
    parts = [text[start:stop] for start, stop in zip(starts, stops, strict=True)]
    return [each for each in parts if each.strip()] or [text]


def read_change(text: str) -> Change:
    """Make out a change; what it names is looked up when it is made.

    >>> read_change("delay 'a--b' x2")
    Change(verb='delay', target='a--b', value=Factor(times=2.0))
    """
    verb, rest = _first_word(text)
    if verb not in VERBS:
        hint = meant_name(verb, VERBS)
        wanted = f"wants one of {', '.join(VERBS)}" + (f"; {hint}" if hint else "")
        raise InvalidInputError(f"the change {quoted(text)} begins with '{verb}'; {wanted}")
    target = ""
    if verb not in RECOVERIES:
        target, rest = _first_word(rest)
    with _about(text):
        if verb not in RECOVERIES and not (target and (rest or verb == "remove")):
            raise InvalidInputError(f"wants {_FORMS.get(verb, f'{verb} NAME VALUE')}")
        if verb in SETTINGS:
            return Change(verb, target, read_setting(verb, rest))
        if verb in PUTS:
            return Change(verb, target, read_value(_whole(verb, target), rest))
        return _restructuring(verb, target, _words(rest))


def _restructuring(verb: str, target: str, words: list[str]) -> Change:
    match verb, words:
        case "remove", []:
            return Change(verb, target)
        case "move", ["to", home]:
            return Change(verb, target, home)
        case "add", ["like", model] if target.isdecimal() and int(target):
            return Change(verb, model, (int(target), None))
        case "add", ["like", model, "at", home] if target.isdecimal() and int(target):
            return Change(verb, model, (int(target), home))
    raise InvalidInputError(f"wants {_FORMS[verb]}")


def _whole(verb: str, name: str) -> Kind:
    """Make the kind of whole records of a name, written as in a system file."""

    def read(place: Place) -> Any:
        if verb != "link":
            return records.read_record(PUTS[verb], place, name=name)
        value = place.value if isinstance(place.value, dict) else {}
        return LINK.read(place.instead({"between": name.split("--"), **value}))

    write = LINK.write if verb == "link" else records.record_document
    return Kind(label=verb, read=read, write=write, schema=dict)


def sentence(change: Change) -> str:
    """Write a change as ``whatif`` takes it.

    >>> print(sentence(Change("speed", "hub", Factor(times=2.0))))
    speed 'hub' x2
    """
    verb, target, value = change
    whom = target if target in ("", ALL) else quoted(target)
    if verb == "add":
        count, home = value
        return f"add {count} like {whom}" + (f" at {quoted(home)}" if home else "")
    if verb == "move":
        return f"move {whom} to {quoted(value)}"
    return " ".join(filter(None, (verb, whom, "" if verb == "remove" else _written(change))))


def sentences(changes: Iterable[Change]) -> str:
    """Write changes that are made together."""
    return "; ".join(map(sentence, changes))


def _written(change: Change) -> str:
    """Write the value that a change gives."""
    verb, target, value = change
    if value is None:
        return NOTHING
    if isinstance(value, Factor):
        return f"x{value.times:.12g}"
    kind = _whole(verb, target) if verb in PUTS else SETTINGS[verb].kind
    assert kind is not None  # without one there are factors alone
    if kind in (records.TIME, records.POSITIVE_TIME):
        return units.short_seconds(value)
    document = kind.write(value)
    if isinstance(document, str):
        return document
    return json.dumps(document, ensure_ascii=False).removesuffix(".0")


# ---- changing ------------------------------------------------------------------------------------


def changed(
    system: System, changes: Sequence[Change | str], below: Sequence[str] | None = None
) -> System:
    """Make changes one after another and check the system as a whole at the end.

    A text may hold several, as :func:`read_changes` reads them. Files that the changes name must
    lie below one of the folders ``below``; None: anywhere, for whoever types changes.
    """
    parts = [
        part for each in changes for part in (_parted(each) if isinstance(each, str) else [each])
    ]
    said = [each if isinstance(each, str) else sentence(each) for each in parts]
    with kept_below(below):
        orders = [read_change(each) if isinstance(each, str) else each for each in parts]
    after = system
    for text, change in zip(said, orders, strict=True):
        with _about(text):
            after = _made(after, change)
    if all(change.verb in ADJUSTMENTS for change in orders):
        return after
    return check_whole(after, f"after {quoted(', '.join(said))}")


@contextmanager
def _about(text: str) -> Iterator[None]:
    """Say of errors which change they are about."""
    try:
        yield
    except InvalidInputError as error:
        headline = f"the change {quoted(text)}: {error.headline}"
        raise InvalidInputError(headline, error.problems) from error


def quoted(text: str) -> str:
    """Quote a text with marks that it does not contain itself, where there are such.

    >>> print(quoted("rate all x2"), quoted("remove 'a b'"))
    'rate all x2' "remove 'a b'"
    """
    return f'"{text}"' if "'" in text else f"'{text}'"


def _made(system: System, change: Change) -> System:
    verb, target, value = change
    if verb in SETTINGS:
        return adjust(system, verb, target, value)
    if verb in PUTS:
        return put(system, f"{verb}s", value)
    if verb == "remove":
        return remove(system, target)
    if verb == "move":
        return move(system, target, value)
    count, home = value
    return add(system, count, target, home)


def _first_word(text: str) -> tuple[str, str]:
    matched = _WORD.match(text)
    if matched is None:
        return "", ""
    word = next(group for group in matched.groups() if group is not None)
    return word, text[matched.end() :].strip()


def _words(text: str) -> list[str]:
    words = []
    while text:
        word, text = _first_word(text)
        words.append(word)
    return words
