"""Brokers and links that fail while they serve or carry an event.

An event that comes to a component that is up is exposed to its failures for as long as it stays. At
f failures a second it outlives a stay X with probability E[exp(−f X)], the transform of its delay:
exact for exponential times up, else as if failures came at their mean rate. The delays of those
that get through are taken as they were.

Without buffers an event is lost with the component; with buffers, only before its home broker has
stored it. Later it is sent again, which takes time: by how much that matters is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tidings.theory.faults.components import Components, Path
from tidings.theory.faults.static_ways import HOME_DOWN, PATH_DOWN
from tidings.theory.stages import Stage, in_series

Pieces = Callable[[Path], Sequence[Stage]]  # the stages of a way: broker, link, broker, …


def exposed(components: Components, pieces_of: Pieces, *, buffering: bool) -> Pieces:
    """The stages of any way, each with the events that are lost with its component."""

    def found(path: Path) -> list[Stage]:
        pieces = list(pieces_of(path))
        for place, needed in enumerate(components.of_path(path)[: 1 if buffering else None]):
            stays = outlives(pieces[place], components.fails_per_s(needed))
            if stays < 1.0:
                cause = PATH_DOWN if place else HOME_DOWN
                loss = Stage(survives=stays, lost={cause: 1.0 - stays})
                pieces[place] = in_series(pieces[place], loss)
        return pieces

    return found


def outlives(stay: Stage, fails_per_s: float) -> float:
    """P[no failure during a stay], at so many failures a second.

    >>> outlives(Stage(shift_s=10.0), 0.01) == math.exp(-0.1)
    True
    """
    if fails_per_s == 0.0:
        return 1.0
    rate = np.array([fails_per_s], np.complex128)
    parts = [float(delay.transform(rate)[0].real) for delay in stay.delays]
    return math.exp(-fails_per_s * stay.shift_s) * math.prod(parts)


def sent_again(components: Components, path: Path, pieces: Sequence[Stage]) -> float:
    """At most P[an event is sent again, since it was under way or in service when that failed]."""
    elements = list(zip(components.of_path(path), pieces, strict=True))[1:]
    expected = (
        components.fails_per_s(needed) * piece.mean_s for needed, piece in elements if needed
    )
    return min(sum(expected), 1.0)
