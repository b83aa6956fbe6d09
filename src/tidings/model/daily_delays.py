"""How delays follow the time of day: by how much longer they are in each part of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.model import records
from tidings.model.arrays import Floats
from tidings.model.document import Place
from tidings.model.records import Kind, spec


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyDelays:
    """How many times as long delays are by time of day, slot by slot, over and over."""

    slot_s: float = spec(records.POSITIVE_TIME, "length of one slot", key="slot")
    times: tuple[float, ...] = spec(
        records.listing(records.number_from(0.0), least=1),
        "in each slot, from the start of the day: how many times as long as 'delay'",
    )

    @property
    def length_s(self) -> float:
        """How long all slots together are, in seconds."""
        return self.slot_s * len(self.times)

    def at(self, since_s: Floats) -> Floats:
        """Give how many times as long delays are, so many seconds after a day began.

        >>> DailyDelays(slot_s=3600.0, times=(1.0, 2.0)).at(np.array([0.0, 5400.0, 7200.0]))
        array([1., 2., 1.])
        """
        slots = np.floor(since_s / self.slot_s).astype(np.int64) % len(self.times)
        slower: Floats = np.array(self.times)[slots]
        return slower


def _read_daily_delays(place: Place) -> DailyDelays | None:
    delays: DailyDelays | None = records.read_record(DailyDelays, place)
    if delays is not None and 0.0 in delays.times:
        place.inside("times").report("numbers above 0")
    return delays


DAILY_DELAYS = Kind(
    label="DailyDelays",
    read=_read_daily_delays,
    write=records.record_document,
    schema=lambda: {"$ref": "#/$defs/DailyDelays"},
)
