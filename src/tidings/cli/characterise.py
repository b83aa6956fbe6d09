"""``tidings characterise``: what traces tell about the system they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import pandas as pd
import typer

from tidings.characterisation.accumulating import add_traces, characterise_store
from tidings.characterisation.assembling import check_base
from tidings.characterisation.job import NEEDED, Characterisation, check_tables, with_examples
from tidings.characterisation.job import characterise as characterise_traces
from tidings.characterisation.quality import SET_ASIDE
from tidings.characterisation.regimes import (
    Regime,
    Regimes,
    characterise_regimes,
    hours_of,
    said_of_regimes,
)
from tidings.characterisation.store import is_store
from tidings.cli import console, options, spark
from tidings.cli.outcomes import check_output
from tidings.model import reading
from tidings.model.outcome_files import outcome_document, save_outcome
from tidings.model.progress import Progress
from tidings.model.system import System
from tidings.model.writing import check_file, check_new_folder
from tidings.reporting import terminal
from tidings.reporting.page import Report, write_page
from tidings.traces.places import require_tables, table_names
from tidings.traces.reading import Traces, read_traces
from tidings.traces.window import DailyHours

if TYPE_CHECKING:
    from tidings.validation.back_testing import BackTest


def characterise(
    traces: Annotated[
        str, typer.Argument(metavar="TRACES", help="A folder of trace tables, or its URL.")
    ],
    to: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the fitted system here: .yaml file or folder."),
    ] = None,
    measured: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Write the measured outcome here: .json file or folder."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a page here: what was measured, laws over histograms, rates, rows set "
            "aside, coverage.",
        ),
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option(metavar="SYSTEM", help="A system that knows what the traces do not tell."),
    ] = None,
    settle: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Leave out events of the last such time, still on their way when recording "
            "stopped: 5s, 2min.",
        ),
    ] = None,
    back_test: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0.1,
            max=0.9,
            help="Also fit to this first share of the window, predict the rest, and compare.",
        ),
    ] = None,
    regimes: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Where rates do not stay, also fit a system to every time in which they do, a "
            "stretch of the traces or, of two days or more, some hours of every day: "
            "FOLDER/regime-1.yaml and so on.",
        ),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            metavar="STORE",
            help="Add the statistics of these traces, of one day say, to this folder, and tell "
            "what all that were added tell together; the same day again replaces itself.",
        ),
    ] = None,
    quarantine: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write the rows that were set aside to this new folder, by table (Parquet): "
            "reason, file, line and text.",
        ),
    ] = None,
    margin: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="How much at either end of every day a new store keeps: longer than any event "
            "travels. By default 10min.",
        ),
    ] = None,
    master: options.Master = None,
    memory: options.Memory = None,
    json: options.Json = False,
    limit: options.Limit = 10,
) -> None:
    """Learn a system from its traces, on Spark; every number comes with its standard error.

    Example: [bold]tidings characterise traces/ --to fitted.yaml --measured measured.json[/]

    Day by day: [bold]tidings characterise monday/ --into store[/], and what all days tell, without
    reading them again: [bold]tidings characterise store[/]
    """
    # Whatever can be wrong is found out before Spark takes its time to start.
    settle_s = options.seconds(settle or "0s", or_zero=True)
    margin_s = None if margin is None else options.seconds(margin)
    places = _Places(
        to=to, measured=measured, regimes=regimes, report=report, quarantine=quarantine
    )
    places.check()
    known = reading.load(base) if base is not None else None
    if known is not None:
        check_base(known)
    whole = {
        "--back-test": back_test is not None,
        "--regimes": regimes is not None,
        "--quarantine": quarantine is not None,
    }
    _check_store_options(traces, into, margin=margin, settle=settle, whole=whole)
    work = _Work(traces=traces, base=known, settle_s=settle_s, master=master, memory=memory)
    tested: BackTest | None = None
    parts = Regimes()
    if is_store(traces):
        found = characterise_store(Path(traces), known)
    elif into is not None:
        found = work.added(into, margin_s)
    else:
        found, tested, parts = work.characterised(places, back_test)
    places.save(found, parts, traces)
    if json:
        console.show_json(_document(found, tested, None if regimes is None else parts))
    else:
        _show(found, tested, limit)
        if regimes is not None:
            console.show(said_of_regimes(parts, found, regimes))
        _say_set_aside(found, quarantine)
    console.warn(found.notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Where results go: a fitted system, the measured outcome, systems of regimes, a page."""

    to: Path | None
    measured: Path | None
    regimes: Path | None
    report: Path | None
    quarantine: Path | None = None

    def check(self) -> None:
        """Refuse places where nothing can be written."""
        if self.to is not None:
            reading.check_system_place(self.to)
        check_output(self.measured)
        if self.report is not None:
            check_file(self.report)
        if self.quarantine is not None:
            check_new_folder(self.quarantine)

    def save(self, found: Characterisation, parts: Regimes, traces: str) -> None:
        """Write everything that has a place."""
        if self.to is not None:
            reading.save(found.system, self.to)
        if self.measured is not None:
            save_outcome(found.measured, self.measured)
        if self.regimes is not None:
            for number, part in enumerate(parts.regimes, start=1):
                reading.save(part.found.system, self.regimes / f"regime-{number}.yaml")
        if self.report is not None:
            _write_report(found, traces, self.report)


def _check_store_options(
    traces: str,
    into: Path | None,
    *,
    margin: str | None,
    settle: str | None,
    whole: Mapping[str, bool],
) -> None:
    """Refuse what makes no sense with a store, or without one; ``whole`` is what asks for rows."""
    stored = is_store(traces)
    asked = [name for name, given in whole.items() if given]
    if asked and (stored or into is not None):
        raise typer.BadParameter(
            f"a store keeps statistics of whole days and no traces; for {' and '.join(asked)}, "
            "characterise the traces themselves, without a store"
        )
    if margin is not None and into is None:
        raise typer.BadParameter("--margin is how much a store keeps; give --into STORE, too")
    if stored and into is not None:
        raise typer.BadParameter(f"{traces} is a store; wants traces to add to {into}")
    if stored and settle is not None:
        raise typer.BadParameter("a store has settled when traces were added; leave --settle out")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What is read, with which Spark."""

    traces: str
    base: System | None
    settle_s: float
    master: str | None
    memory: str | None

    def characterised(
        self, places: _Places, back_test: float | None
    ) -> tuple[Characterisation, BackTest | None, Regimes]:
        """What the traces tell; and, if asked, what their first part foretells, and regimes."""
        names = table_names(self.traces)
        if names is not None:
            check_tables(self.traces, names, self.base)
        tested: BackTest | None = None
        parts = Regimes()
        asked: Any = {"base": self.base, "settle_s": self.settle_s}
        with self._started() as (given, step):
            found = characterise_traces(given, **asked, progress=step)
            if places.quarantine is not None or places.report is not None:
                step("rows set aside")
                found = with_examples(found, given, settle_s=self.settle_s, to=places.quarantine)
            if places.regimes is not None:
                parts = characterise_regimes(given, found, **asked, progress=step)
            if back_test is not None:
                from tidings.validation.back_testing import back_test as test_back

                tested = test_back(given, share=back_test, **asked, progress=step)
        return found, tested, parts

    def added(self, store: Path, margin_s: float | None) -> Characterisation:
        """What a store tells when the traces have been added to it."""
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
            with spark.started(self.master, memory=self.memory) as session:
                yield read_traces(session, self.traces), step


def _say_set_aside(found: Characterisation, quarantine: Path | None) -> None:
    """Where rows that were set aside can be looked at, if there are any."""
    rows = int(found.quality.loc[found.quality["fate"] == SET_ASIDE, "rows"].sum())
    if rows and quarantine is not None:
        console.note(f"set aside, with file and line: {quarantine}")
    elif rows:
        console.note(
            f"{rows:,} rows were set aside: --quarantine FOLDER writes them with file and line"
        )


def _write_report(found: Characterisation, traces: str, path: Path) -> None:
    page = Report(
        title=f"What {traces} tells",
        system=found.system,
        outcomes={"measured": found.measured},
        parameters=_told_numbers(found),
        sections=found.sections,
    )
    console.note(f"The page: {write_page(page, path)} (open it in a browser; it needs no network)")


def _told_numbers(found: Characterisation) -> pd.DataFrame:
    """All numbers that have a standard error: those of the system, and waits at its brokers."""
    return pd.concat([found.parameters, found.waits], ignore_index=True)


def _document(
    found: Characterisation, tested: BackTest | None, parts: Regimes | None
) -> dict[str, Any]:
    return {
        "system": reading.system_document(found.system),
        "parameters": found.parameters.to_dict("records"),
        "waits": found.waits.to_dict("records"),
        "measured": outcome_document(found.measured),
        "quality": found.quality.to_dict("records"),
        "set_aside": found.examples.to_dict("records"),
        "coverage": found.coverage.to_dict("records"),
        "stationarity": found.stationarity.to_dict("records"),
        "clocks": found.clocks.to_dict("records"),
        "regimes": [] if parts is None else [_regime_document(each) for each in parts.regimes],
        "regimes_verdict": None if parts is None else parts.verdict,
        "back_test": None if tested is None else tested.to_document(),
        "notes": list(found.notes),
    }


def _regime_document(regime: Regime) -> dict[str, Any]:
    window = regime.window
    return {
        "from_ns": window.from_ns,
        "until_ns": window.until_ns,
        "hours_utc": list(hours_of(window)) if isinstance(window, DailyHours) else None,
        "observed_s": window.seconds,
        "system": reading.system_document(regime.found.system),
    }


def _show(found: Characterisation, tested: BackTest | None, limit: int) -> None:
    console.show(
        terminal.parameters_table(_told_numbers(found), limit=limit),
        terminal.outcome_table(found.measured, limit=limit),
        terminal.quality_table(found.quality),
        terminal.coverage_table(found.coverage),
    )
    if tested is not None:
        console.show(terminal.comparison_table(tested.comparison, limit=limit), tested.text)
