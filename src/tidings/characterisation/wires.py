"""Networks between brokers whose bandwidth is known: service time = message size / bandwidth.

Traces tell how large messages are, not how fast a wire is; that has to be given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from tidings.characterisation.fitting import fit_law
from tidings.characterisation.routing import SIZE_BYTES_PER_S
from tidings.characterisation.samples import sample_from_rows
from tidings.errors import InvalidInputError, InvalidTracesError
from tidings.model.laws import Law
from tidings.model.workload import Centre

ALL = "all"
SHARED = "shared network"
Way = tuple[str, str]  # from a broker to the next


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidths:
    """How fast wires are: by link (``hub--east``, each direction by itself) or "all"; or one
    network that all connections share, in both directions.
    """

    bytes_per_s: Mapping[str, float] = field(default_factory=dict)
    shared_bytes_per_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class Wires:
    """The queue and speed of every way that has one."""

    centres: tuple[Centre, ...]
    of_way: Mapping[Way, int]  # position among ``centres``
    bytes_per_s: Mapping[Way, float]


def find_wires(given: Bandwidths, ways: Sequence[Way]) -> Wires:
    """The wires of some ways; refuses names that are no links."""
    if given.shared_bytes_per_s is not None:
        return Wires(
            centres=(Centre(name=SHARED),),
            of_way=dict.fromkeys(ways, 0),
            bytes_per_s=dict.fromkeys(ways, given.shared_bytes_per_s),
        )
    links = {"--".join(each) for way in ways for each in (way, way[::-1])}
    for name in given.bytes_per_s:
        if name != ALL and name not in links:
            listed = ", ".join(sorted("--".join(way) for way in ways)[:12])
            raise InvalidInputError(f"'{name}' is no link that events crossed: {listed}, or {ALL}")
    speeds = {way: speed for way in ways if (speed := _speed(given, way)) is not None}
    return Wires(
        centres=tuple(Centre(name="--".join(way)) for way in speeds),
        of_way={way: at for at, way in enumerate(speeds)},
        bytes_per_s=speeds,
    )


def _speed(given: Bandwidths, way: Way) -> float | None:
    for name in ("--".join(way), "--".join(way[::-1]), ALL):
        if name in given.bytes_per_s:
            return given.bytes_per_s[name]
    return None


def transfers(
    wires: Wires, ways: Sequence[Way], used: Sequence[int], sizes: pd.DataFrame, flow: str
) -> Iterator[tuple[int, Law]]:
    """How long wires are busy with a message of a flow, for those of the ways it uses."""
    chosen = [at for at in used if ways[at] in wires.of_way]
    sample = sample_from_rows(sizes)
    if chosen and not sample.count:
        raise InvalidTracesError(
            f"the messages of {flow} have no size; record 'size_bytes', or take the bandwidth away"
        )
    for at in chosen:
        yield at, fit_law(sample).law.scaled(SIZE_BYTES_PER_S / wires.bytes_per_s[ways[at]])
