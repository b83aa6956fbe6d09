"""Folders that a watch keeps its things in, and where none can be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidings.characterisation.count.store import locked
from tidings.errors import InvalidTracesError
from tidings.watching.closing import Closing


def test_a_store_where_none_can_be_is_refused_in_words(tmp_path):
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/no such store")):
        with (
            pytest.raises(InvalidTracesError, match="cannot be created here"),
            locked(place, alone=True),
        ):
            pass


def test_an_error_while_a_store_is_held_is_told_as_it_is(tmp_path):
    with pytest.raises(PermissionError, match="mine"), locked(tmp_path, alone=True):
        raise PermissionError(1, "mine")


def test_an_object_store_is_refused_and_nothing_is_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidTracesError, match="an address; wants a folder of this machine"):
        Closing(source=tmp_path, store=Path("s3://bucket/place"), base=None)
    assert list(tmp_path.iterdir()) == []
