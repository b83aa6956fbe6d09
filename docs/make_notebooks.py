"""Runs the notebooks of the documentation and keeps what they show.

python docs/make_notebooks.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent / "notebooks").glob("*.ipynb"))
_PATIENCE_S = 120


def executed(path: Path) -> Any:
    """Run a notebook in the folder of the examples, and give it with what its cells show."""
    notebook: Any = nbformat.read(path, as_version=4)
    folder = str(Path(__file__).parents[1] / "examples")
    NotebookClient(
        notebook, timeout=_PATIENCE_S, record_timing=False, resources={"metadata": {"path": folder}}
    ).execute()
    notebook.metadata["language_info"] = {"name": "python"}  # without the version of this machine
    return notebook


if __name__ == "__main__":
    for path in NOTEBOOKS:
        print(path.name)
        nbformat.write(executed(path), path)
