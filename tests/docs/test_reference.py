"""The documentation says what the code does: reference pages are current, examples run."""

import contextlib
import re
from pathlib import Path

import pytest

import tidings
from docs import make_reference
from tidings.cli.commands import COMMANDS
from tidings.model import yaml_text
from tidings.model.document import Place
from tidings.model.filters import read_filter
from tidings.model.laws import read_law

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", make_reference.REFERENCES)
def test_reference_pages_are_current(name):
    page = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")
    assert page == make_reference.renewed(name), "run: make docs"


def test_every_public_name_is_in_the_reference_once():
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^::: tidings\.(\w+)$", page, re.M)) == tidings.__all__


def test_every_command_is_in_the_reference():
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    titles = re.findall(r"^### tidings (.+)$", page, re.M)
    assert [title for title in titles if " " not in title] == list(COMMANDS)
    assert {"plan capacity", "petri solve", "testbed compare"} <= set(titles)


def _spellings(heading):
    page = (ROOT / "docs" / "reference" / "system-file.md").read_text(encoding="utf-8")
    section = page.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return [text for row in rows for text in re.findall(r"`([^`]+)`", row)]


@pytest.mark.parametrize("text", [t for t in _spellings("Laws of random times") if t != "scv"])
def test_laws_in_the_format_page_are_read(text):
    place = yaml_text.parse(text)
    assert read_law(place) is not None, place.problems


@pytest.mark.parametrize("text", [t for t in _spellings("Filters") if ":" in t])
def test_filters_in_the_format_page_are_read(text):
    value = text if not text.startswith("{") else f"symbol: {text}"
    place = Place(yaml_text.parse(value).value)
    assert read_filter(place) is not None, place.problems


@pytest.mark.spark
@pytest.mark.slow
def test_the_python_of_the_readme_runs(spark, tmp_path, monkeypatch, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    monkeypatch.chdir(tmp_path)
    # The session is shared by all tests, so the README's own must not stop it.
    monkeypatch.setattr(
        "tidings.traces.session.spark_session", lambda: contextlib.nullcontext(spark)
    )
    # What the README says instead of its own system: one a tenth as large is learnt much sooner.
    sample, other = 'td.market_and_weather()  # or td.load("city.yaml")', "td.load('city.yaml')"
    assert sample in code
    city = (ROOT / "examples" / "city.yaml").read_text("utf-8")
    (tmp_path / "city.yaml").write_text(re.sub(r", count: \d+", "", city), "utf-8")
    exec(compile(code.replace(sample, other), "README.md", "exec"), {})
    assert "subscriber" in capsys.readouterr().out
    assert (tmp_path / "city.html").stat().st_size > 10_000
    assert len(code.strip().splitlines()) <= 12
