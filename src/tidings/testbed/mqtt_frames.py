"""MQTT 5 cut into the pieces that relays look at.

A packet is a byte with its kind and flags, its length in seven bits a byte, and as many bytes. Of
PUBLISH a relay wants the topic and, among the user properties, the event's name; of SUBSCRIBE and
UNSUBSCRIBE the topics. Everything else is passed on as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidings.errors import EngineError
from tidings.testbed.frames import EVENT, MOST_BYTES, PREFIX, Frame

_PUBLISH, _SUBSCRIBE, _UNSUBSCRIBE = 3, 8, 10
_QOS = 0b0110
_OURS = f"{PREFIX}/"
_USER_PROPERTY, _NUMBERED = 0x26, 0x0B
# Bytes of the values that PUBLISH may carry: whether it is text, when it expires, an alias.
_FIXED = {0x01: 1, 0x02: 4, 0x23: 2}


def topic_of(subject: str) -> str:
    """Give a subject of NATS as a topic of MQTT, what has a meaning there escaped.

    >>> topic_of("ev.'a/b.1%2E5")
    "ev/'a%2Fb/1%2E5"
    """
    for letter in "/+#":
        subject = subject.replace(letter, f"%{ord(letter):02X}")
    return subject.replace(".", "/")


class MqttFrames:
    r"""Cuts a stream of bytes into packets, whatever the pieces it comes in.

    >>> frames = MqttFrames()
    >>> [frame.data for frame in frames.feed(b"\xc0\x00\x82\x0a\x00\x01\x00\x00\x04ev")]
    [b'\xc0\x00']
    >>> [frame.asks for frame in frames.feed(b"/a\x00")]
    [('ev/a',)]
    """

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Give the packets that are complete with these bytes."""
        self._held += data
        start = 0
        while (packet := self._next(start)) is not None:
            start += len(packet)
            yield _frame(packet)
        del self._held[:start]

    def _next(self, start: int) -> bytes | None:
        held = self._held
        if len(held) - start < 2:
            return None
        reading = _Reading(bytes(held[start : start + 5]))
        reading.skip(1)
        try:
            length = reading.number()
        except IndexError:  # its length has not come whole
            return None
        if length > MOST_BYTES:
            raise EngineError("a relay received a packet that is too long")
        end = start + reading.place + length
        return bytes(held[start:end]) if len(held) >= end else None


def _frame(packet: bytes) -> Frame:
    kind, flags = packet[0] >> 4, packet[0] & 0x0F
    reading = _Reading(packet)
    reading.skip(1)
    reading.number()
    if kind == _PUBLISH:
        topic = reading.text()
        if not topic.startswith(_OURS):
            return Frame(data=packet)
        reading.skip(2 if flags & _QOS else 0)  # its number
        return Frame(data=packet, event=_event(reading))
    if kind not in (_SUBSCRIBE, _UNSUBSCRIBE):
        return Frame(data=packet)
    reading.skip(2)
    reading.skip(reading.number())  # properties
    topics = []
    while reading.place < len(packet):
        topics.append(reading.text())
        reading.skip(1 if kind == _SUBSCRIBE else 0)  # its options
    ours = tuple(each for each in topics if each.startswith(_OURS))
    return (
        Frame(data=packet, asks=ours) if kind == _SUBSCRIBE else Frame(data=packet, withdraws=ours)
    )


def _event(reading: _Reading) -> str:
    """Find the event's name among the properties; empty where there is none."""
    end = reading.number() + reading.place
    while reading.place < end:
        kind = reading.byte()
        if kind == _USER_PROPERTY:
            key, value = reading.text(), reading.text()
            if key == EVENT.decode():
                return value
        elif kind in _FIXED:
            reading.skip(_FIXED[kind])
        elif kind == _NUMBERED:
            reading.number()
        else:  # texts, and what answers are matched by
            reading.skip(reading.short())
    return ""


class _Reading:
    """A place in the bytes of a packet."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0

    def skip(self, count: int) -> None:
        self.place += count

    def byte(self) -> int:
        self.place += 1
        return self.data[self.place - 1]

    def short(self) -> int:
        return self.byte() << 8 | self.byte()

    def number(self) -> int:
        """Read a number of seven bits a byte, the lowest first."""
        value = shift = 0
        while (byte := self.byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def text(self) -> str:
        count = self.short()
        self.skip(count)
        return self.data[self.place - count : self.place].decode()
