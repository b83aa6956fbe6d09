"""What the kernel tapes of a run, part by part, and when that was on the clock of the traces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.memory import World
from tidings.model.arrays import Ints
from tidings.simulation.network import CompiledSystem
from tidings.simulation.world import Window, run_in_parts

EPOCH_NS = 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z: when a recorded window begins
ROWS_AT_ONCE = 1 << 16  # of each table in one part
_KINDS = ("publications", "hops", "sends", "deliveries", "turns", "learnt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tapes:
    """What the kernel taped of a part of a run, as arrays of its records, and when it halted."""

    publications: Any
    hops: Any
    sends: Any
    deliveries: Any
    turns: Any
    learnt: Any
    now_s: float


def tapes_of(world: World, compiled: CompiledSystem, window: Window) -> Iterator[Tapes]:
    """Run a world to its end and give what is taped, a part whenever the tape is full."""
    for _ in run_in_parts(world, compiled, window):
        taken = {}
        for kind in _KINDS:
            rows = int(world.record[0][f"taped_{kind}"])
            taken[kind] = world.tables[f"tape_{kind}"][:rows].copy()
            world.record[0][f"taped_{kind}"] = 0
        yield Tapes(**taken, now_s=float(world.record[0].now))


def nanoseconds(times_s: NDArray[np.float64], window: Window) -> Ints:
    """Moments of the simulation as whole nanoseconds since the Unix epoch."""
    since = np.floor((times_s - window.warmup_s) * 1e9 + 0.5)
    return EPOCH_NS + window.starts_ns + since.astype(np.int64)


def turns_in_window(
    turns: Any, window: Window, until_s: float | None = None
) -> tuple[Ints, Ints, Ints]:
    """What turned, to what, and when; what did before the window, as if at its beginning."""
    taped = turns[turns["turned"] <= (window.end_s if until_s is None else until_s)]
    taped = taped[np.lexsort((taped["turned"], taped["what"]))]
    again = (taped["what"][1:] == taped["what"][:-1]) & (taped["turned"][1:] <= window.warmup_s)
    taped = np.delete(taped, np.flatnonzero(again))  # the next one counts, not this
    at_ns = nanoseconds(np.maximum(taped["turned"], window.warmup_s), window)
    order = np.argsort(at_ns, kind="stable")
    return taped["what"][order], taped["is_on"][order], at_ns[order]
