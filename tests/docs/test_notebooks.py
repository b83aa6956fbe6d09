"""The notebooks of the documentation run, and show what they showed."""

from __future__ import annotations

import html
import re

import nbformat
import pytest

from docs.make_notebooks import NOTEBOOKS, executed

NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def words(notebook):
    """What each cell shows, as words: numbers may differ in last digits, and pictures anywhere."""
    shown = []
    for cell in notebook.cells:
        texts = []
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            text = data.get("text/html") or data.get("text/plain") or output.get("text", "")
            plain = html.unescape(re.sub(r"<[^>]+>", " ", text))
            texts.append([NUMBER.sub("N", " ".join(plain.split())), "image/png" in data])
        shown.append(texts)
    return shown


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Jupyter's own
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_showed(path):
    kept = nbformat.read(path, as_version=4)
    assert all(cell.outputs for cell in kept.cells if cell.cell_type == "code")
    assert words(executed(path)) == words(kept)
