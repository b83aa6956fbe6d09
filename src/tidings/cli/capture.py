"""``tidings capture``: per-hop traces of traffic that other people's clients send."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import console, options, spark


def capture(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL", help="nats://USER:PASSWORD@HOST:PORT of a user of the account to trace."
        ),
    ],
    to: Annotated[
        Path, typer.Option("--to", metavar="TRACES", help="Folder to write the trace tables to.")
    ],
    pages: Annotated[
        list[str] | None,
        typer.Option(
            "--monitor",
            metavar="URL",
            help="Monitoring pages of a server, http://HOST:8222; once for each server that "
            "publishers connect to. By default port 8222 of the host.",
        ),
    ] = None,
    time: Annotated[
        str, typer.Option("--for", metavar="TIME", help="How long to trace, such as 90s or 2min.")
    ] = "2min",
    subject: Annotated[
        str, typer.Option("--subject", metavar="PATTERN", help="Trace these subjects only.")
    ] = ">",
    most: Annotated[
        float,
        typer.Option(
            "--most", metavar="N", min=0.1, help="Trace at most so many messages a second."
        ),
    ] = 100.0,
    lifetime: Annotated[
        str | None,
        typer.Option(
            "--lifetime", metavar="TIME", help="How long messages are of use; NATS does not know."
        ),
    ] = None,
    credentials: Annotated[
        Path | None,
        typer.Option("--creds", metavar="FILE", help="Credentials file of a NATS user."),
    ] = None,
    seed: options.Seed = 1,
    replace: Annotated[
        bool, typer.Option("--replace", help="Overwrite tables that already exist in the folder.")
    ] = False,
    master: options.Master = None,
    memory: options.Memory = None,
    json: options.Json = False,
) -> None:
    """Trace the messages of a running NATS network, hop by hop; nothing is delivered twice.

    Who publishes is learnt from counters; then every message heard, or a sample of them, is
    followed by a trace-only message, which servers report on and deliver to nobody.

    Example: tidings capture nats://app:secret@hub:4222 --for 2min --to traces/
    """
    from tidings.reporting import terminal
    from tidings.running.capturing import Plan
    from tidings.running.capturing import capture as capture_reports
    from tidings.traces import importing
    from tidings.traces.readers import nats

    plan = Plan(
        url=url,
        pages=tuple(pages or ()),
        seconds=options.seconds(time),
        subject=subject,
        most_per_s=most,
        lifetime_s=None if lifetime is None else options.seconds(lifetime),
        credentials=None if credentials is None else str(credentials),
        seed=seed,
    )
    importing.check_destination(to, nats.TABLES, replace_old=replace)
    with tempfile.TemporaryDirectory(prefix="tidings-capture-") as folder:
        reports = Path(folder) / "reports.jsonl"
        with console.progress("capturing") as step:
            captured = capture_reports(plan, reports, step)
            step("starting Spark")
            with spark.started(master, memory=memory) as session:
                imported = importing.import_traces(
                    session,
                    lambda keep: dataclasses.replace(
                        nats.read_nats(session, [str(reports)], keep), sampled=captured.sampled
                    ),
                    [str(reports)],
                    to,
                    step,
                )
    if json:
        console.show_json(
            {
                "traces": str(to),
                "from_ns": imported.window.from_ns,
                "until_ns": imported.window.until_ns,
                "heard": captured.heard,
                "traced": captured.traced,
                "sampled": captured.sampled,
                "reports": captured.reports,
                "account": imported.account.to_dict("records"),
                "notes": [*captured.notes, *imported.notes],
            }
        )
    else:
        console.show(terminal.quality_table(imported.account))
    console.note(
        f"heard {captured.heard} messages in {captured.seconds:g} s, traced {captured.traced} of "
        f"them; cost: {captured.traced} trace-only messages and {captured.reports} reports of "
        f"servers. Wrote {to}; next: tidings characterise {to} --to fitted.yaml"
    )
    console.warn((*captured.notes, *imported.notes))
