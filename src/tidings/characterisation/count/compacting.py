"""Keep a store small while it grows: short parts become hours, hours become days, old ones go.

What later parts need of the old ones is carried over first, so that neither adding a part nor
dropping one depends on how much there has been. Like all changes of a store, it is one exchange of
``store.json``: a run that is killed leaves the store as it was, and one that has nothing to do
changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from pyspark.sql import SparkSession

from tidings.characterisation.count.carrying import PastChanges, is_in_order
from tidings.characterisation.count.merging import put_together
from tidings.characterisation.count.store import (
    Catalogue,
    StorePart,
    counted_subscriptions,
    locked,
    read_catalogue,
    stretches_of,
    write_catalogue,
)
from tidings.model.progress import Progress
from tidings.traces.window import DAY_NS, HOUR_NS

MOST_UNCARRIED = 16  # parts whose changes are read when another is added
# How long parts become, and how long ago they must have ended by then: what is judged of the last
# hour is judged of parts as they were counted.
SIZES = ((HOUR_NS, HOUR_NS), (DAY_NS, DAY_NS))
Sizes = Sequence[tuple[int, int]]


def compact(
    session: SparkSession,
    store: Path,
    *,
    keep_s: float | None = None,
    sizes: Sizes = SIZES,
    most_uncarried: int = MOST_UNCARRIED,
    progress: Progress | None = None,
) -> None:
    """Put old parts of a store together, and drop those that ended more than ``keep_s`` ago.

    Times are those of the store: from the end of its last part. Numbers of what is kept stay the
    same. Only parts that were added in the order of time, with changes of their own time, are put
    together: others may say something of each other's time.
    """
    tell = progress or (lambda stage: None)
    with locked(store, alone=True):
        before = read_catalogue(store)
        if before is None or not before.parts:
            return
        catalogue = _carried_on(session, store, before, most_uncarried, tell)
        for length_ns, age_ns in sizes:
            for group in _groups(catalogue, length_ns, age_ns):
                tell("putting parts together")
                catalogue = _with_one(store, catalogue, group)
        if keep_s is not None:
            tell("dropping old parts")
            catalogue = _dropped(catalogue, round(keep_s * 1e9))
        if catalogue != before:
            tell("exchanging the catalogue")
            write_catalogue(store, catalogue)


def _carried_on(
    session: SparkSession, store: Path, catalogue: Catalogue, most: int, tell: Progress
) -> Catalogue:
    """Carry over all parts but the last, if more than ``most`` are not carried yet and in order."""
    waiting = catalogue.uncarried(catalogue.parts)
    if len(waiting) <= most or not is_in_order(store, waiting, catalogue.carried):
        return catalogue
    tell("carrying over what still stands")
    past = PastChanges(session=session, store=store, carried=catalogue.carried, parts=waiting[:-1])
    return replace(catalogue, carried=past.carry(catalogue.margin_s))


def _groups(catalogue: Catalogue, length_ns: int, age_ns: int) -> list[list[StorePart]]:
    """List groups of two or more parts that begin in the same hour, say, and ended long enough ago.

    Only parts that are carried are among them.
    """
    done_ns = catalogue.parts[-1].until_ns - age_ns
    carried_ns = -1 if catalogue.carried is None else catalogue.carried.until_ns
    groups = [
        list(group)
        for stretch in stretches_of(catalogue.parts)
        for number, group in groupby(stretch, lambda part: part.from_ns // length_ns)
        if (number + 1) * length_ns <= done_ns
    ]
    return [
        group
        for group in groups
        if len(group) > 1 and group[-1].until_ns <= min(carried_ns, done_ns)
    ]


def _with_one(store: Path, catalogue: Catalogue, group: Sequence[StorePart]) -> Catalogue:
    """Put several parts of a store together as one."""
    steps = counted_subscriptions(store, catalogue.uncarried(catalogue.parts), catalogue.carried)
    part, seams = put_together(store, group, catalogue.seams, steps)
    others = [each for each in catalogue.parts if each not in group]
    parts = sorted((*others, part), key=lambda each: each.from_ns)
    return replace(catalogue, parts=tuple(parts), seams=seams)


def _dropped(catalogue: Catalogue, keep_ns: int) -> Catalogue:
    """Drop the parts that are too old; what is carried of them stays."""
    oldest_ns = catalogue.parts[-1].until_ns - keep_ns
    old = {part.folder for part in catalogue.parts if part.until_ns <= oldest_ns}
    old -= {part.folder for part in catalogue.uncarried(catalogue.parts)}
    return replace(
        catalogue,
        parts=tuple(part for part in catalogue.parts if part.folder not in old),
        seams=tuple(each for each in catalogue.seams if each.before not in old),
    )
