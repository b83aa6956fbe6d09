"""The protocol is cut into frames, whatever pieces it comes in."""

from __future__ import annotations

import itertools

import paho.mqtt.client as mqtt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tidings.errors import EngineError
from tidings.testbed.frames import NatsFrames
from tidings.testbed.mqtt_frames import MqttFrames, topic_of

HEADER = b"NATS/1.0\r\nTidings-Event: p/7\r\nOther:x\r\n\r\n"
WIRE = [
    b'INFO {"server_id":"a"}\r\n',
    b"LS+ ev.'a\r\n",
    b"PUB ev.'a 4\r\n\r\nPU\r\n",  # a payload that looks like the protocol
    b"LMSG ev.'b 0\r\n\r\n",
    b"HMSG ev.'a 1 %d %d\r\n" % (len(HEADER), len(HEADER) + 2) + HEADER + b"hi\r\n",
    b"PING\r\n",
    b"SUB ev.'a 3\r\n",
]


@given(cuts=st.lists(st.integers(0, sum(map(len, WIRE))), max_size=12))
def test_frames_do_not_depend_on_where_the_stream_is_cut(cuts):
    stream = b"".join(WIRE)
    ends = [0, *sorted(cuts), len(stream)]
    reader = NatsFrames()
    frames = [
        frame for begin, end in itertools.pairwise(ends) for frame in reader.feed(stream[begin:end])
    ]
    assert [frame.data for frame in frames] == WIRE
    assert [frame.event for frame in frames] == [None, None, "", "", "p/7", None, None]
    assert [frame.asks for frame in frames] == [(), ("ev.'a",), *[()] * 4, ("ev.'a",)]


def test_what_is_withdrawn_by_number_is_known_by_its_subject():
    *_, frame = NatsFrames().feed(b"SUB ev.'a 3\r\nSUB other 4\r\nUNSUB 4\r\nUNSUB 3\r\n")
    assert frame.withdraws == ("ev.'a",)


def test_an_event_of_others_is_none_of_ours():
    (frame,) = NatsFrames().feed(WIRE[4].replace(b"ev.'a", b"xv.'a"))
    assert frame.event is None


def test_a_line_without_end_is_refused():
    with pytest.raises(EngineError, match="too long"):
        list(NatsFrames().feed(b"x" * (1 << 21)))


# ---- MQTT ----------------------------------------------------------------------------------------


def _published(topic: str, properties: Properties, qos: int) -> bytes:
    """A packet as the client library writes it."""
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
    client._sock, sent = object(), []
    client._packet_queue = lambda command, packet, *_: sent.append(bytes(packet))
    client._send_publish(7, topic.encode(), b"\x82payload", qos, properties=properties)
    client._sock = None  # else it would be closed with the client
    return sent[0]


def _properties(event: str) -> Properties:
    properties = Properties(PacketTypes.PUBLISH)
    properties.MessageExpiryInterval = 3
    properties.ContentType = "text"
    properties.UserProperty = [("other", "x" * 200), ("Tidings-Event", event)]
    return properties


MQTT_WIRE = [
    b"\xc0\x00",
    _published("ev/'a", _properties("p/7"), qos=0),
    _published("ev/'a", _properties("p/8"), qos=1),
    _published("else", _properties("p/9"), qos=0),
    b"\x82\x12\x00\x01\x00\x00\x04ev/a\x00\x00\x05other\x01",
    b"\xa2\x09\x00\x02\x00\x00\x04ev/a",
]


@given(cuts=st.lists(st.integers(0, sum(map(len, MQTT_WIRE))), max_size=12))
def test_packets_do_not_depend_on_where_the_stream_is_cut(cuts):
    stream = b"".join(MQTT_WIRE)
    ends = [0, *sorted(cuts), len(stream)]
    reader = MqttFrames()
    frames = [
        frame for begin, end in itertools.pairwise(ends) for frame in reader.feed(stream[begin:end])
    ]
    assert [frame.data for frame in frames] == MQTT_WIRE
    assert [frame.event for frame in frames] == [None, "p/7", "p/8", None, None, None]
    assert frames[4].asks == ("ev/a",)
    assert frames[5].withdraws == ("ev/a",)


def test_a_packet_that_is_too_long_is_refused():
    with pytest.raises(EngineError, match="too long"):
        list(MqttFrames().feed(b"\x30\xff\xff\xff\x7f"))


def test_a_topic_has_no_wildcard_and_no_level_that_the_subject_had_not():
    assert topic_of("ev.'a+b.#/.1") == "ev/'a%2Bb/%23%2F/1"
