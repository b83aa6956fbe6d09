"""Alarms of one sort that begin together: many of them are one."""

from __future__ import annotations

from tidings.watching.grouping import MOST_ALONE, MOST_NAMED, Found, grouped
from tidings.watching.state import Alarm


def late(name, cause="the deadline", sort="target *"):
    alarm = Alarm(
        name=f"{sort.removesuffix('*')}{name}", kind="target", where=(name,),
        what="fewer events are on time than promised", size=3.0, unit="times the budget",
        since_ns=int(name), cause=cause,
    )  # fmt: skip
    return Found(alarm, sort, "subscribers get fewer events on time than promised")


def names(alarms):
    return [each.name for each in alarms]


def test_a_few_are_told_one_by_one():
    few = [late(str(n)) for n in range(MOST_ALONE)]
    assert grouped(few, []) == [each.alarm for each in few]


def test_many_are_one_alarm_that_names_the_worst():
    other = late("7", sort="changed gone *")
    one, another = grouped([late(str(n)) for n in range(500)] + [other], [])
    assert one.sentence() == (
        "subscribers get fewer events on time than promised (0, 1, 2, 3, 4): 500 of them"
        "; because the deadline"
    )
    assert (one.name, one.since_ns, len(one.where)) == ("target *", 0, MOST_NAMED)
    assert another == other.alarm  # of another sort
    (mixed,) = grouped([late(str(n), cause=str(n)) for n in range(500)], [])
    assert mixed.cause == ""  # nothing is the cause of all


def test_those_that_lasted_alone_stay_alone_and_a_group_lasts_while_one_is_left():
    begun = names(grouped([late(str(n)) for n in range(3)], []))
    assert begun == ["target 0", "target 1", "target 2"]
    more = grouped([late(str(n)) for n in range(100)], begun)
    assert names(more) == [*begun, "target *"]
    assert more[-1].size == 97
    fewer = grouped([late(str(n)) for n in range(4)], names(more))
    assert names(fewer) == [*begun, "target *"]
    assert (fewer[-1].size, fewer[-1].where) == (1, ("3",))
    assert names(grouped([late(str(n)) for n in range(3)], names(fewer))) == begun
