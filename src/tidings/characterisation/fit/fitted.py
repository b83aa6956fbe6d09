"""What a fit gives: a system, what was measured, and how far to trust both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from tidings.characterisation.fit.exhibits import quality_sections
from tidings.characterisation.fit.laws import FittedLaw
from tidings.characterisation.fit.quality import BadTexts
from tidings.characterisation.fit.traffic import Traffic
from tidings.model.outcome import Outcome
from tidings.model.shown import Shown
from tidings.model.study import Section
from tidings.model.system import System


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Characterisation(Shown):
    """A system fitted to traces, what was measured, and how far to trust both.

    ``parameters`` has every fitted number with its standard error, ``waits`` likewise how long
    events wait at brokers, which comes of a system and is no part of it; ``quality`` counts the
    rows of every table by what became of them, ``coverage`` says how much of what was published
    could be followed to those who want it; ``stationarity`` tests whether publishers keep their
    rates; ``clocks`` says how far the clocks of two hosts may differ; ``kinds`` and, as a table,
    ``traffic`` say which kind of traffic publishers are, and ``dispersion`` how far counts of their
    events vary over lengths of time; ``laws`` are those fitted, by path of the parameter, ``rates``
    those of publishers over time; ``notes`` say what the traces do not and was assumed.
    ``examples`` are a few of the rows that
    were set aside, where :func:`with_examples` has looked for them.
    """

    _table = "parameters"
    _columns = ("path", "estimate", "standard_error", "unit", "family", "verdict")

    system: System
    measured: Outcome
    parameters: pd.DataFrame
    waits: pd.DataFrame
    quality: pd.DataFrame
    coverage: pd.DataFrame
    stationarity: pd.DataFrame
    clocks: pd.DataFrame
    kinds: Mapping[str, Traffic]
    traffic: pd.DataFrame
    dispersion: pd.DataFrame
    laws: Mapping[str, FittedLaw]
    rates: pd.DataFrame
    notes: tuple[str, ...] = ()
    bad_texts: BadTexts = field(default_factory=BadTexts)
    examples: pd.DataFrame = field(default_factory=pd.DataFrame)

    def plot(self, ax: Any = None) -> Any:
        """Draw the measured on-time shares as bars; fitted numbers have different units."""
        return self.measured.plot(ax)

    @property
    def sections(self) -> tuple[Section, ...]:
        """Show how far to trust it: rows, coverage, fits over histograms, rates."""
        return quality_sections(
            self.quality,
            self.coverage,
            self.laws,
            self.rates,
            examples=self.examples,
            clocks=self.clocks,
            traffic=self.traffic,
        )
