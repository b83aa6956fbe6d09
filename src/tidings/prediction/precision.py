"""How precise an answer is wanted: to a share, or to a part of the share that is missed."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from tidings.errors import InvalidInputError
from tidings.model.arrays import Floats

LEAST = 1e-5  # below which nobody wants to know a share
_NUMBER = r"\s*([0-9]*\.?[0-9]+(?:e-?[0-9]+)?)\s*"
_TEXT = re.compile(rf"{_NUMBER}(%?)(\s*of\s+(?:the\s+)?misses\s*)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """The half-width (95 %) that is wanted of on-time shares, or of their distance from 1."""

    share: float
    of_misses: bool = False

    def half_widths(self, on_time: Floats) -> Floats:
        """Give the half-width wanted of each on-time share; NaN where a share is not known.

        >>> Within(share=0.1, of_misses=True).half_widths(np.array([0.9, 0.9999, 1.0])).round(8)
        array([1.e-02, 1.e-05, 1.e-05])
        """
        if not self.of_misses:
            return np.full(on_time.shape, self.share)
        return np.maximum(self.share * (1.0 - on_time), LEAST)

    def __str__(self) -> str:
        return f"{100 * self.share:g}% of misses" if self.of_misses else f"{self.share:g}"


def read_within(asked: float | str) -> Within:
    """Read the wanted half-width: a share, such as 0.005 or '0.5%', or '10% of misses'.

    >>> read_within("0.5%"), read_within("10% of misses")
    (Within(share=0.005, of_misses=False), Within(share=0.1, of_misses=True))
    """
    if isinstance(asked, str):
        parts = _TEXT.fullmatch(asked)
        if parts is None:
            raise _wrong(asked)
        number, percent, of_misses = parts.groups()
        share, relative = float(number) / (100.0 if percent else 1.0), of_misses is not None
    else:
        share, relative = float(asked), False
    if not (math.isfinite(share) and LEAST <= share < 1.0):
        raise _wrong(asked)
    return Within(share=share, of_misses=relative)


def _wrong(asked: object) -> InvalidInputError:
    return InvalidInputError(
        f"within is {asked!r}; wants a share of at least {LEAST:g} and below 1, such as "
        "0.005, or relative to late and lost events, such as '10% of misses'"
    )
