"""Stores by people who mean harm: nothing that they name elsewhere is read, changed or removed."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from snapshots import everything_below
from tidings.characterisation.count.store import (
    _VERSION,
    Catalogue,
    load_partial,
    locked,
    read_catalogue,
    save_partial,
    write_catalogue,
)
from tidings.characterisation.statistics import Partial
from tidings.errors import InvalidTracesError

OURS = "counted-0123456789abcdef"
PART = {"from_ns": 0, "until_ns": 9, "source": "a", "tables": ["hops"]}


@pytest.fixture
def place(tmp_path):
    """A store with one folder, and beside it what belongs to somebody else."""
    for folder in (tmp_path / "store" / OURS, tmp_path / "mine"):
        folder.parent.mkdir(exist_ok=True)
        save_partial(folder, Partial(tables={"hops": pd.DataFrame({"rows": [1]})}))
    return tmp_path


def write(store, *, parts=(), seams=(), periods=None):
    document = {"version": _VERSION, "margin_s": 1.0, "settle_s": 0.0, "periods": periods}
    document |= {"parts": [{"folder": each, **PART} for each in parts], "seams": list(seams)}
    (store / "store.json").write_text(json.dumps(document))


NAMES = {
    "absolute": lambda place: str(place / "mine"),
    "above": lambda place: "../mine",
    "around": lambda place: f"{OURS}/../../mine",
    "itself": lambda place: ".",
    "nothing": lambda place: "",
    "another name": lambda place: "counted-votes",
    "a number": lambda place: 7,
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_folders_elsewhere_are_refused_by_name(place, name):
    store, named = place / "store", name(place)
    seam = {"folder": OURS, "before": OURS}
    for catalogue in (
        {"parts": [named]},
        {"periods": named or "-"},
        {"parts": [OURS], "seams": [{**seam, "folder": named}]},
        {"parts": [OURS], "seams": [{**seam, "before": named}]},
        {"parts": [OURS], "seams": [{**seam, "after": named}]},
    ):
        write(store, **catalogue)
        before = everything_below(place)
        with pytest.raises(
            InvalidTracesError, match=r"store\.json: .* which does not belong to a store"
        ):
            read_catalogue(store)
        assert everything_below(place) == before


def test_a_folder_that_is_a_link_is_refused(place):
    store = place / "store"
    (store / OURS).rename(place / "away")
    (store / OURS).symlink_to(place / "mine")
    write(store, parts=[OURS])
    with pytest.raises(InvalidTracesError, match=f"{OURS} is a link"):
        read_catalogue(store)


def test_clearing_up_removes_what_a_store_wrote_and_nothing_else(place):
    store = place / "store"
    (store / "counted-votes").mkdir()
    (store / "counted-fedcba9876543210").symlink_to(place / "mine")
    before = everything_below(place / "mine")
    write_catalogue(store, Catalogue(margin_s=1.0))
    assert not (store / OURS).exists()
    assert (store / "counted-votes").exists()
    assert everything_below(place / "mine") == before


@pytest.mark.parametrize("alone", [True, False])
def test_a_lock_leaves_nothing_in_the_store_nor_elsewhere(place, alone):
    (place / "store" / "store.lock").symlink_to(place / "mine" / "new")
    before = everything_below(place)
    with locked(place / "store", alone=alone):
        assert everything_below(place) == before
        with (
            pytest.raises(InvalidTracesError, match="another run"),
            locked(place / "store", alone=True),
        ):
            pass
    assert everything_below(place) == before


def test_reading_a_store_that_is_not_there_makes_none(place):
    with (
        pytest.raises(InvalidTracesError, match="nothing there"),
        locked(place / "no", alone=False),
    ):
        pass
    assert not (place / "no").exists()


@pytest.mark.parametrize("decided", [[], 7, {}, {"silent": 7, "folded": 7, "notes": 7}])
def test_what_was_decided_may_be_anything(place, decided):
    folder = place / "store" / OURS
    (folder / "decided.json").write_text(json.dumps(decided))
    with pytest.raises(InvalidTracesError, match="cannot be read"):
        load_partial(folder)


def lose(table):
    table.unlink()


def rename_columns(table):
    pd.read_parquet(table).rename(columns={"rows": "lines"}).to_parquet(table)


def add_another(table):
    pd.DataFrame({"rows": [1]}).to_parquet(table.with_name("links.parquet"))


def change_type(table):
    pd.read_parquet(table).astype("float64").to_parquet(table)


@pytest.mark.parametrize("damage", [lose, rename_columns, add_another, change_type])
def test_a_part_whose_tables_are_not_those_written_is_refused(place, damage):
    folder = place / "store" / OURS
    load_partial(folder)
    damage(folder / "hops.parquet")
    with pytest.raises(InvalidTracesError, match=r"cannot be read \(got the table .* as written"):
        load_partial(folder)


@pytest.mark.parametrize("name", ["silent", "folded", "notes"])
@pytest.mark.parametrize("value", [[1, 2], [["a"]], [{}], [None], [float("inf")], "a", {"a": 1}])
def test_what_was_decided_are_lists_of_texts(place, name, value):
    folder = place / "store" / OURS
    decided = json.loads((folder / "decided.json").read_text())
    (folder / "decided.json").write_text(json.dumps({**decided, name: value}))
    with pytest.raises(InvalidTracesError, match=r"cannot be read \(.*texts are wanted"):
        load_partial(folder)


CATALOGUES = {
    "endless seconds": {"settle_s": 10**400},
    "a share above all": {"sampled": 1.5},
    "a list for a folder": {"periods": []},
    "a number for a folder": {"periods": 0},
    "a time beyond all": {"parts": [{"folder": OURS, **PART, "until_ns": 10**400}]},
}


@pytest.mark.parametrize("values", CATALOGUES.values(), ids=CATALOGUES)
def test_a_catalogue_with_other_values_is_refused(place, values):
    store = place / "store"
    write(store, parts=[OURS])
    document = json.loads((store / "store.json").read_text())
    (store / "store.json").write_text(json.dumps({**document, **values}))
    with pytest.raises(
        InvalidTracesError,
        match=r"store\.json: not readable .* (wanted|does not belong to a store)",
    ):
        read_catalogue(store)
