"""Routing probabilities and dissemination trees, from the cells of the routing statistic."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

FLOW = ["type", "publisher"]


def routing_table(cells: pd.DataFrame) -> pd.DataFrame:
    """Routing probabilities for (type, publisher, broker, next broker), with standard errors."""
    visits = cells.groupby([*FLOW, "broker"])["rows"].sum().rename("visits").reset_index()
    sent = cells[[*FLOW, "broker", "sent_to", "rows"]].explode("sent_to").dropna()
    sent = sent.rename(columns={"sent_to": "next_broker"})
    keys = [*FLOW, "broker", "next_broker"]
    found = sent.groupby(keys)["rows"].sum().rename("forwarded").reset_index()
    found = found.merge(visits, on=[*FLOW, "broker"])
    share = found["forwarded"] / found["visits"]
    error = np.sqrt(share * (1.0 - share) / found["visits"])
    return found.assign(probability=share, probability_se=error)


def dissemination(cells: pd.DataFrame) -> pd.DataFrame:
    """The way to every broker at which events of a flow were seen, with how many came that way.

    Where a broker is reached by several ways there is a row for each, without repetitions.
    """
    rows = []
    for (kind, publisher), group in cells.groupby(FLOW):
        counts = group.groupby(["came_from", "broker"])["rows"].sum()
        inward: dict[str, list[str]] = {}
        for came_from, broker in counts.index:
            inward.setdefault(str(broker), []).append(str(came_from))
        for broker in sorted(inward):
            for origin, path in _ways_to(broker, inward, (broker,)):
                came = counts[path[-2] if len(path) > 1 else origin, broker]
                rows.append((kind, publisher, broker, path, int(came)))
    return pd.DataFrame(rows, columns=[*FLOW, "broker", "path", "events"])


def _ways_to(
    broker: str, inward: dict[str, list[str]], path: tuple[str, ...]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Who published it, and the brokers on the way."""
    for came_from in inward.get(broker, []):
        if came_from not in inward:  # not a broker: the publisher
            yield came_from, path
        elif came_from not in path:
            yield from _ways_to(came_from, inward, (came_from, *path))
