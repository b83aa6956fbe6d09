"""What a change is, as data, and what can be changed: whose, what a value looks like."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tidings.model.laws import Law
from tidings.model.records import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """How many times what it was."""

    times: float


class Change(NamedTuple):
    """One change: a verb, whom it is about, and the value that its verb takes.

    That is a number, law or record as system files give them, a :class:`Factor`, or None for
    "none"; of ``move`` the new home, of ``add`` the number and the home (or None).
    """

    verb: str
    target: str = ""
    value: Any = None

    def scaled(self, power: float) -> Change:
        """Raise its factor to a power, in three digits, rather further from 1 than nearer."""
        times = self.value.times**power
        unit = 10.0 ** (math.floor(math.log10(times)) - 2)
        digits = math.ceil(times / unit - 1e-9) if times > 1.0 else math.floor(times / unit + 1e-9)
        return self._replace(value=Factor(times=float(f"{digits * unit:.3g}")))


def times(verb: str, target: str, factor: float) -> Change:
    """Make the change of something to so many times what it was."""
    return Change(verb, target, Factor(times=factor))


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """One thing that can be changed: whose it is, what a value looks like, and what it does.

    ``edit`` gives the record with the value, which may be a :class:`Factor` (where ``scales``) or
    None for "none"; it gives None where the record has nothing to change.
    """

    sections: tuple[str, ...]
    kind: Kind | None  # None: a factor only
    edit: Callable[[Any, Any], Any]
    scales: bool = True
    may_be_none: bool = False


def new_law(old: Law | None, value: Any) -> Law | None:
    """Give the new law; with a factor, the old one scaled, and None where there was none."""
    if not isinstance(value, Factor):
        return value  # type: ignore[no-any-return]
    return None if old is None else old.scaled(value.times)


def own_field(field: str) -> Callable[[Any, Any], Any]:
    """Make an edit of a record's own field, a value or a law."""

    def edit(record: Any, value: Any) -> Any:
        old = getattr(record, field)
        if isinstance(value, Factor) and old is None:
            return None
        return replace(record, **{field: new_law(old, value)})

    return edit
