"""Nothing a system says may be ignored: every field is basic, or a feature that engines name."""

import pytest

from tidings.errors import UnsupportedError
from tidings.model import reading
from tidings.model.features import FEATURES, require_only, used_features
from tidings.model.schema import RECORDS, system_schema

BASE = """
tidings: 1
HEAD
brokers:
  a: {service: {exponential: 1ms}BROKER}
  b: {}
  c: {}
links:
  - {between: [a, b]LINK}
  - {between: [b, c]}
  - {between: [c, a]}
publishers:
  p: {at: a, EVERY, content: CONTENTPUBLISHER}
subscribers:
  s: {at: b, wants: {}SUBSCRIBER}
"""
# Every field of every record that an engine may not know: what it is part of, and a use of it.
USES = {
    "Broker.servers": ("several servers", "BROKER", ", servers: 3"),
    "Broker.buffer": ("bounded buffers", "BROKER", ", buffer: 3"),
    "Broker.when_full": ("blocked publishers", "BROKER", ", buffer: 3, when_full: block"),
    "Broker.discipline": (
        "other disciplines than fcfs", "BROKER", ", discipline: processor-sharing"
    ),
    "Broker.priorities": (
        "other disciplines than fcfs", "BROKER", ", discipline: priority, priorities: {x: 1}"
    ),
    "Broker.cpu": ("several stations in a broker", "BROKER", ", cpu: {service: 1ms}"),
    "Broker.disk": ("several stations in a broker", "BROKER", ", disk: {service: 1ms}"),
    "Broker.out": ("several stations in a broker", "BROKER", ", out: {service: 1ms}"),
    "Broker.failure": ("failures", "BROKER", ", failure: {mtbf: 1h, mttr: 1min}"),
    "Station.demands": ("demands by event type", "BROKER", ", cpu: {demands: {x: 1ms}}"),
    "Station.servers": ("several servers", "BROKER", ", cpu: {service: 1ms, servers: 2}"),
    "Station.buffer": ("bounded buffers", "BROKER", ", cpu: {service: 1ms, buffer: 2}"),
    "Station.discipline": (
        "other disciplines than fcfs", "BROKER", ", cpu: {service: 1ms, discipline: priority}"
    ),
    "Station.priorities": (
        "other disciplines than fcfs",
        "BROKER",
        ", disk: {service: 1ms, discipline: priority, priorities: {x: 1}}",
    ),
    "Channel.loss_burst": ("bursts of losses", "LINK", ", loss_burst: 2"),
    "Channel.delay_by_time": (
        "delays by time of day", "LINK", ", delay: 1s, delay_by_time: {slot: 12h, times: [1, 2]}"
    ),
    "Channel.bandwidth": ("bandwidth", "LINK", ", bandwidth: 1Mbit/s"),
    "Channel.network": ("bandwidth", "LINK", ", network: wan"),
    "Channel.failure": ("failures", "LINK", ", failure: {mtbf: 1h, mttr: 1min}"),
    "the way back": ("bandwidth", "LINK", ", back: {bandwidth: 1Mbit/s}"),
    "the way back, shared": ("bandwidth", "LINK", ", back: {network: wan}"),
    "Publisher.rates": ("rates by time of day", "EVERY", "rates: {slot: 1h, per_s: [1, 2]}"),
    "Publisher.publishes": (
        "recorded publishing times", "EVERY", "publishes: {recorded: times.csv}"
    ),
    "a clock": ("publishers with clocks", "EVERY", "publishes: {period: 1s}"),
    "batches": ("batches of publications", "EVERY", "publishes: {every: 1s, batch: {3: 1}}"),
    "bursts": (
        "bursts of publications", "EVERY", "publishes: {bursts: [{rate: 1/s, on: 1s, off: 1s}]}"
    ),
    "Publisher.connectivity": ("connectivity", "PUBLISHER", ", connectivity: {on: 1s, off: 1s}"),
    "Publisher.link": ("bursts of losses", "PUBLISHER", ", link: {loss_burst: 2}"),
    "Publisher.batch": (
        "publishers that send in batches", "PUBLISHER", ", batch: {size: 3, linger: 1ms}"
    ),
    "Publisher.lifetime": ("random lifetimes", "PUBLISHER", ", lifetime: {exponential: 1s}"),
    "the lifetime of a content": (
        "random lifetimes", "CONTENT", "{event: {topic: x}, lifetime: {exponential: 1s}}"
    ),
    "Subscriber.link": (
        "failures of clients' links", "SUBSCRIBER", ", link: {failure: {mtbf: 1h, mttr: 1s}}"
    ),
    "Subscriber.lifetime": ("lifetimes of subscribers", "SUBSCRIBER", ", lifetime: 1s"),
    "a random lifetime": ("random lifetimes", "SUBSCRIBER", ", lifetime: {exponential: 1s}"),
    "Subscriber.connectivity": ("connectivity", "SUBSCRIBER", ", connectivity: {on: 1s, off: 1s}"),
    "Connectivity.trace": (
        "connectivity from traces", "SUBSCRIBER", ", connectivity: {trace: trips.csv}"
    ),
    "Connectivity.buffer": (
        "bounded buffers of peers", "SUBSCRIBER", ", connectivity: {on: 1s, off: 1s, buffer: 3}"
    ),
    "Subscriber.processing": ("subscriber's own queue", "SUBSCRIBER", ", processing: 1ms"),
    "Subscriber.consumers": (
        "consumer groups", "SUBSCRIBER", ", processing: 1ms, consumers: {count: 2}"
    ),
    "Consumers.when_full": (
        "blocked publishers",
        "SUBSCRIBER",
        ", processing: 1ms, consumers: {buffer: 2, when_full: block}",
    ),
    "Subscriber.stays": ("subscription churn", "SUBSCRIBER", ", stays: 1h"),
    "Subscriber.away": ("subscription churn", "SUBSCRIBER", ", stays: 1h, away: 1h"),
    "Subscriber.count": ("subscribers with a count", "SUBSCRIBER", ", count: 2"),
    "System.lifetime": ("random lifetimes", "HEAD", "lifetime: {exponential: 1s}"),
    "System.expired": ("dropping expired events on the way", "HEAD", "expired: at hop"),
    "System.recovery": ("recovery", "HEAD", "recovery: {scheme: periodic}"),
    "System.failure_groups": (
        "failures", "HEAD", "failure_groups: {g: {members: [a], failure: {mtbf: 1h, mttr: 1s}}}"
    ),
    "System.networks": ("bandwidth", "HEAD", "networks: {lan: {bandwidth: 1Mbit/s}}"),
    "Routing.by": ("one tree per topic", "HEAD", "by"),
}  # fmt: skip
# Fields that every engine honours, or that only describe and change nothing.
BASIC = {
    "System": "tidings brokers links publishers subscribers routing",
    "Broker": "service",
    "Station": "service",
    "Publisher": "at every content",
    "Subscriber": "at wants",
    "Channel": "delay reliability",
    "Routing": "root tree",
}
DESCRIBING = {
    # For people and for planning; standard errors are told in the provenance of a prediction.
    "System": "description standard_errors remarks",
    "Subscriber": "group target",
}
# Fields without a meaning of their own: they say more about the one named, which is refused.
PARTS_OF = {
    "System": {"size": "Channel.bandwidth", "event_type": "Station.demands"},
    "Publisher": {"size": "Channel.bandwidth", "when_blocked": "Broker.when_full"},
    "Routing": {"roots": "Routing.by"},
    "Connectivity": "Subscriber.connectivity",
    "Consumers": "Subscriber.consumers",
    "Member": "Subscriber.consumers",
    "Partitions": "Subscriber.consumers",
    "Fetch": "Subscriber.consumers",
    "Batch": "Publisher.batch",
    "DailyDelays": "Channel.delay_by_time",
    "DailyRates": "Publisher.rates",
    "Publishing": "Publisher.publishes",
    "Burst": "Publisher.publishes",
    "Recovery": "System.recovery",
    "FailureGroup": "System.failure_groups",
    "SharedNetwork": "System.networks",
}


def system_with(place, text):
    filled = BASE
    routing = "routing: {root: a}"
    if text == "by":
        routing, text = "routing: {root: a, by: topic, roots: {x: b}}", ""
    if "demands" in text or "priorities" in text:
        routing += "\nevent_type: topic"
    if "wan" in text:
        routing += "\nnetworks: {wan: {bandwidth: 1Mbit/s}}"
    usual = {"EVERY": "every: 1s", "CONTENT": "{event: {topic: x}}"}
    for name in ("HEAD", "BROKER", "LINK", "EVERY", "CONTENT", "PUBLISHER", "SUBSCRIBER"):
        given = text if name == place else usual.get(name, "")
        filled = filled.replace(name, f"{routing}\n{given}" if name == "HEAD" else given)
    return reading.loads(filled)


def test_every_feature_has_a_use_here():
    assert {feature for feature, _, _ in USES.values()} == set(FEATURES)


@pytest.mark.parametrize("use", USES)
def test_a_use_is_found_and_refused_by_its_field(use):
    feature, place, text = USES[use]
    system = system_with(place, text)
    assert feature in used_features(system)
    where = used_features(system)[feature][0]
    handled = set(FEATURES) - {feature}
    with pytest.raises(UnsupportedError, match=f"{feature}: ") as error:
        require_only(system, handled, "the engine")
    assert where in str(error.value)
    require_only(system, FEATURES, "the engine")


def test_a_plain_system_uses_no_feature():
    assert used_features(system_with("", "")) == {}


def test_no_field_of_the_format_is_unaccounted_for():
    """A new field must be honoured by all, describe only, or be refused by a use above."""
    schema = system_schema()
    found = {record.__name__: schema["$defs"][record.__name__]["properties"] for record in RECORDS}
    found["System"] = schema["properties"]
    for name, fields in found.items():
        part = PARTS_OF.get(name, {})
        if isinstance(part, str):
            assert part in USES
            continue
        assert set(part.values()) <= set(USES)
        known = set(BASIC.get(name, "").split()) | set(DESCRIBING.get(name, "").split()) | set(part)
        known |= {use.split(".")[1] for use in USES if use.startswith(f"{name}.")}
        assert known == set(fields), name


def test_a_station_within_a_broker_is_named_by_its_own_place():
    inner = "cpu: {service: 1ms, servers: 2}, disk: {service: 1ms, buffer: 4}"
    text = BASE.replace("BROKER", f", {inner}").replace("EVERY", "every: 1s")
    text = text.replace("CONTENTPUBLISHER", "{event: {topic: x}}").replace(
        "HEAD", "routing: {root: a}"
    )
    found = used_features(reading.loads(text.replace("LINK", "").replace("SUBSCRIBER", "")))
    assert found["several servers"] == ["brokers.a.cpu.servers"]
    assert found["bounded buffers"] == ["brokers.a.disk.buffer"]
