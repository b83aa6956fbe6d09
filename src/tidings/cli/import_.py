"""``tidings import``: trace tables from the formats people have."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import console, options, spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidings.traces.readers.mapping import TraceMapping
    from tidings.traces.readers.reading import Keep, Reading


class Format(StrEnum):
    """What can be imported."""

    TABLE = "table"
    OTLP = "otlp"
    NATS = "nats"
    UP_DOWN = "updown"
    CONNECTIVITY = "connectivity"
    PROBES = "probes"
    JSZ = "jsz"
    PROMETHEUS = "prometheus"
    RABBITMQ = "rabbitmq"
    BURROW = "burrow"
    OMB = "omb"
    CSV = "csv"


def import_(
    format_: Annotated[
        Format,
        typer.Argument(
            metavar="FORMAT",
            help="table (CSV, JSON Lines or Parquet with --mapping), otlp (OpenTelemetry spans), "
            "nats (message-trace events), updown (Failure Trace Archive), connectivity, probes, "
            "and counters and histograms: jsz (NATS), prometheus, rabbitmq, burrow (Kafka), "
            "omb (OpenMessaging Benchmark), csv (columns by name).",
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
    from tidings.traces.readers.lines import expand
    from tidings.traces.readers.mapping import read_mapping
    from tidings.traces.readers.pseudonyms import Pseudonyms, with_pseudonyms
    from tidings.traces.readers.times import NANOSECONDS_PER

    if unit not in NANOSECONDS_PER:
        raise typer.BadParameter(f"'{unit}' is not a unit; wants {', '.join(NANOSECONDS_PER)}")
    if (format_ is Format.TABLE) != (mapping is not None):
        raise typer.BadParameter(
            "--mapping is required for the format 'table', and only used with it"
        )
    columns = read_mapping(mapping) if mapping is not None else None
    secret = Pseudonyms.from_file(pseudonyms) if pseudonyms is not None else None
    importing.check_destination(to, _tables(format_, columns, broker), replace_old=replace)
    if poll is not None:
        _poll(poll, format_, sources, options.seconds(every), options.seconds(time))
    files = expand(sources)
    with console.progress("importing") as step:
        step("starting Spark")
        with spark.started(master, memory=memory) as session:

            def read(keep: Keep) -> Reading:
                as_read = _reader(format_, session, files, columns, unit)(keep)
                if broker is not None or format_ is Format.OTLP:
                    as_read = importing.with_black_box(as_read, broker or "broker")
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


def _poll(url: str, format_: Format, sources: list[str], every_s: float, for_s: float) -> None:
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


def _tables(format_: Format, columns: TraceMapping | None, broker: str | None) -> tuple[str, ...]:
    """The tables that an import will write."""
    from tidings.traces.readers import nats, omb, otlp, prometheus
    from tidings.traces.readers.periods import CONNECTIVITY, UP_AND_DOWN

    if columns is None:
        return {
            Format.OTLP: (*otlp.TABLES, "hops"),
            Format.NATS: nats.TABLES,
            Format.UP_DOWN: (UP_AND_DOWN.table,),
            Format.CONNECTIVITY: (CONNECTIVITY.table,),
            Format.PROBES: ("probes",),
            Format.PROMETHEUS: prometheus.TABLES,
            Format.OMB: omb.TABLES,
            **dict.fromkeys((Format.JSZ, Format.RABBITMQ, Format.BURROW, Format.CSV), ("levels",)),
        }[format_]
    names = tuple(table.name for table in columns.tables)
    return (*names, "hops") if broker is not None and "publications" in names else names


def _reader(
    format_: Format,
    session: SparkSession,
    files: list[str],
    columns: TraceMapping | None,
    unit: str,
) -> Callable[[Keep], Reading]:
    from tidings.traces.readers.burrow import read_burrow
    from tidings.traces.readers.flat import read_flat
    from tidings.traces.readers.jsz import read_jsz
    from tidings.traces.readers.level_columns import read_level_columns
    from tidings.traces.readers.nats import read_nats
    from tidings.traces.readers.omb import read_omb
    from tidings.traces.readers.otlp import read_otlp
    from tidings.traces.readers.periods import CONNECTIVITY, UP_AND_DOWN, read_periods
    from tidings.traces.readers.probes import read_probes
    from tidings.traces.readers.prometheus import read_prometheus
    from tidings.traces.readers.rabbitmq import read_rabbitmq_polls

    readers: dict[Format, Callable[[Keep], Reading]] = {
        Format.OTLP: lambda keep: read_otlp(session, files, keep),
        Format.NATS: lambda keep: read_nats(session, files, keep),
        Format.UP_DOWN: lambda _: read_periods(session, files, UP_AND_DOWN, unit),
        Format.CONNECTIVITY: lambda _: read_periods(session, files, CONNECTIVITY, unit),
        Format.PROBES: lambda _: read_probes(session, files, unit),
        Format.JSZ: lambda _: read_jsz(session, files),
        Format.PROMETHEUS: lambda keep: read_prometheus(session, files, keep),
        Format.RABBITMQ: lambda _: read_rabbitmq_polls(session, files),
        Format.BURROW: lambda _: read_burrow(session, files),
        Format.OMB: lambda _: read_omb(session, files),
        Format.CSV: lambda _: read_level_columns(session, files, unit),
    }
    if columns is not None:
        return lambda _: read_flat(session, files, columns)
    return readers[format_]
