"""Nets of which the exact answer is known: the simulator agrees within its standard errors.

Every run is long enough that its standard error is a hundredth of the exact value or less.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from petri.nets import come, exponential, mode, net, queue, queue_by_colour
from tidings.petri.simulating import simulate_net

pytestmark = pytest.mark.statistical


def solve(model, **options):
    return simulate_net(model, seed=11, **options)


def agrees(row, column, exact, sharp=0.01):
    head, unit = next(
        (column.removesuffix(unit), unit) for unit in ("_per_s", "_s", "") if column.endswith(unit)
    )
    value, error = float(row[column]), float(row[f"{head}_se{unit}"])
    assert error < sharp * exact, f"{column}: too noisy to tell ({error / exact:.3g})"
    assert abs(value - exact) < 5 * error, f"{column}: {value} ± {error}, exactly {exact}"


def erlang_c(servers, offered):
    terms = [offered**k / math.factorial(k) for k in range(servers)]
    last = offered**servers / math.factorial(servers) * servers / (servers - offered)
    return last / (sum(terms) + last)


@pytest.mark.parametrize("discipline", ["fcfs", "processor-sharing"])
def test_mm1(discipline):
    model = net(
        {"cpu": queue(exponential(0.7), discipline=discipline)},
        {"come": come("cpu.job"), "go": [mode("cpu.job")]},
    )
    found = solve(model)
    row = found.cell("cpu", "job")
    agrees(row, "throughput_per_s", 1.0)
    agrees(row, "population", 0.7 / 0.3)
    agrees(row, "residence_mean_s", 0.7 / 0.3)
    agrees(found.place("cpu"), "utilisation", 0.7)
    if discipline == "fcfs":  # the sojourn is exponential
        mean_s = 0.7 / 0.3
        for share, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
            exact = -mean_s * math.log(1 - share)
            assert row[f"residence_{name}_s"] == pytest.approx(exact, rel=0.03)


@pytest.mark.parametrize("servers", [2, 5])
@pytest.mark.parametrize("how", ["queue", "sharing", "semaphore"])
def test_mmc_as_a_queue_as_sharing_and_as_a_pool_of_permits(servers, how):
    offered = 0.7 * servers
    if how == "semaphore":
        places = {
            "cpu": queue(exponential(offered), discipline="infinite-server"),
            "line": {},
            "pool": {"tokens": {"permit": servers}},
        }
        moves = {
            "come": come("line.job"),
            "seize": [mode("line.job pool.permit", "cpu.job")],
            "go": [mode("cpu.job", "pool.permit")],
        }
        found = solve(net(places, moves, ["job", "permit"]))
        waiting = erlang_c(servers, offered) * 0.7 / 0.3
        agrees(found.cell("line", "job"), "population", waiting, sharp=0.02)
        agrees(found.cell("pool", "permit"), "population", servers - offered)
        # What is put is as old as the first that was taken: permits make nobody older.
        agrees(found.cell("cpu", "job"), "age_mean_s", offered + waiting, sharp=0.02)
        return
    discipline = "fcfs" if how == "queue" else "processor-sharing"
    places = {"cpu": queue(exponential(offered), servers=servers, discipline=discipline)}
    found = solve(net(places, {"come": come("cpu.job"), "go": [mode("cpu.job")]}))
    number = offered + erlang_c(servers, offered) * 0.7 / 0.3
    agrees(found.cell("cpu", "job"), "population", number)
    agrees(found.cell("cpu", "job"), "residence_mean_s", number)
    agrees(found.place("cpu"), "utilisation", 0.7)


def test_md1_waits_half_as_long():
    model = net({"cpu": queue(0.8)}, {"come": come("cpu.job"), "go": [mode("cpu.job")]})
    agrees(solve(model).cell("cpu", "job"), "residence_mean_s", 0.8 + 0.8 * 0.8 / (2 * 0.2))


def test_sharing_does_not_care_for_the_law_of_service():
    services = {
        "long": 2.0,
        "short": {"hyperexponential": [{"p": 0.9, "mean": 0.05}, {"p": 0.1, "mean": 1.0}]},
    }
    model = net(
        {"cpu": queue_by_colour(services, discipline="processor-sharing")},
        {
            "come": [
                mode(put="cpu.long", after=exponential(5.0)),
                mode(put="cpu.short", after=exponential(0.725)),
            ],
            "go": [mode("cpu.long"), mode("cpu.short")],
        },
        ["long", "short"],
    )
    found = solve(model)
    load = 2.0 / 5.0 + 0.145 / 0.725
    agrees(found.cell("cpu", "long"), "residence_mean_s", 2.0 / (1 - load))
    agrees(found.cell("cpu", "short"), "residence_mean_s", 0.145 / (1 - load))


def test_priorities_are_cobhams_waits():
    services = {"first": exponential(0.5), "second": exponential(1.0)}
    model = net(
        {"cpu": queue_by_colour(services, discipline="priority", priorities={"first": 1})},
        {
            "come": [
                mode(put="cpu.first", after=exponential(2.0)),
                mode(put="cpu.second", after=exponential(2.0)),
            ],
            "go": [mode("cpu.first"), mode("cpu.second")],
        },
        ["first", "second"],
    )
    found = solve(model)
    left = 0.5 * 0.5**2 + 0.5 * 1.0**2  # Σ λ E[S²]/2
    high, both = 0.25, 0.75
    agrees(found.cell("cpu", "first"), "residence_mean_s", 0.5 + left / (1 - high))
    agrees(
        found.cell("cpu", "second"),
        "residence_mean_s",
        1.0 + left / (1 - high) / (1 - both),
        sharp=0.02,
    )


def test_an_infinite_server_holds_a_poisson_number():
    model = net(
        {"link": queue({"uniform": [0.0, 6.0]}, discipline="infinite-server")},
        {"come": come("link.job"), "go": [mode("link.job")]},
    )
    found = solve(model)
    agrees(found.cell("link", "job"), "population", 3.0)
    agrees(found.place("link"), "utilisation", 3.0)
    assert found.cell("link", "job")["residence_p95_s"] == pytest.approx(5.7, rel=0.005)


def test_tandem_and_age():
    places = {
        "one": queue(exponential(0.6)),
        "two": queue(exponential(0.5)),
        "delay": queue(2.0, discipline="infinite-server"),
    }
    moves = {
        "come": come("one.job"),
        "next": [mode("one.job", "delay.job")],
        "land": [mode("delay.job", "two.job")],
        "go": [mode("two.job")],
    }
    found = solve(net(places, moves))
    agrees(found.cell("one", "job"), "residence_mean_s", 0.6 / 0.4)
    agrees(found.cell("two", "job"), "residence_mean_s", 0.5 / 0.5)  # Burke
    agrees(found.cell("two", "job"), "age_mean_s", 1.5 + 2.0 + 1.0)


def test_closed_two_station_network_is_its_product_form():
    jobs, think_s, serve_s = 6, 2.0, 0.5
    places = {
        "think": {
            "queue": {
                "service": {"erlang": {"mean": think_s, "shape": 4}},
                "discipline": "infinite-server",
            },
            "tokens": {"job": jobs},
        },
        "cpu": queue(exponential(serve_s)),
    }
    moves = {"ask": [mode("think.job", "cpu.job")], "answer": [mode("cpu.job", "think.job")]}
    found = solve(net(places, moves))
    queue_length = throughput = response = 0.0
    for n in range(1, jobs + 1):  # mean value analysis
        response = serve_s * (1 + queue_length)
        throughput = n / (think_s + response)
        queue_length = throughput * response
    agrees(found.cell("cpu", "job"), "throughput_per_s", throughput)
    agrees(found.cell("cpu", "job"), "residence_mean_s", response)
    agrees(found.place("cpu"), "utilisation", throughput * serve_s)
    total = found.cells["population"].sum()
    assert total == pytest.approx(jobs, rel=1e-9)  # no token is ever lost


def test_every_branch_of_a_fork_tree_is_mm1():
    """What leaves an M/M/1 queue is Poisson (Burke), and so is what a coin lets pass."""
    shares = {"a": 1.0, "b": 0.6, "c": 0.3}
    places = {"root": queue(exponential(0.7))} | {name: queue(exponential(0.6)) for name in shares}
    places["leaf"] = queue(exponential(0.9))
    moves = {
        "come": come("root.job"),
        "fork": [
            mode("root.job", " ".join(f"{name}.job@{share}" for name, share in shares.items()))
        ],
        "on": [mode("a.job", "leaf.job@0.5")],
        "go": [mode("b.job"), mode("c.job"), mode("leaf.job")],
    }
    found = solve(net(places, moves))
    for name, share in shares.items():
        agrees(found.cell(name, "job"), "throughput_per_s", share)
        agrees(found.cell(name, "job"), "residence_mean_s", 0.6 / (1 - 0.6 * share))
    path_s = 0.7 / 0.3 + 0.6 / 0.4 + 0.9 / (1 - 0.45)
    agrees(found.cell("leaf", "job"), "age_mean_s", path_s)


def test_timed_transitions_are_servers_that_start_anew():
    """A timed mode over an ordinary place is one server: M/M/1 again."""
    places = {"line": {}}
    moves = {"come": come("line.job"), "serve": [mode("line.job", after=exponential(0.7))]}
    found = solve(net(places, moves))
    agrees(found.cell("line", "job"), "residence_mean_s", 0.7 / 0.3)


def test_weights_and_priorities_share_what_is_held():
    """By its Markov chain: two modes compete for a held token, and a timed one for the keys."""
    # "idle" waits for a key; keys come by a timed mode; both immediate modes need one of each.
    places = {
        "idle": {"tokens": {"job": 1}},
        "keys": {},
        "left": queue(exponential(1.0)),
        "right": queue(exponential(2.0)),
    }
    moves = {
        "cut": [mode("", "keys.key", after=exponential(1.0))],
        "choose": [
            mode("idle.job keys.key", "left.job", weight=3.0),
            mode("idle.job keys.key", "right.job", weight=1.0),
        ],
        "waste": [mode("keys.key", after=exponential(0.25))],
        "back": [mode("left.job", "idle.job"), mode("right.job", "idle.job")],
    }
    found = solve(net(places, moves, ["job", "key"]))
    # States: (where the job is, keys). Keys: up at 1/s, each one served away at 4/s, one at a time.
    size = 60
    states = [(where, keys) for where in ("left", "right") for keys in range(size)] + [("idle", 0)]
    index = {state: at for at, state in enumerate(states)}
    rates = np.zeros((len(states), len(states)))
    for (where, keys), at in index.items():
        if where == "idle":
            rates[at, index["left", 0]] += 0.75
            rates[at, index["right", 0]] += 0.25
            continue
        if keys + 1 < size:
            rates[at, index[where, keys + 1]] += 1.0
        if keys:
            rates[at, index[where, keys - 1]] += 4.0
        done = 1.0 if where == "left" else 0.5
        if keys:
            rates[at, index["left", keys - 1]] += 0.75 * done
            rates[at, index["right", keys - 1]] += 0.25 * done
        else:
            rates[at, index["idle", 0]] += done
    np.fill_diagonal(rates, 0.0)  # to the same state: nothing changes
    np.fill_diagonal(rates, -rates.sum(axis=1))
    system = np.vstack([rates.T, np.ones(len(states))])
    share = np.linalg.lstsq(system, np.append(np.zeros(len(states)), 1.0), rcond=None)[0]
    keys = sum(share[at] * held for (_, held), at in index.items())
    agrees(found.cell("left", "job"), "population", share[:size].sum())
    agrees(found.cell("right", "job"), "population", share[size : 2 * size].sum(), sharp=0.02)
    agrees(found.cell("keys", "key"), "population", keys, sharp=0.02)
