"""Which records of a system are meant: one by name, all, those at a broker, those of a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tidings.errors import InvalidInputError
from tidings.model.document import meant_name
from tidings.model.record_tables import names
from tidings.model.system import Broker, FailureGroup, Link, SharedNetwork, Subscriber, System
from tidings.planning.choices import ALL

AT, GROUP = "at:", "group:"
Edit = Callable[[Any], Any]  # a record as it will be; None where there is nothing to change
GONE = object()  # what a record becomes that is to go


def edited(system: System, sections: Sequence[str], target: str, edit: Edit) -> System:
    """Apply an edit to every record that a target means.

    Raises where the target means nobody, or nobody that has what is to be edited.
    """
    check_target(system, sections, target)
    edits = 0
    parts: dict[str, Any] = {}
    for section in sections:
        records = list(getattr(system, section))
        for index, record in enumerate(records):
            if means(target, record):
                new = edit(record)
                if new is not None:
                    records[index], edits = new, edits + 1
        parts[section] = tuple(each for each in records if each is not GONE)
    if not edits:
        raise InvalidInputError(f"'{target}' has nothing that this change applies to")
    return replace(system, **parts)


def means(target: str, record: Any) -> bool:
    """Test whether a target means a record."""
    if target == ALL or record.name == target:
        return True
    if target.startswith(AT):
        return target.removeprefix(AT) in _places(record)
    if target.startswith(GROUP) and isinstance(record, Subscriber):
        return record.group == target.removeprefix(GROUP)
    return isinstance(record, Link) and target == "--".join(record.between[::-1])


def check_target(system: System, sections: Sequence[str], target: str) -> None:
    """Refuse a target that means nobody, saying who there is."""
    known = [name for section in sections for name in names(getattr(system, section))]
    if any(means(target, record) for section in sections for record in getattr(system, section)):
        return
    if target.startswith(AT):
        known = [f"{AT}{broker.name}" for broker in system.brokers]
    meant = meant_name(target, known)
    hint = f" ({meant})" if meant else ""
    listed = ", ".join(known[:6]) + (f" and {len(known) - 6} more" if len(known) > 6 else "")
    raise InvalidInputError(
        f"there is no '{target}' among the {' and '.join(sections)}{hint}; there are "
        f"{listed or 'none'}; or use {ALL}, {AT}BROKER or {GROUP}NAME"
    )


def _places(record: Any) -> tuple[str, ...]:
    if isinstance(record, Broker):
        return (record.name,)
    if isinstance(record, FailureGroup):
        return record.members
    if isinstance(record, SharedNetwork):
        return ()
    return record.between if isinstance(record, Link) else (record.at,)
