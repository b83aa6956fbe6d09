"""Writes the reference parts of the documentation from the code: ``python docs/make_reference.py``.

What stands above the marker in a page is written by hand, what stands below it is made here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from tidings.cli.commands import GROUPS, app
from tidings.model import records
from tidings.model.behaviour import PERFECT, Channel
from tidings.model.schema import RECORDS
from tidings.model.system import System
from tidings.model.trace_tables import TRACE_TABLES
from tidings.petri import net

REFERENCE = Path(__file__).parent / "reference"
MARKER = "<!-- Below this line the page is made from the code by docs/make_reference.py. -->\n"
WIDTH = 80  # columns of a command's help


def format_reference() -> str:
    """List every field of the system file."""
    return _fields_of((System, *RECORDS))


def net_reference() -> str:
    """List every field of the file of a net."""
    return _fields_of((net.Net, *net.RECORDS))


def _fields_of(described: Sequence[type]) -> str:
    parts = []
    for record in described:
        parts.append(f"### {record.__name__}\n\n{_first_line(record)}\n")
        if record is Channel:
            parts.append("A link has these fields too, beside `between` and `back`.\n")
        parts.append("| field | value | meaning | if left out |\n|---|---|---|---|")
        for key, field in records.document_fields(record).items():
            kind = field.metadata["kind"]
            parts.append(
                f"| `{key}` | {_cell(kind.label)} | {_cell(field.metadata['doc'])} "
                f"| {_default(field.default, kind)} |"
            )
        parts.append("")
    return "\n".join(parts)


def _first_line(record: type) -> str:
    return (record.__doc__ or "").strip().splitlines()[0]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _default(default: object, kind: records.Kind) -> str:
    if default is records.REQUIRED:
        return "must be there"
    if default is None or default == ():
        return "none"
    if default is PERFECT:
        return "perfect"
    return f"`{kind.write(default)}`"


def traces_reference() -> str:
    """List every column of the trace tables."""
    parts = []
    for table in TRACE_TABLES.values():
        parts.append(f"### {table.name}\n\nA row is {table.row}.\n")
        parts.append("| column | type | meaning |\n|---|---|---|")
        for column in table.columns:
            null = ", may be null" if column.nullable else ""
            parts.append(f"| `{column.name}` | {column.type}{null} | {column.meaning} |")
        parts.append("")
    return "\n".join(parts)


def commands_reference() -> str:
    """Print the help of every command, as ``--help`` does."""
    root: Any = typer.main.get_command(app)
    top = root.context_class(root, info_name="tidings", terminal_width=WIDTH)
    parts = []
    for group, names in GROUPS.items():
        parts.append(f"## {group}\n")
        for name in names:
            for title, text in _helps(root.get_command(top, name), name, top):
                parts.append(f"### {title}\n\n```text\n{text.strip()}\n```\n")
    return "\n".join(parts)


def _helps(command: Any, name: str, parent: Any) -> Iterator[tuple[str, str]]:
    """Give the title and help of a command, then those of the commands below it."""
    context = command.context_class(
        command, info_name=name, parent=parent, terminal_width=WIDTH, help_option_names=["--help"]
    )
    yield context.command_path, "\n".join(map(str.rstrip, command.get_help(context).splitlines()))
    if hasattr(command, "list_commands"):
        for below in command.list_commands(context):
            yield from _helps(command.get_command(context, below), below, context)


REFERENCES = {
    "commands.md": commands_reference,
    "petri-nets.md": net_reference,
    "system-file.md": format_reference,
    "trace-tables.md": traces_reference,
}


def renewed(name: str) -> str:
    """Give the page with its reference part made anew."""
    by_hand, _, _ = (REFERENCE / name).read_text(encoding="utf-8").partition(MARKER)
    return f"{by_hand}{MARKER}\n{REFERENCES[name]()}"


if __name__ == "__main__":
    for name in REFERENCES:
        (REFERENCE / name).write_text(renewed(name), encoding="utf-8")
