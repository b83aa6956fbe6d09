"""How benchmarks write down what they measured, so that all records look alike."""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def add_write_option(parser: argparse.ArgumentParser, benchmark: str) -> None:
    """The option ``--write``, the same everywhere."""
    parser.add_argument("--write", action="store_true", help=f"record in {benchmark}.json")


def record(benchmark: str, found: Mapping[str, Any]) -> None:
    """Write what a benchmark found, with the machine it was found on."""
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    document = {"benchmark": benchmark, "machine": machine, **found}
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(document, indent=1)
    (RESULTS / f"{benchmark}.json").write_text(text + "\n", encoding="utf-8")
