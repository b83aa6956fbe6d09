"""What error bars of a fitted system cost: CPU time, and as many times the prediction itself.

Random trees of brokers whose every parameter has a standard error, with and without failures, with
subscribers that come and go, and the sample system of the demonstration. Each line is the least of
three runs in one process.

    python benchmarks/error_bars.py [--quick] [--write]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from recording import add_write_option, record

from tidings.demonstration.sample_system import market_and_weather
from tidings.model.reading import from_document, system_document
from tidings.model.system import System
from tidings.theory.answer import answer_by_theory

SIZES = (4, 10, 20, 60)
RUNS = 3
MOST_CHURNING = 20  # brokers of systems whose subscribers come and go
EVERY: tuple[Any, ...] = (
    {"exponential": 0.1},
    {"erlang": {"shape": 4, "mean": 0.1}},
    {"hyperexponential": [{"p": 0.9, "mean": 0.06}, {"p": 0.1, "mean": 0.46}]},
)


def tree(count: int, *, failing: bool = False, churning: bool = False) -> System:
    """Draw a tree of brokers with a publisher and three subscribers for each."""
    rng = np.random.default_rng(count)
    names = [f"b{index}" for index in range(count)]
    failure = {"failure": {"mtbf": 7200.0, "mttr": 60.0}} if failing else {}
    stays = {"stays": {"exponential": 20.0}, "away": {"exponential": 30.0}} if churning else {}
    services = 0.08 * rng.uniform(0.5, 1.1, count) / count
    document: dict[str, Any] = {
        "tidings": 1,
        "lifetime": 0.15,
        "brokers": {
            name: {"service": {"exponential": mean_s}, **failure}
            for name, mean_s in zip(names, services.tolist(), strict=True)
        },
        "links": [
            {
                "between": [names[index], names[int(rng.integers(max(index - 3, 0), index))]],
                "delay": {"exponential": 0.005},
                "reliability": 0.99,
                **failure,
            }
            for index in range(1, count)
        ],
        "publishers": {
            f"p{index}": {
                "at": name,
                "every": EVERY[index % len(EVERY)],
                "content": {"event": {"kind": index % 4}},
            }
            for index, name in enumerate(names)
        },
        "subscribers": {
            f"s{index}": {
                "at": names[int(rng.integers(count))],
                "wants": {"kind": index % 4},
                "link": {"delay": {"exponential": 0.003}, "reliability": 0.99},
                **stays,
            }
            for index in range(3 * count)
        },
    }
    if failing:
        document["recovery"] = {"scheme": "buffering"}
    return with_errors(document)


def with_errors(document: dict[str, Any]) -> System:
    """Give every parameter that can have one a standard error of a hundredth."""
    errors: dict[str, float] = {}
    for name, broker in document["brokers"].items():
        errors[f"brokers.{name}.service"] = 1e-5
        if "failure" in broker:
            errors |= {f"brokers.{name}.failure.{part}": 1.0 for part in ("mtbf", "mttr")}
    for link in document.get("links", ()):
        name = "--".join(link["between"])
        errors |= {f"links.{name}.delay": 5e-5, f"links.{name}.reliability": 1e-3}
        if "failure" in link:
            errors |= {f"links.{name}.failure.{part}": 1.0 for part in ("mtbf", "mttr")}
    for name in document["publishers"]:
        errors[f"publishers.{name}.rate"] = 0.01
    for name in document["subscribers"]:
        errors |= {f"subscribers.{name}.link.{part}": 1e-4 for part in ("delay", "reliability")}
        if "stays" in document["subscribers"][name]:
            errors |= {f"subscribers.{name}.{part}": 0.2 for part in ("stays", "away")}
    return from_document({**document, "standard_errors": errors})


def cpu_s(system: System, *, error_bars: bool) -> float:
    """Measure the CPU seconds of a prediction by theory."""
    times_s = []
    for _ in range(RUNS):
        start_s = time.process_time()
        answer_by_theory(system, error_bars=error_bars)
        times_s.append(time.process_time() - start_s)
    return min(times_s)


def main() -> None:
    """Measure all systems and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the small ones only")
    add_write_option(parser, "error_bars")
    arguments = parser.parse_args()
    systems = {"sample system": with_errors(system_document(market_and_weather()))}
    for count in SIZES[:2] if arguments.quick else SIZES:
        systems[f"{count} brokers"] = tree(count)
        systems[f"{count} brokers that fail"] = tree(count, failing=True)
        if count <= MOST_CHURNING:
            systems[f"{count} brokers, churn"] = tree(count, churning=True)
    print(f"{'system':>24} {'parameters':>10} {'prediction':>10} {'error bars':>10} {'times':>6}")
    rows = []
    for name, system in systems.items():
        plain_s, both_s = (cpu_s(system, error_bars=asked) for asked in (False, True))
        row = {
            "system": name,
            "parameters": len(system.standard_errors),
            "prediction_cpu_s": round(plain_s, 3),
            "error_bars_cpu_s": round(both_s - plain_s, 3),
            "times_prediction": round(both_s / plain_s - 1.0, 2),
        }
        rows.append(row)
        print("{:>24} {:>10} {:>10.3f} {:>10.3f} {:>6.2f}".format(*row.values()))
    if arguments.write:
        record("error_bars", {"rows": rows})


if __name__ == "__main__":
    main()
