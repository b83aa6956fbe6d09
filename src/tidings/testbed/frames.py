r"""The protocol of NATS as a relay sees it: lines, and messages with their payload.

A message is a line whose last word is the number of bytes that follow it; everything else
(``INFO``, ``PING``, ``LS+ …``) is a line alone. Clients speak PUB, HPUB, MSG and HMSG; brokers
among themselves speak LMSG and HMSG.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidings.errors import EngineError

_MESSAGES = frozenset({b"PUB", b"HPUB", b"MSG", b"HMSG", b"LMSG"})
_WITH_HEADERS = frozenset({b"HPUB", b"HMSG"})
_INTEREST = frozenset({b"LS+", b"LS-", b"SUB", b"UNSUB"})
_MOST_LINE = 1 << 20
_END = b"\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One piece of the protocol as it went over the wire, and what a relay must know of it."""

    data: bytes
    verb: bytes
    subject: bytes = b""  # of a message or of interest; empty for all else
    header: bytes = b""

    @property
    def is_message(self) -> bool:
        """Whether it carries an event or another message."""
        return self.verb in _MESSAGES

    @property
    def is_interest(self) -> bool:
        """Whether it says that a subject is wanted, or no longer."""
        return self.verb in _INTEREST

    def value_of(self, name: bytes) -> bytes | None:
        """A header by its name, or None."""
        for line in self.header.split(_END):
            key, colon, value = line.partition(b":")
            if colon and key == name:
                return value.strip()
        return None


class FrameReader:
    r"""Cuts a stream of bytes into frames, whatever the pieces it comes in.

    >>> reader = FrameReader()
    >>> [frame.verb for frame in reader.feed(b"PING\r\nPUB ev.a 2\r\nh")]
    [b'PING']
    >>> [(frame.subject, frame.data) for frame in reader.feed(b"i\r\n")]
    [(b'ev.a', b'PUB ev.a 2\r\nhi\r\n')]
    """

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that are complete with these bytes."""
        self._held += data
        start = 0
        while (frame := self._next(start)) is not None:
            start += len(frame.data)
            yield frame
        del self._held[:start]

    def _next(self, start: int) -> Frame | None:
        held = self._held
        line_end = held.find(_END, start)
        if line_end < 0:
            if len(held) - start > _MOST_LINE:
                raise EngineError("a relay received a protocol line that is too long")
            return None
        words = bytes(held[start:line_end]).split()
        verb = words[0].upper() if words else b""
        after = line_end + len(_END)
        if verb not in _MESSAGES:
            subject = words[1] if verb in _INTEREST and len(words) > 1 else b""
            return Frame(data=bytes(held[start:after]), verb=verb, subject=subject)
        end = after + int(words[-1]) + len(_END)
        if len(held) < end:
            return None
        header = b""
        if verb in _WITH_HEADERS:
            header = bytes(held[after : after + int(words[-2])])
        return Frame(data=bytes(held[start:end]), verb=verb, subject=words[1], header=header)
