from __future__ import annotations

import numpy as np
import pytest

from petri.nets import come, exponential, mode, net, queue
from tidings.errors import UnstableError
from tidings.petri.compiling import compile_net
from tidings.petri.growth import LEGS, Growth, may_grow
from tidings.petri.traffic import solve_traffic

JOINED = net(
    {"cpu": queue(exponential(0.5)), "left": {}, "right": {}, "out": queue(exponential(0.1))},
    {
        "come": [*come("cpu.job"), *come("right.job")],
        "next": [mode("cpu.job", "left.job")],
        "pair": [mode("left.job right.job", "out.job")],
        "go": [mode("out.job")],
    },
)


def cells_that_may_grow(model):
    cells = compile_net(model).cells
    found = may_grow(cells, solve_traffic(cells))
    return {cell[0] for cell, may in zip(cells.all, found, strict=True) if may}


def test_what_the_traffic_equations_show_to_be_stable_is_not_looked_at():
    assert cells_that_may_grow(JOINED) == {"left", "right", "out"}
    closed = net(
        {"one": queue(1.0) | {"tokens": {"job": 3}}, "two": {}},
        {"on": [mode("one.job", "two.job")], "back": [mode("two.job", "one.job", after=1.0)]},
    )
    assert cells_that_may_grow(closed) == set()


def walks(drift, runs, seed):
    """Populations of 100 steps a leg, each one up or down, at the four cells of the net."""
    rng = np.random.default_rng(seed)
    compiled = compile_net(JOINED)
    growth = Growth(compiled, np.array([True, True, False, False]))
    for _ in range(runs):
        steps = rng.choice([-1.0, 1.0], size=(LEGS, 100, 4)).sum(axis=1)
        steps[:, 1:3] += drift
        present = np.vstack([np.full(4, 500.0), 500.0 + np.cumsum(steps, axis=0)])
        growth.add(present)
    return growth


def test_a_drift_stands_out_only_where_it_is_looked_for():
    growth = walks(drift=10.0, runs=10, seed=1)  # ten standard errors of the mean
    assert growth.grows().tolist() == [False, True, False, False]
    with pytest.raises(UnstableError, match=r"at the place 'left' grow by 0\.\d+ per"):
        growth.refuse(1000.0)


@pytest.mark.statistical
def test_wandering_alone_is_never_called_growth():
    for seed in range(60):
        growth = walks(drift=0.0, runs=10, seed=seed)
        assert not growth.grows().any()
        growth.refuse(1000.0)


def test_too_little_to_tell_is_not_told():
    compiled = compile_net(JOINED)
    growth = Growth(compiled, np.ones(4, dtype=bool))
    assert not growth.grows().any()
    growth.add(np.repeat(np.arange(LEGS + 1.0)[:, None] / 2.0, 4, axis=1))
    assert not growth.grows().any()  # five tokens in a run: perhaps a cycle
    growth = Growth(compiled, np.ones(4, dtype=bool))
    growth.add(np.repeat(np.arange(LEGS + 1.0)[:, None], 4, axis=1))
    assert growth.grows().all()  # ten, and the same number in each leg
