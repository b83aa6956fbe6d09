"""A checked history on a terminal: what was violated, whom it hit, what proves it."""

from __future__ import annotations

from rich.console import Console

from tidings.reporting.histories import history_tables

FOUND = {
    "violations": {"legality": 1, "validity": 0, "liveness": 1200},
    "totals": {"subscribers": 2, "guaranteed": 5000, "notifications": 4000, "lost": 1200},
    "subscribers": [{"subscriber": "ann\x1b[31m", "guaranteed": 3000, "lost": 1200, "illegal": 1}],
    "examples": [
        {
            "kind": "legality", "event": "e1", "subscriber": "ann", "content": "{}",
            "published_ns": 1_700_000_000_000_000_001, "notified_ns": None, "rows": 1,
        }
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
    assert "Guaranteed: 5,000, of which 1,200 are missing." in text
    assert "1700000000000000001" in text  # to the nanosecond
    assert "no subscriber" in text
    assert "\x1b[31m" not in text
    assert "not told of what was due to it" in text


def test_a_narrow_terminal_gives_up_times_first():
    text = shown(FOUND, width=60)
    assert "published_ns" not in text
    assert "legality" in text


def test_a_clean_history_is_one_table():
    clean = {
        **FOUND,
        "violations": dict.fromkeys(FOUND["violations"], 0),
        "subscribers": [], "examples": [], "set_aside": [],
    }  # fmt: skip
    assert len(list(history_tables(clean))) == 1
    assert "0 violations" in shown(clean)
