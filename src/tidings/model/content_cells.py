"""Contents in cells: what filters cannot tell apart is not enumerated, and what is too much, drawn.

Of a content with independent attributes only those that some filter (or the routing) asks for
matter, and of their values only which tests they pass. Attribute by attribute, the events so far
are a few *cells*, each with the conjunctions of all filters that may still hold; cells with the
same ones are the same from there on and become one. That is exact. Where even the cells are more
than ``most_cells``, events are drawn instead, by a seed, and whoever uses them must say so.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tidings.model.content import AttributeLaw, Content, ContentTable, IndependentContent
from tidings.model.events import Event, Value, canonical_event, value_key
from tidings.model.filters import Conjunction, Filter
from tidings.model.laws import Law
from tidings.model.matching import AttributeValues


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """When and how contents are drawn instead of enumerated."""

    most_cells: int = 100_000  # of one publisher, up to which contents are exact
    draws: int = 20_000  # of each publisher whose contents are not
    seed: int = 1
    batch: tuple[int, int] | None = None  # (k, n): only the k-th of n equal parts of the draws


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Events that nobody tells apart, by an example."""

    event: Event
    probability: float
    lifetime: Law | None
    size_bytes: float | None
    text: str  # the event as traces have it


@dataclass(frozen=True, kw_only=True)
class Cells:
    """The cells of contents, as filters, and attributes distinguished anyway, see them."""

    filters: tuple[Filter, ...]
    contents: tuple[Content, ...]
    distinguished: tuple[str, ...] = ()  # attributes of which every value matters
    sampling: Sampling = Sampling()

    def cells(self, content: Content, name: str) -> tuple[list[Cell], bool]:
        """List the cells of one publisher's content; tell whether they had to be sampled."""
        if isinstance(content, ContentTable):
            return [
                Cell(
                    event=row.event,
                    probability=row.probability,
                    lifetime=row.lifetime,
                    size_bytes=row.size_bytes,
                    text=row.text,
                )
                for row in content.table
            ], False
        enumerated = self._enumerated(content)
        sampled = enumerated is None
        pairs = self._drawn(content, name) if enumerated is None else enumerated
        events = [_event(content.attributes, values) for values, _ in pairs]
        return [
            Cell(
                event=event,
                probability=probability,
                lifetime=content.lifetime,
                size_bytes=content.size_bytes,
                text=canonical_event(event),
            )
            for event, (_, probability) in zip(events, pairs, strict=True)
        ], sampled

    def _enumerated(self, content: IndependentContent) -> list[tuple[list[int], float]] | None:
        """List the values (by index) and probability of every cell; None for too many cells."""
        # What may still hold, and values that are distinguished anyway: (values so far, share).
        states: dict[tuple[int, tuple[int, ...]], tuple[list[int], float]] = {(-1, ()): ([], 1.0)}
        for law in content.attributes:
            groups = self._groups(law)
            following: dict[tuple[int, tuple[int, ...]], tuple[list[int], float]] = {}
            for (holds, apart), (values, share) in states.items():
                for first, passing, own, own_share in groups:
                    key = (holds & passing, (*apart, own) if own >= 0 else apart)
                    known = following.get(key)
                    total = share * own_share + (known[1] if known else 0.0)
                    following[key] = (known[0] if known else [*values, first], total)
            if len(following) > self.sampling.most_cells:
                return None
            states = following
        return list(states.values())

    def _drawn(self, content: IndependentContent, name: str) -> list[tuple[list[int], float]]:
        """Sample the values that matter by independent draws; count equal draws together."""
        random = np.random.default_rng([self.sampling.seed, zlib.crc32(name.encode())])
        columns = []
        for law in content.attributes:
            groups = self._groups(law)
            shares = np.array([group[3] for group in groups])
            firsts = np.array([group[0] for group in groups], dtype=np.int64)
            drawn = random.choice(len(groups), self.sampling.draws, p=shares / shares.sum())
            columns.append(firsts[drawn])
        table = np.stack(columns, axis=1)
        if self.sampling.batch is not None:
            part, parts = self.sampling.batch
            table = table[part::parts]
        rows, counts = np.unique(table, axis=0, return_counts=True)
        return [
            (row.tolist(), int(count) / len(table)) for row, count in zip(rows, counts, strict=True)
        ]

    def _groups(self, law: AttributeLaw) -> list[tuple[int, int, int, float]]:
        """Group the values of an attribute that pass the same tests.

        A group is: index of its first value, conjunctions as bits, ``own``, share. ``own`` tells
        values apart that must be, and is −1 where tests alone count.
        """
        passing = self._passing.get(law.attribute)
        apart = law.attribute in self.distinguished
        groups: dict[tuple[int, int], tuple[int, float]] = {}
        for index, (key, share) in enumerate(zip(law.keys, law.probabilities, strict=True)):
            holds = -1 if passing is None else passing[key]
            first, total = groups.get((holds, index if apart else -1), (index, 0.0))
            groups[holds, index if apart else -1] = (first, total + share)
        return [(first, holds, own, total) for (holds, own), (first, total) in groups.items()]

    @cached_property
    def _passing(self) -> dict[str, dict[tuple[int, object], int]]:
        """By attribute and value: the conjunctions that the value does not rule out, as bits."""
        conjunctions = list(dict.fromkeys(c for one in self.filters for c in one.conjunctions))
        asking: dict[str, dict[int, Conjunction]] = {}
        for number, conjunction in enumerate(conjunctions):
            for test in conjunction.constraints:
                asking.setdefault(test.attribute, {})[number] = conjunction
        return {
            attribute: _bits(attribute, self._values[attribute], own)
            for attribute, own in asking.items()
            if attribute in self._values
        }

    @cached_property
    def _values(self) -> dict[str, list[Value | None]]:
        """Every value that an independent attribute has anywhere."""
        values: dict[str, dict[tuple[int, object], Value | None]] = {}
        for content in self.contents:
            for law in content.attributes if isinstance(content, IndependentContent) else ():
                known = values.setdefault(law.attribute, {})
                known.update(zip(law.keys, law.values, strict=True))
        return {attribute: list(known.values()) for attribute, known in values.items()}


def _bits(
    attribute: str, values: Sequence[Value | None], conjunctions: Mapping[int, Conjunction]
) -> dict[tuple[int, object], int]:
    """Find the conjunctions, by number, that each value passes, as bits.

    All others count as passed.
    """
    ordered = AttributeValues(values)
    size = max(conjunctions) + 1
    holds = np.ones((len(values), size), dtype=np.bool_)
    for number, conjunction in conjunctions.items():
        for test in conjunction.constraints:
            if test.attribute == attribute:
                holds[:, number] &= ordered.events_that_pass(test)
    others = -1 << size
    packed = np.packbits(holds, axis=1, bitorder="little")
    return {
        value_key(value): others | int.from_bytes(row.tobytes(), "little")
        for value, row in zip(values, packed, strict=True)
    }


def _event(laws: Sequence[AttributeLaw], places: Sequence[int]) -> Event:
    chosen = {law.attribute: law.values[place] for law, place in zip(laws, places, strict=True)}
    return {name: value for name, value in chosen.items() if value is not None}
