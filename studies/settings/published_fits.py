"""What the study of published fits can be asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where the traces and the published laws are."""

    traces: Path
