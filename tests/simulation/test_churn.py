"""Subscriptions that come and go: exact cases by hand, a slow twin, and theory."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd
import pytest

from naive_churn import NaiveChurn, Range
from tidings.model import reading
from tidings.model.system import System
from tidings.prediction.predict import predict
from tidings.simulation.recording import Recording, record
from tidings.simulation.run import simulate
from tidings.simulation.trace_rows import EPOCH_NS

SECOND_NS = 10**9


def line(*links: object, subscribers: dict[str, object], publishers: dict[str, object]) -> System:
    """Brokers b0, b1, … in a line, joined by links: of these delays, or with these fields."""
    fields = [link if isinstance(link, dict) else {"delay": link} for link in links]
    return reading.from_document(
        {
            "tidings": 1,
            "brokers": {f"b{number}": {} for number in range(len(links) + 1)},
            "links": [
                {"between": [f"b{number}", f"b{number + 1}"], **link}
                for number, link in enumerate(fields)
            ],
            "publishers": publishers,
            "subscribers": subscribers,
        },
        "a line",
    )


def publisher(at: str, every_s: float, *numbers: int) -> dict[str, object]:
    shares = [{"p": 1 / len(numbers), "event": {"x": number}} for number in numbers]
    return {"at": at, "every": {"exponential": every_s}, "content": shares}


def frames(recording: Recording) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Publications, subscriptions and deliveries, times since the window began."""
    found = []
    for name, moment in (
        ("publications", "published_ns"),
        ("subscriptions", "at_ns"),
        ("deliveries", "received_ns"),
    ):
        frame = recording.tables[name].to_pandas()
        frame[moment] -= EPOCH_NS
        found.append(frame)
    return found[0], found[1], found[2]


def stays_of(subscriptions: pd.DataFrame, who: str) -> list[tuple[int, int]]:
    """From when to when somebody was subscribed; what has not ended is left out."""
    mine = subscriptions[(subscriptions["subscriber"] == who)]
    began = mine[mine["action"] == "subscribe"].set_index("subscription")["at_ns"]
    ended = mine[mine["action"] == "unsubscribe"].set_index("subscription")["at_ns"]
    return [(int(began[each]), int(ended[each])) for each in ended.index]


@pytest.mark.parametrize("stay_s", [5.0, 6.5, 30.0])
def test_on_a_line_exactly_those_events_arrive_that_meet_a_known_subscription(stay_s: float):
    # The subscription takes 1 + 2 seconds to the publisher's broker, an event as long back.
    system = line(
        1.0,
        2.0,
        publishers={"p": publisher("b0", 0.2, 1)},
        subscribers={"s": {"at": "b2", "wants": {"x": 1}, "stays": stay_s, "away": 20.0}},
    )
    recording = record(system, duration_s=400.0, warmup_s=0.0, seed=3, probes_per_s=0.01)
    publications, subscriptions, deliveries = frames(recording)
    way_ns = 3 * SECOND_NS
    expected = set()
    published = publications["published_ns"].to_numpy()
    stays = stays_of(subscriptions, "s")[1:]  # the first was there before the run began
    for began, ended in stays:
        met = (published - began >= way_ns) & (published + way_ns < ended)
        expected |= set(publications["event"][met])
    first, last = stays[0][0], stays[-1][1]
    seen = deliveries.merge(publications, on="event")
    seen = seen[(seen["published_ns"] > first) & (seen["published_ns"] < last)]
    assert set(seen["event"]) == expected
    assert bool(expected) == (stay_s > 6.0)
    assert (seen["received_ns"] - seen["published_ns"] == way_ns).all()
    learnt = subscriptions[subscriptions["action"] == "learnt"].merge(
        subscriptions[subscriptions["action"] == "subscribe"], on="subscription"
    )
    took_s = (learnt["at_ns_x"] - learnt["at_ns_y"]) / SECOND_NS
    assert dict(zip(learnt["broker_x"], took_s.round(6), strict=True)) == {
        "b2": 0.0, "b1": 2.0, "b0": 3.0,
    }  # fmt: skip


def test_a_stay_shorter_than_the_way_there_and_back_gets_nothing_and_it_is_said_why():
    system = line(
        1.0,
        2.0,
        publishers={"p": publisher("b0", 0.05, 1)},
        subscribers={"s": {"at": "b2", "wants": {"x": 1}, "stays": 5.0, "away": 7.0}},
    )
    row = simulate(system, replications=5, duration_s=2_000.0, warmup_s=60.0).subscribers.iloc[0]
    assert row["delivered"] == 0.0
    lost = row[["lost_not_known", "lost_unsubscribed"]]
    assert lost.sum() == pytest.approx(1.0, abs=1e-12)
    error = np.sqrt(0.6 * 0.4 / row["events"])  # more even: both come in every stay
    assert lost["lost_not_known"] == pytest.approx(3 / 5, abs=5 * error)
    assert row["wanted_per_s"] == pytest.approx(20 * 5 / 12, rel=0.02)


def test_covering_on_a_line_costs_exactly_the_messages_counted_by_hand():
    """Two guests at one end of a line of three links; times are long against the delays.

    Whoever is not covered costs a message on each link when it comes, and whoever was sent one when
    it goes. Where the wide one goes and uncovers the narrow one, that is sent first.
    """
    system = line(
        0.001, 0.001, 0.001,
        publishers={"p": publisher("b0", 10.0, 1, 5)},
        subscribers={
            "wide": {"at": "b3", "wants": {"x": {"below": 9}}, "stays": 40.0, "away": 30.0},
            "narrow": {"at": "b3", "wants": {"x": {"below": 3}}, "stays": 17.0, "away": 12.0},
        },
    )  # fmt: skip
    recording = record(system, duration_s=3_000.0, warmup_s=0.0, seed=5, probes_per_s=0.01)
    _, subscriptions, _ = frames(recording)
    turns = subscriptions[subscriptions["action"].isin(["subscribe", "unsubscribe"])]
    here: set[str] = set()
    sent: set[str] = set()
    costs = {"subscribes": 0, "unsubscribes": 0}
    cases = set()
    for _, row in turns.sort_values("at_ns").iterrows():
        who, comes = row["subscriber"], row["action"] == "subscribe"
        inside = 0 < row["at_ns"] <= 3_000 * SECOND_NS  # what was there before costs nothing
        cases.add((who, comes, frozenset(here), frozenset(sent)))
        if comes:
            here.add(who)
            if who == "wide" or "wide" not in sent:
                sent.add(who)
                costs["subscribes"] += 3 * inside
            continue
        here.discard(who)
        if who in sent:
            sent.discard(who)
            costs["unsubscribes"] += 3 * inside
            if who == "wide" and "narrow" in here - sent:
                sent.add("narrow")
                costs["subscribes"] += 3 * inside
    assert len(cases) >= 8  # all that can happen happened
    messages = recording.outcome.provenance["messages"]
    assert {name: messages[name] for name in costs} == costs


RANGES: dict[str, Range] = {
    "all": (0, 100), "low": (0, 50), "lower": (0, 20), "lowest": (0, 10),
    "high": (50, 100), "middle": (30, 70), "again": (0, 20), "lone": (90, 95),
}  # fmt: skip
HOMES = {
    "all": "b4", "low": "b4", "lower": "b0", "lowest": "b5",
    "high": "b2", "middle": "b5", "again": "b3", "lone": "b1",
}  # fmt: skip
LASTING = ("high", "lowest")
LINKS = (
    ("b0", "b1", 0.7),
    ("b1", "b2", 1.1),
    ("b1", "b3", 0.4),
    ("b3", "b4", 1.3),
    ("b3", "b5", 0.9),
)


def overlapping_system() -> System:
    """Six brokers in a tree, subscribers whose filters contain and overlap each other."""
    subscribers: dict[str, object] = {}
    for number, (name, (low, high)) in enumerate(RANGES.items()):
        wants = {"x": {"at_least": low, "below": high}}
        subscribers[name] = {"at": HOMES[name], "wants": wants, "link": {"delay": 0.1 * number}}
        if name not in LASTING:
            times = {"stays": {"uniform": [1.0, 14.0]}, "away": {"uniform": [0.0, 9.0]}}
            subscribers[name] = {**subscribers[name], **times}  # type: ignore[dict-item]
    return reading.from_document(
        {
            "tidings": 1,
            "brokers": {f"b{number}": {} for number in range(6)},
            "links": [{"between": [a, b], "delay": delay} for a, b, delay in LINKS],
            "publishers": {
                "p": publisher("b0", 0.11, *range(0, 100, 7)),
                "q": publisher("b2", 0.13, *range(3, 100, 11)),
            },
            "subscribers": subscribers,
        },
        "an overlapping system",
    )


def twin_of(recording: Recording) -> NaiveChurn:
    """The naive twin, run on who came and went and what was published in a recording."""
    publications, subscriptions, _ = frames(recording)
    turns = subscriptions[subscriptions["action"].isin(["subscribe", "unsubscribe"])]
    there = set(turns[turns["at_ns"] == 0]["subscriber"])
    hops: dict[str, dict[str, int]] = {f"b{number}": {} for number in range(6)}
    for a, b, delay_s in LINKS:
        hops[a][b] = hops[b][a] = round(delay_s * SECOND_NS)
    twin = NaiveChurn(
        hops=hops,
        home=HOMES,
        wants=RANGES,
        way_home={name: number * SECOND_NS // 10 for number, name in enumerate(RANGES)},
    )
    later = turns[turns["at_ns"] > 0]
    contents = publications["content"].str.extract(r"(\d+)")[0].astype(int)
    twin.run(
        [*LASTING, *(name for name in RANGES if name in there and name not in LASTING)],
        zip(later["at_ns"], later["subscriber"], later["action"] == "subscribe", strict=True),
        zip(
            publications["published_ns"],
            publications["event"],
            publications["broker"],
            contents,
            strict=True,
        ),
    )
    return twin


def microseconds(moments_ns: Iterable[int]) -> list[int]:
    """Sums of delays are rounded to nanoseconds in another order; a microsecond is enough."""
    return [round(moment / 1000) for moment in moments_ns]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_every_notification_message_and_moment_is_that_of_the_naive_twin(seed: int):
    end_ns = 120 * SECOND_NS
    recording = record(
        overlapping_system(), duration_s=120.0, warmup_s=0.0, seed=seed, probes_per_s=0.01
    )
    twin = twin_of(recording)
    _, subscriptions, deliveries = frames(recording)
    at = microseconds(deliveries["received_ns"])
    found = set(zip(deliveries["event"], deliveries["subscriber"], at, strict=True))
    assert found == {(event, who, *microseconds([at])) for event, who, at in twin.notified}
    assert len(found) > 1000
    heard = subscriptions[subscriptions["action"] == "learnt"]
    heard = heard[heard["at_ns"] <= end_ns]
    at = microseconds(heard["at_ns"])
    known = sorted(zip(at, heard["subscriber"], heard["broker"], strict=True))
    expected = [each for each in twin.learnt if each[1] > 0 and each[3] <= end_ns]
    assert known == sorted((*microseconds([at]), who, b) for who, _, b, at in expected)
    messages = recording.outcome.provenance["messages"]
    in_window = [comes for at, comes in twin.messages if at <= end_ns]
    assert messages["subscribes"] == sum(in_window)
    assert messages["unsubscribes"] == len(in_window) - sum(in_window)


def test_what_is_counted_is_what_is_recorded():
    recording = record(
        overlapping_system(), duration_s=60.0, warmup_s=10.0, seed=4, probes_per_s=0.01
    )
    publications, subscriptions, deliveries = frames(recording)
    publications["x"] = publications["content"].str.extract(r"(\d+)")[0].astype(int)
    rows = recording.outcome.subscribers.set_index("subscriber")
    for who in RANGES.keys() - set(LASTING):
        low, high = RANGES[who]
        mine = publications[publications["x"].between(low, high - 1)]
        got = deliveries[deliveries["subscriber"] == who].set_index("event")["received_ns"]
        turns = subscriptions[subscriptions["subscriber"] == who]
        came = turns[turns["action"] == "subscribe"].set_index("subscription")["at_ns"]
        left = turns[turns["action"] == "unsubscribe"].set_index("subscription")["at_ns"]
        wanted, notified = 0, 0
        for stay, began in came.items():
            ended = left.get(stay, math.inf)
            events = mine[(mine["published_ns"] >= began) & (mine["published_ns"] < ended)]
            wanted += len(events)
            notified += int((got.reindex(events["event"]) < ended).sum())
        assert rows.loc[who, "events"] == wanted
        assert rows.loc[who, "delivered"] == pytest.approx(notified / wanted, abs=1e-12)


def theory_system(reliability: float) -> System:
    """Two that stay random and fixed times and want different things, over links of random times.

    The publisher's link always loses some; the others have this reliability.
    """
    times = {"away": 60.0, "link": {"delay": 0.3, "reliability": reliability}}
    link = {"delay": {"exponential": 1.0}, "reliability": reliability}
    return line(
        link, link,
        publishers={"p": publisher("b0", 0.1, 1, 2) | {"link": {"reliability": 0.9}}},
        subscribers={
            "random": {"at": "b2", "wants": {"x": 1}, "stays": {"exponential": 15.0}, **times},
            "fixed": {"at": "b2", "wants": {"x": 2}, "stays": 9.0, **times, "lifetime": 3.0},
        },
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("reliability", [1.0, 0.9])
def test_predicted_and_simulated_shares_and_causes_agree(reliability: float):
    system = theory_system(reliability)
    predicted = predict(system, by="theory").subscribers.set_index("subscriber")
    simulated = simulate(system, replications=20, duration_s=15_000.0, warmup_s=300.0)
    runs = simulated.subscribers.set_index("subscriber")
    assert (runs["on_time_se"] < 0.005).all()
    for who in ("random", "fixed"):
        found, exact, error = runs.loc[who], predicted.loc[who], runs.loc[who, "on_time_se"]
        assert found["on_time"] == pytest.approx(exact["on_time"], abs=3.5 * error)
        assert found["wanted_per_s"] == pytest.approx(exact["wanted_per_s"], rel=0.05)
        # A broker that knows no more of a subscription loses no event on the links behind it, so
        # that causes are the same only where those do not lose any.
        for cause in ("link", "not_known", "unsubscribed") if reliability == 1.0 else ():
            share = f"lost_{cause}"
            assert found[share] == pytest.approx(exact[share], abs=3.5 * error), share


def test_others_who_want_the_same_raise_the_share_that_is_notified():
    """Events are drawn to a broker nearby by others: they are met there, on their way already."""
    guest = {"at": "b2", "wants": {"x": 1}, "stays": 12.0, "away": 40.0}
    shares = {}
    for name, others in {
        "alone": {},
        "contained in another": {"other": {"at": "b1", "wants": {"x": {"below": 5}}}},
        "beside another": {"other": {"at": "b1", "wants": {"x": {"above": 5}}}},
    }.items():
        system = line(
            1.0, 2.5,
            publishers={"p": publisher("b0", 0.05, 1, 7)},
            subscribers={"s": guest, **others},
        )  # fmt: skip
        outcome = simulate(system, replications=4, duration_s=4_000.0, warmup_s=60.0)
        shares[name] = outcome.subscribers.set_index("subscriber").loc["s", "delivered"]
        theory = (
            predict(system, by="theory").subscribers.set_index("subscriber").loc["s", "delivered"]
        )
        assert shares[name] == pytest.approx(theory, abs=0.005)
    assert shares["alone"] == pytest.approx((12 - 3.5 - 3.5) / 12, abs=0.005)
    assert shares["beside another"] == pytest.approx(shares["alone"], abs=0.005)
    # Known at b1 after 2.5 s; what is there then was published a second before.
    assert shares["contained in another"] == pytest.approx((12 - 1.5 - 3.5) / 12, abs=0.005)


def test_each_of_a_count_comes_and_goes_on_its_own():
    """At the publisher's broker events are drawn if any of them is known there: 1 − (1 − p)³."""
    times = {"stays": {"exponential": 10.0}, "away": {"exponential": 30.0}}
    shares = {}
    for count in (1, 3):
        system = line(
            1.0,
            publishers={"p": publisher("b0", 0.5, 1)},
            subscribers={"s": {"at": "b1", "wants": {"x": 1}, "count": count, **times}},
        )
        outcome = simulate(system, replications=4, duration_s=20_000.0, warmup_s=200.0)
        into = outcome.links.set_index("source").loc["b0", "events_per_s"]
        assert into / 2.0 == pytest.approx(1 - 0.75**count, rel=0.03)
        shares[count] = outcome.subscribers.loc[0, "lost_not_known"]
    # Unless the others are away when it comes, it finds itself known.
    assert shares[3] == pytest.approx(shares[1] * 0.75**2, rel=0.15)
