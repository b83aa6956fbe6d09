"""Which events are published when: drawn before the run, so that nothing in it paces them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidings.model.arrays import Floats
from tidings.model.content import ContentRow
from tidings.model.laws import Law
from tidings.model.system import Publisher, System


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
