"""Whether intervals of predictions hold where failures were seen a few times only.

    python studies/accuracy/few_failures.py [--failures 6 12 24] [--draws 60] [WORD ...]

Of systems that fail in the catalogue, as many failures as a watched time of so many on average has
are drawn for every broker, the times between them and of repairs are fitted to these, and the
system is predicted with error bars by theory. Counted is how often the interval of 95 % holds what
theory says of the true times, so that the engine's own error plays no part; beside it how often
share ± 1.96 standard errors does.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import numpy as np

from systems.catalogue import chosen
from tidings.model.system import System
from tidings.model.uncertainty import uncertain_parameters, with_values
from tidings.theory.answer import answer_by_theory
from tidings.validation.intervals import OF_95, intervals

SYSTEMS = (
    "failing square, periodic",
    "failing square, bypass-buffering",
    "failing queues in a line, periodic",
    "failing queues in a line, buffering",
)


def times_of_failures(system: System) -> tuple[tuple[str, float], ...]:
    """Name all times between failures and of repairs, each with an error that marks it."""
    owners = [("brokers", each.name, each.failure) for each in system.brokers]
    return tuple(
        (f"{section}.{name}.failure.{field}", 1.0)
        for section, name, failure in owners
        if failure is not None
        for field in ("mtbf", "mttr")
    )


def watched(system: System, failures: float, random: np.random.Generator) -> System:
    """Fit the times of failures to a number of them that is drawn, at least two of each part."""
    parameters, _ = uncertain_parameters(replace(system, standard_errors=times_of_failures(system)))
    values, errors = {}, []
    for pair in zip(parameters[::2], parameters[1::2], strict=True):
        count = max(int(random.poisson(failures)), 2)
        factors = failures / count, random.gamma(count, 1.0 / count)
        for one, factor in zip(pair, factors, strict=True):
            values[one] = one.value * factor
            errors.append((one.path, one.value * factor / np.sqrt(count)))
    return replace(with_values(system, values), standard_errors=tuple(errors))


def main() -> None:
    """Print how often intervals hold, by system and number of failures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", default=SYSTEMS, metavar="WORD")
    parser.add_argument("--failures", nargs="+", type=float, default=[6.0, 12.0, 24.0])
    parser.add_argument("--draws", type=int, default=60)
    args = parser.parse_args()
    print(f"{'system':44} {'failures':>8} {'draws':>6} {'held':>6} {'± 1.96 se':>9}")
    for case in chosen(args.words):
        system = case.make()
        truth = answer_by_theory(system, causes=False).outcome.subscribers["on_time"].to_numpy()
        for failures in args.failures:
            random, held, plainly = np.random.default_rng(17), [], []
            for _ in range(args.draws):
                learnt = watched(system, failures, random)
                outcome = answer_by_theory(learnt, error_bars=True, causes=False).outcome
                rows = intervals(outcome, level=0.95, model_error=0.0)
                held.append(np.mean((rows["low"] <= truth) & (truth <= rows["high"])))
                bars = outcome.subscribers["on_time_se"].to_numpy()
                plainly.append(np.mean(np.abs(rows["on_time"] - truth) <= OF_95 * bars))
            cells = f"{np.mean(held):6.3f} {np.mean(plainly):9.3f}"
            print(f"{case.name:44.44} {failures:8g} {args.draws:6} {cells}", flush=True)


if __name__ == "__main__":
    main()
