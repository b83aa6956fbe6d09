"""How far a prediction may be off by what it says of itself: one answer for intervals and plans.

Sentences of a prediction that state how far shares on time were or can be off carry that as a
number. The provenance lists them (``stated_errors``), so that it is read from saved outcomes too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

from tidings.model.outcome import Outcome

# How far a share can be off for what the model simplifies where nothing says more: a round figure
# above the mean absolute errors with many effects at once (docs/combined.md), not above each one.
MODEL_ERROR = 0.01
SURELY = 2.0  # standard errors within which numbers are not told apart


class Stated(str):
    """A sentence on a prediction, and how far shares on time may be off for it; None: not known.

    >>> Stated("waits taken as independent: off by up to .1", 0.1).error
    0.1
    """

    error: float | None

    def __new__(cls, text: str, error: float | None) -> Self:
        """The sentence with its size."""
        found = super().__new__(cls, text)
        found.error = error
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PossibleError:
    """How far shares on time may be off."""

    share: float  # as far as it is known
    unknown: tuple[str, ...] = ()  # what makes it more, nobody knows by how much

    @property
    def whole(self) -> float | None:
        """The error if all of it is known."""
        return None if self.unknown else self.share


def with_stated_errors(provenance: dict[str, Any]) -> dict[str, Any]:
    """The provenance in plain texts, and under ``stated_errors`` those that state a size."""
    said = {name: provenance[name] for name in ("approximations", "warnings")}
    plain = {name: [str(each) for each in texts] for name, texts in said.items()}
    return {**provenance, **plain, "stated_errors": list(_rows(chain(*said.values())))}


def _rows(texts: Iterable[str]) -> Iterable[dict[str, Any]]:
    for each in texts:
        if isinstance(each, Stated):
            yield {"says": str(each), "error": each.error}


def possible_error(predicted: Outcome) -> PossibleError:
    """How far predicted shares may be off: the most of ``MODEL_ERROR`` and what is stated.

    Nothing is where nothing is simplified. What methods for failures are off by adds up, as one way
    may meet them all; of random states it is two standard errors.
    """
    story = predicted.provenance
    stated = story.get("stated_errors", ())
    methods = [
        row for row in story.get("faults", {}).get("methods", ()) if row["of"] == "shares on time"
    ]
    of_model = [each["error"] for each in stated if each["error"] is not None]
    of_model += [MODEL_ERROR] if story.get("approximations") else []
    of_methods = math.fsum(
        row["error"] * (SURELY if "sampled" in row["method"] else 1.0)
        for row in methods
        if row["error"] is not None
    )
    unknown = [row["method"] for row in methods if row["error"] is None]
    unknown += [each["says"] for each in stated if each["error"] is None]
    return PossibleError(share=max(of_model, default=0.0) + of_methods, unknown=tuple(unknown))
