"""``tidings characterise``: what traces tell about the system they come from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import console, options

if TYPE_CHECKING:
    from tidings.validation.back_testing import BackTest


def characterise(
    traces: Annotated[
        str,
        typer.Argument(
            metavar="TRACES", help="A folder of trace tables, its URL, or catalog:SCHEMA."
        ),
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
            help="Write an HTML page of what was measured: fitted distributions over "
            "histograms, rates, rows set aside, coverage.",
        ),
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option(
            metavar="SYSTEM",
            help="A system file that supplies what the traces do not contain, such as filters or "
            "link delays.",
        ),
    ] = None,
    settle: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Ignore events published in the last 5s, 2min, ... of the recording: they "
            "may still have been in transit when it stopped, and would count as lost.",
        ),
    ] = None,
    back_test: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0.1,
            max=0.9,
            help="Back-test: fit to this first share of the recorded time, predict the rest, "
            "and compare.",
        ),
    ] = None,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay",
            help="Keep the recorded publishing times beside the fitted system (--to FILE.yaml), "
            "which then replays them instead of drawing from fitted distributions.",
        ),
    ] = False,
    regimes: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Where rates change over time, also fit one system to each period with "
            "steady rates (a stretch of the traces or, for two days or more, certain "
            "hours of every day): FOLDER/regime-1.yaml and so on.",
        ),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            metavar="STORE",
            help="Add the statistics of these traces (one day, say) to this folder, and fit a "
            "system to everything added so far. Adding the same day again replaces it.",
        ),
    ] = None,
    quarantine: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write the rows that were set aside to this new folder, a Parquet table "
            "each: reason, file, line and text.",
        ),
    ] = None,
    margin: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="With --into, for a new store: how much of both ends of each part is kept, "
            "to join events that cross midnight. Must be longer than any delay; 10min by "
            "default.",
        ),
    ] = None,
    master: options.Master = None,
    memory: options.Memory = None,
    json: options.Json = False,
    limit: options.Limit = 10,
) -> None:
    """Fit a system to its traces, on Spark; every number comes with its standard error.

    Example: tidings characterise traces/ --to fitted.yaml --measured measured.json

    Day by day: tidings characterise monday/ --into store; and to fit all days added so far,
    without reading their traces again: tidings characterise store
    """
    from tidings.characterisation.count.store import is_store
    from tidings.characterisation.fit.assembling import check_base
    from tidings.characterisation.regimes import Regimes, said_of_regimes
    from tidings.characterisation.stored import characterise_store
    from tidings.cli.characterising import ResultFiles, Work, document, say_set_aside, show
    from tidings.model import reading

    # Whatever can be wrong is found out before Spark takes its time to start.
    settle_s = options.seconds(settle or "0s", or_zero=True)
    margin_s = None if margin is None else options.seconds(margin)
    places = ResultFiles(
        to=to,
        measured=measured,
        regimes=regimes,
        report=report,
        quarantine=quarantine,
        replay=replay,
    )
    places.check()
    known = reading.load(base) if base is not None else None
    if known is not None:
        check_base(known)
    whole = {
        "--back-test": back_test is not None,
        "--regimes": regimes is not None,
        "--quarantine": quarantine is not None,
        "--replay": replay,
    }
    _check_store_options(traces, into, margin=margin, settle=settle, whole=whole)
    work = Work(traces=traces, base=known, settle_s=settle_s, master=master, memory=memory)
    tested: BackTest | None = None
    parts = Regimes()
    if is_store(traces):
        characterisation = characterise_store(Path(traces), known)
    elif into is not None:
        characterisation = work.added(into, margin_s)
    else:
        characterisation, tested, parts = work.characterised(places, back_test)
    places.save(characterisation, parts, traces, tested)
    if json:
        console.show_json(document(characterisation, tested, None if regimes is None else parts))
    else:
        show(characterisation, tested, limit)
        if regimes is not None:
            console.show(said_of_regimes(parts, characterisation, regimes))
        say_set_aside(characterisation, quarantine)
    console.warn(characterisation.notes)


def _check_store_options(
    traces: str,
    into: Path | None,
    *,
    margin: str | None,
    settle: str | None,
    whole: Mapping[str, bool],
) -> None:
    """Refuse what makes no sense with a store, or without one; ``whole`` is what asks for rows."""
    from tidings.characterisation.count.store import is_store

    stored = is_store(traces)
    asked = [name for name, given in whole.items() if given]
    if asked and (stored or into is not None):
        raise typer.BadParameter(
            f"a store keeps statistics, not traces, so {' and '.join(asked)} cannot be "
            "used with it; characterise the traces themselves, without a store"
        )
    if margin is not None and into is None:
        raise typer.BadParameter("--margin needs --into STORE")
    if stored and into is not None:
        raise typer.BadParameter(
            f"{traces} is a store of statistics; give the traces that are to be added to {into}"
        )
    if stored and settle is not None:
        raise typer.BadParameter(
            "--settle applies when traces are added to a store, not when a store is read; "
            "leave it out"
        )
