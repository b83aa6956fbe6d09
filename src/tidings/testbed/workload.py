"""Which events are published when, and under which subjects of NATS.

Publications are drawn before the run, so that nothing in it paces them. A subject is ``ev`` and one
token for each attribute, in the order of their names: ``ev.eur.17``. A filter becomes the subjects
of all contents that it wants; so there must be few enough of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

import numpy as np

from tidings.errors import UnsupportedError
from tidings.model.arrays import Floats
from tidings.model.content import ContentRow
from tidings.model.events import Event, Value
from tidings.model.laws import Law
from tidings.model.matching import match_matrix
from tidings.model.record_tables import column
from tidings.model.system import Publisher, System
from tidings.testbed.frames import PREFIX

MOST_CONTENTS = 4096  # each wanted one is a subscription of its own at the broker
_ABSENT = "-"
_SAFE = "!#$&'()+,-/:;=@[]^_`{|}~"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subjects:
    """The subject of every content, by its text, and those each subscriber asks for."""

    of_content: dict[str, str]
    of_subscriber: tuple[tuple[str, ...], ...]


def contents_of(system: System) -> list[tuple[ContentRow, ...]]:
    """List what each publisher may publish; refuse contents that are too many to be subjects."""
    many = [
        f"publishers.{each.name}.content ({each.content.combinations:,} combinations)"
        for each in system.publishers
        if each.content.combinations > MOST_CONTENTS
    ]
    if many:
        raise UnsupportedError(
            f"the testbed maps every content to a subject, at most {MOST_CONTENTS:,} per "
            f"publisher; too many contents: {', '.join(many)}"
        )
    return [each.content.rows() for each in system.publishers]


def subjects(system: System, contents: Sequence[tuple[ContentRow, ...]]) -> Subjects:
    """Make subjects for all contents of a system, and the filters of its subscribers in them."""
    distinct = {row.text: row.event for rows in contents for row in rows}
    attributes = sorted({name for event in distinct.values() for name in event})
    of_content = {text: _subject(attributes, event) for text, event in distinct.items()}
    wanted = column(system.subscribers, "wants")
    matched = match_matrix(wanted.values, list(distinct.values()))
    names = list(of_content.values())
    by_filter = [
        tuple(name for name, fits in zip(names, fitting, strict=True) if fits)
        for fitting in matched.T
    ]
    return Subjects(
        of_content=of_content,
        of_subscriber=tuple(by_filter[code] for code in wanted.codes),
    )


def _subject(attributes: Sequence[str], event: Event) -> str:
    return ".".join([PREFIX, *(_token(event.get(name)) for name in attributes)])


def _token(value: Value | None) -> str:
    """Write a value as one token: its kind and its letters; what has a meaning in NATS is escaped.

    >>> [_token(each) for each in ("a.b", 1, 1.5, True, None, "-")]
    ["'a%2Eb", '1', '1%2E5', 'true', '-', "'-"]
    """
    if value is None:
        return _ABSENT
    if isinstance(value, str):
        return "'" + quote(value, safe=_SAFE).replace(".", "%2E")
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text.replace(".", "%2E")


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """One event to be published; times in seconds, ``at_s`` from the beginning of the run."""

    event: str
    publisher: int
    at_s: float
    content: ContentRow
    lifetime_s: float | None


def schedule(
    system: System, contents: Sequence[tuple[ContentRow, ...]], length_s: float, seed: int
) -> list[Publication]:
    """List all publications of a run, in order of time; every publisher has its own random numbers.

    Intervals begin before the run, so that a periodic publisher is caught at a random phase.
    """
    publications: list[Publication] = []
    for index, publisher in enumerate(system.publishers):
        generator = np.random.default_rng([seed, index])
        times_s = _moments(publisher, length_s, generator)
        shares = np.array([row.probability for row in contents[index]])
        chosen = generator.choice(len(shares), size=times_s.size, p=shares / shares.sum())
        for number, (at_s, which) in enumerate(zip(times_s.tolist(), chosen, strict=True)):
            row = contents[index][which]
            publications.append(
                Publication(
                    event=f"{publisher.name}/{number}",
                    publisher=index,
                    at_s=at_s,
                    content=row,
                    lifetime_s=_lifetime_s(system.lifetime_of(publisher, row.lifetime), generator),
                )
            )
    return sorted(publications, key=lambda each: each.at_s)


def _moments(publisher: Publisher, length_s: float, generator: np.random.Generator) -> Floats:
    assert publisher.every is not None  # rates by time of day are refused before
    law = publisher.every
    begin_s = -law.mean_s * generator.random() - 20.0 * law.mean_s
    gaps: list[Floats] = []
    end_s = begin_s
    while end_s < length_s:
        more = np.asarray(law.sample(generator, 256), dtype=np.float64)
        gaps.append(more)
        end_s += float(more.sum())
    times_s = begin_s + np.cumsum(np.concatenate(gaps))
    inside: Floats = times_s[(times_s >= 0.0) & (times_s < length_s)]
    return inside


def _lifetime_s(law: Law | None, generator: np.random.Generator) -> float | None:
    return None if law is None else float(np.asarray(law.sample(generator, 1))[0])
