"""The door to the studies: found from a clone, and said where they are from a wheel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tidings.cli import reproduce
from tidings.cli.commands import run


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    """An installed package without a clone around it, and a current folder that is none."""
    monkeypatch.setattr(reproduce, "SOURCE", tmp_path / "site-packages")
    monkeypatch.chdir(tmp_path)


def test_without_a_name_all_studies_are_listed(capsys):
    run(["reproduce"])
    out = capsys.readouterr().out
    names = reproduce.Studies().list_commands(None)
    assert len(names) == 7
    assert all(name in out for name in names)


@pytest.mark.parametrize("words", [[], ["combined", "--events", "100"], ["another"]])
@pytest.mark.usefixtures("wheel")
def test_from_a_wheel_it_says_where_the_studies_are(words, capsys):
    assert run(["reproduce", *words, "--json"]) == 3
    printed = capsys.readouterr()
    message = json.loads(printed.out)["error"]["message"]
    assert "folder 'studies' of a clone" in message
    assert f"tidings reproduce {' '.join(words)}".strip() in message
    assert "Traceback" not in printed.err


@pytest.mark.usefixtures("wheel")
def test_help_is_given_from_a_wheel(capsys):
    assert run(["reproduce", "--help"]) == 0
    assert "folder 'studies'" in " ".join(capsys.readouterr().out.split())


@pytest.mark.usefixtures("wheel")
def test_no_code_of_a_folder_that_one_stands_in_is_run(monkeypatch):
    monkeypatch.chdir(Path(__file__).resolve().parents[2])
    assert reproduce.clone() is None


def test_the_product_has_no_module_of_the_studies():
    package = Path(reproduce.__file__).parents[1]
    named = [each for each in package.rglob("*.py") if "import studies" in each.read_text("utf-8")]
    assert named == []
