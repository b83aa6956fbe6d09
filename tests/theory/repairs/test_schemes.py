"""Systems that fail, end to end: closed forms, limits, and every event accounted for."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from systems import small_failing as systems
from tidings.errors import InvalidInputError, UnsupportedError
from tidings.model.reading import loads
from tidings.theory.answer import answer_by_theory

BROKERS, LINKS = [0.9, 0.8, 0.95], [0.9, 0.85]
ROW = [0.9, 0.9, 0.8, 0.85, 0.95]  # broker, link, broker, …
SCHEMES = ("none", "periodic", "buffering", "bypass", "bypass-buffering")


def shares(system, **options):
    return answer_by_theory(system, **options).outcome.subscribers.iloc[0]


def on_time(system, **options):
    return float(shares(system, **options)["on_time"])


def test_nothing_passes_a_broker_that_has_forgotten():
    row = shares(systems.path(BROKERS, LINKS, "scheme: none"))
    assert row["on_time"] == 0.0
    assert row["lost_broker_down"] == pytest.approx(0.1)
    assert row["lost_not_restored"] == pytest.approx(0.9)


def test_without_brokers_that_crash_nothing_is_forgotten():
    row = shares(systems.path([1, 1, 1], LINKS, "scheme: none"))
    assert row["on_time"] == pytest.approx(0.9 * 0.85)


def test_periodic_is_the_product_of_availabilities():
    row = shares(systems.path(BROKERS, LINKS, "scheme: periodic"))
    assert row["on_time"] == pytest.approx(math.prod(ROW), abs=1e-14)
    assert row["lost_broker_down"] == pytest.approx(0.1)
    assert row["lost_path_down"] == pytest.approx(0.9 - math.prod(ROW))


@pytest.mark.parametrize("lifetime_s", [1.0, 10.0, 40.0, 400.0])
def test_buffering_is_what_following_all_components_gives(lifetime_s):
    system = systems.path(BROKERS, LINKS, "scheme: buffering", lifetime=f"{lifetime_s}s")
    law = systems.stationary(ROW)
    law[::2] = 0.0  # the first broker is down
    expected = 0.9 * systems.arrived_by(ROW, law / law.sum(), lifetime_s)
    row = shares(system)
    assert row["on_time"] == pytest.approx(expected, abs=1e-4)
    assert row["lost_expired_in_buffer"] == pytest.approx(0.9 - expected, abs=1e-4)


@pytest.mark.parametrize("faults", ["exact", "paper"])
def test_no_time_to_wait_and_all_time_to_wait(faults):
    for make in (lambda *a, **k: systems.path(BROKERS, LINKS, *a, **k), systems.square):
        for buffered, without in (("buffering", "periodic"), ("bypass-buffering", "bypass")):
            at_once = on_time(make(f"scheme: {buffered}", lifetime="0s"), faults=faults)
            plain = on_time(make(f"scheme: {without}"), faults=faults)
            assert at_once == pytest.approx(plain, abs=1e-9)
            ever = on_time(make(f"scheme: {buffered}", lifetime="1000000s"), faults=faults)
            assert ever == pytest.approx(0.9, abs=1e-9)


def test_in_a_tree_there_is_no_path_around():
    for around, static in (("bypass", "periodic"), ("bypass-buffering", "buffering")):
        one, other = (
            shares(systems.path(BROKERS, LINKS, f"scheme: {each}", lifetime="20s"))
            for each in (around, static)
        )
        assert one.drop(["subscriber"]).equals(other.drop(["subscriber"]))


@pytest.mark.parametrize("scheme", SCHEMES[1:])
@pytest.mark.parametrize("faults", ["exact", "paper"])
def test_one_broker_is_as_good_as_it_is_available(scheme, faults):
    system = systems.path([0.93], [], f"scheme: {scheme}")
    assert on_time(system, faults=faults) == pytest.approx(0.93, abs=1e-13)


def square_connected(shares_of):
    """P[a and d joined] in the square: two paths side by side."""
    upper = shares_of["ab"] * shares_of["b"] * shares_of["bd"]
    lower = shares_of["ac"] * shares_of["c"] * shares_of["cd"]
    return shares_of["a"] * shares_of["d"] * (1.0 - (1.0 - upper) * (1.0 - lower))


def test_bypass_is_connectivity():
    parts = {**systems.SQUARE, **{a + b: s for (a, b), s in systems.SQUARE_LINKS.items()}}
    row = shares(systems.square("scheme: bypass"))
    assert row["on_time"] == pytest.approx(square_connected(parts), abs=1e-13)
    assert row["lost_path_down"] == pytest.approx(0.9 - square_connected(parts), abs=1e-13)
    published = on_time(systems.square("scheme: bypass"), faults="paper")
    assert published == pytest.approx(square_connected(parts), abs=1e-13)  # paths are disjoint


def test_the_published_form_of_bypass_with_buffering():
    """r_A + (a_b0 − r_A) P[0 < d ≤ D]/P[d > 0], d the delay of the usual path."""
    row = [0.9, 0.9, 0.8, 0.95, 0.95]  # a, ab, b, bd, d
    law = systems.stationary(row)
    law[::2] = 0.0
    law /= law.sum()
    none = math.prod(row[1:])
    waits = (systems.arrived_by(row, law, 20.0) - none) / (1.0 - none)
    at_once = on_time(systems.square("scheme: bypass"))
    expected = at_once + (0.9 - at_once) * waits
    system = systems.square("scheme: bypass-buffering", lifetime="20s")
    assert on_time(system, faults="paper") == pytest.approx(expected, abs=1e-4)
    assert abs(on_time(system) - expected) > 1e-3  # the real partition is another


def test_the_real_partition_is_what_following_all_components_gives():
    """Weigh every state of the square's eight components, then follow the usual path."""
    names = ["a", "ab", "b", "bd", "d", "ac", "c", "cd"]
    parts = {**systems.SQUARE, **{a + b: s for (a, b), s in systems.SQUARE_LINKS.items()}}
    usual = [parts[name] for name in names[:5]]
    cut_off, at_once = np.zeros(32), 0.0
    for state, share in enumerate(systems.stationary([parts[name] for name in names])):
        up = {name: bool(state >> bit & 1) for bit, name in enumerate(names)}
        if not up["a"]:
            continue
        if square_connected(up):
            at_once += share
        else:
            cut_off[state & 31] += share
    held = cut_off.sum()
    expected = at_once + held * systems.arrived_by(usual, cut_off / held, 20.0)
    system = systems.square("scheme: bypass-buffering", lifetime="20s")
    assert on_time(system) == pytest.approx(expected, abs=1e-4)


GROUP = "failure_groups: {g: {members: [a, a--b, d], failure: {availability: 0.9, period: 100s}}}"


@pytest.mark.parametrize("scheme", ["periodic", "bypass"])
def test_what_fails_together_counts_once(scheme):
    text = systems.text_of(
        systems.SQUARE,
        systems.SQUARE_LINKS,
        f"scheme: {scheme}",
        routing="{tree: [[a,b],[b,d],[a,c]]}",
    )
    alone, grouped = on_time(loads(text)), on_time(loads(text + GROUP))
    assert grouped == pytest.approx(0.9 * alone, abs=1e-13)


# ---- with queues, losses, delays and lifetimes ---------------------------------------------------


def everything(scheme, lifetime="{uniform: [1s, 40s]}"):
    """Queues, slow and lossy links, random lifetimes, times of any law, a group, a detour."""
    uneven = (
        "failure: {up: {weibull: {mean: 90s, shape: 0.7}}, down: {erlang: {shape: 2, mean: 9s}}}"
    )
    slow = "delay: {exponential: 1s}, reliability: 0.95"
    text = systems.text_of(
        {"a": f"service: {{exponential: 0.5s}}, {uneven}", "b": 0.9, "c": 0.8, "d": 0.95},
        {pair: f"{slow}, {systems.failing(s)}" for pair, s in systems.SQUARE_LINKS.items()},
        f"scheme: {scheme}",
        routing="{tree: [[a,b],[b,d],[a,c]]}",
        lifetime=lifetime,
    )
    return loads(text + GROUP)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_event_is_accounted_for(scheme):
    answer = answer_by_theory(everything(scheme), pairs=True)
    for table in (answer.outcome.subscribers, answer.outcome.pairs):
        row = table.iloc[0]
        lost = sum(row[column] for column in table.columns if column.startswith("lost_"))
        assert row["delivered"] + lost == pytest.approx(1.0, abs=1e-12)
        assert row["on_time"] + row["late"] == pytest.approx(row["delivered"], abs=1e-12)
    regime = answer.regimes.iloc[0]
    assert regime["failing"] == 1.0
    assert regime["bypass"] == float("bypass" in scheme)
    assert regime["buffering"] == float("buffering" in scheme)
    assert 0.2 < regime["unavailability"] < 0.8


@pytest.mark.parametrize("scheme", ["buffering", "bypass-buffering"])
def test_the_distribution_at_the_lifetime_is_the_share_in_time(scheme):
    """What waited and is late then never comes; so the distribution ends at what is delivered."""
    outcome = answer_by_theory(everything(scheme, lifetime="15s")).outcome
    row, law = outcome.subscribers.iloc[0], outcome.delays
    at = float(law.loc[law["delay_s"] == 15.0, "arrived"].iloc[0])
    assert at == pytest.approx(row["on_time"], abs=1e-9)
    assert law["arrived"].is_monotonic_increasing
    assert law["arrived"].max() <= row["delivered"] + 1e-9
    assert row["late"] > 0.0
    assert row["lost_expired_in_buffer"] > 0.0


def test_the_mean_delay_is_that_of_what_is_delivered():
    """E[d; d ≤ D]/P[d ≤ D] of one receiver that fails: exponential repairs, cut at D."""
    system = systems.graph({"a": 1, "b": 0.8}, {("a", "b"): 1}, "scheme: buffering", lifetime="30s")
    row = shares(system)
    repair_s, end_s = 20.0, 30.0
    in_time = 0.8 + 0.2 * (1.0 - math.exp(-end_s / repair_s))
    spent_s = 0.2 * (repair_s - (repair_s + end_s) * math.exp(-end_s / repair_s))
    assert row["on_time"] == pytest.approx(in_time, abs=1e-5)
    assert row["delay_mean_s"] == pytest.approx(spent_s / in_time, rel=1e-4)
    # 0.95 of what is delivered has come by then
    left = (1.0 - 0.95 * in_time) / 0.2
    assert row["delay_p95_s"] == pytest.approx(-repair_s * math.log(left), rel=1e-3)


def test_what_fails_under_an_event_takes_it():
    """E[exp(−f X)] = 1/(1 + f m) of exponential times on a link, exp(−f s) of constant service."""
    link = f"delay: {{exponential: 6s}}, {systems.failing(0.9)}"
    broker = f"service: 2s, {systems.failing(0.8)}"
    system = systems.graph({"a": broker, "b": 1}, {("a", "b"): link}, "scheme: periodic")
    served = math.exp(-2.0 * systems.rates(0.8)[0])
    carried = 1.0 / (1.0 + 6.0 * systems.rates(0.9)[0])
    row = shares(replace(system, lifetime=None))
    # Events queue at times: a few in a hundred wait for a service of 2 s.
    assert row["delivered"] == pytest.approx(0.8 * 0.9 * served * carried, rel=0.02)
    quiet = systems.graph({"a": broker, "b": 1}, {("a", "b"): link}, "scheme: periodic", every="1d")
    assert shares(quiet)["delivered"] == pytest.approx(0.8 * 0.9 * served * carried, abs=1e-5)


def test_links_that_are_acknowledged_lose_nothing_by_chance():
    lossy = {("a", "b"): "reliability: 0.7"}
    for scheme, arrives in (("periodic", 0.7), ("buffering", 1.0)):
        for broker in (1, 0.8):
            system = systems.graph({"a": 1, "b": broker}, lossy, f"scheme: {scheme}")
            assert on_time(system) == pytest.approx(
                arrives * (broker if arrives < 1 else 1), abs=1e-6
            )


def test_a_detour_takes_its_own_time():
    """Links of 10 ms: two hops over b, three where b is down; an event too old is late."""
    slow = dict.fromkeys((*systems.SQUARE_LINKS, ("c", "e"), ("e", "d")), "delay: 10ms")
    del slow["c", "d"]
    brokers = {"a": 1, "b": 0.8, "c": 1, "e": 1, "d": 1}
    tree = "{tree: [[a,b],[b,d],[a,c],[c,e]]}"
    system = systems.graph(brokers, slow, "scheme: bypass", lifetime="25ms", routing=tree)
    row = shares(system)
    assert row["on_time"] == pytest.approx(0.8, abs=2e-3)
    assert row["late"] == pytest.approx(0.2, abs=2e-3)


def test_the_regime_says_what_buffers_leave_out():
    """Failures that strike a link or a later broker while it has the event, and rough waits."""
    link = f"delay: {{exponential: 6s}}, {systems.failing(0.9)}"
    receiver = f"service: 2s, {systems.failing(0.8)}"
    brokers = {"a": f"service: 1s, {systems.failing(0.7)}", "b": receiver}
    system = systems.graph(brokers, {("a", "b"): link}, "scheme: buffering", every="1d")
    regime = answer_by_theory(system).regimes.iloc[0]
    struck = 6.0 * systems.rates(0.9)[0] + 2.0 * systems.rates(0.8)[0]
    assert regime["struck"] == pytest.approx(struck, rel=1e-3)
    assert regime["unavailability"] == pytest.approx(1.0 - 0.7 * 0.9 * 0.8)
    assert regime["rough_repairs"] == 0.0
    assert answer_by_theory(everything("bypass-buffering")).regimes["rough_repairs"].iloc[0] == 1.0


# ---- what is left to simulation ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("recovery", "names"),
    [
        ("scheme: periodic, refresh: 60s", r"recovery\.refresh"),
        ("scheme: bypass, detection: 5s", r"recovery\.detection"),
        ("scheme: periodic, refresh: 60s, timeout: 90s", r"recovery\.timeout"),
    ],
)
def test_what_theory_has_no_answer_for_is_refused_by_name(recovery, names):
    with pytest.raises(UnsupportedError, match=names):
        answer_by_theory(systems.path(BROKERS, LINKS, recovery))


def test_subscribers_that_come_and_go_lose_to_failures_what_all_lose():
    """A broker and a link up .9 of the time each; without delays stays cost nothing more."""
    text = systems.text_of({"a": 1, "b": 0.9}, {("a", "b"): 0.9}, "scheme: periodic")
    churning = text.replace("wants: {}", "wants: {}, stays: {exponential: 30s}, away: 60s")
    lasting, visiting = (shares(loads(each))["on_time"].tolist() for each in (text, churning))
    assert visiting == pytest.approx(lasting, abs=1e-6)
    with pytest.raises(UnsupportedError, match="churn among failures without recovery"):
        answer_by_theory(loads(churning.replace("periodic", "none")))


def test_fault_models_go_by_name():
    with pytest.raises(InvalidInputError, match="no fault model 'guess'"):
        answer_by_theory(systems.path(BROKERS, LINKS, "scheme: periodic"), faults="guess")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_scheme_without_failures_changes_nothing(scheme):
    text = systems.text_of({"a": "service: 1s", "b": 1}, {("a", "b"): 1}, f"scheme: {scheme}")
    with_scheme = shares(loads(text))
    without = shares(replace(loads(text), recovery=None))
    assert with_scheme.equals(without)
