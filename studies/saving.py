"""A study as a folder: every table as CSV, the rest as one JSON file."""

from __future__ import annotations

import json
from pathlib import Path

from tidings.errors import InvalidInputError
from tidings.model.outcome_files import plain
from tidings.model.study import Study
from tidings.model.writing import write_file

MARKER = "reproduction.json"  # a folder with this file is ours to write to


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds something else."""
    if folder.exists() and not folder.is_dir():
        raise InvalidInputError(f"{folder} is a file; choose a folder with --to")
    if folder.exists() and not (folder / MARKER).exists() and any(folder.iterdir()):
        raise InvalidInputError(f"{folder} exists and is not of ours; choose another with --to")


def claim_folder(folder: Path) -> None:
    """Make a folder ours before anything is in it, where traces come before the study."""
    check_folder(folder)
    if not (folder / MARKER).exists():
        write_file(folder / MARKER, b'{"unfinished": true}\n')


def save(study: Study, folder: Path) -> None:
    """Write the tables as CSV and the whole study as JSON."""
    check_folder(folder)
    document = plain(study.to_document())
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    write_file(folder / MARKER, text.encode())
    for name, table in study.tables.items():
        write_file(folder / f"{name}.csv", table.to_csv(index=False).encode())
