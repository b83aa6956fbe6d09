"""Recorded runs that come along: what is in them, how they are found, listed and copied."""

from __future__ import annotations

import json
import shutil

import pytest

import tidings as td
from tidings.cli.commands import run
from tidings.errors import InvalidInputError
from tidings.samples.loading import sample_names

KINDS = (
    "mosquitto-failing",
    "mosquitto-steady",
    "nats-bursting",
    "nats-churning",
    "nats-failing",
    "nats-groups",
    "nats-mobile",
    "nats-steady",
    "nats-storing",
)


def test_samples_are_small():
    assert sample_names() == KINDS
    files = [each for name in KINDS for each in td.load_sample(name).traces.iterdir()]
    assert sum(each.stat().st_size for each in files) < 1.5e6


@pytest.mark.parametrize("name", KINDS)
def test_a_sample_has_a_system_what_was_measured_and_a_card(name):
    sample = td.load_sample(name)
    assert sample.name == name
    assert sample.measured.source == "measured"
    everybody = [each.name for each in sample.system.subscribers]
    assert sample.measured.subscribers["subscriber"].tolist() == everybody
    assert (sample.measured.subscribers["events"] > 200).all()
    assert sample.card.startswith(f"# {name}\n")
    assert "CC BY 4.0" in sample.card


def test_a_name_that_is_not_there_is_told_which_are():
    with pytest.raises(
        InvalidInputError, match=r"'kafka-steady'; wants one of mosquitto-failing, "
    ):
        td.load_sample("kafka-steady")


def test_samples_of_ones_own_are_loaded_from_their_folder(tmp_path):
    shutil.copytree(td.load_sample("nats-steady").traces, tmp_path / "mine")
    assert sample_names(tmp_path) == ("mine",)
    assert td.load_sample("mine", tmp_path).traces == tmp_path / "mine"
    with pytest.raises(InvalidInputError, match="wants one of mine;"):
        td.load_sample("nats-steady", tmp_path)


def test_the_command_lists_and_copies_them(tmp_path, capsys):
    assert run(["samples", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in listed] == list(KINDS)
    assert all(0.3 < each["on_time"] <= 1.0 for each in listed)
    assert run(["samples"]) == 0
    assert "nats-failing" in capsys.readouterr().out
    assert run(["samples", "nats-failing", "--to", str(tmp_path / "copy")]) == 0
    here = td.load_sample("nats-failing").traces
    assert {each.name for each in (tmp_path / "copy").iterdir()} == {
        each.name for each in here.iterdir()
    }
    assert f"tidings characterise {tmp_path / 'copy'}" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["nats-failing"], ["--to", "copy"], ["none", "--to", "copy"]])
def test_the_command_wants_a_name_and_a_folder(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["samples", *words]) == 2
    assert list(tmp_path.iterdir()) == []
