"""Nets near full load: runs long enough to forget their start, or a word where they are not."""

from __future__ import annotations

import pytest

from petri.nets import come, exponential, mode, net, queue, queue_by_colour
from tidings.petri.compiling import compile_net
from tidings.petri.settling import slowest
from tidings.petri.simulating import simulate_net
from tidings.petri.traffic import solve_traffic


def line(service, **more):
    return net({"cpu": queue(service, **more)}, {"come": come("cpu.job"), "go": [mode("cpu.job")]})


def found_slowest(model):
    cells = compile_net(model).cells
    return slowest(cells, solve_traffic(cells))


def test_relaxation_times_are_those_of_the_diffusion_limit():
    assert found_slowest(line(exponential(0.9))) == ("cpu", pytest.approx(4 * 0.9 / 0.1**2))
    assert found_slowest(line(0.9)) == ("cpu", pytest.approx(2 * 0.9 / 0.1**2))
    several = line(exponential(2.7), servers=3)
    assert found_slowest(several) == ("cpu", pytest.approx(4 * 0.9 / 0.1**2))
    assert found_slowest(line(1.0, discipline="infinite-server")) == ("", 0.0)
    # Of two colours E[S²]/E[S] counts: (0.5 · 0.2² + 0.25 · 2²)/(0.5 · 0.2 + 0.25 · 2), twice.
    mixed = net(
        {"cpu": queue_by_colour({"a": 0.2, "b": 2.0})},
        {"come": [*come("cpu.a", 2.0), *come("cpu.b", 4.0)], "go": [mode("cpu.a"), mode("cpu.b")]},
        ["a", "b"],
    )
    assert found_slowest(mixed)[1] == pytest.approx(2 * (1.02 / 0.6) / 0.4**2)


def test_runs_are_as_long_as_the_busiest_queue_asks():
    found = simulate_net(line(exponential(0.97)), replications=2, quantiles=False)
    relaxation_s = 4 * 0.97 / 0.03**2
    assert found.provenance["duration_s"] == pytest.approx(50 * relaxation_s)
    assert found.provenance["warmup_s"] > 4.99 * relaxation_s
    assert "'cpu' is busy 97 % of the time" in found.provenance["notes"][0]
    idle = simulate_net(line(exponential(0.5)), replications=2, quantiles=False)
    assert idle.provenance["notes"] == []


def test_runs_that_would_never_end_are_cut_and_it_is_said(monkeypatch):
    monkeypatch.setattr("tidings.petri.simulating.MOST_FIRINGS", 100_000)
    found = simulate_net(line(exponential(0.99)), replications=2, quantiles=False)
    assert found.provenance["duration_s"] < 100_000
    assert "results may be biased" in found.provenance["notes"][0]


@pytest.mark.statistical
def test_a_net_that_shows_its_start_is_told_by_name():
    """Many short runs from an empty queue: sure of themselves, and wrong."""
    model = line(exponential(0.99))
    how = {"replications": 300, "duration_s": 400.0, "quantiles": False}
    short = simulate_net(model, warmup_s=0.0, **how)
    assert short.place("cpu")["utilisation"] < 0.99 - 8 * short.place("cpu")["utilisation_se"]
    (told,) = short.provenance["notes"]
    assert told.startswith("this net has not reached steady state: of the colour 'job'")
    assert "leave 'cpu', where the traffic equations say 1 (" in told
    calm = simulate_net(line(exponential(0.5)), warmup_s=100.0, **how)
    assert calm.provenance["notes"] == []


def test_regular_tokens_have_settled_though_their_runs_do_not_differ():
    clock = queue(1.0, discipline="infinite-server") | {"tokens": {"job": 1}}
    model = net(
        {"clock": clock, "cpu": queue(0.2)},
        {"tick": [mode("clock.job", "clock.job cpu.job")], "go": [mode("cpu.job")]},
    )
    found = simulate_net(model, replications=50, warmup_s=0.5, duration_s=99.9)
    assert found.provenance["notes"] == []


def test_places_that_a_precision_leaves_out_are_counted():
    model = net(
        {"cpu": queue(exponential(0.2)), "rare": queue(exponential(0.1))},
        {"come": come("cpu.job"), "go": [mode("cpu.job", "rare.job@0.005")],
         "end": [mode("rare.job")]},
    )  # fmt: skip
    found = simulate_net(model, replications=2, precision=0.1, quantiles=False)
    assert (
        "does not hold for 1 of 2 places and colours, which less than 1 %"
        in (found.provenance["notes"][0])
    )
