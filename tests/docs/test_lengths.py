"""An operator's pages stay short: whoever has a question at 3 am reads one of them once."""

from __future__ import annotations

import pytest

from doc_pages import ROOT, words

DOCS = ROOT / "docs"
HOW_TO, EXPLANATION = sorted(DOCS.glob("how-to/*.md")), sorted(DOCS.glob("explanation/*.md"))


@pytest.mark.parametrize("page", HOW_TO, ids=lambda page: page.name)
def test_how_to_pages_are_short(page):
    assert words(page) < 600


@pytest.mark.parametrize("page", EXPLANATION, ids=lambda page: page.name)
def test_explanations_are_half_a_page(page):
    assert words(page) <= 350


def test_the_operators_path_is_short():
    assert sum(map(words, (DOCS / "tutorial.md", *HOW_TO, *EXPLANATION))) < 9000
