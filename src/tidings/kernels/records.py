"""Tables that kernels read: records filled from rows, laws as :mod:`sampling` draws from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tidings.errors import UnsupportedError
from tidings.kernels.sampling import (
    DETERMINISTIC,
    EMPIRICAL,
    EXPONENTIAL,
    GAMMA,
    HYPEREXPONENTIAL,
    LOGNORMAL,
    PHASE_TYPE,
    UNIFORM,
    WEIBULL,
)
from tidings.model import laws
from tidings.model.arrays import Floats, Ints
from tidings.model.laws import Law


class Numbering:
    """Positions of things in the order in which they are first asked for."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}

    def __call__(self, *thing: Any) -> int:
        """The position of a thing, or of several together."""
        key = thing[0] if len(thing) == 1 else thing
        return self.known.setdefault(key, len(self.known))


def make_records(kind: np.dtype[Any], rows: list[tuple[Any, ...]]) -> Any:
    """Records from their first fields; what is not given (counts) begins at zero."""
    records = np.zeros(len(rows), dtype=kind)
    assert kind.names is not None
    for name, values in zip(kind.names, zip(*rows, strict=True), strict=False):
        records[name] = values
    return records


def more_records(before: Any, kind: np.dtype[Any], rows: list[tuple[Any, ...]]) -> Any:
    """A table with further records behind those that it has."""
    return np.concatenate([before, make_records(kind, rows)])


class LawTable(NamedTuple):
    """Laws as :func:`draw` wants them: law i is ``kinds[i]`` with parameters at ``offsets[i]``."""

    kinds: Ints
    offsets: Ints
    params: Floats


def encode(times: Iterable[Law]) -> LawTable:
    """The laws as one table; equal laws share their parameters.

    >>> table = encode([laws.Deterministic(value_s=0.25), laws.Exponential(mean_s=0.5)])
    >>> table.kinds.tolist(), table.offsets.tolist(), table.params.tolist()
    ([0, 1], [0, 1], [0.25, 0.0, 0.5])
    """
    kinds, offsets = [], []
    params: list[float] = []
    known: dict[Law, tuple[int, int]] = {}
    for law in times:
        if law not in known:
            kind, values = _encoded(law)
            known[law] = kind, len(params)
            params.extend(values)
        kind, offset = known[law]
        kinds.append(kind)
        offsets.append(offset)
    return LawTable(
        np.array(kinds, dtype=np.int64),
        np.array(offsets, dtype=np.int64),
        np.array(params, dtype=np.float64),
    )


def _encoded(law: Law) -> tuple[int, list[float]]:
    """The kind of a law and its parameters, the shift first."""
    base, shift_s = laws.unshifted(law)
    match base:
        case laws.Deterministic():
            return DETERMINISTIC, [shift_s + base.value_s]
        case laws.Exponential():
            return EXPONENTIAL, [shift_s, base.mean_s]
        case laws.Uniform():
            return UNIFORM, [shift_s + base.low_s, base.high_s - base.low_s]
        case laws.Gamma():
            return GAMMA, [shift_s, base.shape, base.mean_s / base.shape]
        case laws.LogNormal():
            return LOGNORMAL, [shift_s, base.mu, base.sigma]
        case laws.Weibull():
            return WEIBULL, [shift_s, base.scale_s, 1.0 / base.shape]
        case laws.HyperExponential():
            below = laws.cumulative(np.array(base.weights))[1:]
            return HYPEREXPONENTIAL, [shift_s, len(below), *below, *base.means_s]
        case laws.PhaseType():
            start, stay_s, jumps = laws.walk(base)
            return PHASE_TYPE, [shift_s, len(start), *start, *stay_s, *jumps.ravel()]
        case laws.Empirical():
            below = laws.cumulative(np.array(base.weights))
            return EMPIRICAL, [shift_s, len(base.weights), *below, *base.edges_s]
    raise UnsupportedError(f"a law of the family {type(base).__name__} cannot be drawn from")
