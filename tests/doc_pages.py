"""The pages of the documentation, and the blocks of code in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SITE_PAGES = sorted((ROOT / "docs").rglob("*.md"))
ROOT_PAGES = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
PAGES = [*ROOT_PAGES, *SITE_PAGES]
_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.M | re.S)


class Block(NamedTuple):
    """A fenced block: its page, the line it begins in, its language and its text."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(*languages: str) -> list[Block]:
    """All blocks in one of these languages, in every page."""
    everything = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in _FENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            everything.append(Block(str(page.relative_to(ROOT)), line, match[1], match[2]))
    return [block for block in everything if block.language in languages]


def words(page: Path) -> int:
    """Words of a page outside its blocks."""
    return len(_FENCE.sub("", page.read_text(encoding="utf-8")).split())
