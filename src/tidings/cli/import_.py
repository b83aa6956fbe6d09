"""``tidings import``: trace tables from the formats people have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import console, options, spark

if TYPE_CHECKING:
    from tidings.traces.readers.mapping import TraceMapping
    from tidings.traces.readers.reading import Keep, Reader, Reading


def import_(
    format_: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT",
            help="table (CSV, JSON Lines or Parquet with --mapping), otlp (spans: "
            "OpenTelemetry, Tempo, Jaeger, Zipkin), "
            "nats (message-trace events), updown (Failure Trace Archive), connectivity, probes, "
            "and counters and histograms: jsz (NATS), prometheus, rabbitmq, burrow (Kafka), "
            "omb (OpenMessaging Benchmark), csv (columns by name); packages may bring more.",
        ),
    ],
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE...", help="Files, folders, glob patterns or URLs."),
    ],
    to: Annotated[
        Path, typer.Option(metavar="TRACES", help="Folder to write the trace tables to.")
    ],
    mapping: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="YAML file that maps your columns to those of trace tables; required for table.",
        ),
    ] = None,
    broker: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Use when brokers recorded nothing: one broker of this name, with no service "
            "time, stands for all of them. otlp always needs one; 'broker' by default.",
        ),
    ] = None,
    unit: Annotated[
        str,
        typer.Option(
            metavar="UNIT", help="Unit of times in columns whose names carry none: s, ms, us, ns."
        ),
    ] = "s",
    lifetime: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="otlp: how long messages are of use, where spans do not tell: 30s, of a "
            "destination orders.*=5s, or an attribute that holds it @messaging.header.ttl=ms. "
            "Can be repeated.",
        ),
    ] = None,
    pseudonyms: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Replace strings in contents and filters by pseudonyms, derived from the "
            "secret in this file; the same secret gives the same pseudonyms.",
        ),
    ] = None,
    poll: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="jsz, rabbitmq, burrow: first poll this server into SOURCE, a folder, a file each "
            "time; http://HOST:PORT (of Burrow with /v3/kafka/CLUSTER/consumer/GROUP).",
        ),
    ] = None,
    every: Annotated[
        str, typer.Option("--every", metavar="TIME", help="With --poll: how often.")
    ] = "15s",
    time: Annotated[
        str, typer.Option("--for", metavar="TIME", help="With --poll: for how long.")
    ] = "1h",
    replace: Annotated[
        bool, typer.Option("--replace", help="Overwrite tables that already exist in the folder.")
    ] = False,
    master: options.Master = None,
    memory: options.Memory = None,
    json: options.Json = False,
) -> None:
    """Convert logs, spans or probes to trace tables; bad lines are set aside with a reason.

    Example: tidings import table log.csv.gz --mapping mine.yaml --to traces/
    """
    from tidings.reporting import terminal
    from tidings.traces import importing
    from tidings.traces.placing import QUARANTINE
    from tidings.traces.readers.lifetimes import parse_lifetimes
    from tidings.traces.readers.lines import expand
    from tidings.traces.readers.mapping import read_mapping
    from tidings.traces.readers.pseudonyms import Pseudonyms, with_pseudonyms
    from tidings.traces.readers.reading import Asked
    from tidings.traces.readers.registry import find_reader
    from tidings.traces.readers.times import NANOSECONDS_PER

    if unit not in NANOSECONDS_PER:
        raise typer.BadParameter(f"'{unit}' is not a unit; wants {', '.join(NANOSECONDS_PER)}")
    reader = find_reader(format_)
    if ("mapping" in reader.wants) != (mapping is not None):
        raise typer.BadParameter(
            "--mapping is required for the format 'table', and only used with it"
        )
    if lifetime and "lifetimes" not in reader.wants:
        raise typer.BadParameter(f"--lifetime means nothing to the format '{format_}'")
    columns = read_mapping(mapping) if mapping is not None else None
    lifetimes = parse_lifetimes(lifetime or ())
    alone = broker if broker is not None or not reader.brokerless else "broker"
    secret = Pseudonyms.from_file(pseudonyms) if pseudonyms is not None else None
    importing.check_destination(to, _tables(reader, columns, alone), replace_old=replace)
    if poll is not None:
        _poll(poll, format_, sources, options.seconds(every), options.seconds(time))
    files = expand(sources)
    with console.progress("importing") as step:
        step("starting Spark")
        with spark.started(master, memory=memory) as session:

            def read(keep: Keep) -> Reading:
                asked = Asked(keep=keep, unit=unit, mapping=columns, lifetimes=lifetimes)
                as_read = reader.read(session, files, asked)
                if alone is not None:
                    as_read = importing.with_black_box(as_read, alone)
                return as_read if secret is None else with_pseudonyms(as_read, secret)

            imported = importing.import_traces(session, read, files, to, step)
    if json:
        console.show_json(
            {
                "traces": str(to),
                "from_ns": imported.window.from_ns,
                "until_ns": imported.window.until_ns,
                "account": imported.account.to_dict("records"),
                "notes": list(imported.notes),
            }
        )
    else:
        console.show(terminal.quality_table(imported.account))
        if imported.set_aside:
            console.note(f"rows set aside, with file and line: {to / QUARANTINE}")
    console.warn(imported.notes)


def _poll(url: str, format_: str, sources: list[str], every_s: float, for_s: float) -> None:
    """Poll a server into the one folder that is the source."""
    from tidings.running import polling

    if format_ not in polling.PAGES or len(sources) != 1:
        raise typer.BadParameter(
            f"--poll is for {', '.join(polling.PAGES)}, with one folder as SOURCE that polls go to"
        )
    with console.progress("polling") as step:
        polled = polling.poll(
            url, format_, Path(sources[0]), every_s=every_s, for_s=for_s, tell=step
        )
    failed = dict.fromkeys(polled.problems)
    console.note(f"{polled.polls} polls in {sources[0]}, {len(polled.problems)} failed")
    console.warn(tuple(failed))


def _tables(reader: Reader, columns: TraceMapping | None, broker: str | None) -> tuple[str, ...]:
    """List the tables that an import will write."""
    names = reader.tables if columns is None else tuple(table.name for table in columns.tables)
    return (*names, "hops") if broker is not None and "publications" in names else names
