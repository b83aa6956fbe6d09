"""What may go wrong in the live demo."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Mishap(StrEnum):
    """What goes wrong."""

    SLOW = "slow"
    CUT = "cut"
    BURST = "burst"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a mishap is said to be, and the name that an alarm must give."""

    where: str
    says: str


SLOW, CUT, OFTEN = "hub", "hub--south", "orders"
TIMES_SLOWER, TIMES_AS_OFTEN = 4.0, 3
MISHAPS = {
    Mishap.SLOW: Told(where=SLOW, says=f"{SLOW} takes {TIMES_SLOWER:g} times as long per event"),
    Mishap.CUT: Told(where=CUT, says=f"the link {CUT} is cut"),
    Mishap.BURST: Told(where=OFTEN, says=f"{OFTEN} publishes {TIMES_AS_OFTEN} times as often"),
}
