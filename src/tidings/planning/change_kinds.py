"""What a change can be: whose, what its value looks like, and what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tidings.model.laws import Law
from tidings.model.records import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """How many times what it was."""

    times: float


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
