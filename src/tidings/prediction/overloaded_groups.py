"""Consumer groups that are offered more than they can do: nothing is in time there, in the end.

What waits for such a group holds nobody else up. So everybody else gets what they get in a system
in which its members take no time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import pandas as pd

from tidings.model.causes import Cause, Cost
from tidings.model.outcome import Outcome, table
from tidings.model.remarks import Remark
from tidings.model.system import System
from tidings.prediction.group_troubles import with_subscriber, without_trouble
from tidings.simulation.run import overloaded_groups


def without_queues(system: System, groups: Collection[str]) -> System:
    """Remove queues and processing times of these consumer groups."""
    subscribers = tuple(
        replace(each, consumers=None, processing=None) if each.name in groups else each
        for each in system.subscribers
    )
    return replace(system, subscribers=subscribers)


def with_overload(relieved: Outcome, system: System, groups: Mapping[str, str]) -> Outcome:
    """Put into the outcome of the system without their queues what becomes of these groups.

    ``groups`` says of each what is wrong with it.
    """
    causes = _causes(system, groups)
    rows = relieved.subscribers.copy()
    of = rows["subscriber"].isin(list(groups))
    gained = rows.loc[of, ["subscriber", "on_time", "error"]].itertuples(index=False, name=None)
    losses = [name for name in rows if name.startswith("lost_")]
    times = [name for name in rows if name.startswith("delay_") or name.endswith("_se")]
    rows.loc[of, ["on_time", "delivered", "late", *losses, "error"]] = 0.0
    rows.loc[of, "lost_overload"] = 1.0
    rows.loc[of, times] = float("nan")
    rows.loc[of, ["by", "why"]] = "theory", ""
    # What the group gets without its queue; with it, it gets nothing for certain.
    own = [Cost(cause, *gain).row(name) for name, *gain in gained for cause in causes[name]]
    others = relieved.causes[~relieved.causes["subscriber"].isin(list(groups))]
    remark = Remark(
        kind="overload",
        what="; ".join(groups.values()),
        where=tuple(groups),
        do="'tidings plan consumers' finds how many members a target needs",
    )
    return replace(
        relieved,
        subscribers=rows,
        causes=pd.concat([table("causes", own), others], ignore_index=True),
        delays=relieved.delays[~relieved.delays["subscriber"].isin(list(groups))],
        pairs=relieved.pairs[~relieved.pairs["subscriber"].isin(list(groups))],
        remarks=(*relieved.remarks, remark),
    )


def _causes(system: System, groups: Collection[str]) -> dict[str, list[Cause]]:
    """Find why each group cannot keep up: what it could do without, and its queue."""
    by_rate = overloaded_groups(system)
    causes = {}
    for place, own in enumerate(system.subscribers):
        if own.name not in groups:
            continue
        telling = [
            cause
            for cause, other in without_trouble(own)
            if (own.name in by_rate) != (cause.kind == "redelivery")
            and own.name not in overloaded_groups(with_subscriber(system, place, other))
        ]
        causes[own.name] = [*telling[:1], Cause("own queue", own.name)]
    return causes
