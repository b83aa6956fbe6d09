from __future__ import annotations

from collections import Counter

import pytest

from studies.content_timeliness.random_systems import random_system, rate_for_load
from tidings.errors import InvalidInputError
from tidings.model import reading
from tidings.model.filters import filter_document
from tidings.model.laws import Deterministic, Exponential, Uniform
from tidings.model.routes import route
from tidings.prediction.predict import predict


def a_system(seed=7, publishing="exponential", matching="exponential", rate_per_s=0.5):
    return random_system(seed, publishing=publishing, matching=matching, rate_per_s=rate_per_s)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_counts_are_those_of_the_paper(seed):
    system = a_system(seed)
    sizes = (len(system.brokers), len(system.links), len(system.publishers))
    assert (*sizes, len(system.subscribers)) == (20, 19, 8, 100)
    assert system.lifetime == Deterministic(value_s=1.0)
    events = [row.event for p in system.publishers for row in p.content.rows()]
    attributes = {name for event in events for name in event}
    assert len(attributes) == 21
    assert {event["topic"] for event in events} == {"t1", "t2", "t3", "t4"}
    for event in events:  # the topic's own five attributes, the rest null
        first = 5 * (int(event["topic"][1]) - 1)
        assert set(event) == {"topic", *(f"a{first + n:02d}" for n in range(1, 6))}


def test_every_subscription_can_be_met():
    system = a_system()
    assert route(system).wants.any(axis=0).all()
    assert predict(system, delays=False, by="theory").subscribers["on_time"].notna().all()


def test_contents_are_zipf_like_by_rank():
    shares = [row.probability for row in a_system().publishers[0].content.rows()]
    for rank, share in enumerate(shares, start=1):
        assert share * rank == pytest.approx(shares[0], rel=1e-12)


def test_popular_topics_have_more_subscribers():
    wanted = Counter()
    for seed in range(10):
        for subscriber in a_system(seed).subscribers:
            wanted[filter_document(subscriber.wants)["topic"]] += 1
    assert [topic for topic, _ in wanted.most_common()] == ["t1", "t2", "t3", "t4"]


def test_laws_are_as_asked_and_matching_takes_a_tenth_of_a_second():
    system = a_system(publishing="uniform", matching="uniform", rate_per_s=0.5)
    assert {p.every for p in system.publishers} == {Uniform(low_s=0.0, high_s=4.0)}
    for broker in system.brokers:
        law = broker.service.with_stored(system.stored_subscriptions)
        assert law.mean_s == pytest.approx(0.1, rel=1e-12)
        assert law.scv == pytest.approx(1 / 3, rel=1e-12)
    assert {p.every for p in a_system(publishing="deterministic").publishers} == {
        Deterministic(value_s=2.0)
    }
    assert isinstance(a_system().publishers[0].every, Exponential)


def test_the_same_seed_gives_the_same_system_and_another_seed_another():
    assert reading.dumps(a_system(3)) == reading.dumps(a_system(3))
    assert reading.dumps(a_system(3)) != reading.dumps(a_system(4))


def test_settings_and_delays_change_nothing_else():
    plain = a_system()
    other = random_system(
        7,
        publishing="deterministic",
        matching="uniform",
        rate_per_s=2.0,
        delays=lambda random: Deterministic(value_s=random.random()),
    )
    assert [link.between for link in plain.links] == [link.between for link in other.links]
    assert plain.subscribers == other.subscribers
    assert [(p.at, p.content) for p in plain.publishers] == [
        (p.at, p.content) for p in other.publishers
    ]


@pytest.mark.parametrize("load", [0.3, 0.75])
def test_the_busiest_broker_is_as_busy_as_asked(load):
    system = a_system(rate_per_s=rate_for_load(7, load))
    assert predict(system, delays=False, by="theory").brokers["utilisation"].max() == pytest.approx(
        load, rel=1e-9
    )


def test_what_cannot_be_is_refused():
    with pytest.raises(InvalidInputError, match="no law 'deterministic' here"):
        a_system(matching="deterministic")
    with pytest.raises(InvalidInputError, match="a share between 0 and 1"):
        rate_for_load(1, 1.0)
