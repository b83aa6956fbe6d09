from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.errors import UnstableError
from tidings.model.laws import Exponential
from tidings.model.workload import Connection, Flow, Node, Source, Workload
from tidings.operational.visits import visit_ratios


def network(size, forwarding, *, home=0, reliability=1.0):
    """Nodes joined by (source, target, probability)."""
    return Workload(
        nodes=tuple(Node(name=f"n{index}") for index in range(size)),
        connections=tuple(Connection(source=a, target=b) for a, b, _ in forwarding),
        sources=(
            Source(name="p", home=home, every=Exponential(mean_s=1.0), reliability=reliability),
        ),
        flows=(
            Flow(
                source=0,
                event_type="",
                forwarding=tuple((at, p) for at, (_, _, p) in enumerate(forwarding)),
            ),
        ),
    )


def ratios(*args, **how):
    load = network(*args, **how)
    return visit_ratios(load, load.flows[0])


def test_a_fork_visits_every_branch_by_its_probability():
    found = ratios(4, [(0, 1, 1.0), (0, 2, 0.5), (1, 3, 0.25), (2, 3, 0.5)], reliability=0.8)
    assert found == pytest.approx([0.8, 0.8, 0.4, 0.8 * 0.25 + 0.4 * 0.5], rel=1e-12)


def test_a_loop_is_a_geometric_series():
    # From 0 to 1 always, and 0.3 of that back: 1/(1 − 0.3) visits each.
    assert ratios(2, [(0, 1, 1.0), (1, 0, 0.3)]) == pytest.approx([1 / 0.7] * 2, rel=1e-12)


def test_a_loss_on_the_way_is_a_visit_less():
    load = network(2, [(0, 1, 1.0)])
    lossy = Workload(
        nodes=load.nodes,
        connections=(Connection(source=0, target=1, reliability=0.75),),
        sources=load.sources,
        flows=load.flows,
    )
    assert visit_ratios(lossy, lossy.flows[0]) == pytest.approx([1.0, 0.75], rel=1e-12)


@pytest.mark.parametrize("back", [1.0, 1.0 - 1e-10])
def test_events_that_go_round_for_ever_are_refused_by_the_nodes(back):
    with pytest.raises(UnstableError, match=r"n[12], n[12].*forwards 1 copies"):
        ratios(4, [(0, 1, 0.5), (1, 2, 1.0), (2, 1, back), (0, 3, 1.0)])


def test_a_loop_just_short_of_for_ever_is_solved():
    found = ratios(2, [(0, 1, 1.0), (1, 0, 1.0 - 1e-6)])
    assert found == pytest.approx([1e6] * 2, rel=1e-9)


@pytest.mark.parametrize("parts", [3, 7, 10])
def test_shares_that_add_up_to_one_but_for_rounding_go_round_for_ever(parts):
    """A hub that sends a part to each of its leaves, which send all of it back."""
    edges = [(0, at, 1.0 / parts) for at in range(1, parts + 1)]
    edges += [(at, 0, 1.0) for at in range(1, parts + 1)]
    with pytest.raises(UnstableError, match="forwards 1 copies"):
        ratios(parts + 1, edges)


def test_a_loop_that_multiplies_is_refused_though_the_equations_have_a_solution():
    # Two ways round: 1.5 copies come back for each; (I − νᵀ) is not singular, but V < 0.
    with pytest.raises(UnstableError, match=r"forwards 1\.2"):
        ratios(3, [(0, 1, 1.0), (0, 2, 0.5), (1, 0, 1.0), (2, 0, 1.0)])


def test_a_loop_that_nothing_reaches_does_not_matter():
    assert ratios(3, [(1, 2, 1.0), (2, 1, 1.0)]) == pytest.approx([1.0, 0.0, 0.0], rel=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 9))
def test_visits_are_the_sum_over_all_walks(seed, size):
    """Brute force: step by step, however often events come round."""
    rng = np.random.default_rng(seed)
    nu = np.where(rng.random((size, size)) < 0.5, rng.random((size, size)), 0.0)
    np.fill_diagonal(nu, 0.0)
    nu *= 0.8 / max(0.8, np.abs(np.linalg.eigvals(nu)).max())
    edges = [(a, b, float(nu[a, b])) for a in range(size) for b in range(size) if nu[a, b] > 0]
    step, walked = np.eye(size)[0], np.zeros(size)
    for _ in range(400):
        walked += step
        step = step @ nu
    assert ratios(size, edges) == pytest.approx(walked, rel=1e-12, abs=1e-14)


def test_a_large_sparse_network_is_solved_like_a_small_one(monkeypatch):
    edges = [(at, at + 1, 0.9) for at in range(300)] + [(at + 1, at, 0.05) for at in range(300)]
    sparse = ratios(301, edges)
    monkeypatch.setattr("tidings.model.flow_balance._DENSE", 1000)
    assert sparse == pytest.approx(ratios(301, edges), rel=1e-12)
