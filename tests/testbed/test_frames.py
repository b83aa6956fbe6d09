"""The protocol is cut into frames, whatever pieces it comes in."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.errors import EngineError
from tidings.testbed.relays import FrameReader

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
    reader = FrameReader()
    found = [
        frame for begin, end in itertools.pairwise(ends) for frame in reader.feed(stream[begin:end])
    ]
    assert [frame.data for frame in found] == WIRE
    assert [frame.is_message for frame in found] == [False, False, True, True, True, False, False]
    assert [frame.is_interest for frame in found] == [False, True, *[False] * 4, True]
    assert [frame.subject for frame in found] == [
        b"", b"ev.'a", b"ev.'a", b"ev.'b", b"ev.'a", b"", b"ev.'a",
    ]  # fmt: skip


def test_headers_are_found_by_name_and_only_by_it():
    (frame,) = FrameReader().feed(WIRE[4])
    assert frame.value_of(b"Tidings-Event") == b"p/7"
    assert frame.value_of(b"Other") == b"x"
    assert frame.value_of(b"Tidings") is None


def test_a_line_without_end_is_refused():
    reader = FrameReader()
    with pytest.raises(EngineError, match="too long"):
        list(reader.feed(b"x" * (1 << 21)))
