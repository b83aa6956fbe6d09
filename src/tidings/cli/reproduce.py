"""``tidings reproduce``: the experiments of a paper, run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import console, options
from tidings.model import units
from tidings.reporting import reproduction_tables as tables
from tidings.reporting.reproduction_page import Reproduction, write_reproduction
from tidings.reproduction import content_timeliness as paper
from tidings.reproduction.latencies import BUILT_IN, LinkDelays, read_latencies, wide_area

PAPERS = ("content-timeliness",)
LOADS = (*paper.LOADS, "both")
USUAL = paper.Plan()
PAGE = "reproduction.html"


def reproduce(
    name: Annotated[str, typer.Argument(metavar="|".join(PAPERS), help="Which paper.")],
    systems: Annotated[
        int, typer.Option(metavar="N", min=1, help="Random systems.")
    ] = USUAL.systems,
    seeds: Annotated[
        int, typer.Option(metavar="N", min=1, help="Simulations of each, with other phases.")
    ] = USUAL.replications,
    duration: Annotated[
        str, typer.Option(metavar="TIME", help="Simulated time of each simulation.")
    ] = f"{USUAL.duration_s:g}s",
    load: Annotated[
        str,
        typer.Option(metavar="|".join(LOADS), help="How busy the busiest broker is: 30 % or 75 %."),
    ] = "both",
    latencies: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Round-trip times to draw links from: Parquet with slice, src, dst, rtt_ms. "
            "By default links come from a law of wide-area shape.",
        ),
    ] = None,
    to: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where points, errors and the page go.")
    ] = Path("tidings-reproduction"),
    seed: options.Seed = 1,
    json: options.Json = False,
) -> None:
    """Run the experiments of a paper: predicted against simulated, errors, claims, scatter plots.

    Example: [bold]tidings reproduce content-timeliness --systems 2 --load high[/]
    """
    if name not in PAPERS:
        raise typer.BadParameter(f"there is no paper '{name}'; wants one of {', '.join(PAPERS)}")
    if load not in LOADS:
        raise typer.BadParameter(f"'{load}' is not one of {', '.join(LOADS)}")
    paper.check_folder(to)
    delays, notes = _delays(latencies)
    plan = paper.Plan(
        systems=systems,
        replications=seeds,
        duration_s=_seconds(duration),
        loads=tuple(paper.LOADS) if load == "both" else (load,),
        seed=seed,
        delays=delays,
    )
    with console.progress("reproducing") as step:
        study = paper.reproduce(plan, notes=notes, progress=step)
    paper.save(study, to)
    page = write_reproduction(
        Reproduction(
            title=paper.TITLE,
            points=study.points,
            by_setting=study.by_setting,
            by_skewness=study.by_skewness,
            document=study.to_document(),
        ),
        to / PAGE,
    )
    if json:
        console.show_json({**study.to_document(), "folder": str(to), "page": str(page)})
        return
    console.show(*tables.error_tables(study.by_setting, paper.LOADS))
    console.show(tables.skewness_table(study.by_skewness))
    console.show(tables.claims_text(study.to_document()["claims"]))
    console.show(f"The page: {page} (open it in a browser; it needs no network)")


def _delays(latencies: Path | None) -> tuple[LinkDelays, tuple[str, ...]]:
    if latencies is None:
        return wide_area, (BUILT_IN,)
    table = read_latencies(latencies)
    return table.draw, (table.describe(latencies.name),)


def _seconds(text: str) -> float:
    seconds = units.parse(text, units.SECONDS)
    if seconds is None or seconds <= 0:
        raise typer.BadParameter(f"'{text}' is not a time above 0, such as 90s or 2h")
    return seconds
