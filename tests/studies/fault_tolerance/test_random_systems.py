from __future__ import annotations

import pytest

from studies.fault_tolerance.random_systems import (
    LINK_AVAILABILITY,
    MACHINES,
    TOPOLOGIES,
    random_system,
)
from tidings.errors import InvalidInputError
from tidings.model.routes import route


def made(seed=3, **changes):
    given = {"topology": "graph, own trees", "machines": "low-end", "scheme": "bypass"}
    return random_system(seed, **{**given, **changes})


@pytest.mark.parametrize("machines", MACHINES)
def test_availabilities_are_in_their_range(machines):
    system = made(machines=machines)
    low, high = MACHINES[machines]
    assert len(system.brokers) == 10
    assert all(low <= broker.failure.availability <= high for broker in system.brokers)
    assert len({broker.failure for broker in system.brokers}) == 10
    assert {link.there.failure.availability for link in system.links} == {LINK_AVAILABILITY}
    for each in system.brokers:
        assert each.failure.up.mean_s + each.failure.down.mean_s == pytest.approx(60_000.0)


def test_a_graph_has_four_links_a_broker_and_a_tree_one_less_than_brokers():
    assert len(made().links) == 20
    assert len({frozenset(link.between) for link in made().links}) == 20
    assert len(made(topology="tree").links) == 9


def test_the_seed_alone_decides_on_the_structure():
    systems = [made(topology=topology) for topology in TOPOLOGIES]
    assert len({tuple(system.subscribers) for system in systems}) == 1
    assert len({tuple(system.brokers) for system in systems}) == 1
    trees = [{link.between for link in system.links} for system in systems]
    assert trees[0] < trees[1] == trees[2]
    assert made(seed=4).links != made().links


def test_own_trees_are_rooted_at_the_publishers():
    system = made()
    roots = dict(system.routing.roots)
    for publisher in system.publishers:
        (row,) = publisher.content.rows()
        assert roots[row.event["topic"]] == publisher.at
    route(system)
    assert made(topology="graph, one tree").routing.by is None


def test_what_is_not_part_of_the_experiments_is_refused():
    with pytest.raises(InvalidInputError, match="there is no 'middling' here; wants one of low"):
        made(machines="middling")
