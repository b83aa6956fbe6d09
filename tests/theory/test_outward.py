"""Delays to one home that follow from those to its neighbour, against those worked out alone."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from tidings.model import reading
from tidings.model.routes import route
from tidings.theory.delay import paths as following
from tidings.theory.delay.outward import Outward
from tidings.theory.network.arriving import arriving
from tidings.theory.network.network import Network
from tidings.theory.peers.churn import path_arcs

LINKS = [("a", "b"), ("b", "c"), ("b", "d"), ("d", "e"), ("d", "f"), ("f", "g"), ("a", "h")]


def network(links: list[tuple[str, str]], lossless: bool, publishing: str = "abcdefgh") -> Network:
    """A tree whose links all differ; some brokers have publishers, all have a subscriber.

    Publishers are two a broker and differ in how long their events are of use.
    """
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
            f"p{name}{lifetime_s}": {
                "at": name,
                "every": {"exponential": 1.0},
                "content": {"event": {"x": 1}},
                "lifetime": lifetime_s,
            }
            for name in publishing
            for lifetime_s in (0.03, 0.1)
        },
        "subscribers": {f"s{name}": {"at": name, "wants": {}} for name in brokers},
    }
    system = reading.from_document(document, "a tree")
    return Network(system=system, routes=route(system), model="law", faults="exact")


@pytest.mark.parametrize("publishing", ["abcdefgh", "cg", "h"])
@pytest.mark.parametrize("lossless", [True, False])
def test_from_home_to_home_nothing_changes_but_the_way(lossless, publishing):
    paths = network(LINKS, lossless, publishing).paths
    hops = paths.over_arc.series(paths.at_broker.take(paths.publishers + np.arange(14)))
    following = paths._outward
    for home in (0, 1, 2, 3, 4, 5, 6, 7, 1, 0):
        alone = Outward(paths.routes, hops, following.nothing, following.stack).to(home, 0)
        after = following.to(home, 0)
        np.testing.assert_allclose(after.values, alone.values, rtol=1e-12)
        assert after.survival == pytest.approx(alone.survival, rel=1e-12)
        assert after.shift_s + after.mean_s == pytest.approx(alone.shift_s + alone.mean_s)
        for cause in {*after.lost, *alone.lost}:
            assert after.lost.get(cause, 0.0) == pytest.approx(alone.lost.get(cause, 0.0))


@pytest.mark.parametrize("home", range(8))
def test_losses_on_the_way_are_those_of_its_links_wherever_publishers_are(home):
    paths = network(LINKS, False, "ceg").paths
    paths.tails(0, 0)  # a home before it, from which paths are carried on
    arcs = paths.routes.arcs
    survival = paths.tails(home, 0).survival[paths.tail_rows([2, 4, 6])]
    for start, share in zip([2, 4, 6], survival, strict=True):
        crossed = path_arcs(paths.routes, start, home, 0)
        assert share == pytest.approx(np.prod([arcs[arc].channel.reliability for arc in crossed]))


def test_streams_that_differ_in_lifetimes_alone_arrive_alike():
    tree = network(LINKS, False)
    for group in tree.by_home():
        came = arriving(tree, group, by_publisher=False)
        apart = replace(came.streams, path_of=np.arange(came.streams.path_of.size))
        each = replace(came, streams=apart).at_home[0]
        assert np.unique(came.streams.path_of).size < came.streams.path_of.size
        np.testing.assert_allclose(came.at_home[0].below, each.below, rtol=1e-12)
        assert came.at_home[0].survival == pytest.approx(each.survival, rel=1e-12)


@pytest.mark.parametrize("lossless", [True, False])
def test_paths_followed_compiled_are_those_followed_stage_by_stage(lossless, monkeypatch):
    tree = network(LINKS, lossless, "acfg")
    paths, publishers = tree.paths, np.arange(8)[::-1]
    part = paths.grid.between(1e-3, 1.0)
    skipped = 0
    for home, grid in itertools.product((0, 3, 6), (paths.grid, part)):
        alone = paths.from_publishers(publishers, home, 0, grid).distributions
        with monkeypatch.context() as patched:
            patched.setattr(following, "_MANY", 0)
            each = paths.distributions(publishers, home, 0, grid)
        np.testing.assert_allclose(each.below, alone.below, rtol=0.0, atol=1e-10)
        np.testing.assert_allclose(each.slope, alone.slope, rtol=0.0, atol=1e-10)
        for name in ("survival", "shift_s", "mean_s", "atom"):
            np.testing.assert_allclose(getattr(each, name), getattr(alone, name), rtol=1e-12)
        assert each.lost.keys() == alone.lost.keys()
        skipped += int((each.below == 0.0).sum())
    assert skipped > 0  # where nobody can have arrived, nothing was worked out
