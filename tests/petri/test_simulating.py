from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from petri.nets import come, exponential, mode, net, queue
from tidings.errors import InvalidInputError, UnstableError
from tidings.petri.compiling import compile_net
from tidings.petri.net import DISCIPLINES
from tidings.petri.reading import net_document
from tidings.petri.simulating import replicate_net, simulate_net
from tidings.petri.world import NetWindow, make_world, run_world


def random_net(seed, *, closed):
    """Queues of all disciplines, a join over ordinary places, a timed mode, forks with shares."""
    rng = np.random.default_rng(seed)
    names = [f"q{at}" for at in range(rng.integers(2, 5))]
    colours = ["red", "blue"]
    places = {
        name: queue(
            [exponential(0.3), 0.2, {"uniform": [0.0, 0.5]}][rng.integers(3)],
            discipline=DISCIPLINES[rng.integers(4)],
            servers=int(rng.integers(1, 4)),
        )
        for name in names
    }
    places |= {"hall": {}, "wall": {}}
    for name in (names[0], "hall"):
        places[name]["tokens"] = {colour: int(rng.integers(1, 4)) for colour in colours}
    moves = {}
    for at, name in enumerate(names):
        moves[f"leave {name}"] = [
            mode(f"{name}.{colour}", f"{after}.{colour}", weight=float(rng.integers(1, 4)))
            for colour in colours
            for after in (*names[at + 1 : at + 2], "hall", "wall")
        ]
    # Everything that has come to the hall or the wall goes back to the first queue.
    moves["join"] = [mode("hall.red hall.blue", f"{names[0]}.red {names[0]}.blue", weight=2.0)]
    moves["swap"] = [mode("hall.red*2", f"{names[0]}.blue {names[0]}.red")]
    # What no join takes must not stay for ever: timed modes empty the places.
    moves["age"] = [
        mode(f"hall.{colour}", f"{names[-1]}.{colour}", after=exponential(0.4))
        for colour in colours
    ]
    moves["fall"] = [
        mode(f"wall.{colour}", f"{names[0]}.{colour}", after=exponential(0.1)) for colour in colours
    ]
    if not closed:
        moves["come"] = [mode(put=f"{names[0]}.red@0.7 {names[-1]}.blue*2", after=exponential(3.0))]
        moves["die"] = [mode(f"wall.{colour}", after=exponential(0.05)) for colour in colours]
    return net(places, moves, colours)


def played(model, end_s, seed=3):
    compiled = compile_net(model)
    window = NetWindow(end_s=end_s, max_tokens=100_000)
    world = make_world(compiled, window, seed, 0)
    run_world(world, compiled, window)
    return compiled, world


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_tokens_are_neither_lost_nor_made_from_nothing(seed, closed):
    model = random_net(seed, closed=closed)
    compiled, world = played(model, 60.0)
    cells, tokens = world.tables["cells"], world.tables["tokens"]
    fired = world.tables["modes"].fired
    assert fired.sum() > 50
    there = np.bincount(tokens.cell[tokens.cell >= 0], minlength=len(cells))
    assert (cells.arrivals - cells.departures == there).all()
    taken, put = np.zeros(len(cells)), np.zeros(len(cells))
    at_most = np.zeros(len(cells))
    for number, each in enumerate(compiled.cells.modes):
        for arc in each.take:
            taken[compiled.cells.index[arc.place, arc.colour]] += fired[number] * arc.count
        for arc in each.put:
            at_most[compiled.cells.index[arc.place, arc.colour]] += fired[number] * arc.count
            if arc.share == 1.0:
                put[compiled.cells.index[arc.place, arc.colour]] += fired[number] * arc.count
    begin = np.array([compiled.cells.tokens(cell) for cell in compiled.cells.all])
    assert (cells.departures == taken).all()
    assert (put + begin <= cells.arrivals).all()
    assert (cells.arrivals <= at_most + begin).all()
    if closed:
        assert there.sum() == begin.sum()
    free = world.record[0].free_tokens
    assert free + there.sum() == len(tokens)


def test_population_is_throughput_times_residence():
    """Little's law holds to rounding when nothing is there at either end of the window."""
    model = net({"cpu": queue(0.2), "line": {}}, {
        "come": come("cpu.job", 1.0),
        "next": [mode("cpu.job", "line.job")],
        "go": [mode("line.job", after=0.1)],
    })  # fmt: skip
    counts = replicate_net(model, seed=2, replication=0, warmup_s=0.0, duration_s=5000.0)
    present = counts.arrivals - counts.departures
    assert counts.population_s == pytest.approx(counts.residence_s, abs=1.0 * max(present.max(), 1))
    assert counts.busy_s[0] == pytest.approx(0.2 * counts.departures[0], abs=0.2)


def test_a_replication_is_the_same_alone_and_among_others():
    model = random_net(5, closed=True)
    found = [
        replicate_net(model, seed=4, replication=number, warmup_s=5.0, duration_s=50.0)
        for number in (0, 1, 0)
    ]
    assert (found[0].residence_s == found[2].residence_s).all()
    assert (found[0].residence_s != found[1].residence_s).any()
    once, again = (
        simulate_net(model, seed=4, replications=3, warmup_s=5.0, duration_s=50.0).cells
        for _ in range(2)
    )
    assert once.equals(again)
    total = found[0].residence_s + found[1].residence_s
    alone = simulate_net(model, seed=4, replications=2, warmup_s=5.0, duration_s=50.0).cells
    throughput = (found[0].departures + found[1].departures) / 100.0
    assert alone["throughput_per_s"].to_numpy() == pytest.approx(throughput, rel=1e-12)
    assert (alone["residence_mean_s"] * throughput * 100).sum() == pytest.approx(total.sum())


def test_another_place_shifts_nobody_elses_numbers():
    def first(extra):
        places = {"cpu": queue(exponential(0.5))} | extra
        moves = {"come": come("cpu.job"), "go": [mode("cpu.job")]}
        if extra:
            moves |= {"more": come("other.job"), "gone": [mode("other.job")]}
        counts = replicate_net(net(places, moves), seed=1, replication=0, warmup_s=0, duration_s=99)
        return counts.residence_s[0]

    assert first({}) == first({"other": queue(exponential(0.1))})


def pairs(left_s, right_s):
    """Pairs are taken; what comes more often than its partner piles up."""
    return net(
        {"left": {}, "right": {}, "out": queue(exponential(0.01))},
        {
            "come": [*come("left.job", left_s), *come("right.job", right_s)],
            "pair": [mode("left.job right.job", "out.job")],
            "go": [mode("out.job")],
        },
    )


def permits(load):
    """Three at a time are served; the traffic equations do not tell how many that can be."""
    places = {
        "cpu": queue(exponential(3 * load), discipline="infinite-server"),
        "line": {},
        "pool": {"tokens": {"permit": 3}},
    }
    moves = {
        "come": come("line.job"),
        "seize": [mode("line.job pool.permit", "cpu.job")],
        "go": [mode("cpu.job", "pool.permit")],
    }
    return net(places, moves, ["job", "permit"])


@pytest.mark.parametrize(
    ("model", "place", "options"),
    [
        (pairs(0.1, 0.102), "left", {}),
        (pairs(0.2, 0.1), "right", {"warmup_s": 0.0, "duration_s": 500.0, "replications": 1}),
        (permits(1.1), "line", {"warmup_s": 100.0}),
        (pairs(0.1, 0.2), "left", {"duration_s": 1e9, "max_tokens": 20_000}),
    ],
    ids=["a little too often", "one short run", "permits", "too many at once"],
)
def test_a_population_that_keeps_growing_ends_the_run_with_the_places_name(model, place, options):
    with pytest.raises(UnstableError, match=rf"at the place '{place}'.*: the net is unstable"):
        simulate_net(model, **options)


@pytest.mark.slow
def test_a_population_that_never_settles_is_told_by_the_pilots(monkeypatch):
    monkeypatch.setattr("tidings.kernels.replications.MOST_PILOT_DOUBLINGS", 2)
    with pytest.raises(UnstableError, match=r"'line' grow by 0\.3\d* per simulated second"):
        simulate_net(permits(1.5))  # of each second's arrival two thirds are served


@pytest.mark.statistical
@pytest.mark.parametrize("seed", range(5))
def test_a_busy_net_is_not_said_to_grow(seed):
    """At a load of 0.98 populations wander far, and settle after long."""
    found = simulate_net(permits(0.98), seed=seed, quantiles=False)
    assert found.cell("line", "job")["population"] > 10.0


def test_circles_without_time_are_refused():
    model = net(
        {"one": {}, "two": {}},
        {
            "come": come("one.job"),
            "there": [mode("one.job", "two.job")],
            "back": [mode("two.job", "one.job@0.9999999")],
        },
    )
    with pytest.raises(UnstableError, match="fire forever"):
        simulate_net(model)


def test_nets_in_which_nothing_happens_are_refused():
    still = net({"one": {"tokens": {"job": 1}}, "two": {}}, {"go": [mode("one.job", "two.job")]})
    with pytest.raises(InvalidInputError, match="no time passes"):
        simulate_net(still)
    places = {"one": queue(1.0) | {"tokens": {"job": 1}}, "two": {}}
    stops = net(places, {"go": [mode("one.job", "two.job")]})
    with pytest.raises(InvalidInputError, match="standstill"):
        simulate_net(stops)


def test_precision_is_reached_or_said_not_to_be():
    model = net(
        {"cpu": queue(exponential(0.8))}, {"come": come("cpu.job"), "go": [mode("cpu.job")]}
    )
    found = simulate_net(model, precision=0.03, duration_s=20_000.0, replications=4)
    row = found.cell("cpu", "job")
    assert found.provenance["replications"] > 4
    assert 1.96 * row["residence_mean_se_s"] < 0.03 * row["residence_mean_s"]
    short = simulate_net(
        model, precision=0.001, duration_s=100.0, replications=2, max_replications=3
    )
    assert "when the allowed replications ran out" in short.provenance["notes"][-1]
    assert short.provenance["replications"] == 3


def test_seconds_bound_the_replications_of_a_net():
    model = net(
        {"cpu": queue(exponential(0.8))}, {"come": come("cpu.job"), "go": [mode("cpu.job")]}
    )
    short = simulate_net(
        model, precision=1e-5, duration_s=1_000.0, warmup_s=0.0, replications=2, seconds=0.2
    )
    assert "when the allowed seconds ran out" in short.provenance["notes"][-1]
    assert short.provenance["replications"] < 1_000


def test_a_long_start_is_left_out():
    """Two hundred jobs at once take a while to drain; the warm-up is found, not guessed."""
    places = {"cpu": queue(exponential(0.9)) | {"tokens": {"job": 200}}}
    found = simulate_net(
        net(places, {"come": come("cpu.job"), "go": [mode("cpu.job")]}), replications=2
    )
    assert found.provenance["warmup_s"] > 1000.0  # 200 · 0.9/(1 − 0.9) = 1800 s


def test_tokens_of_the_beginning_have_no_age():
    places = {"one": queue(1.0) | {"tokens": {"job": 2}}, "two": queue(0.5)}
    moves = {"there": [mode("one.job", "two.job")], "back": [mode("two.job", "one.job")]}
    found = simulate_net(net(places, moves), replications=2, duration_s=50.0, warmup_s=0.0)
    assert found.cells["age_mean_s"].isna().all()
    moves["back"] = [mode("two.job", "one.job", newborn=True)]
    found = simulate_net(net(places, moves), replications=2, duration_s=50.0, warmup_s=10.0)
    assert found.cell("two", "job")["age_mean_s"] > 1.5


def test_wrong_options_are_refused():
    model = net({"cpu": queue(0.5)}, {"come": come("cpu.job"), "go": [mode("cpu.job")]})
    for wrong in (
        {"replications": 0},
        {"duration_s": -1.0},
        {"warmup_s": -1.0},
        {"precision": 0.0},
    ):
        with pytest.raises(InvalidInputError):
            simulate_net(model, **wrong)
    found = simulate_net(model, replications=2, duration_s=10.0, warmup_s=0.0, quantiles=False)
    assert "residence_p95_s" not in found.cells
    with pytest.raises(InvalidInputError, match="no tokens of the colour 'x'"):
        found.cell("cpu", "x")


def test_quantiles_of_too_many_places_are_left_out_and_it_is_said(monkeypatch):
    monkeypatch.setattr("tidings.petri.simulating.MOST_CURVES", 0)
    model = net({"cpu": queue(0.5)}, {"come": come("cpu.job"), "go": [mode("cpu.job")]})
    found = simulate_net(model, replications=2, duration_s=10.0, warmup_s=0.0)
    assert "residence_p95_s" not in found.cells
    assert "no quantiles" in found.provenance["notes"][0]


@pytest.mark.slow
def test_counts_are_the_same_without_compilation():
    documents = [net_document(random_net(seed, closed=seed == 5)) for seed in (5, 8)]
    script = f"""
import json
from tidings.kernels.compile import IS_COMPILING
from tidings.petri.reading import net_from_document
from tidings.petri.simulating import replicate_net
assert not IS_COMPILING
for text in {[json.dumps(each) for each in documents]!r}:
    net = net_from_document(json.loads(text))
    counts = replicate_net(net, seed=4, replication=0, warmup_s=2.0, duration_s=40.0)
    found = counts.arrivals, counts.residence_s, counts.busy_s
    print(json.dumps([each.tolist() for each in found]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for seed, line in zip((5, 8), done.stdout.splitlines(), strict=True):
        arrivals, residence, busy = json.loads(line)
        counts = replicate_net(
            random_net(seed, closed=seed == 5), seed=4, replication=0, warmup_s=2.0, duration_s=40.0
        )
        assert sum(arrivals) > 100
        assert arrivals == counts.arrivals.tolist()
        assert residence == pytest.approx(counts.residence_s.tolist(), rel=1e-12)
        assert busy == pytest.approx(counts.busy_s.tolist(), rel=1e-12)
