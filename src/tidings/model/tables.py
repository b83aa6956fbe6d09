"""A system as a folder of tables, for many peers.

``system.yaml`` holds what is not a table. ``brokers``, ``links``, ``publishers``, ``subscribers``
and ``contents`` may each be a CSV or Parquet file with a row per thing: a column per field of the
YAML form, ``name`` first; what is nested stands as JSON in its cell. ``contents`` has
``publisher``, ``p``, ``event`` (JSON), ``lifetime`` and ``size``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow
import pyarrow.parquet

from tidings.errors import Problem
from tidings.model import yaml_text
from tidings.model.document import Place
from tidings.model.writing import new_folder

HEAD = "system.yaml"
NAMED = ("brokers", "publishers", "subscribers")
SUFFIXES = (".parquet", ".csv")


def read_folder(folder: Path) -> Place:
    """The document that a folder of tables stands for."""
    head = yaml_text.read(folder / HEAD) if (folder / HEAD).exists() else Place({})
    document = dict(head.value) if isinstance(head.value, Mapping) else {}
    document.setdefault("tidings", 1)
    lines = dict(head.lines)
    found = False
    for section in (*NAMED, "links", "contents"):
        file = next(
            (folder / (section + end) for end in SUFFIXES if _exists(folder, section, end)), None
        )
        if file is None:
            continue
        found = True
        try:
            rows = list(_rows(file))
        except (OSError, ValueError, pyarrow.ArrowException) as error:
            reason = str(error).splitlines()[0]
            head.problems.append(Problem(at=str(file), saw=reason, want="a readable table"))
            continue
        _add(section, rows, document, head.problems, lines, file.name)
    if not found and not (folder / HEAD).exists():
        names = ", ".join(sorted(p.name for p in folder.iterdir())[:6]) or "nothing"
        head.problems.append(
            Problem(at=str(folder), saw=names, want=f"{HEAD}, or tables such as subscribers.csv")
        )
    return Place(document, (), head.problems, lines)


def _exists(folder: Path, section: str, suffix: str) -> bool:
    return (folder / (section + suffix)).exists()


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    """The rows as documents: empty cells left out, JSON cells opened, numbers kept as numbers."""
    if file.suffix == ".parquet":
        frame = pyarrow.parquet.read_table(file).to_pylist()
    else:
        text = pd.read_csv(file, dtype=str, keep_default_na=False, encoding="utf-8")
        frame = text.to_dict("records")
    for row in frame:
        yield {key: _cell(key, value) for key, value in row.items() if not _empty(value)}


def _empty(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _cell(column: str, value: Any) -> Any:
    if not isinstance(value, str) or column in ("name", "at", "publisher", "group", "network"):
        return value
    return yaml_text.parse(value).value if value[:1] in "{[" or _is_number(value) else value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text in ("true", "false")
    return True


def _add(
    section: str,
    rows: list[dict[str, Any]],
    document: dict[str, Any],
    problems: list[Problem],
    lines: dict[tuple[str | int, ...], int],
    file: str,
) -> None:
    """Put the rows of one table where the YAML form has them."""
    if section == "links":
        document["links"] = rows
        return
    key = "publisher" if section == "contents" else "name"
    target = document.setdefault("publishers" if section == "contents" else section, {})
    for number, row in enumerate(rows, start=2):  # the header is line 1
        name = row.pop(key, None)
        if name is None:
            problems.append(Problem(at=file, saw="none", want=f"a '{key}'", line=number))
        elif section == "contents":
            owner = target.setdefault(str(name), {})
            owner.setdefault("content", []).append(row)
        elif str(name) in target:
            problems.append(
                Problem(at=f"{file}: {name}", saw="it twice", want="each name once", line=number)
            )
        else:
            target[str(name)] = row
            lines[(section, str(name))] = number


def write_folder(document: Mapping[str, Any], folder: Path) -> None:
    """Write a system's document as a folder of Parquet tables, whole or not at all."""
    with new_folder(folder) as target:
        head = {k: v for k, v in document.items() if k not in (*NAMED, "links")}
        (target / HEAD).write_text(yaml_text.dump(head), encoding="utf-8")
        contents = []
        for section in NAMED:
            rows = [{"name": name, **dict(row)} for name, row in document[section].items()]
            if section == "publishers":
                for row in rows:
                    if isinstance(row["content"], list):
                        each = row.pop("content")
                        contents += [{"publisher": row["name"], **entry} for entry in each]
            _write(rows, target / f"{section}.parquet")
        _write(list(document.get("links", ())), target / "links.parquet")
        _write(contents, target / "contents.parquet")


def _write(rows: list[dict[str, Any]], file: Path) -> None:
    """One table; cells that hold more than a text or number become JSON, mixed columns text."""
    if not rows:
        return
    columns = list(dict.fromkeys(key for row in rows for key in row))
    data: dict[str, list[Any]] = {}
    for column in columns:
        cells = [row.get(column) for row in rows]
        kinds = {type(cell) for cell in cells if cell is not None}
        if kinds <= {int, float} or kinds <= {str} or kinds <= {bool}:
            data[column] = cells
        else:
            data[column] = [
                None if c is None else c if isinstance(c, str) else json.dumps(c) for c in cells
            ]
    pyarrow.parquet.write_table(pyarrow.table(data), file)
