"""``tidings testbed run``: a system on real servers, recorded as trace tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidings.cli import console, options
from tidings.model.writing import check_new_folder


def run(
    system: options.SystemFile,
    to: Annotated[Path, typer.Option(metavar="FOLDER", help="New folder for the trace tables.")],
    duration: Annotated[
        str, typer.Option(metavar="TIME", help="How long to publish and record.")
    ] = "20s",
    warmup: Annotated[
        str, typer.Option(metavar="TIME", help="How long to publish before recording starts.")
    ] = "2s",
    max_events: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Refuse to run if more events than this would be published."
        ),
    ] = 50_000,
    compress: Annotated[
        float,
        typer.Option(
            metavar="N",
            help="Make times between failures and repair times this many times shorter.",
        ),
    ] = 1.0,
    broker: options.Broker = "nats",
    seed: options.Seed = 1,
    json: options.Json = False,
) -> None:
    """Run a system on real brokers of this machine, and record what happens.

    Links become relays that add delay and loss, and service times are spent in front of the
    servers: nats-server processes, which trace every message, or mosquitto ones. All processes
    end with the run. Ctrl-C keeps what was recorded so far, marked as incomplete.

    Example: tidings testbed run city.yaml --to traces --duration 30s
    """
    from tidings.model import reading
    from tidings.model.trace_files import write_trace_folder

    # The client library comes with an extra; help must not depend on it.
    from tidings.testbed.running import require_whole, run_testbed
    from tidings.testbed.runs import TestbedOptions
    from tidings.testbed.tables import doubts, manifest, trace_tables

    chosen = TestbedOptions(
        duration_s=options.seconds(duration),
        warmup_s=options.seconds(warmup, or_zero=True),
        seed=seed,
        most_events=max_events,
        compression=compress,
        broker=broker,
    )
    check_new_folder(to)
    loaded_system = reading.load(system)
    with console.progress("testbed") as step:
        done = run_testbed(loaded_system, chosen, progress=step)
        if done.incomplete is None:
            step("writing the traces")
        tables, said = trace_tables(done), manifest(done)
        write_trace_folder(tables, said, to)
        require_whole(done, f"its traces are kept in {to} and marked incomplete")
    rows = {name: table.num_rows for name, table in tables.items()}
    doubtful = doubts(done)
    if json:
        console.show_json({"traces": str(to), "rows": rows, **said, "doubts": doubtful})
    else:
        counted = ", ".join(f"{count:,} {name}" for name, count in rows.items())
        console.note(f"{to}: {counted}")
        late_ms = {name: 1e3 * value for name, value in said["lateness"].items()}
        console.note(
            f"relays were {late_ms['relay_p50_s']:.2f} ms late (median), "
            f"{late_ms['relay_p99_s']:.2f} ms (99th percentile)"
        )
        console.note(f"Next: tidings characterise {to} --to fitted.yaml --measured measured.json")
    console.warn(tuple(doubtful))
