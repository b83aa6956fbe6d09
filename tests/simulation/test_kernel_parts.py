"""Parts of the kernel are compiled only for systems that call them, and kept on disk."""

from __future__ import annotations

import pytest

from tidings.kernels.compile import IS_COMPILING, Part
from tidings.model.reading import loads
from tidings.simulation.kernel_layout import PARTS
from tidings.simulation.kernel_parts import parts_of
from tidings.simulation.network import compile_system

SYSTEM = """
tidings: 1
HEAD
lifetime: 60ms
brokers: {b: {service: 1msBROKER}}
publishers: {p: {at: b, every: 1s, content: {event: {x: 1}}PUBLISHER}}
subscribers: {s: {at: b, wants: {}SUBSCRIBER}}
"""
LINE = {"join_otherwise", "finish_in_line"}
GROUP = {"visit", "ring", "turn_member"}
CHURN = {"hear", "note_wanted"}
FAILING = {"leave_among_failures"}
MORE = set(PARTS) - LINE - GROUP - CHURN - FAILING
CALLED = {
    "": set(),
    "HEAD expired: at hop": MORE,
    "HEAD expired: in queue": MORE | {"join_otherwise"},
    "BROKER , buffer: 3": set(),
    "BROKER , discipline: processor-sharing": LINE,
    "BROKER , buffer: 3, when_full: block": MORE | GROUP,
    "BROKER , failure: {mtbf: 1h, mttr: 1s}": MORE | FAILING,
    "PUBLISHER , batch: {size: 3, linger: 1ms}": MORE | GROUP,
    "PUBLISHER , connectivity: {on: 1s, off: 1s}": MORE,
    "SUBSCRIBER , processing: 1ms": MORE,
    "SUBSCRIBER , processing: 1ms, consumers: 3": MORE | GROUP,
    "SUBSCRIBER , stays: 1h": MORE | CHURN,
}


@pytest.mark.parametrize("use", CALLED)
def test_a_system_has_the_parts_that_it_can_come_to_call(use):
    text, (field, _, value) = SYSTEM, use.partition(" ")
    for name in ("HEAD", "BROKER", "PUBLISHER", "SUBSCRIBER"):
        text = text.replace(name, value if name == field else "")
    compiled = compile_system(loads(text))
    assert set(parts_of(compiled.numbers, compiled.tables)) == CALLED[use]


def _add(address, one, other):
    return address + 10 * one + 100 * other


@pytest.mark.skipif(not IS_COMPILING, reason="nothing is compiled")
def test_a_part_is_compiled_once_and_loaded_after_that():
    first, second = Part(_add), Part(_add)
    assert first.address == first.address != 0
    assert second.address != 0
    assert second._compiled._cache_hits == 1
    assert second._compiled.ctypes(1, 2, 3) == _add(1, 2, 3)
