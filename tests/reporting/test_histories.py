"""A checked history on a terminal: what was violated, whom it hit, what proves it."""

from __future__ import annotations

import pytest
from rich.console import Console

from tidings.reporting.histories import history_tables

FOUND = {
    "violations": {"legality": 1, "validity": 0, "liveness": 1200},
    "totals": {"subscribers": 2, "guaranteed": 5000, "notifications": 4000, "lost": 1200},
    "subscribers": [{"subscriber": "ann\x1b[31m", "guaranteed": 3000, "lost": 1200, "illegal": 1}],
    "from_ns": 1_700_000_000_000_000_000,
    "examples": [
        {
            "kind": "legality", "event": "e1", "subscriber": "ann\x1b[31m", "content": '{"a":1}',
            "published_ns": 1_700_000_000_000_000_001, "notified_ns": 1_700_000_002_500_000_000,
            "subscription": None, "subscribed_ns": None, "unsubscribed_ns": None, "rows": 3,
        },
        {
            "kind": "liveness", "event": "e2", "subscriber": "bob", "content": "{}",
            "published_ns": 1_700_000_007_000_000_000, "notified_ns": None, "subscription": "s",
            "subscribed_ns": 1_699_999_998_000_000_000, "unsubscribed_ns": None, "rows": 1,
        },
    ],
    "set_aside": [{"table": "deliveries", "reason": "no subscriber", "rows": 2}],
}  # fmt: skip


def shown(found, width=160):
    console = Console(width=width, record=True, file=None, force_terminal=False)
    with console.capture() as said:
        for table in history_tables(found):
            console.print(table)
    return said.get()


def test_numbers_words_and_proofs_are_shown():
    text = shown(FOUND)
    assert "1,201 violations in 4,000 notifications" in text
    assert "1,200" in text
    assert "Guaranteed notifications: 5,000, of which 1,200 are missing." in text
    assert "no subscriber" in text
    assert "\x1b[31m" not in text
    assert "not notified of an event that it was guaranteed" in text


@pytest.mark.parametrize("width", [60, 200])
def test_all_that_proves_a_violation_is_shown_on_any_terminal(width):
    """To the nanosecond, after the beginning of the recording, in words."""
    text = " ".join(shown(FOUND, width).split())
    assert (
        'legality ann�[31m, event e1 {"a":1}: published at 0.000000001 s; notified at 2.5 s '
        "(recorded 3 times)"
    ) in text
    assert (
        "liveness bob, event e2 {}: published at 7 s; s subscribed at -2 s, never unsubscribed; "
        "not notified"
    ) in text
    assert "Times are seconds after 2023-11-14T22:13:20Z." in text


def test_a_clean_history_is_one_table():
    clean = {
        **FOUND,
        "violations": dict.fromkeys(FOUND["violations"], 0),
        "subscribers": [], "examples": [], "set_aside": [],
    }  # fmt: skip
    assert len(list(history_tables(clean))) == 1
    assert "0 violations" in shown(clean)
