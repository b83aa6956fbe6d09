"""Batches: events that are sent together, or fetched and handled together."""

from __future__ import annotations

from dataclasses import dataclass

from tidings.model import records
from tidings.model.records import spec

MOST_IN_BATCH = 100_000
HANDLED = ("one by one", "together")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Events that a publisher gathers and sends over its link as one."""

    size: int = spec(records.whole(1, MOST_IN_BATCH), "events after which a batch leaves")
    linger_s: float = spec(
        records.TIME, "it leaves when its first event has waited so long", key="linger"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """Events that a member of a group takes at a time, when it is done with those before."""

    size: int = spec(records.whole(1, MOST_IN_BATCH), "events at most", aka=("count", "max"))
    linger_s: float = spec(
        records.TIME,
        "with fewer it waits until the first of them has waited so long",
        default=0.0,
        key="linger",
        aka=("max_wait", "fetch_max_wait_ms", "timeout", "expires"),
    )
    handled: str = spec(
        records.choice(*HANDLED),
        "whether each event takes the time 'processing', or all of them together",
        default=HANDLED[0],
    )

    @property
    def together(self) -> bool:
        """Whether all of a batch are handled in the time of one."""
        return self.handled == HANDLED[1]
