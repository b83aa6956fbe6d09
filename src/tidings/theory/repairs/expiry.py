"""Events that expire in a buffer: what waited and is not in time is dropped, never delivered.

An event that had to wait in a buffer and is not in time has expired there, wherever its lifetime
ran out; one that never waited is delivered late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tidings.model.arrays import Floats, Ints
from tidings.theory.delay.distributions import ARRAYS, Distributions
from tidings.theory.repairs.components import EXPIRED

_NODES = 64  # of a random lifetime, where all of a distribution is asked for


@dataclass(frozen=True, kw_only=True, eq=False)
class Expiring(Distributions):
    """Delays of what is delivered, of paths whose buffers drop what has expired.

    The share that has arrived by t is P[X ≤ min(t, L)] and, of what never waited, P[L < X ≤ t].
    """

    whole: Distributions  # as if nothing ever expired
    unkept: Distributions  # of that, what no buffer held
    lifetimes_s: Floats  # [n, node], equally likely

    def take(self, rows: Ints | Sequence[int]) -> Expiring:
        """Select some of the delays, in the order asked for."""
        chosen = np.asarray(rows, dtype=np.int64)
        plain = Distributions.take(self, chosen)
        return Expiring(
            grid=self.grid,
            **{name: getattr(plain, name) for name in ARRAYS},
            lost=plain.lost,
            whole=self.whole.take(chosen),
            unkept=self.unkept.take(chosen),
            lifetimes_s=self.lifetimes_s[chosen],
        )

    def at(self, t_s: Floats, rows: Ints | None = None) -> Floats:
        """Compute the share of events that has been delivered by t seconds."""
        chosen = np.arange(len(self)) if rows is None else rows
        times = np.asarray(t_s, dtype=np.float64)
        asked = times.reshape(chosen.size, -1)
        limited = np.minimum(asked[:, :, None], self.lifetimes_s[chosen, None, :])
        flat = limited.reshape(chosen.size, -1)
        kept = self.whole.at(flat, chosen) - self.unkept.at(flat, chosen)
        in_time = kept.reshape(limited.shape).mean(axis=2)
        arrived: Floats = np.maximum(in_time, 0.0) + self.unkept.at(asked, chosen)
        return arrived.reshape(times.shape)


def expiring(
    whole: Distributions, unkept: Distributions, on_time: Floats, lifetimes_s: Floats
) -> Expiring:
    """Drop what waited in a buffer and is not in time.

    ``on_time`` is the share of each that is in time, ``lifetimes_s`` [n, node] its lifetimes.
    """
    in_time_unkept = unkept.at(lifetimes_s).mean(axis=1)
    late = np.maximum(unkept.survival - in_time_unkept, 0.0)
    delivered = np.minimum(on_time + late, whole.survival)
    count = min(lifetimes_s.shape[1], _NODES)
    nodes = lifetimes_s.reshape(len(whole), count, -1).mean(axis=2)
    dropped = Expiring(
        grid=whole.grid,
        survival=delivered,
        shift_s=whole.shift_s,
        mean_s=whole.mean_s,
        atom=whole.atom,
        below=whole.below,
        slope=whole.slope,
        lost={**whole.lost, EXPIRED: whole.survival - delivered},
        whole=whole,
        unkept=unkept,
        lifetimes_s=nodes,
    )
    return replace(dropped, mean_s=_mean_s(dropped))


def _mean_s(delays: Expiring) -> Floats:
    """Compute E[random part | delivered] in seconds: the area above the distribution of what is."""
    fine_s = delays.grid.fine_s
    middles_s = 0.5 * (fine_s[1:] + fine_s[:-1])
    times_s = delays.shift_s[:, None] + np.concatenate([fine_s, middles_s])
    missing = np.maximum(delays.survival[:, None] - delays.at(times_s), 0.0)
    ends, inner = missing[:, : fine_s.size], missing[:, fine_s.size :]
    area_s = (ends[:, 1:] + 4.0 * inner + ends[:, :-1]) @ np.diff(fine_s) / 6.0
    mean_s: Floats = area_s / np.where(delays.survival > 0.0, delays.survival, 1.0)
    return mean_s
