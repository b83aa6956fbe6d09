"""``tidings capture``: per-hop traces of traffic that other people's clients send."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import console, options, spark
from tidings.model.writing import check_new_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidings.model.progress import Progress
    from tidings.running.capturing import Captured
    from tidings.running.mqtt_capturing import MqttPlan
    from tidings.traces.importing import Imported
    from tidings.traces.readers.reading import Keep, Reading

_CONSUMERS = "consumers"  # a folder of its own for what JetStream consumers count


def capture(
    urls: Annotated[
        list[str],
        typer.Argument(
            metavar="URL...",
            help="nats://USER:PASSWORD@HOST:PORT of a user of the account to trace; or "
            "mqtt://USER:PASSWORD@HOST:PORT, one for each broker.",
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
        str | None,
        typer.Option("--subject", metavar="PATTERN", help="Only these subjects, or MQTT topics."),
    ] = None,
    most: Annotated[
        float,
        typer.Option("--most", metavar="N", min=0.1, help="Trace at most N messages per second."),
    ] = 100.0,
    lifetime: Annotated[
        str | None,
        typer.Option(
            "--lifetime", metavar="TIME", help="How long messages are of use; brokers do not know."
        ),
    ] = None,
    credentials: Annotated[
        Path | None,
        typer.Option("--creds", metavar="FILE", help="Credentials file of a NATS user."),
    ] = None,
    bridge: options.Bridges = None,
    probes: Annotated[
        float,
        typer.Option(
            "--probes", metavar="N", min=0.0, help="MQTT: probes a second sent at each broker."
        ),
    ] = 1.0,
    seed: options.Seed = 1,
    replace: Annotated[
        bool, typer.Option("--replace", help="Overwrite tables that already exist in the folder.")
    ] = False,
    master: options.Master = None,
    memory: options.Memory = None,
    json: options.Json = False,
) -> None:
    """Trace the messages of a running NATS network hop by hop, or of MQTT brokers at their ends.

    NATS: who publishes is learnt from counters; then every message heard, or a sample of them, is
    followed by a trace-only message, which servers report on and deliver to nobody. MQTT: a
    listener at each broker hears everything, and probes are sent on tidings/probe/...

    Example: tidings capture nats://app:secret@hub:4222 --for 2min --to traces/
    """
    of_mqtt = urls[0].startswith("mqtt")
    if of_mqtt and (pages or credentials):
        raise typer.BadParameter("--monitor and --creds are for NATS; MQTT wants neither")
    if not of_mqtt and bridge:
        raise typer.BadParameter(
            "--bridge is for MQTT only; NATS servers report their own links: leave it out"
        )
    if of_mqtt:
        from tidings.running.mqtt_capturing import MqttPlan

        wanted = MqttPlan(
            urls=tuple(urls),
            seconds=options.seconds(time),
            bridges=tuple(bridge or ()),
            topic=subject or "#",
            probes_per_s=probes,
            lifetime_s=None if lifetime is None else options.seconds(lifetime),
        )
        _capture_mqtt(wanted, to, replace=replace, as_json=json)
        return
    if len(urls) > 1:
        raise typer.BadParameter("NATS wants one URL; its servers know each other")
    from tidings.reporting import terminal
    from tidings.running.capturing import CapturePlan
    from tidings.running.capturing import capture as capture_reports
    from tidings.traces import importing
    from tidings.traces.readers import nats

    plan = CapturePlan(
        url=urls[0],
        pages=tuple(pages or ()),
        seconds=options.seconds(time),
        subject=subject or ">",
        most_per_s=most,
        lifetime_s=None if lifetime is None else options.seconds(lifetime),
        credentials=None if credentials is None else str(credentials),
        seed=seed,
    )
    importing.check_destination(to, (*nats.TABLES, "probes"), replace_old=replace)
    importing.check_destination(to / _CONSUMERS, ("levels",), replace_old=replace)
    with (
        tempfile.TemporaryDirectory(prefix="tidings-capture-") as folder,
        console.progress("capturing") as step,
    ):
        captured = capture_reports(plan, Path(folder), step)
        step("starting Spark")
        with spark.started(master, memory=memory) as session:
            imported = _import_all(session, captured, Path(folder), to, step)
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
                "probes": captured.probes,
                "account": imported.account.to_dict("records"),
                "notes": [*captured.notes, *imported.notes],
            }
        )
    else:
        console.show(terminal.quality_table(imported.account))
    console.note(
        f"received {captured.heard} messages in {captured.seconds:g} s and traced "
        f"{captured.traced}; extra traffic: {captured.traced} trace-only messages, "
        f"{captured.probes} heartbeats on links, {captured.reports} server reports. "
        f"Wrote {to}; next: tidings characterise {to} --to fitted.yaml"
    )
    console.warn((*captured.notes, *imported.notes))


def _import_all(
    session: SparkSession, captured: Captured, folder: Path, to: Path, step: Progress
) -> Imported:
    """Import servers' reports and heartbeats as tables of a folder, polls of consumers beside them.

    No trace shows what a JetStream consumer delivers, so its counters are characterised alone.
    """
    import pandas as pd

    from tidings.running.capturing import places_in
    from tidings.traces.importing import Imported, import_traces
    from tidings.traces.readers.jsz import read_jsz
    from tidings.traces.readers.nats import read_nats
    from tidings.traces.readers.probes import read_probes

    places = places_in(folder)
    reports, probes = [str(places.reports)], [str(places.probes)]
    polls = sorted(map(str, places.polls.glob("*/*.json")))

    def messages(keep: Keep) -> Reading:
        return dataclasses.replace(read_nats(session, reports, keep), sampled=captured.sampled)

    parts = [import_traces(session, messages, reports, to, step)]
    if captured.probes:
        parts.append(
            import_traces(session, lambda _: read_probes(session, probes), probes, to, step)
        )
    if polls:
        aside = to / _CONSUMERS
        parts.append(import_traces(session, lambda _: read_jsz(session, polls), polls, aside, step))
    have = {"probes": captured.probes > 0, _CONSUMERS: bool(polls)}
    for name in (name for name, is_new in have.items() if not is_new):
        shutil.rmtree(to / name, ignore_errors=True)  # of a capture before, which this one replaces
    return Imported(
        account=pd.concat([each.account for each in parts], ignore_index=True),
        window=parts[0].window,
        notes=tuple(dict.fromkeys(note for each in parts for note in each.notes)),
    )


def _capture_mqtt(plan: MqttPlan, to: Path, *, replace: bool, as_json: bool) -> None:
    """Listen to MQTT brokers, and write what was heard as traces."""
    from tidings.model.trace_files import write_trace_folder
    from tidings.running.mqtt_capturing import capture_mqtt

    if not replace:
        check_new_folder(to)
    with console.progress("capturing") as step:
        captured = capture_mqtt(plan, step)
    write_trace_folder(captured.tables, captured.manifest, to, overwrite=replace)
    rows = {name: table.num_rows for name, table in captured.tables.items()}
    if as_json:
        counts = {"heard": captured.heard, "probes": captured.probes, "notes": captured.notes}
        console.show_json({"traces": str(to), "rows": rows, **captured.manifest, **counts})
    console.note(
        f"received {captured.heard} messages in {plan.seconds:g} s; extra traffic: "
        f"{captured.probes} probes. "
        f"Wrote {to}; next: tidings characterise {to} --to fitted.yaml"
    )
    console.warn(captured.notes)
