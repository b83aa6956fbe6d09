"""A system as a folder of tables, for many peers.

``system.yaml`` holds what is not a table. ``brokers``, ``links``, ``publishers``, ``subscribers``
and ``contents`` may each be a CSV or Parquet file with a row per thing: a column per field of the
YAML form, ``name`` first; what is nested stands as JSON in its cell. ``contents`` has
``publisher``, ``p``, ``event`` (JSON), ``lifetime`` and ``size``.

Every problem names the file and the line, or in Parquet the row, that it stands in.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tidings.errors import Problem
from tidings.model import json_text, yaml_text
from tidings.model.column_reading import read_columns
from tidings.model.csv_files import header_of
from tidings.model.document import Key, Place, Unreadable, describe
from tidings.model.parquet_files import load_arrow, read_parquet, write_parquet
from tidings.model.plain_files import open_plain
from tidings.model.records import document_fields
from tidings.model.system import Subscriber, System
from tidings.model.writing import new_folder

HEAD = "system.yaml"
NAMED = ("brokers", "publishers", "subscribers")
SECTIONS = (*NAMED, "links", "contents")
SUFFIXES = (".parquet", ".csv")
TEXT_COLUMNS = ("name", "at", "publisher", "group", "network")  # whatever they look like
_REMEMBERED = 1 << 16  # cells that many rows share, such as events


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """The cells of a row; of a broken one only the first, so that its name counts as known."""

    line: int  # in Parquet its number
    cells: dict[str, Any]
    problem: Problem | None = None

    @property
    def value(self) -> Any:
        """What stands for the row in the document."""
        return self.cells if self.problem is None else Unreadable(problem=self.problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Folder:
    """The document that is being put together, and where its parts stand."""

    document: dict[str, Any]
    problems: list[Problem]
    lines: dict[tuple[Key, ...], int]
    files: dict[tuple[Key, ...], str]

    def put(self, path: tuple[Key, ...], file: Path, line: int) -> None:
        """Record that what is at a path of the document stands in this line of a file."""
        self.files[path], self.lines[path] = file.name, line


def read_folder(folder: Path, *, by_column: bool = True) -> Place:
    """Read the document that a folder of tables stands for.

    With ``by_column``, subscribers that are all in order come as columns, every distinct cell read
    once however many share it (``column_reading``). What is wrong is better told row by row.
    """
    tables = {section: _files(folder, section) for section in SECTIONS}
    has_head = os.path.lexists(folder / HEAD)
    if not has_head and not any(tables.values()):
        names = ", ".join(sorted(file.name for file in folder.iterdir())[:6]) or "nothing"
        want = f"{HEAD}, or tables such as subscribers.csv"
        return Place(None, (), [Problem(at=str(folder), saw=names, want=want)])
    head = yaml_text.read(folder / HEAD, follow=False) if has_head else Place({})
    gathered = _Folder(
        document=dict(head.value) if isinstance(head.value, Mapping) else {},
        problems=[dataclasses.replace(problem, file=HEAD) for problem in head.problems],
        lines=dict(head.lines),
        files={(): HEAD} if has_head else {},
    )
    if head.value is not None and not isinstance(head.value, Mapping):
        Place(head.value, (), gathered.problems, {}, gathered.files).report(
            "a mapping (name: value)"
        )
    head_is_lost = gathered.problems and not isinstance(head.value, Mapping)
    gathered.document.setdefault("tidings", 1)
    for section, files in tables.items():
        if files:
            _check_only(section, files, gathered)
            if by_column and section == "subscribers" and not gathered.problems:
                columns = read_columns(files[0], Subscriber, _plain_cell)
                if columns is not None:
                    gathered.document[section] = columns
                    continue
            _add_table(section, files[0], gathered)
        for other in files[1:]:  # not used, but what is wrong with it is told
            aside = dataclasses.replace(gathered, document={}, lines={}, files={})
            _add_table(section, other, aside)
    if head_is_lost:  # whatever is in no table may stand there
        for field in document_fields(System):
            gathered.document.setdefault(field, Unreadable(problem=gathered.problems[0]))
    return Place(gathered.document, (), gathered.problems, gathered.lines, gathered.files)


def _files(folder: Path, section: str) -> list[Path]:
    return [file for end in SUFFIXES if os.path.lexists(file := folder / (section + end))]


def _check_only(section: str, files: list[Path], folder: _Folder) -> None:
    """Check that a section stands in one file only, so that nothing said is passed over."""
    places = [file.name for file in files] + [HEAD] * (section in folder.document)
    if len(places) > 1:
        saw, want = " beside ".join(places), "each section in one place only"
        folder.problems.append(Problem(at=section, saw=saw, want=want))


def _add_table(section: str, file: Path, folder: _Folder) -> None:
    """Put the rows of one table where the YAML form has them."""
    try:
        rows = list(_rows(file, folder.problems))
    except (OSError, ValueError, csv.Error) as error:
        saw = yaml_text.refusal(error)
        problem = Problem(at=section, saw=saw, want="a readable table", file=file.name)
        folder.problems.append(problem)
        folder.document[section] = Unreadable(problem=problem)
        rows = None
    if section == "contents":
        unread = folder.document.pop(section, None)
        _add_contents(file, rows, unread, folder)
    elif rows is not None and section == "links":
        folder.document["links"] = [row.value for row in rows]
        for index, row in enumerate(rows):
            folder.put(("links", index), file, row.line)
    elif rows is not None:
        folder.document[section] = {}
        for name, row in _owned("name", file, rows, folder.problems):
            if name in folder.document[section]:
                problem = Problem(at=f"{section}.{name}", saw="it twice", want="each name once")
                folder.problems.append(dataclasses.replace(problem, line=row.line, file=file.name))
                continue
            folder.document[section][name] = row.value
            folder.put((section, name), file, row.line)


def _add_contents(file: Path, rows: list[_Row] | None, unread: Any, folder: _Folder) -> None:
    """Give each publisher its rows; where they cannot be read, nobody is blamed for having none."""
    publishers = folder.document.get("publishers")
    if not isinstance(publishers, Mapping):
        return
    for publisher in publishers.values() if rows is None else ():
        if isinstance(publisher, dict):
            publisher.setdefault("content", unread)
    tables: dict[str, list[dict[str, Any]]] = {}
    for name, row in _owned("publisher", file, rows or [], folder.problems):
        place = Place(name, ("publisher",), folder.problems, {(): row.line}, {(): file.name})
        if isinstance(publishers.get(name), Unreadable):
            continue
        if not isinstance(publishers.get(name), dict):
            place.report("one of the publishers")
        elif "content" in publishers[name] and name not in tables:
            place.report("its contents in one place only", saw=f"contents of {name} also elsewhere")
        else:
            if name not in tables:
                tables[name] = publishers[name]["content"] = []
                folder.put(("publishers", name, "content"), file, row.line)
            folder.put(("publishers", name, "content", len(tables[name])), file, row.line)
            tables[name].append(row.value)


def _owned(
    key: str, file: Path, rows: list[_Row], problems: list[Problem]
) -> Iterator[tuple[str, _Row]]:
    """Yield the rows with the name each of them begins with; report a row without one."""
    for row in rows:
        name = row.cells.pop(key, None)
        if name is not None:
            yield str(name), row
        elif row.problem is None:
            problem = Problem(at="the row", saw="none", want=f"a '{key}'")
            problems.append(dataclasses.replace(problem, line=row.line, file=file.name))


def _rows(file: Path, problems: list[Problem]) -> Iterator[_Row]:
    """Yield rows as documents: empty cells left out, JSON cells opened, numbers kept as numbers."""
    rows = _parquet_rows(file) if file.suffix == ".parquet" else _csv_rows(file, problems)
    for row in rows:
        filled = {
            key: value for key, value in row.cells.items() if value is not None and value != ""
        }
        cells = {key: _cell(key, value, file, row.line) for key, value in filled.items()}
        yield dataclasses.replace(row, cells=cells)


def _parquet_rows(file: Path) -> Iterator[_Row]:
    rows = read_parquet(file).to_pylist()
    yield from (_Row(line=number, cells=cells) for number, cells in enumerate(rows, start=1))


def _csv_rows(file: Path, problems: list[Problem]) -> Iterator[_Row]:
    with io.TextIOWrapper(open_plain(file), encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text, strict=True)
        header = header_of(next(reader, []))
        line = reader.line_num + 1
        for cells in reader:
            if len(cells) == len(header):
                yield _Row(line=line, cells=dict(zip(header, cells, strict=True)))
            elif cells:
                problem = Problem(
                    at="the row",
                    saw=f"{len(cells)} cells",
                    want=f"{len(header)}, as there are columns",
                    fix="put cells that contain a comma in quotes",
                    line=line,
                    file=file.name,
                )
                problems.append(problem)
                yield _Row(line=line, cells={header[0]: cells[0]}, problem=problem)
            line = reader.line_num + 1


def _cell(column: str, value: Any, file: Path, line: int) -> Any:
    if not isinstance(value, str) or column in TEXT_COLUMNS:
        return value
    if value[:1] not in "{[" and not _is_number(value):
        return value
    place = _parsed(value)
    if not place.problems:
        return place.value
    want = f"a value as in JSON ({place.problems[0].saw})"
    problem = Problem(at=f"column '{column}'", saw=describe(value), want=want)
    return Unreadable(problem=dataclasses.replace(problem, line=line, file=file.name))


def _plain_cell(column: str, value: Any) -> Any:
    return _cell(column, value, Path(), 0)


@lru_cache(maxsize=_REMEMBERED)
def _parsed(text: str) -> Place:
    """Parse a cell as JSON where it is plain JSON, which is much faster, else as YAML."""
    try:
        return Place(json_text.parse(text, object_pairs_hook=_once, parse_constant=_refuse))
    except ValueError:
        return yaml_text.parse(text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError("a name twice")
    return dict(pairs)


def _refuse(word: str) -> Any:
    raise ValueError(word)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text in ("true", "false")
    return True


def write_folder(document: Mapping[str, Any], folder: Path) -> None:
    """Write a system's document as a folder of Parquet tables, whole or not at all."""
    load_arrow()
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
    """Write one table.

    Cells that hold more than a text or number become JSON, columns of mixed kinds text.
    """
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
    write_parquet(data, file)
