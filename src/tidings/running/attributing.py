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

    ``explained`` is, by sender, which share of the messages that it sent the subjects account for;
    ``unsure`` names the subjects for which no sender is sure; some may have likely ones.
    """

    subjects: tuple[str, ...]
    senders: tuple[str, ...]
    shares: Floats
    explained: Floats
    unsure: tuple[str, ...] = ()

    def of(self, subject: str) -> list[tuple[str, float]]:
        """List who sends on a subject, and which share of its messages; nobody if it is unknown."""
        if subject not in self.subjects:
            return []
        row = self.shares[self.subjects.index(subject)]
        return [(sender, float(p)) for sender, p in zip(self.senders, row, strict=True) if p > 0]


def attribute(
    heard: Sequence[Floats], sizes: Floats, sent: Floats, sent_bytes: Floats, names: Names
) -> Attribution:
    """Find who published on which subject.

    Rows are periods between two readings, columns of ``sent`` and ``sent_bytes`` are senders.
    ``heard`` has one table for each sender, since servers are read one after the other: messages in
    that sender's periods by subject. ``sizes`` are the mean bytes of a subject's messages.

    >>> import numpy as np
    >>> heard = np.array([[4.0, 1.0], [2.0, 3.0], [5.0, 5.0]])
    >>> names = Names(subjects=("a", "b"), senders=("x", "y"))
    >>> attribute([heard, heard], np.array([10.0, 10.0]), heard, 10 * heard, names).of("a")
    [('x', 1.0)]
    """
    scale = max(1.0, float(sizes.mean()))
    weights = np.zeros((len(names.subjects), len(names.senders)))
    likely = np.zeros_like(weights)
    total = np.maximum(sent.sum(axis=0), 1.0)
    for column, messages in enumerate(heard):
        known = np.vstack([messages, messages * sizes / scale])
        grown = np.concatenate([sent[:, column], sent_bytes[:, column] / scale])
        weights[:, column] = _sure_weights(known, grown, len(messages))
        likely[:, column], _ = nnls(known, grown)
    # A subject that nobody surely publishes on is given to whoever likely does.
    sure = weights.any(axis=1, keepdims=True)
    weights = np.where(sure, weights, likely)
    accounted = np.array([(each @ weights[:, k]).sum() for k, each in enumerate(heard)])
    shares = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-12)
    return Attribution(
        subjects=names.subjects,
        senders=names.senders,
        shares=shares,
        explained=np.minimum(1.0, accounted / total),
        unsure=tuple(np.array(names.subjects, dtype=object)[~sure.ravel()]),
    )


def _sure_weights(known: Floats, grown: Floats, periods: int) -> Floats:
    """Compute weights of known columns that explain a growth, without those that may be noise.

    Bytes of messages of one size repeat what their numbers tell, so only periods are evidence.
    """
    weights = np.zeros(known.shape[1])
    solved, residual = nnls(known, grown)
    support = np.flatnonzero(solved)
    while support.size:
        solved, residual = nnls(known[:, support], grown)
        spare = periods - support.size
        if spare < 1:  # so many explain anything; the one that explains the least goes
            surety = solved * known[:, support].sum(axis=0)
        else:
            inverse = np.linalg.pinv(known[:, support].T @ known[:, support])
            unsure = np.sqrt(np.maximum(np.diag(inverse), 0.0)) * residual / np.sqrt(spare)
            surety = solved / np.maximum(unsure, 1e-300)
            if np.all(surety > _STANDARD_ERRORS):
                weights[support] = solved
                break
        # The least sure goes first: what it explained may then make another one sure.
        support = np.delete(support, int(np.argmin(surety)))
    return weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What the columns are: subjects that were heard, connections that sent."""

    subjects: tuple[str, ...]
    senders: tuple[str, ...]
