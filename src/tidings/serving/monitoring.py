"""Files for other monitors: a Grafana dashboard and Prometheus alert rules."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from tidings.model.writing import write_file

FILES = ("tidings-dashboard.json", "tidings-alerts.yaml")


def monitoring_file(name: str) -> str:
    """Give the text of one of FILES."""
    return (resources.files("tidings.serving") / "files" / name).read_text(encoding="utf-8")


def write_files(folder: Path) -> list[Path]:
    """Write FILES to a folder, which is made if need be; answers where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        write_file(folder / name, monitoring_file(name).encode("utf-8"))
    return [folder / name for name in FILES]
