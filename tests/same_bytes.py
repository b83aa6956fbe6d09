"""What a seed gives, as documents: to be compared however the work was shared out, and where.

    python tests/same_bytes.py WORKERS [--spark]

Prints a JSON document by what was asked. ``digest`` says whether two are the same to the last bit.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import tidings as td
from tidings.kernels import replications
from tidings.model.json_text import plain
from tidings.model.outcome_files import outcome_document
from tidings.model.reading import system_document
from tidings.sweeps.generating import Planting
from tidings.sweeps.replications import replicate_on

BY_THEORY = """
tidings: 1
lifetime: 60ms
brokers: {hub: {service: {exponential: 8ms}}, edge: {service: {gamma: {mean: 4ms, shape: 2}}}}
links: [{between: [hub, edge], delay: 2ms, reliability: 0.98}]
publishers:
  p: {at: hub, every: {rate: 40/s}, content: [{p: 0.5, event: {k: 1}}, {p: 0.5, event: {k: 2}}]}
  q: {at: edge, every: {exponential: 25ms}, content: {event: {k: 2}}}
subscribers:
  alice: {at: hub, wants: {k: 1}}
  bob: {at: edge, wants: {}}
  carol: {at: hub, wants: {k: 2}}
"""
SIMULATED = BY_THEORY.replace("hub: {service: {exponential: 8ms}}",
                                  "hub: {service: {exponential: 8ms}, buffer: 6}")  # fmt: skip
UNLIKE = {"cpu_s", "traces"}  # what an answer took, and the folder it is of: no part of the answer


def digest(document: Any) -> str:
    """A short text that two documents share only if they are the same to the last bit."""
    text = json.dumps(document, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def answers() -> dict[str, Any]:
    """What is answered and recorded without Spark, by what was asked."""
    system, simulated = td.loads(BY_THEORY), td.loads(SIMULATED)
    recording = td.record(simulated, seed=3, events=1_000)
    return _documents(
        {
            "simulate": td.simulate(system, seed=3, replications=7, events=2_000),
            "precise": td.simulate(simulated, seed=3, events=500, precision=0.03),
            "predict": td.predict(system, seed=3),
            # Seconds in which as much as is wanted is surely simulated: where they end the work,
            # an answer depends on how fast the machine is.
            "predict, simulated": td.predict(
                simulated, seed=3, within=0.05, seconds=600.0, causes=False
            ),
            "record, outcome": recording.outcome,
            "record": {name: each.to_pylist() for name, each in recording.tables.items()},
        }
    )


def answers_on_spark(spark: Any, folder: Path) -> dict[str, Any]:
    """What comes of Spark's tasks, by what was asked; of the traces in a folder, or new ones."""
    system = td.loads(BY_THEORY)
    asked = {"seed": 3, "replications": 7, "events": 2_000}
    made = td.generate_traces(spark, system, 8.0, Planting(seed=3, probes=40)).tables
    rows = {name: [row.asDict() for row in frame.collect()] for name, frame in made.items()}
    if not folder.exists():
        td.write_traces(td.record(system, seed=3, events=3_000), folder)
    found = td.characterise(td.read_traces(spark, folder))
    return _documents(
        {
            "simulate, Spark": td.simulate(system, **asked, elsewhere=replicate_on(spark)),
            "generate": {name: sorted(each, key=repr) for name, each in rows.items()},
            "characterise": system_document(found.system),
            "characterise, measured": found.measured,
            "characterise, parameters": found.parameters.to_dict("list"),
        }
    )


def alike(found: Any, expected: Any, rel: float) -> bool:
    """The same, but for last digits: numbers within a share of each other."""
    if isinstance(expected, dict):
        keys = found.keys() == expected.keys()
        return keys and all(alike(found[name], expected[name], rel) for name in expected)
    if isinstance(expected, list):
        return len(found) == len(expected) and all(
            alike(one, other, rel) for one, other in zip(found, expected, strict=True)
        )
    if isinstance(expected, float):
        return isinstance(found, float) and math.isclose(
            found, expected, rel_tol=rel, abs_tol=1e-12
        )
    return bool(found == expected)


def _documents(found: dict[str, Any]) -> dict[str, Any]:
    """Plain values, as whoever reads them from JSON has them."""
    plainly = {
        name: outcome_document(each) if isinstance(each, td.Outcome) else plain(each)
        for name, each in found.items()
    }
    return dict(json.loads(json.dumps(plainly), object_hook=_answer))


def _answer(document: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in document.items() if name not in UNLIKE}


def main() -> None:
    """Print all documents, made by so many workers."""
    workers = int(sys.argv[1])
    replications.usable_cores = lambda: workers
    found = answers()
    if "--spark" in sys.argv:
        shuffles = {"spark.sql.shuffle.partitions": str(2 * workers + 1)}
        with (
            tempfile.TemporaryDirectory() as folder,
            td.spark_session(f"local[{workers}]", small=True, settings=shuffles) as spark,
        ):
            found |= answers_on_spark(spark, Path(folder) / "traces")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
