"""One run of a system on real servers of this machine."""

from __future__ import annotations

import asyncio
import gc
import os
import selectors
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from nats.errors import Error as NatsError

from tidings.errors import EngineError, InvalidInputError, UnsupportedError
from tidings.model.features import FEATURES, require_only
from tidings.model.progress import Progress
from tidings.model.routes import route
from tidings.model.system import System
from tidings.testbed.brokers import BROKERS
from tidings.testbed.conducting import Conductor
from tidings.testbed.consuming import check_consumers
from tidings.testbed.ending import end_all
from tidings.testbed.layout import layout
from tidings.testbed.mqtt_conducting import MqttConductor
from tidings.testbed.outages import (
    Outage,
    compressed,
    draw_outages,
    expected_outages,
    failing,
)
from tidings.testbed.runs import Beside, Run, Stop, TestbedOptions
from tidings.testbed.servers import servers
from tidings.testbed.storing import StoringConductor
from tidings.testbed.workload import contents_of, schedule, subjects


@contextmanager
def precedence() -> Iterator[bool]:
    """Run what is inside before all other programs; tells whether the system grants that.

    It holds for this thread and for the threads and processes that it starts, so for servers too.
    Real time, not niceness: Linux may weigh sessions against each other whatever their programs'
    niceness, and every server has a session of its own. The least priority of real time will do.
    """
    if not hasattr(os, "sched_setscheduler"):
        yield False
        return
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    least = os.sched_param(os.sched_get_priority_min(os.SCHED_RR))
    try:
        os.sched_setscheduler(0, os.SCHED_RR, least)
    except OSError:  # only who may administer the machine may do that
        yield False
        return
    try:
        yield True
    finally:
        os.sched_setscheduler(0, *before)


@contextmanager
def without_collection() -> Iterator[None]:
    """Run what is inside without pauses of several milliseconds to collect garbage.

    It is collected afterwards; a run is bounded, and so is what it leaves.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


INTERRUPTED = "interrupted"
SCHEMES = ("periodic", "buffering")  # plain servers, and servers that store events
_MOST_SELECTED = 900  # file descriptors; select, whose timers are the sharpest, takes 1024


def run_testbed(
    system: System,
    options: TestbedOptions | None = None,
    *,
    outages: list[Outage] | None = None,
    stops: Sequence[Stop] = (),
    beside: Sequence[Beside] = (),
    progress: Progress | None = None,
) -> Run:
    """Run a system on real servers of this machine.

    What fails is killed or cut by its failure laws, or as ``outages`` say. In ``stops`` consumer
    groups stand still. What is ``beside`` is started with the first event and ended with the run;
    brokers that store events have nothing beside them.
    A run that breaks half-way comes back with what there is of it and ``incomplete`` saying why;
    so does one that is interrupted (Ctrl-C) once it has begun.
    """
    chosen = options or TestbedOptions()
    tell = progress or (lambda _: None)
    on = BROKERS[chosen.broker]
    require_only(system, on.handled, f"the testbed on {on.called}")
    if stops and not on.stops:
        raise UnsupportedError(f"the testbed on {on.called} does not stop consumer groups")
    system = compressed(system, chosen.compression)
    stores = _keeps_events(system)
    carried = stores and not on.carries
    _check_names(system)
    check_consumers(system, on.refusal)
    contents = contents_of(system)
    routes = route(system)
    length_s = chosen.warmup_s + chosen.duration_s
    check_size(system, chosen)
    planned = schedule(system, contents, length_s, chosen.seed)
    _require_few(len(planned), chosen, "events would be published")
    names, kind = on.servers(system, routes, subjects(system, contents), stores)
    run = Run(
        system=system,
        routes=routes,
        subjects=names,
        options=chosen,
        layout=layout(system, routes, chosen.seed, carried=carried, kind=kind),
        publications=planned,
        stops=stops,
        beside=beside,
        outages=draw_outages(system, length_s, chosen.seed) if outages is None else outages,
    )
    run.layout.journal.wanted = on.asked(run)
    with precedence() as granted:
        run.takes_precedence = granted
        tell("starting servers")
        with servers(run.layout.servers, kind=kind) as running, _loop(run) as runner:
            conductor = (on.carrying if carried else on.conductor)(run, running, tell)
            try:
                runner.run(_conduct(run, conductor))
            except KeyboardInterrupt:
                if not run.start_s:
                    raise
                run.incomplete = INTERRUPTED
    return run


def require_whole(run: Run, kept: str) -> None:
    """Raise if a run ended early: :class:`KeyboardInterrupt` if it was interrupted, else why."""
    if run.incomplete == INTERRUPTED:
        raise KeyboardInterrupt(f"the run was interrupted, {kept}")
    if run.incomplete is not None:
        raise EngineError(f"the run ended early, {kept}: {run.incomplete}")


def check_size(system: System, options: TestbedOptions) -> None:
    """Refuse a run that would be too large, before anything of it is drawn."""
    length_s = options.warmup_s + options.duration_s
    laws = (each.every for each in system.publishers)
    events = sum(length_s / law.mean_s for law in laws if law is not None)
    _require_few(events, options, "events would be published")
    _require_few(expected_outages(system, length_s), options, "outages would be produced")


def _require_few(number: float, options: TestbedOptions, what: str) -> None:
    if number > options.most_events:
        raise InvalidInputError(
            f"about {number:,.0f} {what} in {options.warmup_s:g} + {options.duration_s:g} "
            f"s; wants at most {options.most_events:,}: use a shorter --duration, or "
            "allow more"
        )


def _check_names(system: System) -> None:
    """Refuse publishers whose names cannot stand in the header of a message."""
    for each in system.publishers:
        if not each.name.isprintable() or each.name != each.name.strip():
            raise InvalidInputError(
                f"publishers: the name {each.name!r} cannot be sent in a message header; "
                "wants printable characters, without spaces at its ends"
            )


async def _conduct(run: Run, conductor: Conductor | MqttConductor | StoringConductor) -> None:
    """Conduct the whole run; of one that breaks once it has begun, keep what there is."""
    loop = asyncio.get_running_loop()
    run.epoch_ns = time.time_ns() - round(loop.time() * 1e9)
    loop.set_exception_handler(lambda _, context: _note(run, context.get("exception")))
    try:
        await conductor.conduct()
    except EngineError as problem:
        if not run.start_s:
            raise
        run.incomplete = str(problem)


def _note(run: Run, problem: BaseException | None) -> None:
    """Note what went wrong in a relay: it ends the run at the next look; connections may break."""
    if problem is not None and not isinstance(problem, OSError | NatsError):
        run.layout.journal.problem = f"a relay died: {problem!r}"


def _keeps_events(system: System) -> bool:
    """Test whether brokers must store events; refuse what servers do not do about failures."""
    known = system.used_recovery
    if failing(system) or known.scheme == "buffering":
        for feature in ("connectivity", "subscription churn", "subscriber's own queue"):
            for place in FEATURES[feature](system):
                raise UnsupportedError(
                    f"the testbed does not handle {feature} on brokers that fail or store "
                    f"events: {place}; remove that, or the failures and the recovery, "
                    "from the file"
                )
    if not failing(system):
        return known.scheme == "buffering"
    if known.scheme not in SCHEMES or known.refresh_s > 0.0:
        raise UnsupportedError(
            f"the testbed cannot run recovery scheme '{known.scheme}' with refresh "
            f"{known.refresh_s:g} s, as real servers resubscribe on reconnect; use scheme "
            f"{' or '.join(SCHEMES)}, and refresh: 0s"
        )
    return known.scheme == "buffering"


@contextmanager
def _loop(run: Run) -> Iterator[asyncio.Runner]:
    """Run an event loop with the sharpest timers there are."""
    open_files = 4 * len(run.layout.relays) + 2 * len(run.layout.servers)
    sharp = open_files <= _MOST_SELECTED
    selector = selectors.SelectSelector if sharp else selectors.DefaultSelector
    with (
        without_collection(),
        asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector())) as runner,
    ):
        try:
            yield runner
        finally:
            runner.run(_end_tasks())


async def _end_tasks() -> None:
    """End whatever still goes on, such as clients that look for a server that is down."""
    this = asyncio.current_task()
    await end_all(each for each in asyncio.all_tasks() if each is not this)
