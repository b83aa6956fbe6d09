"""Runs the commands of the documentation, and writes what they print below them.

    python docs/make_outputs.py [PAGE ...]

A block of the language ``console`` has commands behind ``$``. The blocks of a page are run in
order, in one new folder with the example systems, the samples, and those blocks of the page that
have a file's name as title. The commands of a block share a shell, so that ``echo $?`` gives an
exit code. Lines that tell progress are left out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
TITLED = re.compile(r'^```\w+ title="([\w.-]+)"\n(.*?)^```$', re.M | re.S)
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.M | re.S)
_PROGRESS = re.compile(r"[a-z][a-z -]*(: .*)? \(\d+ s(, (?:about|at least) [^)]*)?\)")
_MARK = "--- the next command ---"
_PATIENCE_S = 1800


def pages_with_commands() -> list[Path]:
    """Find the pages that have blocks to run."""
    return [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]


def commands_of(block: str) -> list[str]:
    """Give the commands of a block, continued lines joined to theirs."""
    return re.findall(r"^\$ ((?:.*\\\n)*.*)$", block, re.M)


def renewed(page: Path) -> str:
    """Give the page with what its commands print now."""
    with tempfile.TemporaryDirectory() as folder:
        return run_page(page, Path(folder))


def run_page(page: Path, folder: Path) -> str:
    """Run the commands of a page in a folder, and give the page with what they print."""
    for source in (*(ROOT / "examples").glob("*.yaml"), *(ROOT / "docs/samples").iterdir()):
        shutil.copy(source, folder)
    text = page.read_text(encoding="utf-8")
    for name, content in TITLED.findall(text):
        (folder / name).write_text(content, encoding="utf-8")
    return BLOCK.sub(lambda match: "".join(_run(match[0], folder)), text)


def _run(block: str, folder: Path) -> Iterator[str]:
    commands = commands_of(block)
    script = f"\ncode=$?; echo '{_MARK}'; (exit $code)\n".join(commands)
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    ran = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    for command, printed in zip(commands, ran.stdout.split(f"{_MARK}\n"), strict=True):
        yield f"$ {command}\n"
        lines = [line.rstrip() for line in printed.splitlines()]
        kept = [line for line in lines if not _PROGRESS.fullmatch(line)]
        yield "".join(f"{line}\n" for line in _without_outer_blanks(kept))


def _without_outer_blanks(lines: list[str]) -> list[str]:
    while lines and not lines[-1]:
        lines = lines[:-1]
    return lines


if __name__ == "__main__":
    wanted = [Path(name).resolve() for name in sys.argv[1:]] or pages_with_commands()
    for page in wanted:
        print(page.relative_to(ROOT))
        page.write_text(renewed(page), encoding="utf-8")
