r"""How long a net must run to forget how it began, and whether it has.

Near full load a queue forgets slowly: with load ρ, mean service S and its c², the number that wait
has a relaxation time of about

.. math:: \tau = \frac{(1 + c^2)\, 2 S}{m (1 - \rho)^2}

(diffusion limit of m servers fed by a Poisson stream). Runs shorter than some τ are biased, all of
them alike, so that no number of them helps. Pilot runs see little of a start that long.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy import special

from tidings.petri.cells import NetCells
from tidings.petri.totals import NetTotals
from tidings.petri.traffic import NetTraffic

WARMUP_TIMES = 5.0  # relaxation times to leave out
RUN_TIMES = 50.0  # and to measure, at least
LEVEL = 1e-4  # how often, at most, a net in its steady state may be said not to have settled


def slowest(cells: NetCells, traffic: NetTraffic) -> tuple[str, float]:
    """Find the queue of known load that forgets most slowly; its relaxation time in seconds."""
    times = [(time_s, name) for name, time_s in _relaxation_times_s(cells, traffic)]
    time_s, name = max(times, default=(0.0, ""))
    return name, time_s


def _relaxation_times_s(cells: NetCells, traffic: NetTraffic) -> Iterator[tuple[str, float]]:
    for name, load in traffic.loads.items():
        queue = cells.queues[name]
        work = squares = 0.0
        for at, (place, colour) in enumerate(cells.all):
            law, rate = queue.law_of(colour), float(traffic.rates_per_s[at])
            if place == name and law is not None and law.mean_s * rate > 0.0:  # and is known
                work += rate * law.mean_s
                squares += rate * law.mean_s**2 * (1.0 + law.scv)
        if work > 0.0 and math.isfinite(squares):
            # (1 + c²) S = E[S²]/E[S]
            yield name, 2.0 * squares / work / queue.servers / (1.0 - load) ** 2


def unsettled(totals: NetTotals, traffic: NetTraffic, length_s: float) -> list[str]:
    """Warn where measured rates or loads are not those of the traffic equations.

    Differences count in standard errors over replications, by Student's t, and these are at least
    those of Poisson counts: few or regular events hardly differ between runs.
    """
    cells, runs = totals.compiled.cells, totals.replications
    if runs < 2:
        return []
    known = np.flatnonzero(traffic.rates_per_s > 0.0)
    rates = traffic.rates_per_s[known]
    error = np.fmax(totals.throughput.standard_error[known], np.sqrt(rates / (runs * length_s)))
    off = np.abs(totals.throughput.value[known] - rates)
    most = special.stdtrit(runs - 1, 1.0 - 0.5 * LEVEL / max(1, known.size)) * error
    far = np.flatnonzero(off > most)
    if not far.size:
        return []
    worst = int(far[np.argmax(off[far] / error[far])])
    place, colour = cells.all[known[worst]]
    others = f", and {far.size - 1} more places and colours are off" if far.size > 1 else ""
    return [
        f"this net has not reached steady state: of the colour '{colour}' "
        f"{totals.throughput.value[known[worst]]:.6g} tokens a second leave '{place}', "
        f"where the traffic equations say {rates[worst]:.6g} "
        f"({off[worst] / error[worst]:.2g} standard errors){others}. All results are "
        "biased by the start; run it longer (--duration, --warmup)"
    ]
