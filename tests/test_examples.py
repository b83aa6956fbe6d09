"""The examples of the tutorial run, one after another, and stay short."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
NUMBERED = sorted(EXAMPLES.glob("[0-9]*.py"))


def test_there_are_six_examples_of_less_than_sixty_lines():
    assert [each.name[:2] for each in NUMBERED] == ["01", "02", "03", "04", "05", "06"]
    for each in NUMBERED:
        assert len(each.read_text(encoding="utf-8").splitlines()) < 60, each.name


@pytest.mark.slow
def test_examples_run_from_a_description_to_a_plan(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for each in NUMBERED:
        if each.name != "04_learn.py":
            runpy.run_path(str(each))
    said = capsys.readouterr().out
    assert "what helps most: speed" in said
    page = (tmp_path / "plan.html").read_text(encoding="utf-8")
    for title in ("what helps most", "What if", "Capacity", "Admission"):
        assert title in page


@pytest.mark.slow
def test_the_example_on_spark_learns_the_city(spark, tmp_path, monkeypatch, capsys):
    """With the session of the tests: a second one in the process would end it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tidings.traces.session.spark_session", lambda **_: _Kept(spark))
    runpy.run_path(str(EXAMPLES / "04_learn.py"))
    said = capsys.readouterr().out
    assert "brokers.hub.service: 0.0" in said
    assert (tmp_path / "fitted.yaml").exists()


class _Kept:
    """A session that is not ended with the block that uses it."""

    def __init__(self, session):
        self.session = session

    def __enter__(self):
        return self.session

    def __exit__(self, *_):
        return None
