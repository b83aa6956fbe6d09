r"""Imprecise knowledge of what is published: the content law that somebody believes in.

.. math:: C_p(a, d) = \tilde C_p(a, d)^\alpha \Big/ \sum_{a, d} \tilde C_p(a, d)^\alpha

With α = 1 it is the truth; below 1 contents seem more equally popular than they are, above 1 less.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tidings.errors import InvalidInputError
from tidings.model.content import AttributeLaw, Content, ContentTable, IndependentContent
from tidings.model.system import System


def skewed(system: System, alpha: float) -> System:
    """Make the system believed by somebody who takes every content probability to the power α.

    The powers are normalised.
    """
    if not (alpha >= 0 and np.isfinite(alpha)):
        raise InvalidInputError(f"alpha is {alpha}; wants a finite number, 0 or more")
    if alpha == 1.0:
        return system
    publishers = tuple(
        replace(publisher, content=_skewed_content(publisher.content, alpha))
        for publisher in system.publishers
    )
    return replace(system, publishers=publishers)


def powers(shares: ArrayLike, alpha: float) -> NDArray[np.float64]:
    """Take probabilities to the power α and normalise them.

    >>> powers([0.8, 0.2], 2.0).round(4).tolist(), powers([0.8, 0.2], 0.0).tolist()
    ([0.9412, 0.0588], [0.5, 0.5])
    """
    logs = np.log(np.asarray(shares, dtype=np.float64))
    weights = np.exp(alpha * (logs - logs.max()))  # the largest is 1, whatever alpha is
    return np.asarray(weights / weights.sum())


def _skewed_content(content: Content, alpha: float) -> Content:
    if isinstance(content, ContentTable):
        believed = powers([row.probability for row in content.table], alpha)
        rows = tuple(
            replace(row, probability=float(share))
            for row, share in zip(content.table, believed, strict=True)
            if share > 0  # what is too small for a number is believed never to happen
        )
        return ContentTable(table=rows)
    # The power of a product is the product of powers.
    laws = tuple(_skewed_attribute(law, alpha) for law in content.attributes)
    return IndependentContent(
        attributes=laws, lifetime=content.lifetime, size_bytes=content.size_bytes
    )


def _skewed_attribute(law: AttributeLaw, alpha: float) -> AttributeLaw:
    believed = powers(law.probabilities, alpha)
    kept = np.flatnonzero(believed > 0)
    return AttributeLaw(
        attribute=law.attribute,
        values=tuple(law.values[index] for index in kept),
        probabilities=tuple(float(believed[index]) for index in kept),
    )
