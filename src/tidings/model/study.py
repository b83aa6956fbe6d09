"""What an experiment gives, as plain data: what was found, tables and plots to look at.

A :class:`Study` passes from the experiments to whoever shows them; both sides know it, and neither
knows the other. Numbers in a :class:`TextTable` are texts already: the experiment decides how many
digits mean something.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import pandas as pd

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One claim of a paper in one case: what it says, what we find, whether it holds."""

    section: str  # of the paper
    says: str
    case: str
    found: str
    holds: bool | None  # None: cannot be told, as what speaks for or against it is within the noise


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """A table of texts; the first ``names`` columns hold words, the others numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int = 1
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"'{self.title}' has {len(self.columns)} columns; got {row}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Predicted (across) against actual (up) shares, a cloud of points for every run."""

    title: str
    clouds: Mapping[str, Points]
    series: int = 0  # which of the colours
    low: float = 0.0  # where both axes begin


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Lines over a number; ``marks`` are drawn as points alone."""

    title: str
    lines: Mapping[str, Points]
    x_label: str
    y_label: str
    marks: Mapping[str, Points] = field(default_factory=dict)
    x_log: bool = False
    y_log: bool = False
    fold: str = ""  # neighbours with the same are opened together; the first are open


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Spans of time by name, one row each, from 0 to ``end``."""

    title: str
    spans: Mapping[str, Points]  # begin and end of each
    x_label: str
    end: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One question of a study: words, tables, plots."""

    title: str
    words: str = ""
    exhibits: tuple[TextTable | Scatter | Curves | Timeline, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Study:
    """An experiment of a paper, run again; or one of ours, which has none."""

    paper: str  # short name; empty: there is none
    title: str
    summary: str  # what was run, in a sentence or two
    settings: Mapping[str, str]  # what the paper states
    choices: tuple[str, ...]  # what it leaves open, and what is done differently here
    findings: tuple[Finding, ...]
    sections: tuple[Section, ...]
    tables: Mapping[str, pd.DataFrame]  # every number behind it
    plan: Mapping[str, Any]  # what was asked for

    def to_document(self) -> dict[str, Any]:
        """Write the study as plain data for JSON: all but its points and pictures.

        Tables named ``points`` grow with the experiment and stay in files of their own.
        """
        return {
            "paper": self.paper,
            "title": self.title,
            "summary": self.summary,
            "paper_settings": dict(self.settings),
            "choices": list(self.choices),
            "plan": dict(self.plan),
            "claims": [asdict(each) for each in self.findings],
            **{
                name: table.to_dict("records")
                for name, table in self.tables.items()
                if name != "points"
            },
        }
