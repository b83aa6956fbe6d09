"""Nets solved by their Markov chain, against closed forms; and the simulator against them."""

from __future__ import annotations

import math

import pytest

from petri.nets import come, exponential, mode, net, queue, queue_by_colour
from petri.test_simulating import random_net
from tidings.errors import UnsupportedError
from tidings.petri.exact import solve_exactly
from tidings.petri.simulating import simulate_net


def closed(jobs, think_s, serve_s, **cpu):
    places = {
        "think": queue(exponential(think_s), discipline="infinite-server")
        | {"tokens": {"job": jobs}},
        "cpu": queue(exponential(serve_s), **cpu),
    }
    return net(
        places, {"ask": [mode("think.job", "cpu.job")], "answer": [mode("cpu.job", "think.job")]}
    )


@pytest.mark.parametrize("discipline", ["fcfs", "processor-sharing", "priority"])
def test_a_closed_network_is_its_mean_value_analysis(discipline):
    jobs, think_s, serve_s = 6, 2.0, 0.5
    found = solve_exactly(closed(jobs, think_s, serve_s, discipline=discipline))
    length = throughput = response = 0.0
    for n in range(1, jobs + 1):
        response = serve_s * (1 + length)
        throughput = n / (think_s + response)
        length = throughput * response
    row = found.cell("cpu", "job")
    assert row["throughput_per_s"] == pytest.approx(throughput, rel=1e-12)
    assert row["residence_mean_s"] == pytest.approx(response, rel=1e-12)
    assert found.place("cpu")["utilisation"] == pytest.approx(throughput * serve_s, rel=1e-12)
    assert found.place("think")["utilisation"] == pytest.approx(throughput * think_s, rel=1e-12)
    assert found.cells["population"].sum() == pytest.approx(jobs, rel=1e-12)
    assert found.provenance["engine"] == f"exact: Markov chain of {jobs + 1} markings"


def test_a_source_behind_permits_is_an_erlang_loss_system():
    """What finds no permit is lost: the line is emptied at once, by a lower priority."""
    servers, offered = 3, 2.0
    places = {
        "line": {},
        "pool": {"tokens": {"permit": servers}},
        "cpu": queue(exponential(offered), discipline="infinite-server"),
    }
    moves = {
        "come": come("line.job"),
        "seize": {"priority": 1, "modes": [mode("line.job pool.permit", "cpu.job")]},
        "lose": [mode("line.job")],
        "go": [mode("cpu.job", "pool.permit")],
    }
    found = solve_exactly(net(places, moves, ["job", "permit"]))
    terms = [offered**k / math.factorial(k) for k in range(servers + 1)]
    lost = terms[-1] / sum(terms)
    assert found.cell("cpu", "job")["throughput_per_s"] == pytest.approx(1 - lost, rel=1e-12)
    assert found.cell("cpu", "job")["population"] == pytest.approx(offered * (1 - lost), rel=1e-12)
    assert found.cell("line", "job")["throughput_per_s"] == pytest.approx(1.0, rel=1e-12)


def test_shares_and_weights_are_those_of_the_traffic_equations():
    """Of what a has done 0.3 · 0.5 goes to b; a closed loop, so only ratios are settled."""
    places = {"a": queue(exponential(1.0)) | {"tokens": {"job": 2}}, "b": queue(exponential(2.0))}
    moves = {
        "leave": [mode("a.job", "b.job", weight=3.0), mode("a.job", "a.job", weight=7.0)],
        "back": [mode("b.job", "a.job")],
    }
    found = solve_exactly(net(places, moves))
    rates = [found.cell(name, "job")["throughput_per_s"] for name in "ab"]
    assert rates[1] == pytest.approx(0.3 * rates[0], rel=1e-12)


@pytest.mark.parametrize("discipline", ["fcfs", "processor-sharing"])
@pytest.mark.parametrize("servers", [1, 3])
def test_an_open_queue_is_its_birth_and_death_chain(servers, discipline):
    load = 0.8 * servers
    model = net(
        {"cpu": queue(exponential(load), servers=servers, discipline=discipline)},
        {"come": come("cpu.job"), "go": [mode("cpu.job")]},
    )
    weights = [1.0]
    for n in range(1, 500):
        weights.append(weights[-1] * load / min(n, servers))
    number = sum(n * weight for n, weight in enumerate(weights)) / sum(weights)
    found = solve_exactly(model)
    assert found.cell("cpu", "job")["population"] == pytest.approx(number, rel=1e-12)
    assert found.place("cpu")["utilisation"] == pytest.approx(0.8, rel=1e-12)
    assert found.provenance["engine"] == "exact: product form"


FORKED = {
    "root": queue(exponential(0.5)),
    "left": queue(exponential(0.6)),
    "right": queue({"uniform": [0.0, 2.0]}, discipline="infinite-server"),
}
FORKS = {
    "come": come("root.job"),
    "fork": [mode("root.job", "left.job right.job@0.4")],
    "go": [mode("left.job"), mode("right.job")],
}


def test_branches_that_never_meet_are_solved_queue_by_queue():
    found = solve_exactly(net(FORKED, FORKS))
    stays = [found.cell(place, "job")["residence_mean_s"] for place in FORKED]
    assert stays == pytest.approx([0.5 / 0.5, 0.6 / 0.4, 1.0], rel=1e-12)
    assert found.place("right")["utilisation"] == pytest.approx(0.4, rel=1e-12)


def test_loops_and_colours_of_a_jackson_network():
    services = {"a": 0.1, "b": {"uniform": [0.0, 0.6]}}
    model = net(
        {
            "first": queue(exponential(0.2)),
            "shared": queue_by_colour(services, discipline="processor-sharing"),
        },
        {
            "come": [*come("first.a"), *come("first.b", 2.0)],
            "on": [mode("first.a", "shared.a"), mode("first.b", "shared.b")],
            "back": [mode("shared.a", "first.a@0.5"), mode("shared.b")],
        },
        ["a", "b"],
    )
    found = solve_exactly(model)  # a comes 2 times a second, b 0.5 times, to both
    assert found.cell("first", "a")["residence_mean_s"] == pytest.approx(0.2 / 0.5, rel=1e-12)
    busy = 2.0 * 0.1 + 0.5 * 0.3
    assert found.cell("shared", "b")["residence_mean_s"] == pytest.approx(0.3 / (1 - busy))


RANKS = {"discipline": "priority", "priorities": {"hi": 2, "lo": 1}}


def ranked(places=None, after="", desk=None):
    """Two colours of one law at a desk that serves one of them first, 0.4/s each."""
    places = places or {}
    moves = {
        "come": [*come("desk.hi", 2.5), *come("desk.lo", 2.5)],
        "go": [mode("desk.hi", after), mode("desk.lo")],
    }
    moves |= {f"end {name}": [mode(f"{name}.hi")] for name in places}
    return net(places | {"desk": desk or queue(exponential(1.0), **RANKS)}, moves, ["hi", "lo"])


def test_colours_of_one_law_wait_by_their_priorities_as_cobham_says():
    """W0 = 0.8 s: 1 + 0.8/(1 − 0.4) and 1 + 0.8/((1 − 0.4)(1 − 0.8))."""
    link = {"link": queue(3.0, discipline="infinite-server")}
    for model in (ranked(), ranked(link, "link.hi")):
        found = solve_exactly(model)
        assert found.provenance["engine"] == "exact: product form"
        stays = [found.cell("desk", each)["residence_mean_s"] for each in ("hi", "lo")]
        assert stays == pytest.approx([7 / 3, 23 / 3], rel=1e-12)
        assert found.place("desk")["population"] == pytest.approx(0.8 / 0.2, rel=1e-12)


def test_priorities_of_several_servers_leave_the_whole_line_as_long():
    desk = queue(exponential(2.0), servers=2, **RANKS)
    found = solve_exactly(ranked(desk=desk))
    alike = solve_exactly(ranked(desk=queue(exponential(2.0), servers=2)))
    assert found.place("desk")["population"] == pytest.approx(
        alike.place("desk")["population"], rel=1e-12
    )
    waits = [found.cell("desk", each)["residence_mean_s"] - 2.0 for each in ("hi", "lo")]
    assert waits[1] == pytest.approx(waits[0] / (1 - 0.8), rel=1e-12)


@pytest.mark.parametrize(
    ("places", "after", "where"),
    [({"next": queue(exponential(0.1))}, "next.hi", "next"), ({}, "desk.hi@0.1", "desk")],
)
def test_what_leaves_a_queue_with_priorities_is_no_stream_for_another(places, after, where):
    told = f"It has no product form either: 'desk' serves by priority, and .* queue at '{where}'"
    with pytest.raises(UnsupportedError, match=told):
        solve_exactly(ranked(places, after), most_states=300)


@pytest.mark.parametrize(
    ("why", "places", "moves"),
    [
        (
            "copies of one token meet again at 'right'",
            {},
            {"go": [mode("left.job", "right.job"), mode("right.job")]},
        ),
        ("a source is not Poisson", {}, {"come": [mode(put="root.job", after=1.0)]}),
        ("'left' does not serve all colours with the same exponential", {"left": queue(0.5)}, {}),
        (
            "there are tokens at the start",
            {"root": FORKED["root"] | {"tokens": {"job": 1}}},
            {},
        ),
    ],
)
def test_nets_without_a_product_form_are_told_why(why, places, moves):
    with pytest.raises(UnsupportedError, match=f"It has no product form either: {why}"):
        solve_exactly(net(FORKED | places, FORKS | moves), most_states=300)


@pytest.mark.statistical
def test_the_simulator_agrees_on_queues_in_which_order_and_priority_matter():
    """Two colours of different service times, in line and by priority: no product form."""
    colours = ["fast", "slow"]
    services = {"fast": exponential(0.2), "slow": exponential(1.0)}
    places = {
        "line": queue_by_colour(services) | {"tokens": {"fast": 2, "slow": 2}},
        "desk": queue_by_colour(services, discipline="priority", priorities={"slow": 1}),
    }
    moves = {
        "on": [mode(f"line.{each}", f"desk.{each}") for each in colours],
        "back": [mode(f"desk.{each}", f"line.{each}") for each in colours],
    }
    model = net(places, moves, colours)
    exact = solve_exactly(model)
    found = simulate_net(model, seed=3, quantiles=False)
    for place in ("line", "desk"):
        for colour in colours:
            truth, row = exact.cell(place, colour), found.cell(place, colour)
            error = row["population_se"]
            assert error < 0.01 * truth["population"]
            assert abs(row["population"] - truth["population"]) < 6 * error
            rate, error = row["throughput_per_s"], row["throughput_se_per_s"]
            assert abs(rate - truth["throughput_per_s"]) < 6 * error


@pytest.mark.statistical
def test_the_simulator_agrees_on_joins_forks_and_competing_clocks():
    places = {
        "a": queue(exponential(0.5), servers=2) | {"tokens": {"red": 2, "blue": 1}},
        "hall": {},
    }
    moves = {
        "leave": [mode("a.red", "hall.red"), mode("a.blue", "hall.blue")],
        "join": {"priority": 1, "modes": [mode("hall.red hall.blue", "a.red a.blue", weight=2.0)]},
        "swap": [mode("hall.red*2", "a.red*2")],
        "age": [mode("hall.red", "a.red", after=exponential(0.7))],
        "rest": [mode("hall.blue", "a.blue", after=exponential(2.0))],
    }
    model = net(places, moves, ["red", "blue"])
    exact, found = solve_exactly(model), simulate_net(model, seed=8, quantiles=False)
    for truth, row in zip(exact.cells.itertuples(), found.cells.itertuples(), strict=True):
        assert row.population_se < 0.01 * truth.population
        assert abs(row.population - truth.population) < 6 * row.population_se
        assert abs(row.throughput_per_s - truth.throughput_per_s) < 6 * row.throughput_se_per_s


def test_what_cannot_be_solved_exactly_is_refused_by_name():
    batches = net(
        {"cpu": queue(exponential(0.2))}, {"come": come("cpu.job*2"), "go": [mode("cpu.job")]}
    )
    told = "more than 500 markings.*It has no product form either: several tokens"
    with pytest.raises(UnsupportedError, match=told):
        solve_exactly(batches, most_states=500)
    with pytest.raises(UnsupportedError, match="is not exponential"):
        solve_exactly(random_net(5, closed=True))
    either = net(
        {"one": queue(exponential(1.0)) | {"tokens": {"job": 1}}, "two": {}, "three": {}},
        {"go": [mode("one.job", "two.job"), mode("one.job", "three.job")]},
    )
    with pytest.raises(UnsupportedError, match="one of 2 sets of markings"):
        solve_exactly(either)
