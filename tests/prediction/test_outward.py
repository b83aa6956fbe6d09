"""Delays to one home that follow from those to its neighbour, against those worked out alone."""

from __future__ import annotations

import numpy as np
import pytest

from tidings.model import reading
from tidings.model.routes import route
from tidings.prediction.delay.outward import Outward
from tidings.prediction.network.network import Network


def network(links: list[tuple[str, str]], lossless: bool) -> Network:
    """A tree whose links all differ; every broker has a publisher and a subscriber."""
    brokers = sorted({name for link in links for name in link})
    document = {
        "tidings": 1,
        "lifetime": 1.0,
        "brokers": {name: {"service": {"exponential": 0.01}} for name in brokers},
        "links": [
            {
                "between": list(link),
                "delay": {"exponential": 0.01 * (number + 1)} if number % 3 else 0.0,
                "reliability": 1.0 if lossless else 1.0 - 0.01 * number,
            }
            for number, link in enumerate(links)
        ],
        "publishers": {
            f"p{name}": {"at": name, "every": {"exponential": 1.0}, "content": {"event": {"x": 1}}}
            for name in brokers
        },
        "subscribers": {f"s{name}": {"at": name, "wants": {}} for name in brokers},
    }
    system = reading.from_document(document, "a tree")
    return Network(system=system, routes=route(system), model="law", faults="exact")


@pytest.mark.parametrize("lossless", [True, False])
def test_from_home_to_home_nothing_changes_but_the_way(lossless):
    links = [("a", "b"), ("b", "c"), ("b", "d"), ("d", "e"), ("d", "f"), ("f", "g"), ("a", "h")]
    paths = network(links, lossless).paths
    hops = paths.over_arc.series(paths.at_broker.take(paths.publishers + np.arange(14)))
    following = paths._outward
    for home in (0, 1, 2, 3, 4, 5, 6, 7, 1, 0):
        alone = Outward(paths.routes, hops, following.nothing, following.stack).to(home, 0)
        after = following.to(home, 0)
        assert after.values == pytest.approx(alone.values, rel=1e-12)
        assert after.survival == pytest.approx(alone.survival, rel=1e-12)
        assert after.shift_s + after.mean_s == pytest.approx(alone.shift_s + alone.mean_s)
        for cause in {*after.lost, *alone.lost}:
            assert after.lost.get(cause, 0.0) == pytest.approx(alone.lost.get(cause, 0.0))
