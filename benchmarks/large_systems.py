"""Large systems by seed, as folders of tables: a tree of brokers, topics with levels of urgency.

A random recursive tree; every publisher has ten of the topics, every subscriber wants one topic
from a level on; some subscribers have a deadline of their own. Whatever the size, all publishers
together offer the brokers the same load.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

LEVELS = 10
TOPICS_PER_PUBLISHER = 10
LIFETIMES = ("250ms", "500ms", "1s")
OWN_DEADLINE, OWN_SHARE = "300ms", 0.1
SERVICE_S = 1e-3
LOAD = 0.7  # of a broker that sees every event


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a system is; there are up to ten filters for each topic, one topic a publisher."""

    brokers: int
    publishers: int
    subscribers: int
    regular: bool = False  # periodic publishers and uniform services; else exponential ones

    @property
    def topics(self) -> int:
        """How many topics there are."""
        return max(self.publishers, TOPICS_PER_PUBLISHER)


def write_system(size: Size, folder: Path, seed: int = 1) -> None:
    """Write a system as a folder of Parquet tables."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    (folder / "system.yaml").write_text("tidings: 1\nlifetime: 1s\n", encoding="utf-8")
    _brokers(size, random).to_parquet(folder / "brokers.parquet", index=False)
    _links(size, random).to_parquet(folder / "links.parquet", index=False)
    _publishers(size, random).to_parquet(folder / "publishers.parquet", index=False)
    _subscribers(size, random).to_parquet(folder / "subscribers.parquet", index=False)


def _names(letter: str, numbers: np.ndarray) -> list[str]:
    return [f"{letter}{number}" for number in numbers]


def _brokers(size: Size, random: np.random.Generator) -> pd.DataFrame:
    means_s = SERVICE_S * random.uniform(0.6, 1.0, size.brokers)
    services = [
        json.dumps({"uniform": [0.0, 2.0 * mean_s]} if size.regular else {"exponential": mean_s})
        for mean_s in means_s
    ]
    return pd.DataFrame({"name": _names("b", np.arange(size.brokers)), "service": services})


def _links(size: Size, random: np.random.Generator) -> pd.DataFrame:
    """Each broker joins a random earlier one; a least delay and a random rest, few losses."""
    after = np.arange(1, size.brokers)
    before = (random.random(after.size) * after).astype(np.int64)
    ends = [json.dumps(pair) for pair in zip(_names("b", before), _names("b", after), strict=True)]
    delays = [
        json.dumps({"gamma": {"mean": mean_s, "shape": 4.0}, "shift": 0.5 * mean_s})
        for mean_s in random.uniform(2e-3, 20e-3, after.size)
    ]
    reliability = 1.0 - random.uniform(0.0, 2e-3, after.size)
    return pd.DataFrame({"between": ends, "delay": delays, "reliability": reliability})


def _publishers(size: Size, random: np.random.Generator) -> pd.DataFrame:
    mean_s = size.publishers * SERVICE_S / LOAD
    every = mean_s if size.regular else {"exponential": mean_s}
    levels = [{"p": 1.0 / LEVELS, "value": level} for level in range(LEVELS)]
    contents = []
    for _ in range(size.publishers):
        topics = random.choice(size.topics, TOPICS_PER_PUBLISHER, replace=False)
        shares = {f"t{topic}": 1.0 / TOPICS_PER_PUBLISHER for topic in topics}
        contents.append(json.dumps({"independent": {"topic": shares, "level": levels}}))
    columns = {
        "name": _names("p", np.arange(size.publishers)),
        "at": _names("b", random.integers(size.brokers, size=size.publishers)),
        "every": json.dumps(every),
        "content": contents,
        "lifetime": random.choice(LIFETIMES, size.publishers),
    }
    return pd.DataFrame(columns)


def _subscribers(size: Size, random: np.random.Generator) -> pd.DataFrame:
    filters = np.array(
        [
            json.dumps({"topic": f"t{topic}", "level": {"at_least": level}})
            for topic in range(size.topics)
            for level in range(LEVELS)
        ]
    )
    own = np.where(random.random(size.subscribers) < OWN_SHARE, OWN_DEADLINE, None)
    columns = {
        "name": _names("s", np.arange(size.subscribers)),
        "at": _names("b", random.integers(size.brokers, size=size.subscribers)),
        "wants": filters[random.integers(filters.size, size=size.subscribers)],
        "lifetime": own,
    }
    return pd.DataFrame(columns)
