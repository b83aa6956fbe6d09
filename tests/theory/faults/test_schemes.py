"""The schemes as `predict` gives them: limits, losses, and together with everything else."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.errors import InvalidInputError, UnsupportedError
from tidings.model.behaviour import Channel, Failure, Service
from tidings.model.filters import as_filter
from tidings.model.laws import Deterministic, Exponential, Weibull, ended_share
from tidings.model.outcome import LOSSES
from tidings.model.system import FailureGroup, Link, Recovery, Routing, Subscriber
from tidings.simulation.run import simulate
from tidings.theory import predict
from tidings.theory.faults import refresh_chain
from tidings.theory.faults.buffered_ways import hops
from tidings.theory.faults.components import Path
from tidings.theory.faults.waiting import up_start, wait

SCHEMES = ("none", "periodic", "buffering", "bypass", "bypass-buffering")
RECOVERING = SCHEMES[1:]
ROW = (0.92, 0.99, 0.93, 0.98, 0.91)
SQUARE = ((0, 1), (1, 2), (0, 3), (3, 2), (1, 3))


def failing_row(make, faulty, scheme, *, lifetime_s=3600.0, service=None, row=ROW, **recovery):
    """Brokers in a row; broker and link availabilities in turn."""
    plain = make.line([service] * (len(row) // 2 + 1), lifetime_s=lifetime_s)
    links = []
    for link, share in zip(plain.links, row[1::2], strict=True):
        channel = Channel(failure=faulty.failure(share))
        links.append(replace(link, there=channel, back=channel))
    return replace(
        plain,
        brokers=tuple(
            replace(broker, failure=faulty.failure(share))
            for broker, share in zip(plain.brokers, row[::2], strict=True)
        ),
        links=tuple(links),
        recovery=Recovery(scheme=scheme, **recovery),
    )


def failing_square(make, faulty, scheme, *, lifetime_s=3600.0, link=None, **of_system):
    """Four brokers, five links; the usual way from b0 to b2 leads over b1."""
    plain = make.line([None] * 4, lifetime_s=lifetime_s)
    channel = replace(link or Channel(), failure=faulty.failure(0.97))
    names = [broker.name for broker in plain.brokers]
    return replace(
        plain,
        brokers=tuple(
            replace(broker, failure=faulty.failure(0.9 + 0.02 * place))
            for place, broker in enumerate(plain.brokers)
        ),
        links=tuple(
            Link(between=(names[a], names[b]), there=channel, back=channel) for a, b in SQUARE
        ),
        routing=Routing(tree=(("b0", "b1"), ("b1", "b2"), ("b1", "b3"))),
        recovery=Recovery(scheme=scheme),
        **of_system,
    )


def on_time(system, **options):
    return predict(system, **options).subscribers["on_time"].to_numpy()


def row_wait(faulty, row=ROW):
    components = faulty.row(row)
    count = len(components.of_broker)
    path = Path(brokers=tuple(range(count)), links=tuple(range(count - 1)))
    return wait(components.processes, hops(components, path), up_start(components.processes, (0,)))


# ---- limits --------------------------------------------------------------------------------------


def test_static_schemes_along_a_row(make, faulty):
    assert on_time(failing_row(make, faulty, "none")) == pytest.approx([0.0] * 3)
    products = [math.prod(ROW[: 2 * n + 1]) for n in range(3)]
    assert on_time(failing_row(make, faulty, "periodic")) == pytest.approx(products, abs=1e-14)
    buffered = on_time(failing_row(make, faulty, "buffering"))
    found = row_wait(faulty)
    share = ended_share(found.initial, found.generator.toarray(), 3600.0)
    assert buffered[2] == pytest.approx(ROW[0] * float(share), abs=1e-12)


@pytest.mark.parametrize("faults", ["exact", "paper"])
def test_in_a_tree_there_is_no_way_around(make, faulty, faults):
    for around, static in (("bypass", "periodic"), ("bypass-buffering", "buffering")):
        one, other = (failing_row(make, faulty, each) for each in (around, static))
        assert on_time(one, faults=faults) == pytest.approx(on_time(other), abs=1e-12)


@pytest.mark.parametrize("faults", ["exact", "paper"])
@pytest.mark.parametrize("of", [failing_row, failing_square])
def test_no_time_to_wait_and_all_time_to_wait(make, faulty, of, faults):
    for buffered, without in (("buffering", "periodic"), ("bypass-buffering", "bypass")):
        at_once = on_time(of(make, faulty, buffered, lifetime_s=0.0), faults=faults)
        assert at_once == pytest.approx(
            on_time(of(make, faulty, without), faults=faults), abs=1e-12
        )
        for_ever = of(make, faulty, buffered, lifetime_s=None)
        home = for_ever.brokers[0].failure.availability
        assert on_time(for_ever, faults=faults) == pytest.approx(
            [home] * len(for_ever.subscribers), abs=1e-12
        )


@pytest.mark.parametrize("scheme", RECOVERING)
def test_one_broker_is_as_good_as_it_is_available(make, faulty, scheme):
    system = failing_row(make, faulty, scheme, row=(0.93,))
    assert on_time(system) == pytest.approx([0.93], abs=1e-14)
    assert on_time(system, faults="paper") == pytest.approx([0.93], abs=1e-14)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_perfect_components_change_nothing(make, scheme):
    plain = make.line([Exponential(mean_s=0.1)] * 3, rate_per_s=5.0)
    system = replace(plain, recovery=Recovery(scheme=scheme))
    ours, theirs = predict(system), predict(plain)
    assert ours.subscribers.equals(theirs.subscribers)
    nearly = Failure(up=Exponential(mean_s=1e9), down=Exponential(mean_s=1e-6))
    system = replace(system, brokers=tuple(replace(b, failure=nearly) for b in system.brokers))
    if scheme != "none":
        assert on_time(system) == pytest.approx(theirs.subscribers["on_time"].to_numpy(), abs=1e-8)


# ---- the published formulas ----------------------------------------------------------------------


def test_published_formula_with_buffers_and_ways_around(make, faulty):
    """r_A + (a_b0 − r_A) P[0 < d ≤ D]/P[d > 0], r_A by disjoint ways, d of the usual way."""
    system = failing_square(make, faulty, "bypass-buffering")
    around = failing_square(make, faulty, "bypass")
    first, middle, last, other = (b.failure.availability for b in system.brokers)
    parallel = 1 - (1 - 0.97**2 * middle) * (1 - 0.97**2 * other)
    published = on_time(around, faults="paper")[2]
    rows = predict(around, faults="paper").provenance["faults"]["methods"]
    assert [row["error"] for row in rows if "disjoint" in row["method"]] == [None]  # a lower bound
    assert published == pytest.approx(first * last * parallel, abs=1e-13)
    found = row_wait(faulty, (first, 0.97, middle, 0.97, last))
    share = float(ended_share(found.initial, found.generator.toarray(), 3600.0))
    conditional = (share - found.atom) / (1.0 - found.atom)
    wanted = published + (first - published) * conditional
    assert on_time(system, faults="paper")[2] == pytest.approx(wanted, abs=1e-12)
    assert on_time(around)[2] > published


@pytest.mark.statistical
def test_the_real_partition_is_what_following_all_components_gives(make, faulty):
    """And the published formula would be noticed."""
    system = failing_square(make, faulty, "bypass-buffering", lifetime_s=6000.0)
    poor = [replace(b, failure=faulty.failure(0.8)) for b in system.brokers]
    system = replace(system, brokers=tuple(poor))
    failing = [broker.failure for broker in system.brokers]
    failing += [link.there.failure for link in system.links]
    copies = 300_000
    naive = faulty.naive_processes(failing, copies, np.random.default_rng(11))
    codes = (naive.up * 2 ** np.arange(9)[:, None]).sum(axis=0)
    joined = {}
    for code in np.unique(codes):
        up = [bool(code >> bit & 1) for bit in range(9)]
        brokers = {b for b in range(4) if up[b]}
        joined[code] = faulty.connected(brokers, [k for k in range(5) if up[4 + k]], SQUARE, 0, 2)
    at_once = np.array([joined[code] for code in codes])
    waits = naive.waits([(0, 4, 1), (1, 5, 2)], (0,))
    seen = float(np.mean(at_once | (waits <= 6000.0)))
    exact = on_time(system)[2]
    error = math.sqrt(exact * (1.0 - exact) / copies)
    assert seen == pytest.approx(exact, abs=5.0 * error)
    assert abs(on_time(system, faults="paper")[2] - exact) > 5.0 * error


# ---- together with everything else ---------------------------------------------------------------


def everything(make, faulty, scheme, **recovery):
    """Queues, lossy and slow links, random lifetimes, filters, failures of any law, a group."""
    channel = Channel(
        delay=Exponential(mean_s=0.05), reliability=0.95, failure=faulty.failure(0.97, 3000.0)
    )
    plain = make.line([Exponential(mean_s=0.02)] * 4, rate_per_s=10.0, lifetime_s=20.0)
    names = [broker.name for broker in plain.brokers]
    odd = Failure(up=Weibull(scale_s=900.0, shape=0.7), down=Exponential(mean_s=60.0))
    return replace(
        plain,
        lifetime=Exponential(mean_s=300.0),
        brokers=tuple(
            replace(b, failure=odd if place == 1 else faulty.failure(0.95, 3000.0))
            for place, b in enumerate(plain.brokers)
        ),
        links=tuple(
            Link(between=(names[a], names[b]), there=channel, back=channel) for a, b in SQUARE
        ),
        routing=Routing(root="b1"),
        publishers=(
            replace(plain.publishers[0], content=make.content({"x": 0.4, "y": 0.6})),
            replace(plain.publishers[0], name="other", at="b3"),
        ),
        subscribers=(
            *plain.subscribers,
            Subscriber(name="x", at="b2", wants=as_filter({"topic": "x"})),
            Subscriber(
                name="brief", at="b2", wants=as_filter({}), lifetime=Deterministic(value_s=1.0)
            ),
        ),
        failure_groups=(
            FailureGroup(
                name="room", members=("b2", "b3--b2"), failure=faulty.failure(0.96, 3000.0)
            ),
        ),
        recovery=Recovery(scheme=scheme, **recovery),
    )


REFRESHED = [(scheme, 120.0) for scheme in SCHEMES if scheme != "none"]


@pytest.mark.parametrize(("scheme", "refresh_s"), [(each, 0.0) for each in SCHEMES] + REFRESHED)
def test_every_event_is_accounted_for(make, faulty, scheme, refresh_s):
    outcome = predict(everything(make, faulty, scheme, refresh_s=refresh_s), pairs=True)
    found = outcome.subscribers
    lost = found[list(LOSSES)]
    total = (found["delivered"] + lost.sum(axis=1)).to_numpy()
    assert total == pytest.approx(np.ones(6), abs=1e-12)
    assert (lost >= 0.0).all(axis=None)
    assert (found["on_time"] <= found["delivered"] + 1e-12).all()
    assert ((found["on_time"] >= 0.0) & (found["on_time"] <= 0.95 + 1e-12)).all()
    assert (found["lost_broker_down"] > 0.04).all()
    forgets = scheme == "none" or (refresh_s > 0.0 and "buffering" not in scheme)
    assert (found["lost_not_restored"].max() > 0.0) == forgets
    assert (found["lost_expired_in_buffer"].max() > 0.0) == ("buffering" in scheme)
    pairs = outcome.pairs["delivered"] + outcome.pairs[list(LOSSES)].sum(axis=1)
    assert pairs.to_numpy() == pytest.approx(np.ones(len(pairs)), abs=1e-12)
    weights = outcome.pairs["wanted_per_s"] * outcome.pairs["on_time"]
    by_pair = weights.groupby(outcome.pairs["subscriber"]).sum()
    whole = (found["wanted_per_s"] * found["on_time"]).set_axis(found["subscriber"])
    assert by_pair.loc[whole.index].to_numpy() == pytest.approx(whole.to_numpy(), abs=1e-9)
    assert outcome.provenance["faults"]["scheme"] == scheme


def test_buffers_queues_and_a_random_lifetime_are_a_product_of_transforms(make, faulty):
    """P[wait + sojourns ≤ L] with L exponential is E[exp(−θ wait)] Π E[exp(−θ sojourn)]."""
    system = failing_row(make, faulty, "buffering", service=Exponential(mean_s=30.0))
    system = replace(
        system,
        lifetime=Exponential(mean_s=2000.0),
        publishers=(replace(system.publishers[0], every=Exponential(mean_s=60.0)),),
    )
    theta, sojourn_s = 1 / 2000.0, 1 / (1 / 30.0 - 1 / 60.0)
    found = row_wait(faulty)
    rates = found.generator.toarray()
    leaving = -rates.sum(axis=1)
    inside = np.linalg.solve(theta * np.eye(len(rates)) - rates, leaving)
    waiting = found.atom + float(found.initial @ inside)
    stored = ROW[0] / (1.0 + sojourn_s / (ROW[0] * 60_000.0))  # before the first broker crashed
    wanted = stored * waiting / (1.0 + theta * sojourn_s) ** 3
    row = predict(system).subscribers.iloc[2]
    assert row["on_time"] == pytest.approx(wanted, abs=1e-10)
    late = stored * found.atom * (1.0 - 1.0 / (1.0 + theta * sojourn_s) ** 3)
    assert row["lost_expired_in_buffer"] == pytest.approx(stored - wanted - late, abs=1e-10)
    assert row["late"] == pytest.approx(late, abs=1e-10)


def test_the_mean_delay_is_that_of_what_buffers_let_through(make, faulty):
    row = predict(failing_row(make, faulty, "buffering")).subscribers.iloc[2]
    found = row_wait(faulty)
    times_s = np.linspace(0.0, 3600.0, 20_001)
    below = ended_share(found.initial, found.generator.toarray(), times_s)
    in_time_s = 3600.0 * below[-1] - float(np.trapezoid(below, times_s))
    assert row["delay_mean_s"] == pytest.approx(in_time_s / below[-1], rel=1e-6)
    assert row["delivered"] == row["on_time"]
    assert row["delay_p99_s"] < 3600.0
    share = float(np.interp(row["delay_p95_s"], times_s, below / below[-1]))
    assert share == pytest.approx(0.95, abs=1e-3)


def distance(up, links, start, end):
    """Hops between two brokers of the square over what is up."""
    reached, count = {start}, 0
    while end not in reached:
        edges = [SQUARE[link] for link in links if up.issuperset(SQUARE[link])]
        reached |= {b for pair in edges if reached.intersection(pair) for b in pair}
        count += 1
    return count


def test_a_way_around_takes_its_own_time(make, faulty):
    """Hops of 10 ms, two of them usually, two over b3 where b1 cannot be reached; else too late.

    An event goes round to the next broker of its way, not straight to the last one.
    """
    link = Channel(delay=Deterministic(value_s=0.010))
    system = failing_square(make, faulty, "bypass", lifetime_s=0.025, link=link)
    row = predict(system).subscribers.iloc[2]
    brokers = [b.failure.availability for b in system.brokers]
    outlives = math.exp(-0.010 / (0.97 * 60_000.0))  # one hop, by link
    in_time = whole = delivered = 0.0
    for state, share in faulty.states([*brokers, *[0.97] * 5]):
        up = {b for b in range(4) if state[b]}
        links = {k for k in range(5) if state[4 + k]}
        joined = faulty.connected(up, links, SQUARE, 0, 2)
        over_b1 = faulty.connected(up, links, SQUARE, 0, 1)
        short = {0, 1} <= links if over_b1 else {2, 3} <= links
        whole += share * joined
        in_time += share * (joined and short)
        ends = [(0, 1), (1, 2)] if over_b1 else [(0, 2)]
        hops = sum(distance(up, links, *pair) for pair in ends) if joined else 0
        delivered += share * joined * outlives**hops
    assert row["lost_path_down"] == pytest.approx(brokers[0] - delivered, abs=1e-10)
    assert row["delivered"] == pytest.approx(delivered, abs=1e-10)  # 1e-4 of a hop's losses
    assert row["on_time"] == pytest.approx(in_time, abs=1e-4)  # the ways that are rarest
    assert whole - in_time > 1e-3


@settings(deadline=None, max_examples=12)
@given(
    row=st.lists(st.floats(0.6, 0.999), min_size=5, max_size=5),
    lifetime_s=st.floats(1.0, 1e5),
    scheme=st.sampled_from(RECOVERING),
)
def test_shares_are_at_most_the_home_brokers_and_fall_along_the_way(
    make, faulty, row, lifetime_s, scheme
):
    shares = on_time(failing_row(make, faulty, scheme, row=tuple(row), lifetime_s=lifetime_s))
    assert np.all(np.diff([row[0], *shares]) <= 1e-12)
    assert shares[-1] >= math.prod(row) - 1e-12


def test_exact_ways_around_rise_with_every_availability(make, faulty):
    """Unlike the published formula's, on-time shares never fall when a component gets better."""
    system = failing_square(make, faulty, "bypass-buffering")
    before = on_time(system)
    for place, broker in enumerate(system.brokers):
        better = replace(broker, failure=faulty.failure(broker.failure.availability + 0.03))
        brokers = (*system.brokers[:place], better, *system.brokers[place + 1 :])
        assert np.all(on_time(replace(system, brokers=brokers)) >= before - 1e-12)


def test_what_a_link_loses_by_chance_is_sent_again_where_it_is_acknowledged(make, faulty):
    lossy = failing_row(make, faulty, "buffering")
    lossy = replace(
        lossy,
        links=tuple(replace(x, there=replace(x.there, reliability=0.9)) for x in lossy.links),
    )
    assert on_time(lossy) == pytest.approx(on_time(failing_row(make, faulty, "buffering")))
    blind = predict(replace(lossy, recovery=Recovery(scheme="periodic"))).subscribers
    products = [0.9**n * math.prod(ROW[: 2 * n + 1]) for n in range(3)]
    assert blind["on_time"].to_numpy() == pytest.approx(products, abs=1e-14)
    # The first cause in time: the first link by chance, what had passed it by the second link.
    assert blind["lost_link"][2] == pytest.approx(
        0.1 * ROW[0] * ROW[1] + 0.09 * math.prod(ROW[:4]), abs=1e-14
    )


@pytest.mark.statistical
@pytest.mark.parametrize("scheme", RECOVERING)
def test_predicted_is_simulated(make, faulty, scheme):
    """In standard errors of the simulation; every cause of loss too."""
    system = failing_square(make, faulty, scheme)
    events = replace(system.publishers[0], every=Exponential(mean_s=300.0))
    system = replace(system, publishers=(events,))
    seen = simulate(system, duration_s=4e6, replications=20, seed=5).subscribers
    ours = predict(system).subscribers
    assert seen["on_time_se"].max() < 0.004
    off = (ours["on_time"] - seen["on_time"]).abs() / seen["on_time_se"]
    assert off.max() < 5.0
    for cause in ("lost_broker_down", "lost_path_down", "lost_expired_in_buffer"):
        assert (ours[cause] - seen[cause]).abs().max() < 5.0 * seen["on_time_se"].max()


@pytest.mark.statistical
def test_a_lone_subscribers_refreshes_cost_what_is_simulated(make, faulty):
    lone = failing_row(make, faulty, "periodic", refresh_s=3600.0, timeout_s=6000.0)
    events = replace(lone.publishers[0], every=Exponential(mean_s=300.0))
    lone = replace(lone, publishers=(events,), subscribers=lone.subscribers[-1:])
    seen = simulate(lone, duration_s=8e6, replications=20, seed=5).subscribers.iloc[0]
    ours = predict(lone).subscribers.iloc[0]
    assert seen["on_time_se"] < 0.004
    assert ours["on_time"] == pytest.approx(seen["on_time"], abs=5.0 * seen["on_time_se"])
    assert math.prod(ROW) - ours["on_time"] > 10.0 * seen["on_time_se"]  # the refresh is felt


# ---- what is refused, what is told ---------------------------------------------------------------


def test_what_cannot_be_honoured_is_refused_by_name(make, faulty):
    late = failing_row(make, faulty, "buffering", detection_s=5.0)
    with pytest.raises(UnsupportedError, match=r"recovery\.detection"):
        predict(late)
    grouped = everything(make, faulty, "bypass")
    with pytest.raises(UnsupportedError, match="failure_groups"):
        predict(grouped, faults="paper")
    with pytest.raises(
        InvalidInputError, match="no fault model 'guess'; wants one of exact, paper"
    ):
        predict(grouped, faults="guess")


def test_methods_and_their_errors_are_told(make, faulty, monkeypatch):
    monkeypatch.setattr(refresh_chain, "MOST_STATES", 10)  # as if there were too many to follow
    told = predict(everything(make, faulty, "buffering", refresh_s=120.0)).provenance
    methods = {row["method"]: row for row in told["faults"]["methods"]}
    fitted = methods["times up or down fitted by phases"]
    assert 0.0 < fitted["error"] < 0.02
    # Nobody has bounded this one: an unknown error must not read as none.
    assert methods["buffers: the wait for a refresh taken as exponential"]["error"] is None
    (said,) = [each for each in told["approximations"] if "refresh taken as exponential" in each]
    assert said.endswith("(by how much that is off is not known)")
    none = predict(failing_row(make, faulty, "none")).warnings
    assert any("without a recovery scheme" in each for each in none)
    wide = failing_row(make, faulty, "periodic", row=(0.9, 0.97) * 7 + (0.9,), refresh_s=3600.0)
    told = predict(wide).provenance
    bounds = [
        r for r in told["faults"]["methods"] if r["method"] == "refresh: middle of two bounds"
    ]
    assert bounds[0]["error"] == pytest.approx(told["numerical_error"])
    assert bounds[0]["error"] > 0.005
    assert any("middle of two bounds" in each for each in told["warnings"])
    assert any("only the sum is known" in each for each in told["warnings"])


def test_nothing_that_follows_fitted_times_is_called_exact(make, faulty):
    system = failing_row(make, faulty, "buffering")
    assert "buffers: exact" in methods_of(system)
    certain = Failure(up=Exponential(mean_s=9e3), down=Deterministic(value_s=1e3))
    system = replace(
        system, brokers=tuple(replace(each, failure=certain) for each in system.brokers)
    )
    for refresh_s in (0.0, 600.0):
        recovery = Recovery(scheme="buffering", refresh_s=refresh_s)
        told = methods_of(replace(system, recovery=recovery))
        assert not any("exact" in method for method in told)
        assert all(error != 0.0 for error in told.values())


def methods_of(system):
    """The methods that a prediction used, with their errors."""
    rows = predict(system).provenance["faults"]["methods"]
    return {row["method"]: row["error"] for row in rows}


def test_what_is_sent_again_with_buffers_is_bounded(make, faulty):
    """After the first broker: failures a second times mean stay, summed over the way."""
    system = failing_row(make, faulty, "buffering", service=Exponential(mean_s=30.0))
    events = replace(system.publishers[0], every=Exponential(mean_s=60.0))
    told = methods_of(replace(system, publishers=(events,)))
    (error,) = [told[method] for method in told if "serves or carries" in method]
    wanted = sum(60.0 / (share * 60_000.0) for share in ROW[2::2])
    assert error == pytest.approx(wanted, rel=1e-12)


def test_groups_make_a_way_better_than_as_many_of_their_own(make, faulty):
    """Members that fail together fail less often in all than each by itself would."""
    system = failing_row(make, faulty, "periodic")
    group = FailureGroup(
        name="rack", members=("b0", "b1", "b2", "b1--b0"), failure=faulty.failure(0.9)
    )
    shares = on_time(replace(system, failure_groups=(group,)))
    assert shares[2] == pytest.approx(0.9 * math.prod(ROW), abs=1e-13)
    lone = [
        FailureGroup(name=f"g{n}", members=(f"b{n}",), failure=faulty.failure(0.9))
        for n in range(3)
    ]
    apart = on_time(replace(system, failure_groups=tuple(lone)))
    assert apart[2] == pytest.approx(0.9**3 * math.prod(ROW), abs=1e-13)


def test_services_do_not_hide_failures(make, faulty):
    """A broker's queue and its failures are both on the way; a crash takes what is in the queue."""
    system = failing_row(make, faulty, "periodic", service=Exponential(mean_s=0.1), lifetime_s=0.3)
    events = replace(system.publishers[0], every=Exponential(mean_s=1.0))
    system = replace(system, publishers=(events,))
    perfect = replace(
        system,
        brokers=tuple(
            replace(b, failure=None, service=Service(law=Exponential(mean_s=0.1)))
            for b in system.brokers
        ),
        links=tuple(replace(x, there=Channel(), back=Channel()) for x in system.links),
        recovery=None,
    )
    outlive = [1.0 / (1.0 + 1.0 / (9.0 * share * 60_000.0)) for share in ROW[::2]]
    products = [math.prod((*ROW[: 2 * n + 1], *outlive[: n + 1])) for n in range(3)]
    pairs = itertools.starmap(lambda a, b: a * b, zip(products, on_time(perfect), strict=True))
    assert on_time(system) == pytest.approx(list(pairs), abs=1e-12)


def test_bypassing_says_that_losses_before_a_cut_are_told_as_the_cut(make, faulty):
    for reliability, said in ((1.0, []), (0.95, ["lost on a link before being cut off"])):
        link = Channel(reliability=reliability)
        system = failing_square(make, faulty, "bypass", link=link)
        rows = predict(system, delays=False).provenance["faults"]["methods"]
        causes = [row["method"] for row in rows if row["of"] == "causes of loss"]
        assert [each.partition(":")[0] for each in causes] == said
