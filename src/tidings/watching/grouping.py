"""Put alarms together where many of a sort begin at once: nobody reads ten thousand of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import NamedTuple

from tidings.watching.state import Alarm

MOST_ALONE = 10  # alarms of one sort
MOST_NAMED = 5  # of a group


class Found(NamedTuple):
    """An alarm, and what many of its sort are called together."""

    alarm: Alarm
    sort: str  # the name of the alarm that many of them make
    many: str = ""  # and what it says


def grouped(found: Iterable[Found], lasting: Collection[str]) -> list[Alarm]:
    """Make one alarm of many of a sort, in the place of the first; those that lasted stay alone.

    A group lasts until none of it is left, so that it does not come and go with its size.
    """
    every = list(found)
    sizes = Counter(each.sort for each in every)
    many: dict[str, list[Found]] = {}
    alarms: list[Alarm | str] = []
    for each in every:
        is_one_of_many = each.sort in lasting or sizes[each.sort] > MOST_ALONE
        if not is_one_of_many or each.alarm.name in lasting:
            alarms.append(each.alarm)
            continue
        if each.sort not in many:
            alarms.append(each.sort)
        many.setdefault(each.sort, []).append(each)
    return [_together(many[each]) if isinstance(each, str) else each for each in alarms]


def _together(many: list[Found]) -> Alarm:
    """Make one alarm of many; the first of them are named."""
    places = dict.fromkeys(name for each in many for name in each.alarm.where)
    causes = {each.alarm.cause for each in many}
    return replace(
        many[0].alarm,
        name=many[0].sort,
        where=tuple(places)[:MOST_NAMED],
        what=many[0].many,
        size=len(many),
        unit="of them",
        count=len(many),
        since_ns=min(each.alarm.since_ns for each in many),
        cause=causes.pop() if len(causes) == 1 else "",
    )
