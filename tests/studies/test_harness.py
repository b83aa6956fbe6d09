"""What every study must satisfy: its words and its code say the same, its options are there."""

from __future__ import annotations

import dataclasses
from importlib import import_module
from pathlib import Path

import pytest

from studies import commands
from studies.commands import NAMES
from studies.harness import Experiment, Texts, grid
from tidings.model.study import Study

FOLDER = Path(commands.__file__).parent


def experiment_of(name):
    found = import_module(f"studies.{name.replace('-', '_')}").EXPERIMENT
    assert isinstance(found, Experiment)
    return found


def source_of(name):
    own = FOLDER / name.replace("-", "_")
    files = own.rglob("*.py") if own.is_dir() else [own.with_suffix(".py")]
    return "\n".join(file.read_text("utf-8") for file in files)


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_and_exhibit_of_the_words_is_one_of_the_code(name):
    words, source = experiment_of(name).texts.all, source_of(name)
    assert words["claims"]
    for part in ("claims", "sections", "grids", "curves"):
        for key in words.get(part, {}):
            stem = key.removesuffix("trees").removesuffix("graphs")  # one of them is asked for
            assert f'"{key}"' in source or f'f"{stem}{{' in source, f"{part}: {key}"
    for claim in words["claims"].values():
        assert set(claim) == {"section", "says", "case", "found"}


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_a_setting_and_has_help(name):
    experiment = experiment_of(name)
    fields = {each.name for each in dataclasses.fields(experiment.settings)}
    assert set(experiment.texts.all["options"]) <= fields
    built = commands.command(name)
    helps = {each.name: each.help for each in built.params}
    assert set(helps) - fields <= {"to", "json", "help"}
    assert all(helps.values())


def test_a_name_that_is_none_has_no_command():
    assert commands.command("another-paper") is None


def made_up(tmp_path, monkeypatch):
    (tmp_path / "made_up.yaml").write_text(
        "title: Made up\nstated: {a: b}\nchoices: [one]\n"
        "claims: {fast: {section: '1', says: It is fast., case: '{case}', found: '{s:.1f} s'}}\n"
        "sections: {all: {title: All of it}}\n"
        "curves: {line: {title: Time, x: load, y: s, log: y}}\n"
    )
    monkeypatch.setattr(commands, "__file__", str(tmp_path / "commands.py"))
    return Texts("made-up")


def test_words_and_numbers_make_a_study(tmp_path, monkeypatch):
    texts = made_up(tmp_path, monkeypatch)
    claim = texts.claim("fast", None, case="at noon", s=1.25)
    assert (claim.says, claim.case, claim.found, claim.holds) == (
        "It is fast.", "at noon", "1.2 s", None
    )  # fmt: skip
    plot = texts.curves("line", {"a": ((0.0, 1.0),)})
    assert (plot.x_label, plot.x_log, plot.y_log) == ("load", False, True)
    study = texts.study(
        findings=[claim],
        sections=[texts.section("all", plot)],
        notes=("two",),
        summary="",
        tables={},
        plan={},
    )
    assert isinstance(study, Study)
    assert (study.paper, study.choices) == ("made-up", ("one", "two"))


def test_what_has_no_value_is_left_empty_and_names_may_be_any_words():
    rows = [{"eq. 11": 1.0, "p": 0.5 + 0j}, {"eq. 11": None, "p": 1j}]
    table = grid("t", rows, "law = {eq. 11:.1f} | real = {p.real:g}", names=2)
    assert table.columns == ("law", "real")
    assert table.rows == (("1.0", "0.5"), ("", "0"))
