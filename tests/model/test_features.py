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
  p: {at: a, EVERY, content: {event: {topic: x}}PUBLISHER}
subscribers:
  s: {at: b, wants: {}SUBSCRIBER}
"""
USES = {
    "failures": ("BROKER", ", failure: {mtbf: 1h, mttr: 1min}"),
    "recovery": ("HEAD", "recovery: {scheme: periodic}"),
    "connectivity": ("SUBSCRIBER", ", connectivity: {on: 1s, off: 1s}"),
    "subscription churn": ("SUBSCRIBER", ", stays: 1h"),
    "subscriber's own queue": ("SUBSCRIBER", ", processing: 1ms"),
    "rates by time of day": ("EVERY", "rates: {slot: 1h, per_s: [1, 2]}"),
    "bandwidth": ("LINK", ", bandwidth: 1Mbit/s"),
    "bursts of losses": ("LINK", ", loss_burst: 2"),
    "bounded buffers": ("BROKER", ", buffer: 3"),
    "several servers": ("BROKER", ", servers: 3"),
    "other disciplines than fcfs": ("BROKER", ", discipline: processor-sharing"),
    "demands by event type": ("BROKER", ", cpu: {demands: {x: 1ms}}"),
    "several stations in a broker": ("BROKER", ", disk: {service: 1ms}"),
    "random lifetimes": ("PUBLISHER", ", lifetime: {exponential: 1s}"),
    "dropping expired events on the way": ("HEAD", "expired: at hop"),
    "one tree per topic": ("HEAD", "by"),
}
# Fields that every engine honours, that only describe, or that belong to a feature's own record.
BASIC = {
    "System": "tidings description lifetime brokers links publishers subscribers routing networks "
    "standard_errors size event_type expired recovery failure_groups",
    "Broker": "service servers buffer discipline cpu disk out failure",
    "Publisher": "at every rates content lifetime size link connectivity",
    "Subscriber": "at wants lifetime link connectivity processing stays away count group target",
    "Channel": "delay reliability loss_burst bandwidth network failure",
}


def system_with(place, text):
    filled = BASE
    routing = "routing: {root: a}"
    if text == "by":
        routing, text = "routing: {root: a, by: topic, roots: {x: b}}", ""
    if "demands" in text:
        routing += "\nevent_type: topic"
    for name in ("HEAD", "BROKER", "LINK", "EVERY", "PUBLISHER", "SUBSCRIBER"):
        given = text if name == place else "every: 1s" if name == "EVERY" else ""
        filled = filled.replace(name, f"{routing}\n{given}" if name == "HEAD" else given)
    return reading.loads(filled)


def test_every_feature_has_a_use_here():
    assert set(USES) == set(FEATURES)


@pytest.mark.parametrize("feature", USES)
def test_a_feature_is_found_where_it_is_used_and_refused_by_its_field(feature):
    place, text = USES[feature]
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
    """A new field must be put among the basic ones on purpose, or be a feature with a use above."""
    schema = system_schema()
    found = {record.__name__: schema["$defs"][record.__name__]["properties"] for record in RECORDS}
    found["System"] = schema["properties"]
    for name, fields in BASIC.items():
        assert set(fields.split()) == set(found[name]), name
