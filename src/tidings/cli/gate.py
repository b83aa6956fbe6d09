"""``tidings gate``: stop a deployment that would break a target."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import console, options
from tidings.cli.plan.asking import (
    DOUBT,
    SECONDS,
    Of,
    Share,
    Slo,
    asked,
    conclude,
    playing,
    standing_text,
)
from tidings.model.writing import check_file, write_file


def gate(
    system: options.SystemFile,
    slo: Slo = None,
    target: Share = None,
    of: Of = 1.0,
    summary: Annotated[
        Path | None,
        typer.Option(
            "--summary",
            metavar="FILE",
            help='Append a Markdown summary to this file, such as "$GITHUB_STEP_SUMMARY".',
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(
            "--junit", metavar="FILE", help="Write JUnit XML: a test case for each subscriber."
        ),
    ] = None,
    seconds: options.Seconds = SECONDS,
    seed: options.Seed = 1,
    json: options.Json = False,
    limit: options.Limit = 10,
) -> None:
    """Gate a deployment: exit code 0 if all targets are met, 1 if not or if that is undecided.

    A gate that is not met names the worst subscribers, the main cause and the best change.

    Example: tidings gate city.yaml --slo slo.yaml --junit gate.xml
    """
    for path in (summary, junit):
        if path is not None:
            check_file(path)
    loaded_system, wanted = asked(system, slo, target, of)
    from tidings.planning.evidence import MEETS, MISSES, OPEN
    from tidings.planning.gating import hold
    from tidings.reporting import gates

    with console.progress("predicting") as step:
        play = playing(True, seed, seconds, step)
        held = hold(loaded_system, wanted, play, progress=step)
    document, title = held.to_document(), system.name
    if summary is not None:
        before = summary.read_bytes() if summary.exists() else b""
        write_file(summary, before + gates.markdown(document, title, limit).encode())
    if junit is not None:
        write_file(junit, gates.junit(document, title).encode())
    if json:
        console.show_json(document)
    else:
        evidence = held.evidence
        passed = {MEETS: True, MISSES: False, OPEN: None}[evidence.verdict]
        words = ("met", "not met", "undecided")
        console.show_checked(passed, words, standing_text(evidence.simulated or evidence.predicted))
        if not held.met:
            console.show(gates.gate_table(document, limit), *gates.sentences(document))
        if evidence.verdict == OPEN:
            console.show(f"It cannot be decided whether the targets are met: {DOUBT}.")
    conclude(held.evidence.verdict)
