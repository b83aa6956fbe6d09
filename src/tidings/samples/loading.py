"""Recorded runs of real brokers, each a folder: trace tables and what is known to be true of them.

Short ones come with the package. ``python studies/dataset/make.py --into FOLDER`` makes longer ones
of the same kinds, which are loaded by the same functions.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tidings.errors import InvalidInputError
from tidings.model.outcome import Outcome
from tidings.model.outcome_files import load_outcome
from tidings.model.reading import load
from tidings.model.system import System

SYSTEM, MEASURED, CARD = "system.yaml", "measured.json", "DATACARD.md"
_PACKED = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A recorded run: its ``traces`` (a folder), the ``system`` that was played, the truth.

    What was ``measured`` was counted from the run itself, one event after the other: the on-time
    share of every subscriber, with its standard error.
    """

    name: str
    traces: Path
    system: System
    measured: Outcome

    @property
    def card(self) -> str:
        """How it was made, what its columns mean, its limits and its licence, as Markdown."""
        return (self.traces / CARD).read_text(encoding="utf-8")


def sample_names(folder: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
    """List the samples that come with the package, or those that were made into a folder."""
    place = _PACKED if folder is None else Path(folder)
    return tuple(sorted(each.parent.name for each in place.glob(f"*/{MEASURED}")))


def load_sample(name: str, folder: str | os.PathLike[str] | None = None) -> Sample:
    """Load a recorded run of real brokers, with the system that was played and what was measured.

    It comes with the package, or was made into ``folder`` by ``studies/dataset/make.py``. Its
    traces are read as any others are:
    ``td.characterise(td.read_traces(spark, sample.traces), base=sample.system)``.

    >>> load_sample("nats-steady").system.description
    'A tree of four brokers under steady traffic; nothing fails'
    """
    names = sample_names(folder)
    if name not in names:
        where = "" if folder is None else f" in {os.fspath(folder)}"
        raise InvalidInputError(
            f"there is no sample {name!r}{where}; wants one of {', '.join(names) or 'none'}; "
            "python studies/dataset/make.py makes others"
        )
    traces = (_PACKED if folder is None else Path(folder)) / name
    return Sample(
        name=name,
        traces=traces,
        system=load(traces / SYSTEM),
        measured=load_outcome(traces / MEASURED),
    )
