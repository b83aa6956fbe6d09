"""Systems from files and to files: YAML (or JSON), or a folder of tables for many peers."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tidings.errors import InvalidSystemError
from tidings.model import records, tables, yaml_text
from tidings.model.checks import check_system
from tidings.model.document import Place
from tidings.model.named_files import folders_of, kept_below
from tidings.model.record_tables import RecordTable
from tidings.model.system import System
from tidings.model.writing import check_place, write_file


def load(path: str | os.PathLike[str]) -> System:
    """Read a system from a YAML or JSON file, or from a folder of tables.

    Raises :class:`InvalidSystemError` with every problem of the file at once. Files that it names
    must lie below its own folder, or below one of those that ``named_files.FILES_BELOW`` lists in
    the environment.
    """
    source = Path(path)
    with kept_below(folders_of(source if source.is_dir() else source.parent)):
        if not source.is_dir():
            return _finish(yaml_text.read(source), str(path))
        try:
            return _finish(tables.read_folder(source), str(path))
        except InvalidSystemError:  # row by row every problem has its line
            return _finish(tables.read_folder(source, by_column=False), str(path))


def loads(text: str, name: str = "the text") -> System:
    """Read a system from a YAML or JSON text.

    >>> loads("{tidings: 1, brokers: {hub: {}}, publishers: {}, subscribers: {}}")
    Traceback (most recent call last):
        ...
    tidings.errors.InvalidSystemError: the text: 2 problems
      line 1, publishers: got {}; wants at least one of the publishers
      line 1, subscribers: got {}; wants at least one of the subscribers
    """
    return _finish(yaml_text.parse(text), name)


def from_document(document: Mapping[str, Any], name: str = "the document") -> System:
    """Make a system from plain values (mappings, lists, texts, numbers), as YAML gives them."""
    return _finish(Place(dict(document)), name)


def _finish(place: Place, name: str) -> System:
    if place.value is not None or not place.problems:
        parts = records.read_fields(System, place)
        if isinstance(place.value, dict):
            check_system(parts, place)
        if not place.problems:
            return System(**parts)
    count = len(set(place.problems))
    raise InvalidSystemError(f"{name}: {count} problem{'s' if count > 1 else ''}", place.problems)


def dumps(system: System) -> str:
    """Write a system as canonical YAML text; reading it gives the same system."""
    return yaml_text.dump(system_document(system))


def system_document(system: System) -> dict[str, Any]:
    """Write a system as its canonical document, of plain values."""
    return records.record_document(system)


def check_system_place(path: str | os.PathLike[str]) -> None:
    """Refuse a place where a system cannot be saved, before long work; changes nothing."""
    check_place(path, suffixes=(".yaml", ".yml"), what="a system")


def save(system: System, path: str | os.PathLike[str]) -> None:
    """Write a system as YAML, or as a folder of tables where the path has no suffix."""
    check_system_place(path)
    target = Path(path)
    if target.suffix:
        write_file(target, dumps(system).encode())
    else:
        tables.write_folder(system_document(system), target)


def fingerprint(system: System) -> str:
    """Compute a short hash of a system's canonical document, for provenance.

    It is the same however the system was written: equal systems have equal documents.
    """
    subscribers = system.subscribers
    if not isinstance(subscribers, RecordTable) or not subscribers:
        text = json.dumps(system_document(system), separators=(",", ":"))
    else:  # of very many, each kind is written once
        document = system_document(replace(system, subscribers=(subscribers[0],)))
        mark = "\0"
        whole = json.dumps({**document, "subscribers": mark}, separators=(",", ":"))
        text = whole.replace(json.dumps(mark), records.table_json(subscribers))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
