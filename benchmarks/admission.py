"""Questions of admission on a system of a hundred brokers: time of a question and of preparing.

A random tree of queueing brokers with ten topics. *Prepare* is what the first newcomer of a kind
costs, one prediction for every broker; *question* is what every later one costs, for all brokers
at once; *confirm* predicts the system anew.

    python benchmarks/admission.py [--write] [--brokers N]
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any

import numpy as np
from recording import add_write_option, record

from tidings.model import reading
from tidings.model.system import System
from tidings.planning.admission import Admissions
from tidings.planning.newcomers import newcomer_like
from tidings.planning.targets import Target

TOPICS, SUBSCRIBERS, QUESTIONS = 10, 200, 1000


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
    """CPU times of preparing, asking and confirming."""
    desk = Admissions(system=tree(brokers, seed), target=Target(share=0.9))
    newcomer = newcomer_like(desk.system, "s0")
    begun = time.process_time()
    desk.prepare(newcomer)
    prepared_s = time.process_time() - begun
    begun = time.process_time()
    for number in range(QUESTIONS):
        answer = desk.ask(replace(newcomer, name=f"n{number}"), target=0.9)
    question_s = (time.process_time() - begun) / QUESTIONS
    assert answer.choice is not None
    desk.admit(newcomer, answer.choice)
    begun = time.process_time()
    desk.confirm()
    return {
        "brokers": brokers,
        "prepare_s": round(prepared_s, 2),
        "question_ms": round(1000 * question_s, 3),
        "confirm_s": round(time.process_time() - begun, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--brokers", type=int, nargs="+", default=[10, 30, 100])
    add_write_option(parser, "admission")
    args = parser.parse_args()
    print("brokers  prepare s  question ms  confirm s")
    rows = []
    for brokers in args.brokers:
        rows.append(measure(brokers, args.seed))
        row = rows[-1]
        print(
            f"{row['brokers']:7}{row['prepare_s']:11.2f}{row['question_ms']:13.3f}"
            f"{row['confirm_s']:11.3f}"
        )
    if args.write:
        record("admission", {"questions": QUESTIONS, "rows": rows})


if __name__ == "__main__":
    main()
