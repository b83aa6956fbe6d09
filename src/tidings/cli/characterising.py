"""The work behind ``tidings characterise``: what is read, where results go, how they are shown."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import typer

from tidings.characterisation.count.adding import add_traces
from tidings.characterisation.fit.fitted import Characterisation
from tidings.characterisation.fit.quality import SET_ASIDE
from tidings.characterisation.fit.traffic import COMMON
from tidings.characterisation.job import characterise as characterise_traces
from tidings.characterisation.job import check_tables, with_examples
from tidings.characterisation.regimes import Regime, Regimes, characterise_regimes, hours_of
from tidings.characterisation.replaying import keep_times, times_file
from tidings.characterisation.statistics import NEEDED
from tidings.characterisation.stored import characterise_store
from tidings.cli import console, spark
from tidings.cli.outcomes import check_output
from tidings.model import reading
from tidings.model.outcome_files import outcome_document, save_outcome
from tidings.model.progress import Progress
from tidings.model.system import System
from tidings.model.writing import check_file, check_new_folder
from tidings.reporting import terminal
from tidings.reporting.headline import KeyFigure
from tidings.reporting.page import Report, write_page
from tidings.traces.parsing_once import parsed_once
from tidings.traces.places import require_tables, table_names
from tidings.traces.reading import Traces, read_traces
from tidings.traces.window import DailyHours

if TYPE_CHECKING:
    from tidings.validation.back_testing import BackTest


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFiles:
    """Where results go: a fitted system, the measured outcome, systems of regimes, a page."""

    to: Path | None
    measured: Path | None
    regimes: Path | None
    report: Path | None
    quarantine: Path | None = None
    replay: bool = False  # whether publishing times are kept beside the fitted system

    def check(self) -> None:
        """Refuse places where nothing can be written."""
        if self.replay and (self.to is None or self.to.suffix not in (".yaml", ".yml")):
            raise typer.BadParameter(
                f"--replay writes publishing times beside the fitted system, got --to {self.to}; "
                "wants --to FILE.yaml"
            )
        if self.to is not None:
            reading.check_system_place(self.to)
        check_output(self.measured)
        if self.regimes is not None:
            check_file(self.regimes / "regime-1.yaml")
        if self.report is not None:
            check_file(self.report)
        if self.quarantine is not None:
            check_new_folder(self.quarantine)

    def save(
        self,
        characterisation: Characterisation,
        parts: Regimes,
        traces: str,
        tested: BackTest | None = None,
    ) -> None:
        """Write everything that has a place."""
        if self.to is not None:
            reading.save(characterisation.system, self.to)
        if self.measured is not None:
            save_outcome(characterisation.measured, self.measured)
        if self.regimes is not None:
            for number, part in enumerate(parts.regimes, start=1):
                reading.save(part.fitted.system, self.regimes / f"regime-{number}.yaml")
        if self.report is not None:
            _write_report(characterisation, traces, self.report, tested)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is read, with which Spark."""

    traces: str
    base: System | None
    settle_s: float
    master: str | None
    memory: str | None

    def characterised(
        self, places: ResultFiles, back_test: float | None
    ) -> tuple[Characterisation, BackTest | None, Regimes]:
        """Characterise the traces; if asked, also what their first part predicts, and regimes."""
        names = table_names(self.traces)
        if names is not None:
            check_tables(self.traces, names, self.base)
            _check_parted(names, places, back_test)
        tested: BackTest | None = None
        parts = Regimes()
        asked: Any = {"base": self.base, "settle_s": self.settle_s}
        with self._started() as (given, step):
            characterisation = characterise_traces(given, **asked, progress=step)
            if places.quarantine is not None or places.report is not None:
                step("rows set aside")
                characterisation = with_examples(
                    characterisation, given, settle_s=self.settle_s, to=places.quarantine
                )
            if places.replay and places.to is not None:
                step("publishing times")
                characterisation = keep_times(characterisation, given, times_file(places.to))
            if places.regimes is not None:
                parts = characterise_regimes(given, characterisation, **asked, progress=step)
            if back_test is not None:
                from tidings.validation.back_testing import back_test as test_back

                tested = test_back(
                    given, share=back_test, **asked, replay=places.replay, progress=step
                )
        return characterisation, tested, parts

    def added(self, store: Path, margin_s: float | None) -> Characterisation:
        """Add the traces to a store, and characterise it."""
        names = table_names(self.traces)
        if names is not None:
            require_tables(self.traces, NEEDED, names)
        with self._started() as (given, step):
            add_traces(
                given,
                store,
                base=self.base,
                settle_s=self.settle_s,
                margin_s=margin_s,
                progress=step,
            )
        return characterise_store(store, self.base)

    @contextmanager
    def _started(self) -> Iterator[tuple[Traces, Progress]]:
        with console.progress("characterising") as step:
            step("starting Spark")
            with (
                spark.started(self.master, memory=self.memory) as session,
                parsed_once(read_traces(session, self.traces)) as given,
            ):
                yield given, step


def _check_parted(names: Collection[str], places: ResultFiles, back_test: float | None) -> None:
    """Refuse to part in time what cannot be parted: counters and histograms."""
    whole = sorted({"levels", "histograms"} & set(names))
    if whole and (back_test is not None or places.regimes is not None or places.replay):
        raise typer.BadParameter(
            f"--back-test, --regimes and --replay need traces alone; the folder has {whole[0]}, "
            "which cannot be parted in time: move it elsewhere"
        )


def say_set_aside(characterisation: Characterisation, quarantine: Path | None) -> None:
    """Say where rows that were set aside can be looked at, if there are any."""
    quality = characterisation.quality
    rows = int(quality.loc[quality["fate"] == SET_ASIDE, "rows"].sum())
    if rows and quarantine is not None:
        console.note(f"rows set aside, with file and line: {quarantine}")
    elif rows:
        console.note(
            f"{rows:,} rows were set aside (not used); to see them with file and line, "
            "add --quarantine FOLDER"
        )


def _write_report(
    characterisation: Characterisation, traces: str, path: Path, tested: BackTest | None
) -> None:
    page = Report(
        title=f"Measured from {traces}",
        system=characterisation.system,
        outcomes={"measured": characterisation.measured},
        parameters=_numbers_with_errors(characterisation),
        sections=characterisation.sections,
        figures=() if tested is None else (_figure(tested),),
    )
    console.note(f"Report: {write_page(page, path)} (open it in a browser; it needs no network)")


def _figure(tested: BackTest) -> KeyFigure:
    """Make the figure of a back-test's verdict, for the first screen of a page."""
    verdict = tested.verdict
    shares = f"{verdict.predicted:.3f} predicted, {verdict.unseen:.3f} unseen"
    said = "covered by stated errors" if verdict.is_covered else "NOT covered by stated errors"
    return KeyFigure(
        label="back-test error", value=f"{verdict.mean_error:.3f}", note=f"{shares}; {said}"
    )


def _numbers_with_errors(characterisation: Characterisation) -> pd.DataFrame:
    """Tabulate all numbers with a standard error: those of the system, and waits at its brokers."""
    parts = [characterisation.parameters, characterisation.waits]
    return pd.concat([each for each in parts if len(each)] or parts[:1], ignore_index=True)


def document(
    characterisation: Characterisation, tested: BackTest | None, parts: Regimes | None
) -> dict[str, Any]:
    """Gather everything that was learnt from traces, for a program."""
    return {
        "system": reading.system_document(characterisation.system),
        "parameters": characterisation.parameters.to_dict("records"),
        "waits": characterisation.waits.to_dict("records"),
        "measured": outcome_document(characterisation.measured),
        "quality": characterisation.quality.to_dict("records"),
        "set_aside": characterisation.examples.to_dict("records"),
        "coverage": characterisation.coverage.to_dict("records"),
        "stationarity": characterisation.stationarity.to_dict("records"),
        "traffic": characterisation.traffic.to_dict("records"),
        "dispersion": characterisation.dispersion.to_dict("records"),
        "clocks": characterisation.clocks.to_dict("records"),
        "regimes": [] if parts is None else [_regime_document(each) for each in parts.regimes],
        "regimes_verdict": None if parts is None else parts.verdict,
        "back_test": None if tested is None else tested.to_document(),
        "notes": list(characterisation.notes),
    }


def _regime_document(regime: Regime) -> dict[str, Any]:
    window = regime.window
    return {
        "from_ns": window.from_ns,
        "until_ns": window.until_ns,
        "hours_utc": list(hours_of(window)) if isinstance(window, DailyHours) else None,
        "observed_s": window.seconds,
        "system": reading.system_document(regime.fitted.system),
    }


def show(characterisation: Characterisation, tested: BackTest | None, limit: int) -> None:
    """Print what was learnt from traces as tables; what a back-test comes to stands first."""
    if tested is not None:
        console.show(tested.verdict.text)
    console.show(
        terminal.parameters_table(_numbers_with_errors(characterisation), limit=limit),
        terminal.outcome_table(characterisation.measured, limit=limit),
        terminal.quality_table(characterisation.quality),
    )
    if len(characterisation.coverage):
        console.show(terminal.coverage_table(characterisation.coverage))
    uncommon = characterisation.traffic[~characterisation.traffic["kind"].isin(COMMON)]
    if len(uncommon):
        console.show(terminal.traffic_table(uncommon, limit=limit))
    if tested is not None:
        console.show(terminal.comparison_table(tested.comparison, limit=limit), tested.text)
