"""Both engines on small systems that fail all the time, in standard errors of the simulation.

Each case also says what the prediction would be without the effect looked at: that must be far off,
so that the effect is really tested.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import failing_systems as systems
from tidings.model.filters import as_filter
from tidings.model.reading import loads
from tidings.model.system import Subscriber
from tidings.simulation.run import simulate
from tidings.theory import predict

pytestmark = pytest.mark.statistical
CAUSES = ("broker_down", "path_down", "not_restored", "expired_in_buffer", "link", "late")
LINE = ([0.9, 0.8, 0.9], [0.9, 0.85])
LONGER = ([0.9, 0.8, 0.85, 0.9], [0.9, 0.85, 0.9])


def agree(system, *, causes=CAUSES):
    """Predicted and simulated on-time shares; the simulated ones with their errors are given."""
    seen = simulate(system, seed=3, replications=20, duration_s=60_000.0).subscribers
    ours = predict(system).subscribers
    off = (ours["on_time"] - seen["on_time"]).abs() / seen["on_time_se"]
    assert off.max() < 4.5
    for cause in causes:
        column = cause if cause == "late" else f"lost_{cause}"
        lost = (ours[column] - seen[column]).abs()
        assert (lost < 5.0 * seen["on_time_se"].max()).all(), cause
    return seen.set_index("subscriber")


def is_told_apart(seen, system, subscriber="s"):
    """That another system would not have agreed."""
    other = predict(system).subscribers.set_index("subscriber").loc[subscriber]
    row = seen.loc[subscriber]
    assert abs(other["on_time"] - row["on_time"]) > 6.0 * row["on_time_se"]


def with_homes(system, **homes):
    """The same with more subscribers, by name."""
    more = [Subscriber(name=name, at=at, wants=as_filter({})) for name, at in homes.items()]
    return replace(system, subscribers=(*system.subscribers, *more))


@pytest.mark.parametrize(("refresh_s", "lifetime"), [(20, "20s"), (60, "60s"), (300, "60s")])
def test_a_broker_without_its_table_takes_events_and_keeps_them(refresh_s, lifetime):
    recovery = f"scheme: buffering, refresh: {refresh_s}s"
    seen = agree(systems.path(*LINE, recovery, lifetime=lifetime))
    is_told_apart(seen, systems.path(*LINE, "scheme: buffering", lifetime=lifetime))


@pytest.mark.parametrize(("refresh_s", "lifetime"), [(20, "20s"), (60, "60s")])
def test_so_it_does_where_events_may_go_round(refresh_s, lifetime):
    recovery = f"scheme: bypass-buffering, refresh: {refresh_s}s"
    seen = agree(systems.square(recovery, lifetime=lifetime))
    is_told_apart(seen, systems.square("scheme: bypass-buffering", lifetime=lifetime))


@pytest.mark.parametrize("refresh_s", [5, 60])
def test_an_event_is_lost_to_the_first_broker_it_meets_that_forgot(refresh_s):
    """Told apart from no way at all, which it would meet only after that."""
    seen = agree(systems.square(f"scheme: bypass, refresh: {refresh_s}s"))
    assert seen.loc["s", "lost_not_restored"] > 20.0 * seen.loc["s", "on_time_se"]
    is_told_apart(seen, systems.square("scheme: bypass"))


@pytest.mark.parametrize("scheme", ["periodic", "buffering", "bypass"])
def test_homes_behind_one_link_refresh_for_each_other(scheme):
    alone = systems.path(*LONGER, f"scheme: {scheme}, refresh: 20s", lifetime="20s")
    seen = agree(with_homes(alone, near="b1", middle="b2"))
    is_told_apart(seen, alone)


@pytest.mark.slow
def test_homes_on_other_ways_refresh_for_each_other():
    alone = systems.square("scheme: bypass-buffering, refresh: 60s", lifetime="20s")
    seen = agree(with_homes(alone, b="b", c="c"))
    is_told_apart(seen, alone)


def lossy_square(reliability):
    links = {
        ends: f"reliability: {reliability}, {systems.failing(share)}"
        for ends, share in systems.SQUARE_LINKS.items()
    }
    tree = "{tree: [[a,b],[b,d],[a,c]]}"
    recovery = "scheme: bypass-buffering"
    return systems.graph(systems.SQUARE, links, recovery, lifetime="10s", routing=tree)


def test_what_chance_loses_on_a_way_round_waits_for_the_usual_way():
    seen = agree(lossy_square(0.7))
    is_told_apart(seen, lossy_square(1.0))


@pytest.mark.parametrize("recovery", ["scheme: buffering", "scheme: buffering, refresh: 30s"])
def test_late_is_what_never_waited_and_the_rest_expired_in_a_buffer(recovery):
    """The subscriber's own link is slow, and forgets nothing."""
    text = systems.text_of(
        {"a": 0.9, "b": 0.8}, {("a", "b"): 0.9}, recovery, lifetime="{exponential: 30s}"
    )
    slow = "wants: {}, link: {delay: {exponential: 20s}}, lifetime: {uniform: [0s, 60s]}"
    seen = agree(loads(text.replace("wants: {}", slow))).loc["s"]
    assert seen[["late", "lost_expired_in_buffer"]].min() > 25.0 * seen["on_time_se"]


def test_a_link_that_fails_takes_with_it_what_is_under_way():
    """E[exp(−f X)] of the events outlive a time X on it; likewise those that a broker serves."""
    link = f"delay: {{exponential: 6s}}, {systems.failing(0.9)}"
    links = {("a", "b"): link, ("b", "c"): link}
    broker = f"service: 2s, {systems.failing(0.8)}"
    slow = systems.graph({"a": broker, "b": 0.9, "c": 0.95}, links, "scheme: periodic")
    ours = predict(slow).subscribers.iloc[0]
    seen = agree(slow)
    ideal = 0.8 * 0.9**2 * 0.9 * 0.95
    assert ideal - ours["on_time"] > 20.0 * seen.loc["s", "on_time_se"]


# ---- every scheme with everything that may come together ----------------------------------------

GROUP = "{g: {members: [a, a--b, d], failure: {availability: 0.9, period: 100s}}}"
LINKS = {
    "line": {("a", "b"): 0.9, ("b", "d"): 0.95, ("d", "c"): 0.9},
    "square": systems.SQUARE_LINKS,
}


def together(shape, recovery, *, group=False, times=None, link="", lifetime="20s"):
    """Four brokers, in a row or a square, that fail all the time."""

    def fails(share):
        if times is None:
            return systems.failing(share)
        up, down = (f"{100 * each:g}s" for each in (share, 1 - share))
        return f"failure: {{up: {{{times[0]}: {up}}}}}, down: {{{times[1]}: {down}}}}}}}"

    text = systems.text_of(
        {name: fails(share) for name, share in systems.SQUARE.items()},
        {ends: f"{fails(share)}{link}" for ends, share in LINKS[shape].items()},
        recovery,
        lifetime=lifetime,
        routing="{tree: [[a,b],[b,d],[a,c]]}" if shape == "square" else "",
        end="d",
    )
    return loads(text + (f"failure_groups: {GROUP}\n" if group else ""))


UNEVEN = ("erlang: {shape: 2, mean", "erlang: {shape: 3, mean")
STATIC, AROUND = ("periodic", "buffering"), ("bypass", "bypass-buffering")
TIMEOUTS = {"short": ", timeout: 20s", "long": ", timeout: 75s"}
SWEEP = [
    pytest.param(shape, f"scheme: {scheme}, refresh: 30s{timeout}", {"group": group})
    for shape, schemes in (("line", STATIC), ("square", AROUND))
    for scheme in schemes
    for timeout, group in ((TIMEOUTS["long"], False), (TIMEOUTS["short"], True))
    if (timeout, group, scheme) != (TIMEOUTS["long"], False, "bypass-buffering")  # takes long
] + [
    pytest.param(shape, f"scheme: {scheme}, refresh: {refresh}s", more)
    for shape, scheme, refresh, more in (
        ("line", "buffering", 0, {"link": ", reliability: 0.8"}),
        ("line", "periodic", 30, {"link": ", reliability: 0.8"}),
        ("square", "bypass-buffering", 30, {"link": ", reliability: 0.8"}),
        ("line", "buffering", 30, {"lifetime": "{exponential: 30s}"}),
        ("square", "bypass-buffering", 0, {"lifetime": "{uniform: [5s, 50s]}"}),
        ("line", "periodic", 30, {"times": UNEVEN}),
    )
]


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "recovery", "more"), SWEEP)
def test_whatever_comes_together_is_predicted_by_cause(shape, recovery, more):
    agree(together(shape, recovery, **more))


BACKLOGS = """
tidings: 1
lifetime: 60s
recovery: {{scheme: buffering}}
brokers:
  a: {{}}
  b: {{service: {{exponential: {service_s}s}}, failure: {{availability: 0.9, period: 1000s}}}}
links: [{{between: [a, b]}}]
publishers: {{p: {{at: a, every: {{rate: 1/s}}, content: {{event: {{topic: x}}}}}}}}
subscribers: {{s: {{at: b, wants: {{}}}}}}
"""


def too_high(busy):
    """By how much a prediction without backlogs is too high, its error, and what it says."""
    system = loads(BACKLOGS.format(service_s=0.9 * busy))
    seen = simulate(system, seed=3, replications=60, duration_s=60_000.0).subscribers
    told = predict(system, delays=False)
    off = told.on_time - float(seen["on_time"].iloc[0])
    return off, float(seen["on_time_se"].iloc[0]), told.provenance


@pytest.mark.slow
def test_backlogs_that_a_repair_sets_free_are_left_out_and_told_where_they_matter():
    off, error, story = too_high(busy=0.2)
    assert abs(off) < 4.0 * error
    assert not any("backlogs" in row["method"] for row in story["faults"]["methods"])
    assert story["warnings"] == []
    off, error, story = too_high(busy=0.9)
    assert 5.0 * error < off < 0.02 + 4.0 * error  # as the warning says
    [row] = [row for row in story["faults"]["methods"] if "backlogs" in row["method"]]
    assert row["error"] is None
    [warning] = story["warnings"]
    assert "'b' is busy for 0.9 of its time up" in warning
    assert "too high by up to" in warning


ROW = """
tidings: 1
lifetime: 10s
recovery: {{scheme: periodic}}
brokers:
  a: {{service: {{exponential: {service_s}}}}}
  b: {{service: {{exponential: {service_s}}}, failure: {{mtbf: 900s, mttr: 100s}}}}
  c: {{service: {{exponential: {service_s}}}}}
links: [{{between: [a, b]}}, {{between: [b, c]}}]
publishers: {{p: {{at: a, every: {{exponential: 1s}}, content: {{event: {{k: 1}}}}}}}}
subscribers: {{s: {{at: c, wants: {{}}}}}}
"""


@pytest.mark.slow
def test_queues_that_crashes_shorten_are_told_where_brokers_are_busy():
    """In a row of three: nothing is kept, so queues are shorter than when nothing fails."""
    for service_s, is_busy in ((0.3, False), (0.9, True)):
        system = loads(ROW.format(service_s=service_s))
        seen = simulate(system, seed=3, replications=40, duration_s=200_000.0).subscribers
        told = predict(system, delays=False)
        story, error = told.provenance, float(seen["on_time_se"].iloc[0])
        off = float(seen["on_time"].iloc[0]) - told.on_time
        rows = [row for row in story["faults"]["methods"] if "nothing fails" in row["method"]]
        if not is_busy:
            assert abs(off) < 4.0 * error < 0.01
            assert not rows
            assert story["warnings"] == []
            continue
        assert off > 5.0 * error
        assert [row["error"] for row in rows] == [None]
        assert "'a' is taken to be busy for 0.9 of its time up" in story["warnings"][0]
