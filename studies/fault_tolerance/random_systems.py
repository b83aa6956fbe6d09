"""The random systems of the fault-tolerance experiments.

What the paper says and what we chose where it leaves things open is in ``fault_tolerance.yaml``.
The seed decides on the structure and on how available each broker is *within* its range, so that
the same seed with other machines, topic trees or schemes differs in nothing else.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.points import zipf
from studies.settings.fault_tolerance import MACHINES, TOPOLOGIES
from tidings.errors import InvalidInputError
from tidings.model import reading
from tidings.model.system import SCHEMES, System

BROKERS = 10
PUBLISHERS = 10
SUBSCRIBERS = 500
DEGREE = 4  # of the random graph, on average
PERIOD_S = 60_000.0
LINK_AVAILABILITY = 0.99
LIFETIME_S = 3_600.0


def random_system(
    seed: int, *, topology: str, machines: str, scheme: str, every_s: float = 60.0
) -> System:
    """A system of the paper's experiments, in which something is published ``every_s`` seconds."""
    for given, known in ((topology, TOPOLOGIES), (machines, MACHINES), (scheme, SCHEMES)):
        if given not in known:
            raise InvalidInputError(f"there is no '{given}' here; wants one of {', '.join(known)}")
    random = np.random.default_rng(seed)
    tree = [(int(random.integers(number)), number) for number in range(1, BROKERS)]
    further = _further_links(random, tree)
    ranks = random.random(BROKERS)
    publishers = random.integers(BROKERS, size=PUBLISHERS)
    homes = random.integers(BROKERS, size=SUBSCRIBERS)
    topics = random.choice(PUBLISHERS, size=SUBSCRIBERS, p=zipf(PUBLISHERS))
    root = int(random.integers(BROKERS))
    low, high = MACHINES[machines]
    document: dict[str, Any] = {
        "tidings": 1,
        "description": f"random system {seed} of the fault-tolerance experiments",
        "lifetime": LIFETIME_S,
        "recovery": {"scheme": scheme},
        "brokers": {
            _broker(number): {"failure": _failure(low + (high - low) * float(ranks[number]))}
            for number in range(BROKERS)
        },
        "links": [
            {"between": [_broker(a), _broker(b)], "failure": _failure(LINK_AVAILABILITY)}
            for a, b in (tree if topology == "tree" else [*tree, *further])
        ],
        "publishers": {
            f"p{number + 1:02d}": {
                "at": _broker(int(home)),
                "every": every_s,
                "content": {"event": {"topic": f"t{number + 1:02d}"}},
            }
            for number, home in enumerate(publishers)
        },
        "subscribers": {
            f"s{number + 1:03d}": {
                "at": _broker(int(home)),
                "wants": {"topic": f"t{topic + 1:02d}"},
            }
            for number, (home, topic) in enumerate(zip(homes, topics, strict=True))
        },
    }
    if topology != "tree":
        document["routing"] = _routing(topology, publishers, root)
    return reading.from_document(document, "a random system")


def _routing(topology: str, publishers: NDArray[np.int64], root: int) -> dict[str, Any]:
    routing: dict[str, Any] = {"root": _broker(root)}
    if topology == "graph, own trees":
        homes = enumerate(publishers)
        routing["by"] = "topic"
        routing["roots"] = {f"t{number + 1:02d}": _broker(int(home)) for number, home in homes}
    return routing


def _further_links(
    random: np.random.Generator, tree: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """As many links beside the tree as the average degree wants."""
    others = [pair for pair in combinations(range(BROKERS), 2) if pair not in set(tree)]
    chosen = random.choice(len(others), size=BROKERS * DEGREE // 2 - len(tree), replace=False)
    return [others[int(index)] for index in sorted(chosen)]


def _failure(availability: float) -> dict[str, float]:
    return {"availability": availability, "period": PERIOD_S}


def _broker(number: int) -> str:
    return f"b{number + 1:02d}"
