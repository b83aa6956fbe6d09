"""Pieces of a protocol as relays see them, and the NATS protocol cut into such pieces.

Of the protocol of NATS a relay sees lines, and messages with their payload. A message is a line
whose last word is the number of bytes that follow it; everything else (``INFO``, ``PING``,
``LS+ …``) is a line alone. Clients speak PUB, HPUB, MSG and HMSG; brokers among themselves speak
LMSG and HMSG.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from tidings.errors import EngineError

PREFIX = "ev"  # of the subjects of events
EVENT = b"Tidings-Event"  # the header that names an event


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One piece of a protocol as it went over the wire, and what a relay must know of it."""

    data: bytes
    event: str | None = None  # the name of the event it carries; None: it carries none of ours
    asks: tuple[str, ...] = ()  # subjects of ours that are wanted from now on
    withdraws: tuple[str, ...] = ()  # subjects of ours that are no longer wanted

    @property
    def is_interest(self) -> bool:
        """Whether it says that subjects are wanted, or no longer."""
        return bool(self.asks or self.withdraws)


class Frames(Protocol):
    """Cuts one direction of one connection into frames."""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Give the frames that are complete with these bytes."""
        ...


NewFrames = Callable[[], Frames]

_MESSAGES = frozenset({b"PUB", b"HPUB", b"MSG", b"HMSG", b"LMSG"})
_WITH_HEADERS = frozenset({b"HPUB", b"HMSG"})
_ASKS = frozenset({b"LS+", b"SUB"})
_WITHDRAWS = frozenset({b"LS-", b"UNSUB"})
_OURS = f"{PREFIX}."
MOST_BYTES = 1 << 20  # of a piece that is waited for
_END = b"\r\n"


class NatsFrames:
    r"""Cuts a stream of bytes into frames, whatever the pieces it comes in.

    >>> frames = NatsFrames()
    >>> [frame.data for frame in frames.feed(b"PING\r\nPUB ev.a 2\r\nh")]
    [b'PING\r\n']
    >>> [(frame.event, frame.data) for frame in frames.feed(b"i\r\n")]
    [('', b'PUB ev.a 2\r\nhi\r\n')]
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self._named: dict[bytes, str] = {}  # subjects by the numbers a client gave them

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Give the frames that are complete with these bytes."""
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
            if len(held) - start > MOST_BYTES:
                raise EngineError("a relay received a protocol line that is too long")
            return None
        words = bytes(held[start:line_end]).split()
        verb = words[0].upper() if words else b""
        after = line_end + len(_END)
        if verb not in _MESSAGES:
            return self._line(bytes(held[start:after]), verb, words)
        end = after + int(words[-1]) + len(_END)
        if len(held) < end:
            return None
        data = bytes(held[start:end])
        if not words[1].startswith(_OURS.encode()):
            return Frame(data=data)
        header = bytes(held[after : after + int(words[-2])]) if verb in _WITH_HEADERS else b""
        return Frame(data=data, event=_value_of(header, EVENT))

    def _line(self, data: bytes, verb: bytes, words: list[bytes]) -> Frame:
        if verb not in _ASKS | _WITHDRAWS or len(words) < 2:
            return Frame(data=data)
        subject = words[1].decode()
        if verb == b"SUB":
            self._named[words[-1]] = subject
        elif verb == b"UNSUB":  # by number; what that was is known from when it was asked for
            subject = self._named.get(words[1], "")
        if not subject.startswith(_OURS):
            return Frame(data=data)
        if verb in _ASKS:
            return Frame(data=data, asks=(subject,))
        return Frame(data=data, withdraws=(subject,))


def _value_of(header: bytes, name: bytes) -> str:
    """Give the value of a header by its name; empty where there is none."""
    for line in header.split(_END):
        key, colon, value = line.partition(b":")
        if colon and key == name:
            return value.strip().decode()
    return ""
