"""``tidings watch``: keep an eye on a running system, and say so when it breaks its promise."""

from __future__ import annotations

import json as json_module
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import console, interrupts, options, spark
from tidings.cli.plan.asking import Slo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidings.running.fetching import FetchedSource, Fetching
    from tidings.watching.rounds import Watcher
    from tidings.watching.spans import SpanFolder
    from tidings.watching.state import Alarm, State

    Fetch = Callable[[SparkSession], Fetching]
    FeedFrom = Callable[[SparkSession], FetchedSource]


def watch(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A folder that trace tables come into, file by file: hops/0001.parquet and so "
            "on; also CSV and JSON Lines. Or one that 'tidings receive' writes spans to. Or "
            "nats://HOST:PORT/STREAM, or http://HOST/PATH with files hops.jsonl and so on that "
            "grow.",
        ),
    ],
    system: Annotated[
        Path,
        typer.Option(
            "--system", metavar="SYSTEM", help="The system as it is known: what to expect of it."
        ),
    ],
    store: Annotated[
        Path,
        typer.Option(
            "--store",
            metavar="STORE",
            help="Folder of statistics, the same as of characterise --into.",
        ),
    ],
    slo: Slo = None,
    state: Annotated[
        Path | None,
        typer.Option(
            "--state", metavar="FOLDER", help="Where the state is written; STORE/watch by default."
        ),
    ] = None,
    every: Annotated[
        str, typer.Option("--every", metavar="TIME", help="How often to look.")
    ] = "1min",
    part: Annotated[
        str,
        typer.Option("--part", metavar="TIME", help="Count whole periods of this length."),
    ] = "1min",
    margin: Annotated[
        str,
        typer.Option(
            "--margin",
            metavar="TIME",
            help="How late rows may come in, and how long events may travel; at most --part.",
        ),
    ] = "10s",
    credentials: Annotated[
        Path | None,
        typer.Option("--credentials", metavar="FILE", help="Credentials file of the NATS user."),
    ] = None,
    lifetime: Annotated[
        list[str] | None,
        typer.Option(
            "--lifetime",
            metavar="RULE",
            help="Of spans: how long messages are of use, as in import. Can be repeated.",
        ),
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep",
            metavar="TIME",
            help="Drop parts of the store that ended longer ago than this; all are kept by "
            "default.",
        ),
    ] = None,
    window: Annotated[
        str, typer.Option("--window", metavar="TIME", help="Measure on-time shares over this time.")
    ] = "1h",
    time: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help="Begin no look after this time.")
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Take in what is there, look once, and stop.")
    ] = False,
    webhook: Annotated[
        str | None,
        typer.Option(
            "--webhook",
            metavar="URL",
            help="Post every alarm as JSON to this address, when it begins and when it ends.",
        ),
    ] = None,
    page: Annotated[
        bool,
        typer.Option(
            "--serve", help="Also show it on a page on this machine, as 'tidings serve' does."
        ),
    ] = False,
    port: options.Port = 8765,
    master: options.Master = None,
    memory: options.Memory = None,
    json: Annotated[bool, typer.Option("--json", help="Print alarms as JSON, one a line.")] = False,
) -> None:
    """Watch a running system: promised, measured and predicted on-time shares, with alarms.

    Learns from every file that comes into a folder, on Spark Structured Streaming, and alarms when
    a target is being missed, when the system is no longer the one described, or when events pile
    up. Runs until Ctrl-C; may be killed and started again at any time.

    Example: tidings watch traces/ --system city.yaml --slo slo.yaml --store store/
    """
    from tidings.model import reading
    from tidings.planning.objectives import read_objectives, with_objectives

    known = reading.load(system)
    if slo is not None:
        known = with_objectives(known, read_objectives(slo))
    from tidings.traces.readers.lifetimes import parse_lifetimes
    from tidings.watching.closing import Closing
    from tidings.watching.rounds import WATCH_FOLDER, WatchPlan, watching
    from tidings.watching.rounds import watch as watch_on
    from tidings.watching.spans import SpanFolder, only_broker
    from tidings.watching.webhook import UNPOSTED_FILE, Webhook

    folder = state or store / WATCH_FOLDER
    margin_s, rules = options.seconds(margin), parse_lifetimes(lifetime or ())

    def follow(session: SparkSession) -> SpanFolder:
        return SpanFolder(session, Path(source), known, margin_s=margin_s, lifetimes=rules)

    place, feed_from = fed_from(source, folder / "incoming", credentials, follow)
    if "://" not in source and feed_from is not None:
        only_broker(known)
    elif lifetime:
        raise typer.BadParameter(f"--lifetime is for spans, and {source} has none")
    plan = WatchPlan(
        closing=Closing(
            source=place,
            store=store,
            base=known,
            period_s=options.seconds(part),
            margin_s=margin_s,
            keep_s=None if keep is None else options.seconds(keep),
        ),
        system=known,
        name=str(known.description or system.stem),
        folder=folder,
        system_file=str(system.absolute()),
        every_s=options.seconds(every),
        window_s=options.seconds(window),
    )
    plan.check()  # refused before Spark takes its time to start, if at all
    for_s = None if time is None else options.seconds(time)
    hook = None
    if webhook is not None:
        hook = Webhook(webhook, folder / UNPOSTED_FILE, lambda text: console.warn((text,)))

    def tell(alarm: Alarm) -> None:
        show_alarm(alarm, json=json)
        if hook is not None:
            hook(alarm)

    with (
        nullcontext() if hook is None else hook,
        served(plan.folder, port) if page else nullcontext(),
        spark.started(master, memory=memory) as session,
        watching(
            replace(plan, feed=None if feed_from is None else feed_from(session)),
            session,
            tell,
            lambda _: None,
        ) as watcher,
    ):
        interrupts.heed()  # Structured Streaming has taken Ctrl-C over
        first = told_steps(watcher)
        watch_on(watcher, for_s=for_s, once=once, show=show_state, first=first)


@contextmanager
def told_steps(watcher: Watcher) -> Iterator[None]:
    """Tell on stderr what a watcher is doing while the block runs."""
    before = watcher.progress
    with console.progress("watch") as step:
        watcher.progress = step
        yield
    watcher.progress = before


def fed_from(
    source: str, incoming: Path, credentials: Path | None, follow: Fetch
) -> tuple[Path, FeedFrom | None]:
    """Find the folder to watch, and what feeds it where the source is an address or has spans."""
    from tidings.traces.span_folders import is_of_spans

    if "://" not in source and not is_of_spans(Path(source)):
        return Path(source), None
    from tidings.running.fetching import FetchedSource, fetching
    from tidings.running.inbox import Inbox

    inbox = Inbox(incoming)
    if "://" not in source:
        return incoming, lambda session: FetchedSource(follow(session), inbox)
    kept = fetching(source, None if credentials is None else str(credentials))
    return incoming, lambda _: FetchedSource(kept, inbox)


@contextmanager
def served(folder: Path, port: int) -> Iterator[None]:
    """Serve the state that is being written, on loopback, while the block runs."""
    from tidings.serving.live import ServeSettings
    from tidings.serving.server import serve

    folder.mkdir(parents=True, exist_ok=True)
    with serve(ServeSettings(folder=folder), port=port) as served:
        console.note(f"Page: {served.url}")
        yield


def show_alarm(alarm: Alarm, *, json: bool) -> None:
    """Say on stdout, in a line, that an alarm has begun or ended."""
    from tidings.watching.telling import alarm_document

    if json:
        typer.echo(json_module.dumps(alarm_document(alarm)))
    else:
        said = "alarm" if alarm.until_ns is None else "over "
        since = datetime.fromtimestamp(alarm.since_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S")
        console.show(f"{said}: {alarm.sentence()}; since {since} UTC")


def show_state(state: State) -> None:
    """Say on stderr, in a line, how everybody stands; and what went wrong in the watching."""
    health, everybody = state.health, state.standings[0]
    measured = everybody.measured
    share = "nothing measured yet" if measured is None else f"{100 * measured.share:.2f} % on time"
    lasting = sum(alarm.until_ns is None for alarm in state.alarms)
    late = f", {health.late_rows} rows came too late" if health.late_rows else ""
    alarms = f"{lasting} alarm{'' if lasting == 1 else 's'}"
    console.note(
        f"batch {health.batch}: {health.rows:,} rows in {health.batch_s:.1f} s{late}; "
        f"{share}, {alarms}"
    )
    if health.problem:
        console.warn((health.problem,))
