"""What failures take from events at each stage of a path, by cause."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tidings.model.arrays import Floats
from tidings.theory.delay.delays import Delays
from tidings.theory.repairs.components import (
    NOT_RESTORED,
    PATH_DOWN,
    Components,
    Path,
)

Loss = tuple[float, Mapping[str, float]]  # share that goes on, and what takes the rest


def after_loss(delays: Delays, kept: Floats | float, cause: str) -> Delays:
    """Let only a share of the events come to delays; ``cause`` has the rest."""
    share = np.broadcast_to(np.asarray(kept, np.float64), delays.survival.shape)
    lost = {name: share * each for name, each in delays.lost.items()}
    lost[cause] = lost.get(cause, 0.0) + 1.0 - share
    return replace(delays, survival=delays.survival * share, lost=lost)


def exposed(delays: Delays, fails_per_s: Floats, cause: str) -> Delays:
    """Lose the events whose component fails while it serves or carries them.

    At f failures a second an event outlives a stay X with probability E[exp(−f X)]: exact for
    exponential times up. The delays of the rest stay as they are.
    """
    fine_s = delays.grid.fine_s
    middles_s = np.append(0.5 * (fine_s[1:] + fine_s[:-1]), 2.0 * fine_s[-1])
    inside = np.broadcast_to(fine_s, (len(delays), fine_s.size)) + delays.shift_s[:, None]
    alive = np.where(delays.survival > 0.0, delays.survival, 1.0)[:, None]
    below = delays.at(inside) / alive
    below[:, 0] = delays.atom
    masses = np.diff(below, axis=1, append=1.0)
    early = delays.atom + np.sum(masses * np.exp(-fails_per_s[:, None] * middles_s), axis=1)
    stays = np.where(fails_per_s > 0.0, early * np.exp(-fails_per_s * delays.shift_s), 1.0)
    gone = delays.survival * (1.0 - stays)
    lost = {**delays.lost, cause: delays.lost.get(cause, 0.0) + gone}
    return replace(delays, survival=delays.survival - gone, lost=lost)


def in_order(losses: Iterable[Loss]) -> Loss:
    """Put losses one after the other: the first that takes an event counts."""
    left = 1.0
    lost: dict[str, float] = {}
    for share, causes in losses:
        for cause, part in causes.items():
            lost[cause] = lost.get(cause, 0.0) + left * part
        left *= share
    return left, lost


def of_row(delays: Delays, row: int) -> Loss:
    """Read the losses of one delay."""
    return float(delays.survival[row]), {
        cause: float(share[row]) for cause, share in delays.lost.items()
    }


def up_along(components: Components, path: Path, stays_s: Sequence[float]) -> list[Loss]:
    """Compute P[the next element is up | all before it were], for each element but the first.

    What several elements need, a failure group, was up when an event met it last; it is so again a
    time t later with probability a + (1 − a) exp(−t f/(1 − a)), exponential times taken, with the
    mean of t by ``stays_s`` at the elements since.
    """
    needs = components.of_path(path)
    met_at = dict.fromkeys(needs[0], 0)
    checks: list[Loss] = []
    for element, needed in enumerate(needs[1:], start=1):
        share = 1.0
        for each in needed:
            process = components.processes[each]
            since_s = sum(stays_s[met_at[each] : element - 1]) if each in met_at else math.inf
            down = 1.0 - process.availability
            met_at[each] = element
            if down > 0.0:
                share *= 1.0 + down * math.expm1(-since_s * process.fails_per_s / down)
        checks.append((share, {PATH_DOWN: 1.0 - share}))
    return checks


def forgotten_along(components: Components, path: Path) -> list[Loss]:
    """Compute the same without any recovery: a broker that can crash forgot for good long ago.

    One more entry comes first, for the table of the first broker.
    """
    checks: list[Loss] = []
    for element, needed in enumerate(components.of_path(path)):
        forgot = element % 2 == 0 and bool(needed)
        checks.append((0.0, {NOT_RESTORED: 1.0}) if forgot else (1.0, {}))
    return checks
