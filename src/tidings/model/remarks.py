"""What the reader of a result must know, as records: what, where, how large, what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from tidings.model.naming import few
from tidings.model.system import System

BLOCKED = "blocked publishers"  # the kind of remark that names a full buffer that blocks them
UNSTEADY = "no steady state"  # the kind of one that names subscribers whose errors are not known
COLLAPSE = "redelivery collapse"  # the kind of one that names a group kept busy by redeliveries


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One thing to know of a result; programs read the fields, people its sentence.

    >>> remark = Remark(
    ...     kind="not held",
    ...     what="shares are less precise than asked",
    ...     where=("alice", "bob"),
    ...     size=0.0123,
    ...     unit="of a share",
    ...     do="give more seconds",
    ... )
    >>> remark.sentence()
    'shares are less precise than asked (alice, bob): 0.0123 of a share; give more seconds'
    >>> Remark(kind="idle", what="some want nothing", size=1234.0, unit="subscribers").sentence()
    'some want nothing: 1,234 subscribers'
    """

    kind: str  # a program's name for what it is about
    what: str  # without numbers and names
    where: tuple[str, ...] = ()  # names of brokers, links, subscribers
    size: float | None = None
    unit: str = ""
    do: str = ""

    def sentence(self) -> str:
        """Say all of it in one line, as the terminal and the page show it."""
        where = f" ({few(self.where)})" if self.where else ""
        size = f": {_digits(self.size)} {self.unit}".rstrip() if self.size is not None else ""
        do = f"; {self.do}" if self.do else ""
        return f"{self.what}{where}{size}{do}"

    def to_document(self) -> dict[str, Any]:
        """Give the fields as plain data, and the sentence for whoever only shows it."""
        return {**asdict(self), "where": list(self.where), "sentence": self.sentence()}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Read a remark from its plain data."""
        fields = {name: document[name] for name in ("kind", "what", "where", "size", "unit", "do")}
        texts = [fields[name] for name in ("kind", "what", "unit", "do")] + list(fields["where"])
        if not all(isinstance(each, str) for each in texts):
            raise TypeError("kind, what, where, unit and do are texts")
        size = None if fields["size"] is None else float(fields["size"])
        return cls(**{**fields, "where": tuple(fields["where"]), "size": size})


def _digits(size: float) -> str:
    """Write whole and large numbers in full, others with three significant digits."""
    is_whole = float(size).is_integer() or abs(size) >= 1000.0
    return f"{size:,.0f}" if is_whole else f"{size:.3g}"


def of_system(system: System) -> list[Remark]:
    """Say what to know of any result of a system: its own remarks, and what it lacks."""
    own = [Remark(kind="of the system", what=each) for each in system.remarks]
    return own + _without_recovery(system)


def _without_recovery(system: System) -> list[Remark]:
    """Say what to know of a system whose brokers crash and that does nothing about it."""
    if system.used_recovery.scheme != "none":
        return []
    grouped = {name for group in system.failure_groups for name in group.members}
    crashing = tuple(
        each.name for each in system.brokers if each.failure is not None or each.name in grouped
    )
    if not crashing:
        return []
    return [
        Remark(
            kind="no recovery",
            what="with the recovery scheme 'none', a broker that crashes loses its subscriptions "
            "for good: in the long run it forwards nothing",
            where=crashing,
            do="choose another scheme, or leave 'recovery' out: clients then subscribe again",
        )
    ]
