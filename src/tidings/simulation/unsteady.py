"""Consumer groups of which runs cannot tell what they get in the long run, and why.

A group that never leaves a backlog again (it is *metastable*) does well in a run until there is
one, so that runs of another length, or with other numbers, say something else. What is certain is
that it gets no more than they show.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from tidings.model.arrays import Floats
from tidings.model.remarks import UNSTEADY, Remark
from tidings.simulation.hot_partitions import may_take_over
from tidings.simulation.saturation import metastable_groups

if TYPE_CHECKING:
    from tidings.simulation.totals import Totals

NOTHING = 0.001  # share on time of all runs together; in more, some of them had not collapsed yet


def unsteady_units(totals: Totals) -> dict[int, Remark]:
    """Find the units whose shares may be anything below those that were seen, and say so of each.

    A metastable group in which nothing was handled twice has shown no sign of it: what is said of
    it holds until something else brings about a backlog.
    """
    compiled, found = totals.compiled, {}
    metastable = dict(metastable_groups(compiled))
    for number, group in enumerate(compiled.groups):
        name = group.subscriber.name
        for unit in np.flatnonzero(totals.units.receiver == group.receiver).tolist():
            if number in metastable and totals.redelivered[unit, 0] > 0:
                found[unit] = _of_redelivery(name, metastable[number])
            elif may_take_over(compiled, number):
                found[unit] = _of_crashes(name)
    return found


def with_unsteady(widths: Floats, shares: Floats, unsteady: Mapping[int, Remark]) -> Floats:
    """Widen half-widths so that they reach from the shares of these units to nothing."""
    units = list(unsteady)
    widths, reached = widths.copy(), shares[units]
    least = np.where(reached <= NOTHING, NOTHING, widths[units])
    widths[units] = np.fmax(least, reached)
    return widths


def _of_redelivery(name: str, handled_per_s: float) -> Remark:
    return Remark(
        kind=UNSTEADY,
        what="redeliveries use up the spare capacity of this consumer group whenever it has a "
        "backlog, which then never goes away: sooner or later nothing is in time",
        where=(name,),
        size=handled_per_s,
        unit="events/s is all it can handle then, fewer than come",
        do="use a longer 'ack_wait' or a smaller 'prefetch'",
    )


def _of_crashes(name: str) -> Remark:
    return Remark(
        kind=UNSTEADY,
        what="members of this consumer group that take over an overloaded partition from one that "
        "has crashed may be late with all they have, which is not simulated",
        where=(name,),
        do="see to the overloaded partition first",
    )
