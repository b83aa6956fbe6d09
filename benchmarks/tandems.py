"""How well queues behind an ON/OFF centre are predicted: Poisson, c², dispersion, simulation.

    python benchmarks/tandems.py

One centre with Poisson arrivals hands its events to a second queue, plain or ON/OFF. Mean response
of the second, in seconds. The simulation is the slow obvious twin in ``tests/naive_onoff.py``.
"""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import numpy as np

from tidings.model.laws import Exponential
from tidings.theory.dispersion import Leaving
from tidings.theory.mobility.arrivals import (
    Arrivals,
    PoissonArrivals,
    UnevenArrivals,
    VariableArrivals,
)
from tidings.theory.mobility.centre import OnOff, exponential_centre
from tidings.theory.time_grid import time_grid

SERVICE_S = 0.0625
LOADS = (0.25, 0.5, 0.8)  # of the busier of the two
CASES = (
    ((109.0, 121.5), Exponential(mean_s=SERVICE_S)),
    ((10.0, 10.0), Exponential(mean_s=SERVICE_S)),
    ((10.0, 10.0), Exponential(mean_s=0.2)),
    ((10.0, 10.0), Exponential(mean_s=0.03)),
    ((109.0, 121.5), exponential_centre(SERVICE_S, 146.3, 96.0)),
    ((10.0, 10.0), exponential_centre(SERVICE_S, 15.0, 15.0)),
    ((10.0, 10.0), exponential_centre(SERVICE_S, 1.5, 1.5)),
    ((1.0, 1.0), exponential_centre(SERVICE_S, 1.5, 1.5)),
)
RUNS, PERIODS = 12, 2_500
_PLACE = Path(__file__).parents[1] / "tests" / "naive_onoff.py"


def main() -> None:
    naive = _naive()
    head = ("first ON/OFF", "second", "load", "simulated ±", "Poisson", "c²", "dispersion")
    print("| " + " | ".join(head) + " |\n|---|---|---|---|---|---|---|")
    for (on_s, off_s), second in CASES:
        first = exponential_centre(SERVICE_S, on_s, off_s)
        most_per_s = second.most_per_s if isinstance(second, OnOff) else 1.0 / second.mean_s
        for load in LOADS:
            rate = load * min(first.most_per_s, most_per_s)
            truth, noise = simulated_s(naive, first, rate, second)
            found = [predicted_s(each.after(first), second) for each in streams(rate, first)]
            cells = [f"{each:.3g} ({100 * (each / truth - 1):+.0f} %)" for each in found]
            name = f"{on_s:g}/{off_s:g} s"
            print(f"| {name} | {label(second)} | {load:g} | {truth:.3g} ± {noise:.2g} | ", end="")
            print(" | ".join(cells) + " |", flush=True)


def streams(rate: float, first: OnOff) -> tuple[Arrivals, ...]:
    grid = time_grid(1e-4, 3e3 * (first.on.mean_s + first.off.mean_s))
    nothing = np.zeros(grid.points)
    uneven = Leaving(rate_per_s=rate, beyond=nothing, peak_per_s=rate, grid=grid)
    return (
        PoissonArrivals(rate_per_s=rate),
        VariableArrivals(rate_per_s=rate, scv=1.0),
        UnevenArrivals(leaving=uneven),
    )


def predicted_s(arrivals: Arrivals, second: OnOff | Exponential) -> float:
    if isinstance(second, OnOff):
        return arrivals.completion_wait(second).mean_s + second.demand_s + second.absence_s
    return arrivals.wait(second).mean_s + second.mean_s


def simulated_s(naive, first, rate, second):
    until_s = PERIODS * (first.on.mean_s + first.off.mean_s)
    found = []
    for rng in np.random.default_rng(1).spawn(RUNS):
        arrivals = naive.poisson_arrivals(rng, rate, until_s)
        clock = naive.Clock(rng, first.on, first.off, 3.0 * until_s)
        middle = naive.onoff_departures(arrivals, first.service.sample(rng, arrivals.size), clock)
        if isinstance(second, OnOff):
            other = naive.Clock(rng, second.on, second.off, 3.0 * until_s)
            services = second.service.sample(rng, middle.size)
            left = naive.onoff_departures(middle, services, other)
        else:
            left = naive.fifo(middle, second.sample(rng, middle.size))
        found.append(float((left - middle)[arrivals > 0.05 * until_s].mean()))
    return np.mean(found), np.std(found, ddof=1) / math.sqrt(RUNS)


def label(second: OnOff | Exponential) -> str:
    if isinstance(second, OnOff):
        return f"ON/OFF {second.on.mean_s:g}/{second.off.mean_s:g} s"
    return f"M/M/1, {second.mean_s:g} s"


def _naive():
    spec = importlib.util.spec_from_file_location("naive_onoff", _PLACE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
