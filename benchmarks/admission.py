"""Questions of admission on systems of up to a hundred brokers: what each step of them costs.

A random tree of queueing brokers with ten topics. *Desk* predicts the system once; *prepare* is
what the first newcomer of a kind costs, one prediction for all brokers that have its events;
*question* is what every later one costs, *join* what taking one in where its events are does, and
*elsewhere* what looking at one broker that does not have them takes, the first time.

    python benchmarks/admission.py [--write] [--brokers N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from recording import add_write_option, record

from tidings.model import reading
from tidings.model.system import System
from tidings.planning.admission import Admissions, newcomer_like, reached_brokers
from tidings.planning.evidence import Target

TOPICS, SUBSCRIBERS, QUESTIONS, JOINS = 10, 200, 200, 100
T = TypeVar("T")


def tree(brokers: int, seed: int) -> System:
    """A random tree of M/M/1 brokers with a publisher for each topic."""
    rng = np.random.default_rng(seed)
    places = [f"b{i}" for i in range(brokers)]
    return reading.from_document(
        {
            "tidings": 1,
            "lifetime": 1.0,
            "brokers": {name: {"service": {"exponential": 0.01}} for name in places},
            "links": [
                {"between": [places[int(rng.integers(i))], places[i]], "delay": 0.02}
                for i in range(1, brokers)
            ],
            "publishers": {
                f"p{i}": {
                    "at": places[int(rng.integers(brokers))],
                    "every": {"exponential": 0.2},
                    "content": {"event": {"topic": f"t{i}"}},
                }
                for i in range(TOPICS)
            },
            "subscribers": {
                f"s{i}": {
                    "at": places[int(rng.integers(brokers))],
                    "wants": {"topic": f"t{rng.integers(TOPICS)}"},
                }
                for i in range(SUBSCRIBERS)
            },
        }
    )


def measure(brokers: int, seed: int) -> dict[str, Any]:
    """CPU times of each step."""
    system = tree(brokers, seed)
    desk_s, desk = timed(lambda: Admissions(system=system, target=Target(share=0.9)))
    newcomer = newcomer_like(system, "s0")
    prepare_s, _ = timed(lambda: desk.prepare(newcomer))
    guests = [replace(newcomer, name=f"n{number}") for number in range(QUESTIONS)]
    questions_s, answers = timed(lambda: [desk.ask(each, target=0.9) for each in guests])
    chosen = answers[0].choice
    assert chosen is not None
    joins_s, _ = timed(lambda: [desk.admit(each, chosen) for each in guests[:JOINS]])
    reached = reached_brokers(system, newcomer)
    away = next(name for name in system.broker_index if name not in reached)
    elsewhere_s, _ = timed(lambda: desk.ask(newcomer, target=0.9, brokers=[away]))
    return {
        "brokers": brokers,
        "with_its_events": len(reached),
        "desk_s": round(desk_s, 2),
        "prepare_s": round(prepare_s, 2),
        "question_ms": round(1000 * questions_s / QUESTIONS, 3),
        "join_ms": round(1000 * joins_s / JOINS, 3),
        "elsewhere_s": round(elsewhere_s, 2),
    }


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """CPU seconds of some work, and what it gave."""
    begun = time.process_time()
    found = work()
    return time.process_time() - begun, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--brokers", type=int, nargs="+", default=[10, 30, 100])
    add_write_option(parser, "admission")
    args = parser.parse_args()
    rows = []
    for brokers in args.brokers:
        rows.append(measure(brokers, args.seed))
        print(", ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    if args.write:
        record("admission", {"questions": QUESTIONS, "joins": JOINS, "rows": rows})


if __name__ == "__main__":
    main()
