"""ON and OFF periods of any law as phases: as they are where they have them, else by two moments.

At low load only the second moment of OFF matters: an event waits for what is left of an absence,
R ≈ D s + P[OFF] E[OFF²]/(2 E[OFF]). Above, the shape of ON matters too (from a load of about .6),
and a law that has no phases is taken as the phase-type law with its mean and c².

Phases are never as regular as a constant: c² is at least one over their number. Where a time is
more regular, ``backlog`` takes it as it is; phases stand in only where times differ by so much that
a lattice would be too large.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tidings.model.laws import Law, phases
from tidings.theory.mobility.centre import OnOff
from tidings.theory.stages import Chain

MOST_PHASES = 24  # of one period; a more regular law is taken as Erlang of so many
_PHASES_TOGETHER = 300  # of a whole queue: more take seconds
_FEWER_PHASES = (20, 16, 12, 10, 8, 6)


class Regularity(NamedTuple):
    """The c² with which each time of a centre is taken."""

    on: float
    off: float
    service: float


def low_load_response_s(centre: OnOff) -> float:
    """Mean response of an event that meets no other, in seconds; any laws, ON by its mean."""
    return centre.demand_s + centre.absence_s


def has_phases(law: Law) -> bool:
    """Whether a law is phase-type as it is, with few phases and nothing certain."""
    found = phases(law)
    return found is not None and found.shift_s == 0.0 and 0 < found.initial.size <= MOST_PHASES


def regularity(centre: OnOff) -> Regularity:
    """The c² that phases can have; that of the law itself unless it is more regular than they.

    >>> from tidings.model.laws import Deterministic, Gamma
    >>> constant = Deterministic(value_s=2.0)
    >>> regularity(OnOff(service=Gamma(mean_s=1.0, shape=2), on=constant, off=constant)).off
    0.041666666666666664
    """
    laws = (centre.on, centre.off, centre.service)
    for most in (MOST_PHASES, *_FEWER_PHASES):
        on, off, service = (_phases_of(law, most) for law in laws)
        if (on + off) * service <= _PHASES_TOGETHER:
            break
    return Regularity(*(law.scv if has_phases(law) else max(law.scv, 1.0 / most) for law in laws))


def _phases_of(law: Law, most: int) -> int:
    """How many phases a law takes."""
    if has_phases(law):
        found = phases(law)
        assert found is not None
        return found.initial.size
    return 2 if law.scv >= 1.0 else min(math.ceil(1.0 / max(law.scv, 1.0 / most) - 1e-9), most)


def more_regular(centre: OnOff) -> bool:
    """Whether a time of a centre is more regular than phases can be."""
    return regularity(centre) != (centre.on.scv, centre.off.scv, centre.service.scv)


def period_chain(law: Law, scv: float) -> Chain:
    """The phases of a law; of one without, those of a law with its mean and this c².

    c² above 1: a hyperexponential law of two branches with equal loads. Below 1: Erlang stages of
    one rate, the last of them passed with some probability only.

    >>> from tidings.model.laws import Deterministic
    >>> len(period_chain(Deterministic(value_s=2.0), 1 / 24)[0])
    24
    """
    if has_phases(law):
        found = phases(law)
        assert found is not None
        return found.initial, found.generator
    return _two_branches(law.mean_s, scv) if scv >= 1.0 else _stages(law.mean_s, scv)


def _two_branches(mean_s: float, scv: float) -> Chain:
    share = 0.5 * (1.0 + math.sqrt((scv - 1.0) / (scv + 1.0)))
    shares = np.array([share, 1.0 - share])
    return shares, np.diag(-2.0 * shares / mean_s)


def _stages(mean_s: float, scv: float) -> Chain:
    """Tijms' mixture of Erlang laws of k − 1 and k stages, 1/k ≤ c² ≤ 1/(k − 1)."""
    count = max(math.ceil(1.0 / scv - 1e-9), 2)
    fewer = (count * scv - math.sqrt(count * (1.0 + scv) - count**2 * scv)) / (1.0 + scv)
    rate_per_s = (count - fewer) / mean_s
    chain = rate_per_s * (np.eye(count, k=1) - np.eye(count))
    initial = np.zeros(count)
    initial[0], initial[1] = 1.0 - fewer, fewer
    return initial, chain
