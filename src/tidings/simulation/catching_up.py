"""Catching up: how long a queue takes to work off what has gathered while it stood still.

The simulator is in its usual state, one queue is stopped until it has the backlog asked for, and
goes on. The backlog is *gone* the first time that no more waits than is usual.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from tidings.errors import InvalidInputError, UnstableError
from tidings.kernels.memory import World
from tidings.kernels.replications import side_by_side
from tidings.model.arrays import Floats, Ints
from tidings.model.features import require_only
from tidings.model.progress import Progress
from tidings.model.shown import Shown
from tidings.model.system import System
from tidings.model.units import format_seconds
from tidings.simulation import kernel_layout as layout
from tidings.simulation.kernel_members import go_on, stop
from tidings.simulation.network import CompiledSystem, compile_system
from tidings.simulation.options import MOST_COPIES, SimulationOptions
from tidings.simulation.run import HANDLED, refuse_overload
from tidings.simulation.tally import Counts, Units, count_world, find_units
from tidings.simulation.watched_queues import WatchedQueue, find_queue
from tidings.simulation.windows import find_window
from tidings.simulation.world import Window, make_world, run_until, run_world

POINTS = 60  # of the curve
BEYOND = 1.25  # how far the curve goes on, in times of the time that a pilot takes
PATIENCE = 20.0  # how many times the expected time is waited
FEW = 100  # events that chance may add to any backlog
USUAL_SAMPLES = 1_000  # of the usual backlog in each replication
USUAL_PART = 0.2  # of a replication's usual length
PILOT = -2_000  # a number apart from those of other pilots
_TOLD = (
    *("gone_s", "gone_error_s", "fluid_s", "late", "late_error"),
    *("replications", "caught_up", "waited_s", "seed"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Late:
    """What became of a subscriber's events published from the stop until the backlog is gone.

    Numbers of events in the mean of all replications.
    """

    subscriber: str
    wanted: float
    late: float
    lost: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CatchUp(Shown):
    """How long a queue takes to catch up, and how many events are late until then.

    ``gone_s`` is +inf where the backlog never goes, or did not in some replication; half-widths
    are of 95 % intervals over replications.
    """

    _table = "curve"
    _columns = ("after_s", "backlog", "backlog_error")

    queue: WatchedQueue
    asked: str  # the state that it starts from
    backlog: float  # events that wait when it goes on
    stopped_s: float  # how long it stood still
    seed: int
    usual: int = 0  # events that wait as a rule, at most; with no more than these, it is gone
    gone_s: float = math.inf  # from when it goes on
    gone_error_s: float = math.nan
    fluid_s: float | None = None  # the same if arrivals and services were steady flows
    late: float = math.inf  # events, of all subscribers
    late_error: float = math.nan
    subscribers: tuple[Late, ...] = ()
    curve: tuple[tuple[float, float, float], ...] = ()  # seconds, events that wait, half-width
    replications: int = 0
    caught_up: int = 0  # of these
    waited_s: float = 0.0  # after which a replication was given up

    def headline(self) -> str:
        """Say how long it takes."""
        took = format_seconds(self.gone_s) if math.isfinite(self.gone_s) else "never"
        return f"CatchUp of {self.queue} from {self.asked}: {took}"

    def _rows(self) -> pd.DataFrame:
        """Give some points of the curve, as many as are looked at."""
        return self.to_pandas().iloc[:: POINTS // 10]

    def to_document(self) -> dict[str, Any]:
        """Make plain data of the answer, for JSON."""
        return {
            "catch_up": {
                "queue": self.queue.name,
                "what": self.queue.what,
                "from": self.asked,
                "backlog": self.backlog,
                "usual_backlog": self.usual,
                "stopped_s": self.stopped_s,
                "rate_per_s": self.queue.rate_per_s,
                "capacity_per_s": self.queue.capacity_per_s,
                **{name: getattr(self, name) for name in _TOLD},
            },
            "subscribers": [dataclasses.asdict(each) for each in self.subscribers],
            "curve": [
                {"after_s": after_s, "backlog": backlog, "backlog_error": error}
                for after_s, backlog, error in self.curve
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUpOptions:
    """Where catching up starts from: so many events that wait, or so long a stop; how often."""

    backlog: int | None = None  # events that wait, or ...
    stopped_s: float | None = None  # ... how long the queue stands still, or ...
    present: int | None = None  # ... events that wait or are handled, as counters have it
    replications: int = 20
    seed: int = 1

    def __post_init__(self) -> None:
        states = (self.backlog, self.stopped_s, self.present)
        if sum(each is not None for each in states) != 1:
            raise InvalidInputError("give either backlog or present, in events, or stopped_s")
        for name in ("backlog", "present"):
            events = getattr(self, name)
            if events is not None and events < 1:
                raise InvalidInputError(f"{name} is {events}; wants 1 event or more")
        if self.stopped_s is not None and not 0.0 < self.stopped_s < math.inf:
            raise InvalidInputError(f"stopped_s is {self.stopped_s}; wants a time above 0")
        if self.replications < 2:
            raise InvalidInputError(f"replications is {self.replications}; wants 2 or more")

    def at(self, queue: WatchedQueue) -> CatchUpOptions:
        """Split events that are present into those handled now and those that wait."""
        if self.present is None:
            return self
        waiting = max(self.present - queue.servers, 1)
        return dataclasses.replace(self, present=None, backlog=waiting)

    def __str__(self) -> str:
        if self.backlog is not None:
            return f"a backlog of {self.backlog:,} events"
        assert self.stopped_s is not None
        return f"a stop of {format_seconds(self.stopped_s)}"

    def expected(self, queue: WatchedQueue) -> float:
        """Count the events that wait at the end of the stop, on average."""
        if self.backlog is not None:
            return float(self.backlog)
        assert self.stopped_s is not None
        return self.stopped_s * queue.rate_per_s

    def expected_s(self, queue: WatchedQueue) -> float:
        """Compute how long the stop takes on average, in seconds."""
        return self.stopped_s or self.expected(queue) / queue.rate_per_s


def catch_up(
    system: System,
    queue: str,
    options: CatchUpOptions | None = None,
    *,
    progress: Progress = lambda _: None,
    **changes: Any,
) -> CatchUp:
    """Find how long a queue takes to work off a backlog, in seconds, and how many events are late.

    Options are those of :class:`CatchUpOptions`, also by name: ``catch_up(system, "orders",
    stopped_s=60.0)``. ``queue`` names a consumer group, a broker, or a subscriber with a processing
    time. It is stopped for ``stopped_s``, or until ``backlog`` events wait, so that these are as
    old as events that gathered at the usual rate; ``present`` counts those that are handled too.
    Everything else in the system goes on. What is *usual* is the mean number of events that wait,
    rounded up. Late are events that were published from the stop until the backlog is gone, however
    long they take then.
    """
    state = options or CatchUpOptions(**changes)
    if options is not None:
        state = dataclasses.replace(options, **changes)
    require_only(system, HANDLED, "simulation")
    progress("contents and routes")
    compiled = compile_system(system)
    watched = find_queue(compiled, queue)
    state = state.at(watched)
    _check_state(watched, state)
    if watched.is_overloaded and not compiled.drops_events:
        return _never(watched, state)
    refuse_overload(compiled)
    return _CatchingUp(compiled, watched, state, progress).answer()


def _check_state(queue: WatchedQueue, state: CatchUpOptions) -> None:
    if queue.rate_per_s <= 0.0:
        raise InvalidInputError(f"no event ever comes to {queue}, so nothing gathers there")
    if state.backlog is not None and queue.buffer is not None and state.backlog > queue.buffer:
        raise InvalidInputError(
            f"{queue} has a buffer of {queue.buffer:,} events, so that {state.backlog:,} can "
            "never wait there"
        )
    expected = state.expected(queue)
    if expected >= MOST_COPIES:
        flow_s = queue.fluid_s(expected)
        as_flow = "" if flow_s is None else f"; as a steady flow it takes {format_seconds(flow_s)}"
        raise InvalidInputError(
            f"a backlog of {expected:,.0f} events is more than can be simulated one by one "
            f"({MOST_COPIES:,}){as_flow}"
        )


def _never(queue: WatchedQueue, state: CatchUpOptions) -> CatchUp:
    """Say that a queue that is offered more than it can handle never catches up."""
    return CatchUp(
        queue=queue,
        asked=str(state),
        backlog=state.expected(queue),
        stopped_s=state.expected_s(queue),
        seed=state.seed,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What one replication gave."""

    backlog: int
    stopped_s: float
    gone_s: float
    wanted: Floats  # by unit, as are the next two
    late: Floats
    lost: Floats
    curve: Floats


class _CatchingUp:
    """Replications of one system that catches up from one state."""

    def __init__(
        self,
        compiled: CompiledSystem,
        queue: WatchedQueue,
        state: CatchUpOptions,
        progress: Progress,
    ) -> None:
        self.compiled, self.queue, self.state = compiled, queue, state
        self.seed, self.progress = state.seed, progress
        self.units: Units = find_units(compiled)
        self.window, _ = find_window(compiled, SimulationOptions(seed=state.seed), progress)
        spare_per_s = queue.capacity_per_s - queue.rate_per_s
        spare_per_s = spare_per_s if spare_per_s > 0.0 else queue.capacity_per_s
        self.usual = 0
        self.patience_s = PATIENCE * (state.expected(queue) + FEW) / spare_per_s

    def answer(self) -> CatchUp:
        """Run all replications and compute the answer from them."""
        replications = self.state.replications
        self.usual = self._usual(replications)
        self.progress("pilot run")
        pilot = self._replication(PILOT, np.zeros(0))
        end_s = BEYOND * min(pilot.gone_s, self.patience_s)
        times_s = np.linspace(0.0, end_s, POINTS + 1) if end_s > 0.0 else np.zeros(1)
        runs = []
        for number, each in enumerate(self._replications(replications, times_s), start=1):
            self.progress(f"replication {number} of {replications}")
            runs.append(each)
        return self._joined(runs, times_s)

    def _replications(self, count: int, times_s: Floats) -> Iterator[_Run]:
        return side_by_side(lambda number: self._replication(number, times_s), range(count))

    def _usual(self, replications: int) -> int:
        """Compute the mean number of events that wait while nothing is stopped, rounded up."""
        self.progress("the usual backlog")
        warmup_s = self.window.warmup_s
        end_s = warmup_s + USUAL_PART * self.window.length_s
        window = Window(warmup_s=math.inf, end_s=end_s, samples=USUAL_SAMPLES)
        first = int(USUAL_SAMPLES * warmup_s / end_s)

        def waiting(number: int) -> float:
            world = make_world(self.compiled, window, self.seed, number)
            self.queue.watch(world)
            run_world(world, self.compiled, window)
            return float(world.tables["samples"].backlog[first:].mean())

        numbers = range(PILOT - replications, PILOT)
        return math.ceil(float(np.mean(list(side_by_side(waiting, numbers)))))

    def _replication(self, number: int, times_s: Floats) -> _Run:
        """Run one replication: as usual, stopped, and catching up."""
        begin_s = self.window.warmup_s
        stop_s = self.state.expected_s(self.queue)
        longest_s = stop_s * (PATIENCE if self.state.backlog is not None else 1.0)
        last_s = begin_s + longest_s + max(self.patience_s, times_s.max(initial=0.0))
        window = Window(warmup_s=begin_s, end_s=last_s)
        world = make_world(self.compiled, window, self.seed, number)
        self.queue.watch(world)
        record = world.record[0]
        run_until(world, self.compiled, window, begin_s)
        world.run(stop)
        self._gather(world, window, begin_s + longest_s)
        backlog, start_s = int(record.backlog), float(record.now)
        world.run(go_on)
        gone_s, counts, curve = self._work_off(world, window, start_s, times_s)
        by_unit = {
            name: self._by_unit(each) / self.units.followed
            for name, each in (("wanted", counts.wanted), ("late", counts.late))
        }
        return _Run(
            backlog=backlog,
            stopped_s=start_s - begin_s,
            gone_s=gone_s,
            lost=counts.lost.sum(axis=1) / self.units.followed,
            curve=curve,
            **by_unit,
        )

    def _by_unit(self, by_pair: Ints | Floats) -> Floats:
        units = self.units
        sums = np.bincount(units.pair_unit, weights=by_pair, minlength=units.count)
        return sums.astype(np.float64)

    def _gather(self, world: World, window: Window, longest_s: float) -> None:
        """Let a stopped queue gather what it is asked to, or for as long."""
        record, wanted = world.record[0], self.state.backlog
        if wanted is None:
            run_until(world, self.compiled, window, longest_s)
            return
        if record.backlog < wanted:
            record.watching, record.upper = 1, wanted
            if not run_until(world, self.compiled, window, longest_s):
                raise InvalidInputError(
                    f"{self.queue} does not gather {wanted:,} events in "
                    f"{longest_s - window.warmup_s:.4g} s of a stop, only {int(record.backlog):,}"
                )
            record.watching, record.upper = 0, layout.NEVER

    def _work_off(
        self, world: World, window: Window, start_s: float, times_s: Floats
    ) -> tuple[float, Counts, Floats]:
        """Go on until the backlog is gone and the curve is drawn; when, what was counted, curve."""
        record = world.record[0]
        curve = np.zeros(times_s.size)
        gone_s = math.inf
        record.watching, record.lower = 1, self.usual + 1
        moments_s = [*times_s.tolist(), max(self.patience_s, times_s.max(initial=0.0))]
        for number, moment_s in enumerate(moments_s):
            if number == times_s.size and not record.watching:
                record.may_stay = 0  # what was published before meets its end
                run_world(world, self.compiled, window)
                break
            try:
                reached = self._is_gone_by(world, window, start_s + moment_s)
            except UnstableError:
                break  # it grows beyond all room, and never goes
            if reached:
                gone_s = float(record.now) - start_s
                record.watching = record.lower = 0
                record.warmup = math.inf  # what is published from now on does not count
                run_until(world, self.compiled, window, start_s + moment_s)
            if number < times_s.size:
                curve[number] = record.backlog
        return gone_s, count_world(world, self.compiled, self.units), curve

    def _is_gone_by(self, world: World, window: Window, moment_s: float) -> bool:
        """Run on to a moment, or until no more waits than is usual, if that is watched.

        What has been handed out and has not come to its member yet waits nowhere, but will: it is
        waited for.
        """
        record = world.record[0]
        while True:
            reached = bool(record.watching) and record.backlog <= self.usual
            reached = reached or run_until(world, self.compiled, window, moment_s)
            if not reached or self._under_way(world) <= self._usually_under_way:
                return reached
            record.watching = 0
            later_s = min(float(record.now) + 1.0 / self.queue.capacity_per_s, moment_s)
            run_until(world, self.compiled, window, later_s)
            record.watching = 1
            if later_s == moment_s:
                return False

    def _under_way(self, world: World) -> int:
        """Count events that members of the group hold and that do not wait there, or are served."""
        if self.queue.group < 0:
            return 0
        members = world.tables["members"]
        held = int(members["held"][members["group"] == self.queue.group].sum())
        waiting = world.record[0].backlog - world.tables["groups"]["waiting"][self.queue.group]
        return held - int(waiting) - self.queue.servers

    @cached_property
    def _usually_under_way(self) -> float:
        """Events on their way to members and back, by Little's law, with chance's part."""
        if self.queue.group < 0:
            return 0.0
        link = self.compiled.groups[self.queue.group].subscriber.link
        mean = 2.0 * self.queue.rate_per_s * link.delay.mean_s
        return self.usual + mean + 5.0 * math.sqrt(mean)

    def _joined(self, runs: list[_Run], times_s: Floats) -> CatchUp:
        """Combine all replications into the answer."""
        caught_up = sum(math.isfinite(each.gone_s) for each in runs)
        gone_s, gone_error_s = _mean([each.gone_s for each in runs])
        of = self.units.of_subscriber
        late, late_error = _mean([float(each.late[of].sum()) for each in runs])
        wanted, lates, lost = (
            np.mean([getattr(each, name) for each in runs], axis=0)[of]
            for name in ("wanted", "late", "lost")
        )
        rows = zip(self.compiled.asked.subscribers, wanted, lates, lost, strict=True)
        curve = np.array([_mean(each) for each in np.transpose([each.curve for each in runs])])
        backlog = float(np.mean([each.backlog for each in runs]))
        return CatchUp(
            queue=self.queue,
            asked=str(self.state),
            backlog=backlog,
            usual=self.usual,
            stopped_s=float(np.mean([each.stopped_s for each in runs])),
            gone_s=gone_s if caught_up == len(runs) else math.inf,
            gone_error_s=gone_error_s if caught_up == len(runs) else math.nan,
            fluid_s=self.queue.fluid_s(max(backlog - self.usual, 0.0)),
            late=late,
            late_error=late_error,
            subscribers=tuple(
                Late(subscriber=each.name, wanted=float(w), late=float(n), lost=float(gone))
                for each, w, n, gone in rows
                if n > 0.0 or gone > 0.0
            ),
            curve=tuple(
                (float(t), float(n), float(e)) for t, (n, e) in zip(times_s, curve, strict=True)
            ),
            replications=len(runs),
            caught_up=caught_up,
            waited_s=self.patience_s,
            seed=self.seed,
        )


def _mean(values: Iterable[float]) -> tuple[float, float]:
    """Compute the mean of independent values, and half its 95 % interval (Student's t)."""
    given = np.array(list(values), dtype=np.float64)
    if not np.isfinite(given).all():
        return math.inf, math.nan
    t = float(special.stdtrit(given.size - 1, 0.975))
    return float(given.mean()), t * float(given.std(ddof=1)) / math.sqrt(given.size)
