from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from tidings.errors import InvalidInputError, UnsupportedError
from tidings.model.behaviour import Channel, Service, Station
from tidings.model.content import ContentRow, ContentTable
from tidings.model.filters import as_filter
from tidings.model.laws import Deterministic, Exponential, LogNormal, Uniform
from tidings.model.outcome import LOSSES
from tidings.model.reading import loads
from tidings.model.system import Broker, Link, Publisher, Subscriber, System
from tidings.theory.answer import answer_by_theory
from tidings.theory.models import QUEUE_MODELS


def predict(system, **asked):
    return answer_by_theory(system, **asked).outcome


INVERTED = 2e-5  # what inverting a transform may be off by, where the delay is smooth


def by_name(outcome):
    return outcome.subscribers.set_index("subscriber")


# ---- exact theory ------------------------------------------------------------------------------


@pytest.mark.parametrize(("load", "deadline_s"), [(0.1, 0.05), (0.6, 0.4), (0.95, 3.0)])
def test_one_mm1_broker_is_on_time_with_probability_one_minus_exp(make, load, deadline_s):
    system = make.line([Exponential(mean_s=0.1)], rate_per_s=load * 10.0, lifetime_s=deadline_s)
    row = by_name(predict(system)).loc["s0"]
    rate = 10.0 - load * 10.0
    assert row["on_time"] == pytest.approx(1.0 - math.exp(-rate * deadline_s), abs=INVERTED)
    assert row["delay_mean_s"] == pytest.approx(1.0 / rate, rel=1e-12)
    assert row["delay_p95_s"] == pytest.approx(math.log(20.0) / rate, rel=1e-4)


def test_a_tandem_of_two_mm1_brokers_is_hypoexponential(make):
    system = make.line([Exponential(mean_s=0.1), Exponential(mean_s=0.05)], rate_per_s=6.0)
    on_time = by_name(predict(system)).loc["s1", "on_time"]
    a, b = 10.0 - 6.0, 20.0 - 6.0
    assert on_time == pytest.approx(
        1.0 - (b * math.exp(-a) - a * math.exp(-b)) / (b - a), abs=INVERTED
    )


def test_a_tandem_of_equal_brokers_is_erlang(make):
    system = make.line([Exponential(mean_s=0.1)] * 4, rate_per_s=5.0)
    assert by_name(predict(system))["on_time"].tolist() == pytest.approx(
        [special.gammainc(n, 5.0) for n in (1, 2, 3, 4)], abs=INVERTED
    )


def test_links_shift_and_lose(make):
    channel = Channel(delay=Deterministic(value_s=0.25), reliability=0.9)
    system = make.line([Exponential(mean_s=0.1)] * 2, rate_per_s=5.0, channel=channel)
    outcome = predict(system)
    row = by_name(outcome).loc["s1"]
    # the second broker sees 4.5 a second
    a, b, t = 5.0, 5.5, 0.75
    truth = 1.0 - (b * math.exp(-a * t) - a * math.exp(-b * t)) / (b - a)
    assert row["on_time"] == pytest.approx(0.9 * truth, abs=INVERTED)
    assert row["delivered"] == pytest.approx(0.9, abs=1e-15)
    assert row["lost_link"] == pytest.approx(0.1, abs=1e-15)
    assert outcome.brokers["arrivals_per_s"].tolist() == pytest.approx([5.0, 4.5], rel=1e-12)
    assert outcome.brokers["wait_mean_s"].tolist() == pytest.approx([0.1, 1 / 5.5 - 0.1], rel=1e-12)
    arc = outcome.links.set_index(["source", "target"]).loc[("b0", "b1")]
    assert arc[["events_per_s", "lost", "delay_mean_s"]].tolist() == pytest.approx([5.0, 0.1, 0.25])


def test_loss_alone(make):
    system = make.line([None] * 5, channel=Channel(reliability=0.8), lifetime_s=None)
    table = by_name(predict(system))
    assert table["on_time"].tolist() == pytest.approx([0.8**n for n in range(5)], abs=1e-15)
    assert table["on_time"].tolist() == table["delivered"].tolist()


def test_filters_lifetimes_and_client_links(make):
    """One broker without a queue: every share can be written down."""
    system = System(
        version=1,
        lifetime=Deterministic(value_s=1.0),
        brokers=(Broker(name="hub"),),
        publishers=(
            Publisher(
                name="p",
                at="hub",
                every=Exponential(mean_s=0.5),
                content=make.content({"a": 0.25, "b": 0.75}, {"b": Deterministic(value_s=0.2)}),
                link=Channel(reliability=0.5, delay=Deterministic(value_s=0.1)),
            ),
            Publisher(
                name="q",
                at="hub",
                every=Uniform(low_s=0.5, high_s=1.5),
                content=make.content({"a": 1.0}),
                lifetime=Deterministic(value_s=0.3),
            ),
        ),
        subscribers=(
            Subscriber(name="all", at="hub", wants=as_filter({}), link=Channel(reliability=0.8)),
            Subscriber(
                name="a",
                at="hub",
                wants=as_filter({"topic": "a"}),
                link=Channel(delay=Exponential(mean_s=0.1)),
                lifetime=Deterministic(value_s=0.25),
            ),
            Subscriber(name="none", at="hub", wants=as_filter({"topic": "z"})),
        ),
    )
    outcome = predict(system, pairs=True)
    table, pairs = by_name(outcome), outcome.pairs.set_index(["publisher", "subscriber"])
    assert table.loc["all", "wanted_per_s"] == pytest.approx(3.0)
    assert table.loc["all", "on_time"] == pytest.approx((2 * 0.5 * 0.8 + 1 * 0.8) / 3, abs=1e-15)
    late_p, late_q = math.exp(-1.5), math.exp(-2.5)  # after the publisher's link 0.15 s are left
    from_p = 0.5 * (1 - late_p)
    assert pairs.loc[("p", "a"), "on_time"] == pytest.approx(from_p, abs=INVERTED)
    assert pairs.loc[("q", "a"), "on_time"] == pytest.approx(1 - late_q, abs=INVERTED)
    expected = (0.5 * from_p + 1.0 * (1 - late_q)) / 1.5
    assert table.loc["a", "on_time"] == pytest.approx(expected, abs=INVERTED)
    assert table.loc["a", "delay_mean_s"] == pytest.approx((0.25 * 0.2 + 1.0 * 0.1) / 1.25)
    assert math.isnan(table.loc["none", "on_time"])
    assert table.loc["none", "wanted_per_s"] == 0.0
    assert ("p", "none") not in pairs.index


def test_the_mean_shift_is_the_published_one(make):
    system = make.line([Exponential(mean_s=0.1)], rate_per_s=6.0)
    shift = 6.0 / (10.0 * 4.0)
    on_time = by_name(predict(system, model="mm1")).loc["s0", "on_time"]
    assert on_time == pytest.approx(1.0 - math.exp(-10.0 * (1.0 - shift)), abs=INVERTED)


def test_stations_of_a_broker_are_queues_in_series(make):
    cpu, disk = Exponential(mean_s=0.1), Exponential(mean_s=0.05)
    system = make.line([cpu], rate_per_s=6.0)
    broker = replace(system.brokers[0], disk=Station(service=Service(law=disk)))
    outcome = predict(replace(system, brokers=(broker,)))
    tandem = predict(make.line([cpu, disk], rate_per_s=6.0))
    assert by_name(outcome).loc["s0", "on_time"] == pytest.approx(
        by_name(tandem).loc["s1", "on_time"], abs=1e-13
    )
    assert outcome.brokers["utilisation"].tolist() == pytest.approx([0.6])


def test_random_lifetimes_of_event_publisher_system_and_subscriber(make):
    """M/M/1 with sojourn rate μ' = 4/s: a lifetime of rate θ is met with μ'/(μ' + θ)."""
    system = make.line([Exponential(mean_s=0.1)], rate_per_s=6.0)
    plain = replace(system, lifetime=Exponential(mean_s=0.5))
    assert by_name(predict(plain)).loc["s0", "on_time"] == pytest.approx(4 / 6, abs=INVERTED)
    (publisher,), (subscriber,) = system.publishers, system.subscribers
    own = replace(plain, publishers=(replace(publisher, lifetime=Exponential(mean_s=1.0)),))
    assert by_name(predict(own)).loc["s0", "on_time"] == pytest.approx(4 / 5, abs=INVERTED)
    both = replace(own, subscribers=(replace(subscriber, lifetime=Exponential(mean_s=0.25)),))
    assert by_name(predict(both)).loc["s0", "on_time"] == pytest.approx(4 / 9, abs=INVERTED)
    rows = make.content(
        {"x": 0.5, "y": 0.5}, {"x": Exponential(mean_s=0.25), "y": Deterministic(value_s=0.5)}
    )
    joint = replace(system, publishers=(replace(publisher, content=rows),))
    outcome = predict(joint)
    expected = 0.5 * (4 / 8) + 0.5 * (1.0 - math.exp(-2.0))
    assert by_name(outcome).loc["s0", "on_time"] == pytest.approx(expected, abs=INVERTED)
    assert not outcome.delays.empty


# ---- what always holds -------------------------------------------------------------------------


def tree(make, *, service=None, reliability=0.95, lifetime_s=0.5, rate=1.0):
    """A tree of five brokers with two publishers and three kinds of subscribers."""
    law = service or Exponential(mean_s=0.05)
    channel = Channel(delay=Exponential(mean_s=0.03), reliability=reliability)
    names = [f"b{i}" for i in range(5)]
    return System(
        version=1,
        lifetime=Deterministic(value_s=lifetime_s),
        brokers=tuple(Broker(name=n, service=Service(law=law)) for n in names),
        links=tuple(
            Link(between=(names[(i - 1) // 2], names[i]), there=channel, back=channel)
            for i in range(1, 5)
        ),
        publishers=(
            Publisher(
                name="p",
                at="b3",
                every=Exponential(mean_s=0.2 / rate),
                content=make.content({"x": 0.5, "y": 0.5}),
            ),
            Publisher(
                name="q",
                at="b2",
                every=Exponential(mean_s=0.25 / rate),
                content=make.content({"x": 1.0}, {"x": Deterministic(value_s=2 * lifetime_s)}),
                link=channel,
            ),
        ),
        subscribers=tuple(
            Subscriber(
                name=f"s{i}",
                at=names[i % 5],
                wants=as_filter([{}, {"topic": "x"}, {"topic": "y"}][i % 3]),
                link=channel if i % 2 else Channel(),
            )
            for i in range(12)
        ),
    )


@pytest.mark.parametrize("model", QUEUE_MODELS)
@pytest.mark.parametrize(
    "service",
    [
        Exponential(mean_s=0.05),
        Uniform(low_s=0.0, high_s=0.1),
        Deterministic(value_s=0.05),
        LogNormal(mean_s=0.05, scv=2.0),
        Exponential(mean_s=0.2),  # too slow for what comes
    ],
)
def test_every_model_accounts_for_every_event(make, model, service):
    outcome = predict(tree(make, service=service), model=model, pairs=True)
    for table in (outcome.subscribers, outcome.pairs):
        assert (table["on_time"] + table["late"]).to_numpy() == pytest.approx(
            table["delivered"].to_numpy(), abs=1e-12
        )
        shares = table[["on_time", "late", "delivered"]].to_numpy()
        assert np.all((shares >= -1e-15) & (shares <= 1 + 1e-12))
    lost = outcome.subscribers[list(LOSSES)].sum(axis=1)
    total = (outcome.subscribers["delivered"] + lost).to_numpy()
    assert total == pytest.approx(np.ones(len(total)), abs=1e-12)
    quantiles = outcome.subscribers[["delay_p50_s", "delay_p95_s", "delay_p99_s"]].to_numpy()
    some = outcome.subscribers["delivered"] > 0
    assert np.all(np.diff(quantiles[some], axis=1) >= 0)  # equal where nothing varies
    assert np.all(np.isnan(quantiles[~some]))
    laws = outcome.delays.groupby("subscriber")
    for name, law in laws:
        row = by_name(outcome).loc[name]
        assert np.all(np.diff(law["delay_s"]) > 0)
        assert np.all(np.diff(law["arrived"]) >= -1e-9)
        assert law["arrived"].max() <= row["delivered"] + 1e-12


def test_pairs_add_up_to_subscribers(make):
    outcome = predict(tree(make), pairs=True)
    pairs = outcome.pairs.assign(
        good=lambda t: t["on_time"] * t["wanted_per_s"],
        through=lambda t: t["delivered"] * t["wanted_per_s"],
    )
    sums = pairs.groupby("subscriber")[["wanted_per_s", "good", "through"]].sum()
    table = by_name(outcome).loc[sums.index]
    assert sums["wanted_per_s"].tolist() == pytest.approx(table["wanted_per_s"].tolist(), rel=1e-12)
    good = (table["on_time"] * table["wanted_per_s"]).tolist()
    assert sums["good"].tolist() == pytest.approx(good, rel=1e-12)
    without = predict(tree(make)).subscribers
    assert without["on_time"].tolist() == pytest.approx(
        outcome.subscribers["on_time"].tolist(), abs=1e-13
    )


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(
    lifetime_s=st.floats(0.01, 2.0),
    longer=st.floats(1.0, 3.0),
    reliability=st.floats(0.3, 1.0),
)
@pytest.mark.parametrize("model", QUEUE_MODELS)
def test_longer_lifetimes_never_hurt(make, model, lifetime_s, longer, reliability):
    before = predict(tree(make, lifetime_s=lifetime_s, reliability=reliability), model=model)
    after = predict(
        tree(make, lifetime_s=lifetime_s * longer, reliability=reliability), model=model
    )
    gain = after.subscribers["on_time"] - before.subscribers["on_time"]
    assert gain.min() >= -1e-9


def test_a_more_reliable_last_link_helps_and_nobody_else_notices(make):
    system = tree(make)
    better = replace(
        system.subscribers[1], link=replace(system.subscribers[1].link, reliability=1.0)
    )
    changed = replace(system, subscribers=(system.subscribers[0], better, *system.subscribers[2:]))
    before, after = predict(system).subscribers["on_time"], predict(changed).subscribers["on_time"]
    assert after[1] == pytest.approx(before[1] / 0.95, rel=1e-12)
    others = [i for i in range(12) if i != 1]
    assert after[others].tolist() == pytest.approx(before[others].tolist(), abs=1e-13)


@pytest.mark.parametrize("factor", [1e-3, 60.0, 3600.0])
def test_the_unit_of_time_does_not_matter(make, factor):
    system = tree(make)
    plain = replace(
        system,
        publishers=tuple(replace(p, content=make.content({"x": 1.0})) for p in system.publishers),
    )
    one, other = predict(plain), predict(make.scaled(plain, factor))
    for column in ("on_time", "delivered", "late", "lost_link"):
        assert other.subscribers[column].to_numpy() == pytest.approx(
            one.subscribers[column].to_numpy(), abs=INVERTED, nan_ok=True
        )
    assert other.subscribers["delay_p95_s"].to_numpy() == pytest.approx(
        factor * one.subscribers["delay_p95_s"].to_numpy(), rel=1e-4, nan_ok=True
    )


# ---- overload, refusals, what is asked for ------------------------------------------------------


def test_an_overloaded_broker_is_named_and_the_others_are_still_predicted(make):
    channel = Channel(reliability=0.9)
    system = make.line(
        [Exponential(mean_s=0.1), Exponential(mean_s=0.5), None], rate_per_s=5.0, channel=channel
    )
    outcome = predict(system)
    table = by_name(outcome)
    assert table.loc["s0", "on_time"] == pytest.approx(1 - math.exp(-5.0), abs=INVERTED)
    for name in ("s1", "s2"):
        row = table.loc[name]
        assert row["delivered"] == 0.0
        assert row["lost_link"] == pytest.approx(0.1)  # the first loss counts, before the broker
        assert row["lost_overload"] == pytest.approx(0.9)
        assert math.isnan(row["delay_mean_s"])
        assert math.isnan(row["delay_p50_s"])
    assert outcome.brokers["utilisation"].tolist() == pytest.approx([0.5, 1.0, 0.0])
    assert outcome.brokers["arrivals_per_s"].tolist() == pytest.approx([5.0, 4.5, 1.8])


def test_what_is_not_handled_is_refused_by_name(make):
    system = make.line([None])
    bursty = replace(system.subscribers[0].link, loss_burst=2.0)
    subscriber = replace(system.subscribers[0], link=bursty)
    with pytest.raises(UnsupportedError, match=r"subscribers\.s0\.link\.loss_burst"):
        predict(replace(system, subscribers=(subscriber,)))
    with pytest.raises(InvalidInputError, match="no queue model 'gm1'; wants one of law, gg1, mm1"):
        predict(system, model="gm1")


def test_progress_is_reported():
    said = []
    system = System(
        version=1,
        brokers=(Broker(name="b"),),
        publishers=(
            Publisher(
                name="p",
                at="b",
                every=Exponential(mean_s=1.0),
                content=ContentTable(table=(ContentRow(probability=1.0, event={"a": 1}),)),
            ),
        ),
        subscribers=(Subscriber(name="s", at="b", wants=as_filter({})),),
    )
    predict(system, progress=said.append)
    assert said[0] == "contents and routes"
    assert "paths to subscribers, 0 of 1" in said


def test_delay_laws_can_be_asked_for_or_left_out(make):
    system = tree(make)
    assert predict(system, delays=False).delays.empty
    law = predict(system).delays
    assert set(law["subscriber"]) == {s.name for s in system.subscribers}


def test_a_delay_law_has_the_deadline_on_it(make):
    system = make.line([Exponential(mean_s=0.1)], rate_per_s=5.0, lifetime_s=0.333)
    outcome = predict(system)
    law = outcome.delays.set_index("delay_s")["arrived"]
    assert law[0.333] == by_name(outcome).loc["s0", "on_time"]
    assert law.to_numpy() == pytest.approx(-np.expm1(-5.0 * law.index.to_numpy()), abs=2e-5)


def test_identical_subscribers_are_one_row(make):
    system = make.line([Exponential(mean_s=0.1)])
    many = replace(system.subscribers[0], count=1000)
    outcome = predict(replace(system, subscribers=(many,)))
    assert outcome.subscribers["count"].tolist() == [1000]
    assert outcome.on_time == pytest.approx(predict(system).on_time, abs=1e-15)


def test_pairs_of_a_subscriber_with_one_publisher_are_its_row():
    system = loads(
        """
        tidings: 1
        lifetime: 30ms
        brokers: {hub: {service: {exponential: 3ms}}, east: {service: {exponential: 5ms}}}
        links: [{between: [hub, east], delay: {exponential: 2ms}, reliability: 0.9}]
        publishers:
          p: {at: hub, every: {exponential: 20ms}, content: {event: {x: 1}}}
          q: {at: east, every: {exponential: 20ms}, content: {event: {x: 2}}}
        subscribers:
          one: {at: east, wants: {x: 1}, link: {delay: {exponential: 1ms}, reliability: 0.8}}
          both: {at: hub, wants: {}}
        """
    )
    outcome = predict(system, pairs=True)
    whole = outcome.subscribers.set_index("subscriber")
    pairs = outcome.pairs.set_index(["subscriber", "publisher"])
    numbers = outcome.pairs.select_dtypes("number").columns
    same = [name for name in numbers if name in whole.columns]
    alone = pairs.loc[("one", "p"), same].to_numpy(dtype=float)
    np.testing.assert_allclose(alone, whole.loc["one", same].to_numpy(dtype=float), rtol=1e-9)
    assert pairs.loc[("one", "p"), "lost_link"] == pytest.approx(1 - 0.9 * 0.8, rel=1e-12)
    # What is shared between two publishers lies between them, and losses add up by rate.
    near, far = pairs.loc[("both", "p")], pairs.loc[("both", "q")]
    for name in ("delay_p50_s", "delay_p95_s", "delay_p99_s"):
        assert near[name] < whole.loc["both", name] < far[name]
    assert (near["lost_link"] + far["lost_link"]) / 2 == pytest.approx(
        whole.loc["both", "lost_link"]
    )
    losses = [name for name in outcome.pairs.columns if name.startswith("lost_")]
    np.testing.assert_allclose(pairs["delivered"] + pairs[losses].sum(axis=1), 1.0, rtol=1e-12)
