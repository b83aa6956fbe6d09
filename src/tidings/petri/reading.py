"""Nets from files and to files, as YAML or JSON; reading finds all problems at once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidings.errors import InvalidNetError
from tidings.model import records, yaml_text
from tidings.model.document import Place as At
from tidings.model.laws import law_schema
from tidings.model.writing import write_file
from tidings.petri.checks import check_net
from tidings.petri.net import FORMAT_VERSION, RECORDS, Net


def load_net(path: str | os.PathLike[str]) -> Net:
    """Read a net from a YAML or JSON file; raises :class:`InvalidNetError` with every problem."""
    return _finish(yaml_text.read(Path(path)), str(path))


def loads_net(text: str, name: str = "the text") -> Net:
    """Read a net from a YAML or JSON text.

    >>> loads_net("{tidings_net: 1, colours: [job], places: {cpu: {}}, transitions: {}}")
    Traceback (most recent call last):
        ...
    tidings.errors.InvalidNetError: the text: 1 problem
      line 1, transitions: got {}; wants at least one of the transitions
    """
    return _finish(yaml_text.parse(text), name)


def checked(net: Net) -> Net:
    """The net, built in Python, if nothing is wrong with it; else all that is, as for a file."""
    return _finish(At(net_document(net)), "the net")


def net_from_document(document: Mapping[str, Any], name: str = "the document") -> Net:
    """A net from plain values, as YAML gives them."""
    return _finish(At(dict(document)), name)


def _finish(place: At, name: str) -> Net:
    if place.value is not None or not place.problems:
        parts = records.read_fields(Net, place)
        if isinstance(place.value, Mapping):
            check_net(place)
        if not place.problems:
            return Net(**parts)
    count = len(set(place.problems))
    raise InvalidNetError(f"{name}: {count} problem{'s' if count > 1 else ''}", place.problems)


def net_document(net: Net) -> dict[str, Any]:
    """The canonical document of a net, as plain values."""
    return records.record_document(net)


def dumps_net(net: Net) -> str:
    """The canonical YAML text of a net; reading it gives the same net."""
    return yaml_text.dump(net_document(net))


def save_net(net: Net, path: str | os.PathLike[str]) -> None:
    """Write a net as YAML (which is JSON too, where the file is named so)."""
    write_file(path, dumps_net(net).encode())


def net_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a net file; what lies between fields the reader checks."""
    schema = records.record_schema(Net)
    schema["properties"]["tidings_net"] = {"const": FORMAT_VERSION, "description": "format version"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tidings queueing Petri net",
        **schema,
        "$defs": {
            "Law": law_schema(),
            **{record.__name__: records.record_schema(record) for record in RECORDS},
        },
    }
