"""What variance reduction gains where misses are few, and whether its stated errors hold.

    python studies/tails/measure.py gains      # of each method, over plain runs of the same time
    python studies/tails/measure.py coverage   # how often the stated 95 % hold the exact value

The gain is (variance × CPU time) of plain replications over that of the method tried.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from tails.systems import RARE, erlang_lifetime, line, systems

from tidings.model.arrays import Floats
from tidings.model.system import System
from tidings.prediction.precision import read_within
from tidings.simulation.network import CompiledSystem, compile_system
from tidings.simulation.run import replications, simulate
from tidings.simulation.splitting import Splitting, can_split, find_splitting
from tidings.simulation.tally import Counts, find_units
from tidings.simulation.world import Window

EVENTS = {1e-3: 40_000, 1e-4: 100_000}  # published in each replication, on average
PLAIN, SPLIT = 160, 40  # replications
WARMUP_S = 20.0
WITHIN = read_within("10% of misses")


def run(
    compiled: CompiledSystem, window: Window, number: int, splitting: Splitting | None = None
) -> tuple[list[Counts], float]:
    """Run replications; their counts and the CPU seconds of all."""
    spent_s: list[float] = []
    counts = list(
        replications(compiled, window, 5, range(number), spent_s.append, splitting=splitting)
    )
    return counts, sum(spent_s)


def missed(counts: list[Counts]) -> tuple[Floats, Floats]:
    """[replication]: events that were missed and wanted, all subscribers together."""
    wanted = np.array([each.wanted.sum() for each in counts], dtype=np.float64)
    return wanted - np.array([each.on_time.sum() for each in counts]), wanted


def ratio_and_variance(x: Floats, w: Floats) -> tuple[float, float]:
    """Estimate Σx/Σw, and the variance of that over replications."""
    ratio = x.sum() / w.sum()
    n = x.size
    return float(ratio), float(n / (n - 1) * ((x - ratio * w) ** 2).sum() / w.sum() ** 2)


def controlled_variance(counts: list[Counts], variance: float) -> float:
    """Give what is left of a variance beside known means: of events published and work done."""
    x, w = missed(counts)
    residual = x - x.sum() / w.sum() * w
    columns = [each.published.astype(float).tolist() + each.station_counts[:, 2].tolist()
               for each in counts]  # fmt: skip
    controls = np.array(columns)
    controls = controls[:, controls.std(axis=0) > 0.0]
    controls -= controls.mean(axis=0)
    fitted = controls @ np.linalg.lstsq(controls, residual, rcond=None)[0]
    n, k = controls.shape
    left = ((residual - fitted) ** 2).sum() / (residual**2).sum()
    return variance * left * (n - 1) / (n - 1 - k) * (n - 2) / (n - 2 - k)


def conditioned_gain(miss: float, replications: int = 200, events: int = 40_000) -> float:
    """Measure what P[late | wait] in the place of late or not gains in M/M/1, for the same events.

    By Lindley's recursion, at the load of the first system; its time is taken as nothing.
    """
    rng = np.random.default_rng(1)
    t_s = erlang_lifetime(1, 40.0, miss)
    plain, conditioned = [], []
    for _ in range(replications):
        service = rng.exponential(0.010, events)
        step = np.concatenate([[0.0], service[:-1] - rng.exponential(1.0 / 60.0, events - 1)])
        walk = np.cumsum(step)
        wait = walk - np.minimum.accumulate(walk)
        plain.append(np.mean(wait + service > t_s))
        conditioned.append(np.mean(np.exp(-100.0 * np.maximum(t_s - wait, 0.0))))
    return float(np.var(plain) / np.var(conditioned))


def gain_line(name: str, system: System, miss: float) -> str:
    """Measure one system; a row of the table."""
    compiled = compile_system(system)
    units = find_units(compiled)
    events = EVENTS[miss] * (1 if can_split(compiled) else 20)
    length_s = events / float(compiled.publisher_rates.sum())
    window = Window(warmup_s=WARMUP_S, end_s=WARMUP_S + length_s)
    number = PLAIN if can_split(compiled) else PLAIN // 4
    counts, plain_s = run(compiled, window, number)
    share, variance = ratio_and_variance(*missed(counts))
    controlled = variance / controlled_variance(counts, variance)
    cells = [
        name,
        f"{share:.2g}",
        f"{_needed_s(share, variance, plain_s):.2g}",
        f"{controlled:.2f}",
    ]
    if not can_split(compiled):
        return " | ".join([*cells, "-", "-"])
    start_s = time.process_time()
    splitting = find_splitting(compiled, units, np.full(units.count, miss), window, 5)
    pilots_s = time.process_time() - start_s
    assert splitting is not None
    split, split_s = run(compiled, window, SPLIT, splitting)
    split_share, split_variance = ratio_and_variance(*missed(split))
    needed_s = pilots_s + _needed_s(split_share, split_variance, split_s)
    gain = variance * plain_s / (split_variance * split_s)
    return " | ".join([*cells, f"{needed_s:.2g}", f"{gain:.1f}"])


def _needed_s(share: float, variance: float, cpu_s: float) -> float:
    """CPU seconds after which the half-width (95 %) is a tenth of the misses."""
    return cpu_s * variance * (1.96 / (0.1 * share)) ** 2


def gains() -> Iterator[str]:
    """Measure all systems; the lines of a Markdown table."""
    heads = ["system", "misses", "plain, CPU s for 10 %", "gain by control variates"]
    yield " | ".join(["", *heads, "split, CPU s for 10 %", "gain by splitting", ""]).strip()
    yield "|---|---|---|---|---|---|"
    for miss in RARE:
        for name, system in systems(miss).items():
            yield f"| {gain_line(name, system, miss)} |"
    for miss in RARE:
        yield f"Conditional expectation, M/M/1, misses of {miss:g}: {conditioned_gain(miss):.2f}"


def coverage(seeds: int) -> Iterator[str]:
    """Count how often what `predict` would state holds the exact share of misses."""
    yield "| system | load | misses | runs | held | mean half-width | CPU s |"
    yield "|---|---|---|---|---|---|---|"
    for miss in RARE:
        for hops, load in ((1, 0.3), (1, 0.6), (3, 0.6), (1, 0.9)):
            service_s = load / 60.0
            lifetime_s = erlang_lifetime(hops, 1.0 / service_s - 60.0, miss)
            system = line(hops, lifetime_s, f"{{exponential: {service_s}s}}")
            held, widths, start_s = 0, [], time.process_time()
            for seed in range(1, seeds + 1):
                outcome = simulate(
                    system, seed=seed, precision=WITHIN.half_widths, split=True, seconds=60.0
                )
                row = outcome.subscribers.iloc[0]
                held += abs(1.0 - row["on_time"] - miss) <= row["error"]
                widths.append(row["error"] / miss)
            cpu_s = (time.process_time() - start_s) / seeds
            yield (
                f"| M/M/1, {hops} in line | {load:g} | {miss:g} | {seeds} | {held / seeds:.3f} "
                f"| {np.mean(widths):.3f} of the misses | {cpu_s:.2g} |"
            )


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("gains", "coverage"))
    parser.add_argument("--seeds", type=int, default=200)
    arguments = parser.parse_args()
    lines = gains() if arguments.what == "gains" else coverage(arguments.seeds)
    for each in lines:
        print(each, flush=True)


if __name__ == "__main__":
    main()
