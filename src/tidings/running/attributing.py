"""Who publishes on which subject, from counters: servers tell how many messages a connection sent.

While messages are listened to, every connection's counters of messages and bytes are read again and
again. The shares of subjects that explain best how those grew say who published what.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from tidings.model.arrays import Floats

_STANDARD_ERRORS = 3.0  # by which a weight must be above 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """Shares of each subject's messages (rows) by sender (columns), and what they explain.

    ``explained`` is, by sender, which share of the messages that it sent the subjects account for.
    """

    subjects: tuple[str, ...]
    senders: tuple[str, ...]
    shares: Floats
    explained: Floats

    def of(self, subject: str) -> list[tuple[str, float]]:
        """List who sends on a subject, and which share of its messages; nobody if it is unknown."""
        if subject not in self.subjects:
            return []
        row = self.shares[self.subjects.index(subject)]
        return [(sender, float(p)) for sender, p in zip(self.senders, row, strict=True) if p > 0]


def attribute(
    heard: Floats, heard_bytes: Floats, sent: Floats, sent_bytes: Floats, names: Names
) -> Attribution:
    """Find who published on which subject.

    Rows are periods between two readings; columns of ``heard`` and ``heard_bytes`` are subjects,
    those of ``sent`` and ``sent_bytes`` senders.

    >>> import numpy as np
    >>> heard = np.array([[4.0, 1.0], [2.0, 3.0], [5.0, 5.0]])
    >>> names = Names(subjects=("a", "b"), senders=("x", "y"))
    >>> attribute(heard, 10 * heard, heard, 10 * heard, names).of("a")
    [('x', 1.0)]
    """
    scale = max(1.0, float(heard_bytes.sum()) / max(1.0, float(heard.sum())))
    known = np.vstack([heard, heard_bytes / scale])
    weights = np.zeros((len(names.subjects), len(names.senders)))
    likely = np.zeros_like(weights)
    for column in range(len(names.senders)):
        grown = np.concatenate([sent[:, column], sent_bytes[:, column] / scale])
        weights[:, column] = _sure_weights(known, grown)
        likely[:, column], _ = nnls(known, grown)
    # A subject that nobody surely publishes on is given to whoever likely does.
    weights = np.where(weights.any(axis=1, keepdims=True), weights, likely)
    total = sent.sum(axis=0)
    explained = np.minimum(1.0, (heard.sum(axis=0) @ weights) / np.where(total > 0, total, 1.0))
    shares = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)
    return Attribution(
        subjects=names.subjects, senders=names.senders, shares=shares, explained=explained
    )


def _sure_weights(known: Floats, grown: Floats) -> Floats:
    """Compute weights of known columns that explain a growth, without those that may be noise."""
    weights = np.zeros(known.shape[1])
    support = np.flatnonzero(known.any(axis=0))
    while support.size:
        solved, residual = nnls(known[:, support], grown)
        spare = max(1, len(grown) - support.size)
        inverse = np.linalg.pinv(known[:, support].T @ known[:, support])
        unsure = np.sqrt(np.maximum(np.diag(inverse), 0.0)) * residual / np.sqrt(spare)
        kept = solved > _STANDARD_ERRORS * unsure
        if kept.all():
            weights[support] = solved
            break
        # The least sure goes first: what it explained may then make another one sure.
        surety = solved / np.maximum(unsure, 1e-300)
        support = np.delete(support, int(np.argmin(surety)))
    return weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What the columns are: subjects that were heard, connections that sent."""

    subjects: tuple[str, ...]
    senders: tuple[str, ...]


def counted(moments: Sequence[float], edges: Sequence[float]) -> Floats:
    """Count the moments between each two edges.

    >>> counted([0.5, 1.5, 1.6], [0.0, 1.0, 2.0]).tolist()
    [1.0, 2.0]
    """
    return np.histogram(np.asarray(moments), np.asarray(edges))[0].astype(float)
