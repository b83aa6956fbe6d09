"""Failures and recovery against exact theory, in standard errors, sharp enough to notice."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate

from systems import small_failing as systems
from tidings.model.reading import dumps, loads
from tidings.simulation.run import replicate, simulate

graph, path, square = systems.graph, systems.path, systems.square

pytestmark = pytest.mark.statistical
RECOVERING = ("periodic", "buffering", "bypass", "bypass-buffering")


def agrees(found, exact, standard_error, sharpness=0.03):
    assert 9.0 * standard_error < sharpness * exact, "not sharp enough to tell"
    assert abs(found - exact) < 4.5 * standard_error


def only_row(system, **options):
    given = {"seed": 3, "replications": 20, "duration_s": 100_000.0} | options
    return simulate(system, **given).subscribers.iloc[0]


@pytest.mark.parametrize("scheme", RECOVERING)
def test_one_broker_is_as_good_as_its_availability(scheme):
    row = only_row(path([0.9], [], f"scheme: {scheme}"))
    agrees(row["on_time"], 0.9, row["on_time_se"])
    assert row["lost_broker_down"] == pytest.approx(1 - row["on_time"], abs=1e-12)


def test_a_path_without_buffers_is_up_as_often_as_all_its_parts_are():
    row = only_row(path([0.9, 0.8, 0.95], [0.9, 0.85], "scheme: periodic"))
    agrees(row["on_time"], 0.9 * 0.8 * 0.95 * 0.9 * 0.85, row["on_time_se"])
    assert row["lost_broker_down"] == pytest.approx(0.1, abs=0.005)
    assert row["lost_path_down"] == pytest.approx(1 - row["on_time"] - row["lost_broker_down"])


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("{members: [b0, b1, b2]}", 0.9),
        ("{members: [b0, b0--b1, b2--b1]}", 0.9),
    ],
)
def test_a_group_counts_once_beside_what_fails_on_its_own(text, exact):
    base = path([1, 0.8, 1], [0.95, 1], "scheme: periodic")
    group = f"{{g: {text[:-1]}, {systems.failing(0.9)}}}}}"
    system = loads(_with(base, f"failure_groups: {group}"))
    row = only_row(system)
    agrees(row["on_time"], exact * 0.8 * 0.95, row["on_time_se"])
    lost = 0.1 if "b0," in text else 0.0
    assert row["lost_broker_down"] == pytest.approx(lost, abs=0.01)


def _with(system, text):
    return dumps(system) + "\n" + text + "\n"


@pytest.mark.parametrize(
    "laws",
    [
        "up: 90s, down: 10s",
        "up: {weibull: {mean: 90s, shape: 0.5}}, down: {lognormal: {mean: 10s, scv: 4}}",
        pytest.param(
            "up: {uniform: [0s, 180s]}, down: {gamma: {mean: 10s, shape: 2.5}}",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_a_run_starts_as_if_all_had_been_failing_for_ever(laws):
    # Sixty brokers that serve only their own, in a window of five seconds: at the very start, and
    # a little later.
    names = [f"b{i}" for i in range(60)]
    publishers = [f"p{n}: {{at: {n}, every: 1s, content: {{event: {{k: {n}}}}}}}" for n in names]
    system = loads(
        f"""
        tidings: 1
        recovery: {{scheme: periodic}}
        brokers: {{hub: {{}}, {", ".join(f"{n}: {{failure: {{{laws}}}}}" for n in names)}}}
        links: [{", ".join(f"{{between: [hub, {n}]}}" for n in names)}]
        publishers: {{{", ".join(publishers)}}}
        subscribers: {{{", ".join(f"s{n}: {{at: {n}, wants: {{k: {n}}}}}" for n in names)}}}
        """
    )
    replications = 150
    for warmup_s in (0.0, 12.0):
        found = simulate(system, replications=replications, duration_s=5.0, warmup_s=warmup_s)
        agrees(found.on_time, 0.9, math.sqrt(0.09 / (60 * replications)), 0.04)


# ---- subscriptions that are refreshed ----------------------------------------------------------


@pytest.mark.parametrize("timeout", ["", ", timeout: 30s", ", timeout: 8s"])
def test_a_refresh_interval_costs_one_broker_what_theory_says(timeout):
    # a (1 − e^{−γT})/(γT); with a time-out below T, what is left of the integral.
    fails, _ = systems.rates(0.9)
    lasts = 8.0 if "8s" in timeout else 20.0
    exact = 0.9 * -math.expm1(-fails * lasts) / (fails * 20.0)
    system = path([0.9], [], f"scheme: periodic, refresh: 20s{timeout}")
    row = only_row(system, duration_s=300_000.0)
    agrees(row["on_time"], exact, row["on_time_se"])
    assert row["lost_not_restored"] == pytest.approx(0.9 - exact, abs=0.01)


def test_a_time_out_forgets_what_a_broken_link_keeps_from_being_refreshed():
    # Perfect brokers, time-out = refresh: the link must be up at the last refresh, u ago, and now.
    fails, repairs = systems.rates(0.8)
    both, every = fails + repairs, 20.0
    still = -math.expm1(-both * every) / (both * every)
    exact = 0.8 * (0.8 + 0.2 * still)
    options = {"duration_s": 200_000.0}
    row = only_row(path([1, 1], [0.8], "scheme: periodic, refresh: 20s, timeout: 20s"), **options)
    agrees(row["on_time"], exact, row["on_time_se"])
    plain = only_row(path([1, 1], [0.8], "scheme: periodic, refresh: 20s"), **options)
    agrees(plain["on_time"], 0.8, plain["on_time_se"])


def test_a_refreshed_path_lies_between_its_two_bounds():
    shares, links, every = [0.9, 0.85, 0.9], [0.8, 0.85], 40.0

    def bound(link):
        def product(u):
            brokers = math.prod(a * math.exp(-systems.rates(a)[0] * u) for a in shares)
            return brokers * math.prod(link(a, sum(systems.rates(a)), u) for a in links)

        return integrate.quad(product, 0, every)[0] / every

    upper = bound(lambda a, both, u: a)
    lower = bound(lambda a, both, u: a * (a + (1 - a) * math.exp(-both * u)))
    recovery, options = f"scheme: periodic, refresh: {every}s", {"duration_s": 400_000.0}
    row = only_row(path(shares, links, recovery), **options)
    margin = 4.5 * row["on_time_se"]
    assert upper - lower > 4 * margin, "not sharp enough to tell"
    assert lower - margin < row["on_time"] < upper + margin
    # With a time-out of one interval the lower bound is exact: only the last refresh counts.
    exact = only_row(path(shares, links, f"{recovery}, timeout: {every}s"), **options)
    agrees(exact["on_time"], lower, exact["on_time_se"], 0.06)


def test_without_recovery_nothing_passes_a_broker_that_crashes_but_links_do_no_lasting_harm():
    assert only_row(path([1, 0.9], [0.9], "scheme: none"))["delivered"] == 0.0
    row = only_row(path([1, 1], [0.9], "scheme: none"))
    agrees(row["on_time"], 0.9, row["on_time_se"])


# ---- buffers -----------------------------------------------------------------------------------


def test_a_buffered_hop_waits_as_the_chain_of_its_three_parts():
    shares = [0.9, 0.8, 0.85]  # b_0, its link, b_1
    chain, settle = systems.waiting(shares)
    law = systems.stationary(shares)
    law[[state for state in range(8) if not state & 1]] = 0.0  # b_0 is up
    law /= law.sum()
    transient = np.flatnonzero(np.diag(chain) < 0)
    times = np.linalg.solve(-chain[np.ix_(transient, transient)], np.ones(transient.size))
    mean_s = float(settle(law)[transient] @ times)
    system = path([0.9, 0.85], [0.8], "scheme: buffering", lifetime="1000h")
    found = simulate(system, seed=3, replications=20, duration_s=400_000.0)
    row = found.subscribers.iloc[0]
    agrees(row["delay_mean_s"], mean_s, row["delay_mean_se_s"], 0.08)
    agrees(row["on_time"], 0.9, row["on_time_se"])
    atom = found.delays["arrived"].iloc[0] / row["delivered"]
    assert abs(atom - 0.8 * 0.85) < 4.5 * row["on_time_se"] * 2  # two that may fail, not one
    for lifetime_s in (5.0, 30.0):
        row = only_row(path([0.9, 0.85], [0.8], "scheme: buffering", lifetime=f"{lifetime_s}s"))
        exact = 0.9 * systems.arrived_by(shares, law, lifetime_s)
        agrees(row["on_time"], exact, row["on_time_se"])
        assert row["lost_expired_in_buffer"] == pytest.approx(0.9 - exact, abs=0.01)


def test_hops_with_buffers_add_up_along_a_path():
    shares = [0.9, 0.8, 0.85, 0.9, 0.8]
    law = systems.stationary(shares)
    law[[state for state in range(law.size) if not state & 1]] = 0.0
    exact = systems.arrived_by(shares, law, 15.0)
    system = path(shares[::2], shares[1::2], "scheme: buffering", lifetime="15s")
    row = only_row(system, duration_s=300_000.0)
    agrees(row["on_time"], exact, row["on_time_se"])


def test_the_limits_of_a_lifetime_of_nothing_and_of_no_end():
    shares, links = [0.9, 0.8], [0.9]
    for scheme in ("buffering", "bypass-buffering"):
        row = only_row(path(shares, links, f"scheme: {scheme}", lifetime="0s"))
        agrees(row["on_time"], 0.9 * 0.8 * 0.9, row["on_time_se"])
        row = only_row(path(shares, links, f"scheme: {scheme}", lifetime="1e9s"))
        assert row["on_time"] + row["lost_broker_down"] == pytest.approx(1.0, abs=1e-12)
        agrees(row["on_time"], 0.9, row["on_time_se"])


def test_a_broker_without_its_table_keeps_events_until_it_is_refreshed():
    # u after a refresh the table is gone with 1 − e^{−γu}, and the next refresh is T − u away. If
    # the broker is down then, the one after it that finds it up is a geometric number of T away.
    row = only_row(
        path([0.9], [], "scheme: buffering, refresh: 30s", lifetime="1000h"), duration_s=300_000.0
    )
    agrees(row["on_time"], 0.9, row["on_time_se"])
    fails, repairs = systems.rates(0.9)
    both, every = fails + repairs, 30.0
    found_up = 0.9 * -math.expm1(-both * every)

    def wait(u):
        down = 0.1 * -math.expm1(-both * (every - u))
        return -math.expm1(-fails * u) * (every - u + down * every / found_up)

    exact = integrate.quad(wait, 0, every)[0] / every
    agrees(row["delay_mean_s"], exact, row["delay_mean_se_s"], 0.08)


# ---- noticing ----------------------------------------------------------------------------------

FIXED = "failure: {up: 100s, down: 20s}"


def test_a_repair_is_noticed_after_the_time_of_detection():
    # Whatever comes in the 20 s of a failure or the 5 s after it waits for the end of both.
    system = path([1, 1], [FIXED], "scheme: buffering, detection: 5s", lifetime="1000h")
    row = only_row(system)
    agrees(row["delay_mean_s"], 25.0**2 / 2 / 120, row["delay_mean_se_s"])
    assert row["delivered"] == 1.0


def test_a_failure_is_bypassed_once_it_has_been_noticed():
    links = {("a", "b"): FIXED, ("a", "c"): 1, ("c", "b"): 1}
    system = graph(
        {"a": 1, "c": 1, "b": 1}, links, "scheme: bypass, detection: 5s",
        routing="{tree: [[a,b],[a,c]]}",
    )  # fmt: skip
    row = only_row(system)
    agrees(1 - row["on_time"], 5 / 120, row["on_time_se"], 0.25)
    assert row["lost_path_down"] == pytest.approx(1 - row["on_time"], abs=1e-12)


# ---- ways round what is down -------------------------------------------------------------------


def _states():
    """Every state of the square: what is up, with its probability."""
    parts = {**systems.SQUARE, **systems.SQUARE_LINKS}
    for ups in itertools.product((False, True), repeat=len(parts)):
        chance = math.prod(a if up else 1 - a for a, up in zip(parts.values(), ups, strict=True))
        yield {part for part, up in zip(parts, ups, strict=True) if up}, chance


def _joined(up):
    """Whether a can reach d: by b or by c."""
    ways = ({"b", ("a", "b"), ("b", "d")}, {"c", ("a", "c"), ("c", "d")})
    return {"a", "d"} <= up and any(way <= up for way in ways)


def test_bypass_arrives_whenever_there_is_a_way():
    exact = sum(chance for up, chance in _states() if _joined(up))
    row = only_row(square("scheme: bypass"))
    agrees(row["on_time"], exact, row["on_time_se"])
    static = only_row(square("scheme: periodic"))["on_time"]
    assert row["on_time"] > static + 0.1


def test_bypass_with_buffers_arrives_at_once_or_by_the_tree():
    tree = ["a", ("a", "b"), "b", ("b", "d"), "d"]
    parts = {**systems.SQUARE, **systems.SQUARE_LINKS}
    shares = [parts[each] for each in tree]
    at_once, cut = 0.0, np.zeros(2 ** len(tree))
    for up, chance in _states():
        if _joined(up):
            at_once += chance
        elif "a" in up:
            cut[sum((each in up) << bit for bit, each in enumerate(tree))] += chance
    exact = at_once + systems.arrived_by(shares, cut, 10.0)
    found = simulate(
        square("scheme: bypass-buffering", lifetime="10s"),
        seed=3, replications=20, duration_s=100_000.0,
    )  # fmt: skip
    row = found.subscribers.iloc[0]
    agrees(row["on_time"], exact, row["on_time_se"])
    # What came by the way round comes again by the tree, if it comes before it expires.
    messages = found.provenance["messages"]
    assert 0 < messages["duplicates"] < messages["deliveries"]
    assert row["delivered"] + row[[c for c in row.index if c.startswith("lost_")]].sum() == (
        pytest.approx(1.0, abs=1e-12)
    )


def test_on_a_tree_going_round_changes_nothing():
    options = {"seed": 4, "replication": 0, "warmup_s": 500.0, "duration_s": 50_000.0}
    for plain, round_ in (("periodic", "bypass"), ("buffering", "bypass-buffering")):
        found = [
            replicate(
                path([0.9, 0.8, 0.9], [0.9, 0.8], f"scheme: {each}", lifetime="20s"), **options
            )
            for each in (plain, round_)
        ]
        assert found[0].on_time.sum() > 1000
        for field in ("wanted", "on_time", "delivered", "lost", "curves"):
            assert np.array_equal(getattr(found[0], field), getattr(found[1], field)), field


# ---- what a failure takes with it --------------------------------------------------------------


def test_a_link_takes_what_is_under_way_with_it():
    system = path([0.9, 0.85], [f"delay: 4s, {systems.failing(0.9)}"], "scheme: periodic")
    row = only_row(system)
    exact = 0.9 * 0.9 * math.exp(-4 * systems.rates(0.9)[0]) * 0.85
    agrees(row["on_time"], exact, row["on_time_se"])


def test_a_crash_takes_what_is_in_hand_with_it():
    busy = f"service: 3s, servers: 40, {systems.failing(0.9)}"
    row = only_row(graph({"a": busy}, {}, "scheme: periodic"), warmup_s=100.0)
    agrees(row["on_time"], 0.9 * math.exp(-3 * systems.rates(0.9)[0]), row["on_time_se"])
    assert row["lost_broker_down"] == pytest.approx(1 - row["on_time"], abs=1e-12)


def test_with_buffers_neither_does():
    busy = f"service: 3s, servers: 40, {systems.failing(0.85)}"
    slow = f"delay: 4s, {systems.failing(0.9)}"
    system = graph({"a": 1, "b": busy}, {("a", "b"): slow}, "scheme: buffering", lifetime="1000h")
    row = only_row(system)
    assert row["delivered"] == 1.0
    assert row["delay_mean_s"] > 7.0


def test_with_acknowledgements_chance_losses_are_repeated_at_once():
    lossy = path([1, 1], ["reliability: 0.8"], "scheme: buffering")
    found = simulate(lossy, seed=3, replications=5, events=20_000)
    assert found.delivered == 1.0
    messages = found.provenance["messages"]
    assert messages["acknowledgements"] == messages["deliveries"]  # one hop, one subscriber
    assert messages["messages"] == messages["transmissions"] + messages["acknowledgements"]
    tries = messages["transmissions"] / messages["deliveries"]
    assert tries == pytest.approx(1 / 0.8, abs=5 * math.sqrt(0.2) / 0.8 / math.sqrt(1e5))
    assert simulate(path([1, 1], ["reliability: 0.8"], "scheme: periodic")).delivered < 0.81
