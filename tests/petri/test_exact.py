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
    assert found.provenance["markings"] == jobs + 1


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
    open_net = net(
        {"cpu": queue(exponential(0.5))}, {"come": come("cpu.job"), "go": [mode("cpu.job")]}
    )
    with pytest.raises(UnsupportedError, match="more than 500 markings, or no end of them"):
        solve_exactly(open_net, most_states=500)
    with pytest.raises(UnsupportedError, match="is not exponential"):
        solve_exactly(random_net(5, closed=True))
    either = net(
        {"one": queue(exponential(1.0)) | {"tokens": {"job": 1}}, "two": {}, "three": {}},
        {"go": [mode("one.job", "two.job"), mode("one.job", "three.job")]},
    )
    with pytest.raises(UnsupportedError, match="one of 2 sets of markings"):
        solve_exactly(either)
