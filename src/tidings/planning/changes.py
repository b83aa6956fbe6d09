"""What may be changed in a system, as short sentences: ``rate all x2``, ``remove east``.

    rate nasdaq x2             publishers: times a factor, or to a rate (5/s) or a law
    speed hub x2               brokers: all their work is done so much faster
    service hub 3ms            brokers: another law, or times a factor
    delay hub--east x2         links between brokers and of peers; reliability hub--east 0.9
    availability hub 0.99      brokers and links that fail: repairs stay, times up change
    failure hub {mtbf: 9h, mttr: 5min}          brokers and links; none: never
    scheme bypass              what is done about failures; also refresh, timeout, detection
    on alice x2                mobile peers: also off; connectivity alice {...} or none
    members workers 6          consumer groups: also prefetch, ack_wait 30s, deliveries 5
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

A target is a name (in quotes where it has spaces), ``all``, ``at:BROKER``, or ``group:NAME``. With
one of many, those without what is to be changed are left as they are.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tidings.errors import InvalidInputError
from tidings.model.named_files import kept_below
from tidings.model.system import System
from tidings.planning.adjustments import ADJUSTMENTS, RECOVERIES, adjust, change_recovery
from tidings.planning.restructuring import PUTS, add, check_whole, move, put, remove

VERBS = (*ADJUSTMENTS, *RECOVERIES, *PUTS, "add", "move", "remove")
_WORD = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|(\S+))""")
_FORMS = {
    "add": "add NUMBER like SUBSCRIBER, or add NUMBER like SUBSCRIBER at BROKER",
    "move": "move PEER to BROKER",
    "remove": "remove NAME",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change as it was said: a verb, what it is about, and the rest of the sentence."""

    verb: str
    target: str = ""
    rest: str = ""
    text: str

    def refuse(self, want: str) -> InvalidInputError:
        """What is said where a change cannot be made out or made."""
        return InvalidInputError(f"the change {quoted(self.text)}: wants {want}")


def read_change(text: str) -> Change:
    """Make out a change; what it names is looked up when it is made.

    >>> read_change("delay 'a--b' x2").target
    'a--b'
    """
    verb, rest = _first_word(text)
    if verb not in VERBS:
        close = difflib.get_close_matches(verb, VERBS, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        raise InvalidInputError(
            f"the change {quoted(text)} begins with '{verb}'; wants one of {', '.join(VERBS)}{hint}"
        )
    if verb in RECOVERIES:
        return Change(verb=verb, rest=rest, text=text)
    target, rest = _first_word(rest)
    change = Change(verb=verb, target=target, rest=rest, text=text)
    if not target or not (rest or verb == "remove"):
        raise change.refuse(_FORMS.get(verb, f"{verb} NAME VALUE"))
    return change


def changed(system: System, changes: Sequence[str], below: Sequence[str] | None = None) -> System:
    """The system after all changes, made one after another and looked at as a whole at the end.

    Files that the changes name must lie below one of the folders ``below``; None: anywhere, for
    whoever types changes.
    """
    orders = [read_change(text) for text in changes]
    after = system
    for change in orders:
        try:
            with kept_below(below):
                after = _made(after, change)
        except InvalidInputError as error:
            headline = f"the change {quoted(change.text)}: {error.headline}"
            raise InvalidInputError(headline, error.problems) from error
    if all(change.verb in ADJUSTMENTS for change in orders):
        return after
    return check_whole(after, f"after {quoted(', '.join(changes))}")


def quoted(text: str) -> str:
    """A text between marks that it has none of itself, where there are such.

    >>> print(quoted("rate all x2"), quoted("remove 'a b'"))
    'rate all x2' "remove 'a b'"
    """
    return f'"{text}"' if "'" in text else f"'{text}'"


def in_quotes(name: str) -> str:
    """Write a name as changes may hold it, whatever is in it.

    >>> print(in_quotes("hub"), in_quotes("o'hara"))
    'hub' "o'hara"
    """
    return f'"{name}"' if "'" in name else f"'{name}'"


def _made(system: System, change: Change) -> System:
    if change.verb in RECOVERIES:
        return change_recovery(system, change.verb, change.rest)
    if change.verb in ADJUSTMENTS:
        return adjust(system, change.verb, change.target, change.rest)
    return _restructured(system, change)


def _restructured(system: System, change: Change) -> System:
    words = _words(change.rest)
    match change.verb, words:
        case "remove", []:
            return remove(system, change.target)
        case "move", ["to", home]:
            return move(system, change.target, home)
        case "add", ["like", model, *where] if change.target.isdecimal() and int(change.target):
            if not where:
                return add(system, int(change.target), model)
            if len(where) == 2 and where[0] == "at":
                return add(system, int(change.target), model, where[1])
    if change.verb in PUTS:
        return put(system, change.verb, change.target, change.rest)
    raise InvalidInputError(f"wants {_FORMS[change.verb]}")


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
