"""A trace of connections is a file by its path, whatever its name looks like."""

import os

import pyarrow as pa
import pytest
from pyarrow import parquet

from tidings.errors import InvalidInputError
from tidings.model.connectivity_traces import _read


def sessions(peer):
    columns = {"peer": [peer] * 2, "at_ns": [0, 10**9], "state": ["connected", "disconnected"]}
    return pa.table(columns)


def test_a_name_that_looks_like_an_address_is_a_path(tmp_path, monkeypatch):
    outside = tmp_path / "outside.parquet"
    parquet.write_table(sessions("secret"), outside)
    inside = tmp_path / "folder"
    decoy = inside / f"file:{outside}"
    decoy.parent.mkdir(parents=True)
    parquet.write_table(sessions("decoy"), decoy)
    monkeypatch.chdir(inside)
    assert list(_read(f"file://{outside}", 1)) == ["decoy"]


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InvalidInputError, match="a pipe, not a plain file"):
        _read(str(tmp_path / "pipe.csv"), 1)
