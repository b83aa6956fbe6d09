"""What the documentation prints is what its commands print."""

from __future__ import annotations

import difflib
import re

import pytest

from doc_pages import ROOT
from docs.make_outputs import BLOCK, commands_of, pages_with_commands, renewed
from spark_cluster import QUICK_JAVA

NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?")
LAST_DIGITS = 2  # processors round differently: so many units of the last digit shown
SPARK = ("tidings import", "tidings characterise", "tidings spread", "tidings audit")


def _cases():
    for page in pages_with_commands():
        called = [c for block in BLOCK.findall(page.read_text("utf-8")) for c in commands_of(block)]
        spark = any(command.startswith(SPARK) for command in called)
        marks = [pytest.mark.slow, *([pytest.mark.spark] if spark else [])]
        yield pytest.param(page, marks=marks, id=str(page.relative_to(ROOT)))


def _unit(number: str) -> float:
    """What one more in the last digit of a number is worth."""
    digits, _, power = number.replace(",", "").partition("e")
    return 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))


def _differences(old: str, new: str) -> list[str]:
    """The lines that differ in words, or in numbers by more than their last digit."""
    if len(old.splitlines()) != len(new.splitlines()):
        return list(difflib.unified_diff(old.splitlines(), new.splitlines(), "page", "now", n=0))
    return [
        f"{before}\n{after}"
        for before, after in zip(old.splitlines(), new.splitlines(), strict=True)
        if not _alike(before, after)
    ]


def _alike(before: str, after: str) -> bool:
    words = [re.sub(r"[\s─]+", " ", NUMBER.sub("#", line)) for line in (before, after)]
    if words[0] != words[1]:
        return False
    pairs = zip(NUMBER.findall(before), NUMBER.findall(after), strict=True)
    return all(
        abs(float(a.replace(",", "")) - float(b.replace(",", "")))
        <= LAST_DIGITS * max(_unit(a), _unit(b)) * (1 + 1e-9)
        for a, b in pairs
    )


@pytest.fixture
def quick_java(monkeypatch):
    """Commands start Spark with Java's quick compiler, as for whatever lives for seconds."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", QUICK_JAVA)


@pytest.mark.usefixtures("quick_java")
@pytest.mark.parametrize("page", list(_cases()))
def test_pages_print_what_their_commands_print(page):
    assert _differences(page.read_text("utf-8"), renewed(page)) == [], "run: make docs"


@pytest.mark.parametrize(
    ("before", "after", "alike"),
    [
        ("on time 92.9 %", "on time 93.1 %", True),
        ("on time 92.9 %", "on time 93.2 %", False),
        ("1.334e+05 rows", "1.335e+05 rows", True),
        ("1.334e+05 rows", "1.334e+06 rows", False),
        ("133,549 rows", "133,560 rows", False),
        ("on time", "in time", False),
    ],
)
def test_only_last_digits_may_differ(before, after, alike):
    assert _alike(before, after) is alike
