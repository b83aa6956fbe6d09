"""One run of a system on real servers of this machine."""

from __future__ import annotations

import asyncio
import selectors
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidings.errors import InvalidInputError, UnsupportedError
from tidings.model.features import require_only
from tidings.model.routes import route
from tidings.model.system import System
from tidings.testbed.conducting import Conductor, Progress
from tidings.testbed.layout import layout
from tidings.testbed.outages import draw_outages, fails
from tidings.testbed.runs import Run, TestbedOptions
from tidings.testbed.servers import servers
from tidings.testbed.subjects import contents_of, subjects
from tidings.testbed.workload import schedule

HANDLED = frozenset({"random lifetimes", "failures", "recovery"})
_MOST_SELECTED = 900  # file descriptors; select, whose timers are the sharpest, takes 1024


def run_testbed(
    system: System, options: TestbedOptions | None = None, *, progress: Progress | None = None
) -> Run:
    """Run a system on real servers of this machine.

    A run that breaks half-way comes back with what there is of it and ``incomplete`` saying why.
    """
    chosen = options or TestbedOptions()
    tell = progress or (lambda _: None)
    require_only(system, HANDLED, "the testbed")
    _refuse_recovery(system)
    contents = contents_of(system)
    routes = route(system)
    length_s = chosen.warmup_s + chosen.duration_s
    planned = schedule(system, contents, length_s, chosen.seed)
    if len(planned) > chosen.most_events:
        raise InvalidInputError(
            f"{len(planned):,} events would be published in {chosen.warmup_s:g} + "
            f"{chosen.duration_s:g} s; wants at most {chosen.most_events:,}: "
            "run it for a shorter time, or allow more"
        )
    run = Run(
        system=system,
        options=chosen,
        layout=layout(system, routes, chosen.seed),
        publications=planned,
        outages=draw_outages(system, length_s, chosen.seed),
    )
    names = subjects(system, contents)
    with tempfile.TemporaryDirectory(prefix="tidings-testbed-") as folder:
        tell("starting servers")
        with servers(run.layout.servers, Path(folder)) as running, _loop(run) as runner:
            runner.run(Conductor(run, names, routes, running, tell).conduct())
    return run


def _refuse_recovery(system: System) -> None:
    """Plain NATS asks for everything again as soon as a neighbour is back, and keeps no events."""
    if fails(system):
        known = system.recovery
        if known is None or known.scheme != "periodic" or known.refresh_s > 0.0:
            saw = "none" if known is None else f"'{known.scheme}', refresh {known.refresh_s:g} s"
            raise UnsupportedError(
                f"recovery is {saw}; servers restore subscriptions as soon as they have found each "
                "other again and keep no events: wants {scheme: periodic, refresh: 0s}"
            )


@contextmanager
def _loop(run: Run) -> Iterator[asyncio.Runner]:
    """A loop with the sharpest timers there are."""
    open_files = 4 * len(run.layout.relays) + 2 * len(run.layout.servers)
    sharp = open_files <= _MOST_SELECTED
    selector = selectors.SelectSelector if sharp else selectors.DefaultSelector
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector())) as runner:
        yield runner
