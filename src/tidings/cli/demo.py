"""``tidings demo``: the main job from end to end."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import console, interrupts, options, spark
from tidings.demonstration.mishaps import MISHAPS, Mishap

if TYPE_CHECKING:
    from tidings.watching.rounds import WatchPlan
    from tidings.watching.state import Alarm

DISAGREE = 1
LOOK_S, PART_S, MARGIN_S = 5.0, 15.0, 5.0  # of a live demo


def demo(
    to: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Folder for traces, results and the report.")
    ] = Path("tidings-demo"),
    system: Annotated[
        Path | None,
        typer.Option(metavar="SYSTEM", help="Your own system file instead of the sample."),
    ] = None,
    minutes: Annotated[
        float,
        typer.Option(
            metavar="N",
            min=0.5,
            help='Minutes of simulated traffic to record as the "real" system.',
        ),
    ] = 30.0,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Instead: real NATS brokers, watched on a page, until something goes wrong. "
            "Keeps nothing; ends by itself with --json, else at Ctrl-C or after --minutes.",
        ),
    ] = False,
    wrong: Annotated[
        Mishap,
        typer.Option(
            "--wrong",
            help="With --live: a broker becomes slow, a link is cut, or a publisher's "
            "rate triples.",
        ),
    ] = Mishap.SLOW,
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="N", min=0, max=65535, help="Port of the live page; 0: a free one."
        ),
    ] = 8765,
    seed: options.Seed = 1,
    master: options.Master = None,
    memory: options.Memory = None,
    json: options.Json = False,
) -> int:
    """Run the whole workflow on a sample system: traces, Spark, prediction, simulation, report.

    A simulated run stands for the real system and is recorded as traces; a system is fitted to
    them on Spark, then predicted and simulated; both results are compared with the measured one.

    Example: tidings demo --to /tmp/demo
    """
    if live:
        with tempfile.TemporaryDirectory(prefix="tidings-live-") as folder:
            return _live(Path(folder), minutes, seed, port, master, wrong, json=json)
    from tidings.demonstration.run import check_place, demonstrate
    from tidings.demonstration.sample_system import market_and_weather
    from tidings.model import reading
    from tidings.reporting import terminal
    from tidings.reporting.headline import answers

    shown_system = reading.load(system) if system is not None else market_and_weather()
    check_place(to)  # before Spark takes its time to start
    with console.progress("demo") as step:
        step("starting Spark")
        with spark.started(master, memory=memory, small=True) as session:
            result = demonstrate(
                shown_system, session, folder=to, minutes=minutes, seed=seed, progress=step
            )
    if json:
        console.show_json(result.to_document())
    else:
        outcomes = [result.measured, result.simulated, result.predicted]
        console.show(terminal.broker_table(result.predicted))
        console.show(terminal.side_by_side(outcomes, limit=12))
        console.show(*(f"{asked}: {text}" for asked, text in answers(result.budget).items()))
        for check in result.checks:
            console.show_checked(check.passed, ("holds", "does not"), check.text)
        console.show(f"\nReport: {result.page} (open it in a browser; it needs no network)")
    console.warn(result.warnings)
    return 0 if all(check.passed for check in result.checks) else DISAGREE


def _live(
    folder: Path,
    minutes: float,
    seed: int,
    port: int,
    master: str | None,
    wrong: Mishap,
    *,
    json: bool,
) -> int:
    """Watch real brokers, let something go wrong, and see whether an alarm names it."""
    from tidings.cli.watch import served, show_alarm, show_state
    from tidings.demonstration.live import traffic
    from tidings.watching.rounds import watching

    alarms: list[Alarm] = []

    def tell(alarm: Alarm) -> None:
        alarms.append(alarm)
        show_alarm(alarm, json=json)

    end_s, has_begun, named = time.monotonic() + 60.0 * minutes, False, False
    with (
        traffic(folder, duration_s=60.0 * minutes, seed=seed) as playing,
        served(folder / "state", port),
        spark.started(master, small=True) as session,
        watching(_live_plan(playing.traces, folder), session, tell, lambda _: None) as watcher,
    ):
        interrupts.heed()
        while time.monotonic() < end_s:
            playing.check()
            state = watcher.round()
            show_state(state)
            if not has_begun and state.standings[0].measured is not None:
                console.note(f"From now on {MISHAPS[wrong].says}.")
                playing.let(wrong)
                has_begun = True
            named = any(MISHAPS[wrong].where in alarm.where for alarm in alarms)
            if json and named:
                break
            time.sleep(LOOK_S)
    return 0 if named else DISAGREE


def _live_plan(traces: Path, folder: Path) -> WatchPlan:
    from tidings.demonstration.live import small_shop
    from tidings.watching.closing import Closing
    from tidings.watching.rounds import WatchPlan

    system = small_shop()
    closing = Closing(
        source=traces, store=folder / "store", base=system, period_s=PART_S, margin_s=MARGIN_S
    )
    return WatchPlan(
        closing=closing,
        system=system,
        name=str(system.description),
        folder=folder / "state",
        every_s=LOOK_S,
        window_s=300.0,
    )
