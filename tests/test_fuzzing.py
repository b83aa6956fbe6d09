"""A few spoilt documents of every kind, and all that were a fault once; more by ``make fuzz``."""

from __future__ import annotations

import pytest

from fuzzing.cases import document, fate, kept, read_all
from fuzzing.targets import Target, targets

CASES = range(25)
KEPT = {f"{name}/{path.name}": (name, path) for name, path in kept()}


@pytest.mark.parametrize("name", targets())
def test_spoilt_documents_are_refused_in_words_or_used(name):
    tally = read_all(name, seed=7, numbers=CASES)
    assert not tally.faults, "\n".join(f"{fault.number}: {fault.what}" for fault in tally.faults)
    assert tally.fates.total() == len(CASES)


@pytest.mark.parametrize(("name", "path"), KEPT.values(), ids=KEPT)
def test_what_was_a_fault_once_is_none_now(name, path):
    kind, what, trace = fate(targets()[name], path.read_bytes())
    assert kind != "fault", f"{what}\n{trace}"


def test_documents_are_the_same_for_the_same_numbers():
    assert document("system", 1, 5) == document("system", 1, 5)
    assert len({document("system", 1, number) for number in range(50)}) > 45


@pytest.mark.parametrize(
    ("read", "what"),
    [
        (lambda data, _: data[10**6], "IndexError at"),
        (lambda _data, _: exec("while True: pass"), "took longer than 0.2 s"),
    ],
)
def test_a_reader_that_raises_or_hangs_is_a_fault(read, what):
    kind, seen, _ = fate(Target(texts=("a",), read=read), b"a", limit_s=0.2)
    assert (kind, seen[: len(what)]) == ("fault", what)
