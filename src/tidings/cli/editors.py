"""The schema of system files where editors find it.

Whatever editor asks the YAML language server (VS Code, Neovim, Emacs, Helix, Zed …), it heeds a
comment in the file that names a schema by a path relative to it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from tidings.cli import console
from tidings.errors import InvalidInputError
from tidings.model.plain_files import read_text
from tidings.model.schema import system_schema
from tidings.model.writing import write_file

NAME = "tidings.schema.json"
LINE = f"# yaml-language-server: $schema={NAME}"
# The server knows drafts up to this one; the schema uses nothing of later ones.
_DRAFT = "http://json-schema.org/draft-07/schema#"
_OTHER = re.compile(r"^#\s*yaml-language-server\s*:.*\n?", re.M)
_SYSTEM = re.compile(r"^tidings:", re.M)


def install_schema(systems: list[Path]) -> None:
    """Write the schema beside system files, and its name into their first lines."""
    for each in systems:
        if each.suffix not in (".yaml", ".yml"):
            raise InvalidInputError(f"{each}: only in YAML files a comment can name a schema")
    files = systems or _systems_here()
    schema = json.dumps({**system_schema(), "$schema": _DRAFT}, indent=1) + "\n"
    for folder in sorted({each.parent for each in files} or {Path()}):
        write_file(folder / NAME, schema.encode())
        console.show(f"wrote {folder / NAME}")
    for each in files:
        _name_schema(each)
    if not files:
        console.show(f"no system file is here; begin one with the line\n{LINE}")


def _systems_here() -> list[Path]:
    """List the YAML files of this folder that are systems."""
    files = [*Path().glob("*.yaml"), *Path().glob("*.yml")]
    return [each for each in sorted(files) if _SYSTEM.search(_text(each))]


def _name_schema(path: Path) -> None:
    text = _text(path)
    if text.startswith(LINE):
        console.show(f"{path} names it already")
        return
    write_file(path, f"{LINE}\n{_OTHER.sub('', text)}".encode())
    console.show(f"wrote the first line of {path}: {LINE}")


def _text(path: Path) -> str:
    try:
        return read_text(path, follow=True)
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{path}: cannot be read: {error}") from None
