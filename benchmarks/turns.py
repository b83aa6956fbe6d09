"""Engines that simulate the same network by turns: what slows a machine down then slows all."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one engine did: how many visits of queues, and how late its deliveries were."""

    visits: int
    cpu_s: float
    delay_s: float
    deliveries: int

    @property
    def visits_per_cpu_s(self) -> float:
        """How fast it was."""
        return self.visits / self.cpu_s


def add_options(parser: argparse.ArgumentParser) -> None:
    """How long, how often and with which random numbers."""
    parser.add_argument("--seconds", type=float, default=10.0, help="CPU seconds for SimPy, about")
    parser.add_argument("--rounds", type=int, default=5, help="turns that each engine has")
    parser.add_argument("--seed", type=int, default=1)


def compare(engines: Mapping[str, Callable[[float, int], Run]], args: Any) -> dict[str, Any]:
    """Run all engines by turns, print and give how fast each was, and the first against others.

    Engines get the CPU seconds that SimPy is to take, about, and a seed of their own each round.
    How many times as fast is the median over the rounds.
    """
    seconds, seeds = args.seconds / args.rounds, range(args.seed, args.seed + args.rounds)
    turns = [{name: engine(seconds, seed) for name, engine in engines.items()} for seed in seeds]
    runs = {name: _together([turn[name] for turn in turns]) for name in engines}
    for name, run in runs.items():
        print(
            f"{name:8} {run.visits:>12,} visits  {run.cpu_s:7.2f} CPU s  "
            f"{run.visits_per_cpu_s:>12,.0f} visits per CPU s  "
            f"mean delay {1e3 * run.delay_s:.3f} ms over {run.deliveries:,} deliveries"
        )
    first, *others = engines
    times = {}
    for name in others:
        each = [turn[first].visits_per_cpu_s / turn[name].visits_per_cpu_s for turn in turns]
        times[name] = round(statistics.median(each), 1)
        print(f"{times[name]:.0f} times {name} ({min(each):.0f} to {max(each):.0f} by round)")
    return {
        "versions": {name: version(name) for name in others},
        "visits_per_cpu_s": {name: round(run.visits_per_cpu_s) for name, run in runs.items()},
        "times_as_fast_as": times,
        "mean_delay_s": {name: run.delay_s for name, run in runs.items()},
        "visits": {name: run.visits for name, run in runs.items()},
    }


def _together(runs: Iterable[Run]) -> Run:
    """Several runs of an engine as one."""
    runs = list(runs)
    deliveries = sum(run.deliveries for run in runs)
    return Run(
        visits=sum(run.visits for run in runs),
        cpu_s=sum(run.cpu_s for run in runs),
        delay_s=sum(run.delay_s * run.deliveries for run in runs) / deliveries,
        deliveries=deliveries,
    )
