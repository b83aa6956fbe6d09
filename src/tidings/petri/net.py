"""A queueing Petri net as data: places with queues, coloured tokens, transitions with modes.

Every record is frozen; from its fields come the file format, its JSON Schema and the reference in
``docs/reference/petri-nets.md``. What the pieces mean:

- A token put into a *queueing place* is served there first; only then can transitions take it. In
  an ordinary place they can at once.
- An *immediate* mode fires as soon as the tokens it takes are there. Among transitions that can
  fire, those of the highest priority compete by their weights, and then their modes by theirs.
- A *timed* mode fires when it could have fired all the time for as long as its law says; it counts
  anew when its tokens were gone meanwhile. A mode that takes nothing is a source.
- What a mode puts with a *share* below 1 it puts with that probability, each put by itself: a fork
  to many places needs one mode, not one for every set of places.
- A token has an *age*: the time since it came from a source or a mode that says ``newborn``. What a
  mode puts is as old as the first token it took. Tokens of the beginning have no age.
- A *subnet* stands for a place: what is put into it goes to its first place, and what is taken from
  it comes from its last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidings.model import records
from tidings.model.behaviour import DISCIPLINES, LAW, MOST_SERVERS, POSITIVE_LAW
from tidings.model.document import Place as At
from tidings.model.laws import Law
from tidings.model.records import Kind, given, spec

FORMAT_VERSION = 1
MOST_TOKENS = 10**6  # a place may begin with


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The queue of a place: how tokens are served before transitions can take them."""

    service: Law | None = spec(LAW, "service time of a token of any colour", default=None)
    services: tuple[tuple[str, Law], ...] = spec(
        records.by_name(LAW), "service time by colour, instead", default=()
    )
    discipline: str = spec(records.choice(*DISCIPLINES), "order of service", default="fcfs")
    servers: int = spec(
        records.whole(1, MOST_SERVERS), "how many tokens are served in parallel", default=1
    )
    priorities: tuple[tuple[str, int], ...] = spec(
        records.by_name(records.whole(0)),
        "by colour, under the discipline 'priority': higher ones are served first, without "
        "interrupting others; 0 if not named",
        default=(),
    )

    @property
    def counted_servers(self) -> int:
        """The servers that busy ones are a share of; 1 where there are servers for all."""
        return 1 if self.discipline == "infinite-server" else self.servers

    def law_of(self, colour: str) -> Law | None:
        """Give the service time distribution of tokens of a colour; None where there is none."""
        return self.service if self.service is not None else dict(self.services).get(colour)


def _read_queue(at: At) -> Queue | None:
    fields = given(at)
    if (
        at.value is not None
        and isinstance(at.value, dict)
        and ("service" in fields) == ("services" in fields)
    ):
        at.report("either 'service' (of any colour) or 'services' by colour")
    if "priorities" in fields and at.inside("discipline").value != "priority":
        at.inside("priorities").report(
            "no priorities, or the discipline 'priority': others ignore them"
        )
    queue: Queue | None = records.read_record(Queue, at)
    return queue


QUEUE = Kind(
    label="a queue",
    read=_read_queue,
    write=records.record_document,
    schema=lambda: {"$ref": "#/$defs/Queue"},
)


def _later(name: str) -> Kind:
    """Make the kind of a record that is declared below, for nets inside nets."""
    return Kind(
        label=name,
        read=lambda at: records.read_record(globals()[name], at),
        write=records.record_document,
        schema=lambda: {"$ref": f"#/$defs/{name}"},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place: ordinary, with a queue, or a subnet that stands for it."""

    name: str
    queue: Queue | None = spec(QUEUE, "serves tokens before they can be taken", default=None)
    tokens: tuple[tuple[str, int], ...] = spec(
        records.by_name(records.whole(1, MOST_TOKENS)),
        "there in the beginning, by colour",
        default=(),
    )
    subnet: Subnet | None = spec(_later("Subnet"), "a net in the place's stead", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenArc:
    """Tokens that a mode takes or puts."""

    place: str = spec(records.TEXT, "from where, or to where")
    colour: str = spec(records.TEXT, "of which colour")
    count: int = spec(records.whole(1, 1000), "how many", default=1)
    share: float = spec(
        records.SHARE, "of what is put: with which probability it is put at all", default=1.0
    )


ARCS = records.listing(records.part(TokenArc))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """One way in which a transition fires."""

    take: tuple[TokenArc, ...] = spec(
        ARCS, "tokens it needs and removes; what it puts is as old as the first of them", default=()
    )
    put: tuple[TokenArc, ...] = spec(ARCS, "tokens it adds", default=())
    weight: float = spec(
        records.number_from(0.0), "against the other modes of an immediate transition", default=1.0
    )
    after: Law | None = spec(
        POSITIVE_LAW, "time from when it can fire until it does; at once if left out", default=None
    )
    newborn: bool = spec(records.FLAG, "whether what it puts begins at age 0", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A transition: immediate, or timed where its modes have a time."""

    name: str
    modes: tuple[Mode, ...] = spec(records.listing(records.part(Mode), least=1), "how it can fire")
    weight: float = spec(
        records.number_from(0.0), "against other immediate transitions that can fire", default=1.0
    )
    priority: int = spec(
        records.whole(0, 1000), "higher ones fire first, whatever the weights", default=0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Subnet:
    """A net that stands for a place of another one; it knows the colours of the whole."""

    first: str = spec(records.TEXT, "its place that gets what is put into it")
    last: str = spec(records.TEXT, "its place from which is taken what is taken from it")
    places: tuple[Place, ...] = spec(records.named(Place), "its places")
    transitions: tuple[Transition, ...] = spec(
        records.named(Transition), "its transitions", default=()
    )


@dataclass(frozen=True, kw_only=True)
class Net:
    """A queueing Petri net."""

    version: int = spec(records.whole(1), "version of this format", key="tidings_net")
    description: str | None = spec(records.TEXT, "what this is a net of", default=None)
    colours: tuple[str, ...] = spec(
        records.listing(records.TEXT, least=1), "kinds of tokens, by name"
    )
    places: tuple[Place, ...] = spec(records.named(Place), "the places")
    transitions: tuple[Transition, ...] = spec(records.named(Transition), "the transitions")


RECORDS: Sequence[Any] = (Place, Queue, Transition, Mode, TokenArc, Subnet)
