"""Watch a system, round by round: take in what is new, count what is complete, judge, and tell.

A round asks the stream for all new files, counts all periods that are complete as one part of the
store, measures, judges, and writes the state. Whatever is kept is in the store and in the state
folder: a process that is killed at any moment goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from pyspark.sql import SparkSession

from tidings.characterisation.count.store import StorePart, locked
from tidings.characterisation.fit.fitted import Characterisation
from tidings.characterisation.fit.laws import FitLaw, fit_law, fit_moments
from tidings.characterisation.fit.quality import unusable_rows
from tidings.characterisation.stored import characterise_store
from tidings.errors import EngineError, InvalidTracesError, StoreInUseError, TidingsError
from tidings.model import reading
from tidings.model.outcome import Outcome
from tidings.model.progress import Progress
from tidings.model.system import System
from tidings.planning.budget import explain
from tidings.prediction.predict import predict
from tidings.watching.alarms import alarms
from tidings.watching.checkpoint import mend
from tidings.watching.closing import Closing
from tidings.watching.file_problems import file_problems
from tidings.watching.ledger import MEASURED_FILE, Ledger
from tidings.watching.measuring import NowAndBefore, measure, newest_counters, newest_waits
from tidings.watching.shares import WINDOWS_S
from tidings.watching.staging import MicroBatch, Staging
from tidings.watching.standing import Known, Look, queues, standings, travelled_longer
from tidings.watching.state import CHANGED, EVERYBODY, Alarm, Health, State, read_state, write_state
from tidings.watching.stream import take_new_files
from tidings.watching.telling import Tell, advice, turned

FITTED_FILE = "fitted.yaml"
WATCH_FOLDER = "watch"  # of a store, where the state is by default
PREDICT_S = 10.0  # CPU seconds of simulation for a prediction, at most


class Feed(Protocol):
    """What brings rows into the folder that is watched, from where they are kept."""

    def fetch(self) -> str:
        """Bring all that is new; gives what is to be told of it, if anything."""
        ...

    def clear(self) -> None:
        """Remove what was brought: it has been taken in."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPlan:
    """What is watched, by which rules, and where what is learnt is kept."""

    closing: Closing
    system: System  # with its targets
    name: str
    folder: Path  # of the state
    feed: Feed | None = None  # None: others bring files
    system_file: str = ""  # where the system was read from
    every_s: float = 60.0
    window_s: float = 3600.0  # over which shares are measured
    refit_s: float = 3600.0
    most_files: int = 1000

    @property
    def staged(self) -> Path:
        """The folder of rows that wait to be counted."""
        return self.folder / "staged"

    @property
    def checkpoint(self) -> Path:
        """The folder in which Spark notes which files it has handed over."""
        return self.folder / "checkpoint"

    def check(self) -> None:
        """Raise if the store or the rows that wait were made by other rules."""
        self.closing.parts()
        Staging(self.staged).check_period(self.closing.period_ns)


@dataclass(slots=True, kw_only=True)
class Watcher:
    """A system under watch; :meth:`round` looks once."""

    plan: WatchPlan
    spark: SparkSession
    tell: Tell  # of alarms that begin and end
    progress: Progress
    _staging: Staging = field(init=False)
    _ledger: Ledger = field(init=False)
    _alarms: tuple[Alarm, ...] = field(init=False, default=())
    _known: Known = field(init=False)  # what alarms are held against
    _predicted: Outcome | None = field(init=False, default=None)  # of the one fitted last
    _fitted: str = field(init=False, default="")  # file of the system that is predicted
    _fitted_ns: int = field(init=False, default=0)
    _known_ns: int = field(init=False, default=0)  # since when the prediction stands
    _found: Characterisation | None = field(init=False, default=None)  # of the newest part
    _longer: Characterisation | None = field(init=False, default=None)  # of the last hour
    _down: dict[str, int] = field(init=False, default_factory=dict)  # components, since when
    _queues: NowAndBefore = field(init=False, default=({}, {}))
    _waits: dict[str, float] = field(init=False, default_factory=dict)  # newest, by broker
    _judged_ns: int = field(init=False, default=0)  # where the newest part ends that was judged
    _emptied: bool = field(init=False, default=False)  # whether the store lost what was judged
    _unmeasured: bool = field(init=False, default=False)  # whether a part waits to be measured
    _set_aside: tuple[int, int] = field(init=False, default=(0, 0))  # rows, in parts up to when
    _strays: int = field(init=False, default=0)  # rows from long before all others
    _changed: dict[str, int] = field(init=False, default_factory=dict)  # files, and their sizes
    _problems: list[str] = field(init=False, default_factory=list)
    _before_round: list[str] = field(init=False, default_factory=list)  # to be said in the first

    def __post_init__(self) -> None:
        self.plan.check()
        mend(self.plan.checkpoint)
        self._staging = Staging(self.plan.staged)
        self._strays = self._staging.strays()
        longest_s = max(*WINDOWS_S.values(), self.plan.window_s)
        self._ledger = Ledger(
            path=self.plan.folder / MEASURED_FILE,
            keep_s=longest_s,
            names=(EVERYBODY, *(each.name for each in self.plan.system.subscribers)),
        )
        before = self._state_before()
        if before is not None:
            health = before.health
            self._alarms = before.alarms
            self._judged_ns = health.judged_ns
            if health.set_aside_until_ns:  # else of a version that counted the newest part alone
                self._set_aside = health.set_aside_rows, health.set_aside_until_ns
        # A run may have been killed after a part was counted, and before anybody was told.
        self._unmeasured = self.plan.closing.counted_until_ns() > self._judged_ns
        self._fitted = self.plan.system_file
        self._predicted = self._foretold(self.plan.system)
        self._known = Known(system=self.plan.system, expected=self._predicted)
        of_another = before is not None and before.system != self.plan.name
        fitted = None if of_another else self._fitted_before()
        if fitted is not None:
            self._fitted_ns = 0 if before is None else before.health.fitted_ns
            self._predicted = self._foretold(fitted)

    def _state_before(self) -> State | None:
        """Read the state that an earlier run left; None where there is none to read."""
        try:
            return read_state(self.plan.folder)
        except (OSError, ValueError) as problem:
            self._before_round.append(
                f"the state that an earlier run left cannot be read ({problem}): alarms begin anew"
            )
            return None

    def round(self) -> State:
        """Take in, count and judge all that is new; gives the state, which is also written."""
        started, self._problems = time.monotonic(), self._before_round
        self._before_round = []
        self._look_for_store()
        latest = self._take_in()
        has_closed = latest is not None and self._close(latest)
        is_new = (has_closed or self._unmeasured) and self._measure()
        self._unmeasured = (has_closed or self._unmeasured) and not is_new
        if is_new:  # after measuring, which asks for batches as they were counted
            self._compact()
        state, told = self._judge(latest, started, is_new=is_new)
        write_state(self.plan.folder, state)  # before anybody is told, who may not answer
        for alarm in told:
            self.tell(alarm)
        return state

    def _say(self, problem: str) -> None:
        """Tell of something in the state of this round."""
        if problem and problem not in self._problems:
            self._problems.append(problem)

    def _look_for_store(self) -> None:
        """Tell, at every look from then on, that the store has less than was judged."""
        self._emptied |= self.plan.closing.counted_until_ns() < self._judged_ns
        if self._emptied:
            self._say(
                f"{self.plan.closing.store} was emptied while it was watched: with its parts went "
                "who subscribes, and measured shares are those from before. End this watch, remove "
                f"{self.plan.folder} as well, and begin anew"
            )

    def _take_in(self) -> MicroBatch | None:
        """Stage the rows of all new files; gives the latest batch there has ever been."""
        self.progress("asking for new files")
        feed = self.plan.feed
        if feed is not None:
            self.progress("fetching")
            try:
                self._say(feed.fetch())
            except EngineError as problem:
                self._say(str(problem))  # asked again the next time
        refused: dict[str, str] = {}
        strange: list[str] = []

        def take(number: int, files: list[str]) -> None:
            self.progress(f"taking in {len(files)} files")
            limits = self.plan.closing.limits(time.time_ns())  # Spark may have taken long to start
            batch = self._staging.take(self.spark, number, files, limits)
            refused.update(batch.refused)
            strange.extend(batch.strange)

        source = self.plan.closing.source
        if not source.is_dir():  # a mount that is gone for a while, say
            self._say(f"{source}: the folder is not there; asked again at the next look")
            return self._staging.latest()
        take_new_files(
            self.spark,
            source,
            self.plan.checkpoint,
            take,
            most_files=self.plan.most_files,
        )
        if feed is not None:
            feed.clear()  # the stream has handed over all files that were there when it began
        known, self._changed = self._changed, self._staging.changed_files()
        changed = [file for file, size in self._changed.items() if known.get(file) != size]
        for said in file_problems(refused, strange, changed):
            self._say(said)
        return self._staging.latest()

    def _close(self, latest: MicroBatch) -> bool:
        """Count all periods that are due; whether there were any and the store was free."""
        try:
            window = self.plan.closing.close(self.spark, self._staging, latest, self.progress)
        except StoreInUseError as problem:
            self._say(f"nothing is counted until the next look: {problem}")
            return False
        strays = self._staging.strays()
        if strays > self._strays:
            self._say(
                "rows dated a day or more before all others are set aside: "
                f"{strays - self._strays}, kept in {self._staging.folder}/batch-*/early"
            )
            self._strays = strays
        return window is not None

    def _measure(self) -> bool:
        """Fit the newest part, and measure what became of events since; whether that was done."""
        self.progress("measuring")
        closing, ledger = self.plan.closing, self._ledger
        store, parts, newest = closing.store, closing.parts(), ledger.newest
        try:
            until_ns = 0 if newest is None else newest.until_ns
            stretch = measure(store, self.plan.system, parts, until_ns, closing.margin_s)
            self._found = self._characterised(parts[-1].from_ns, fit_delay=fit_moments)
            self._down = closing.down_since()
            self._queues = newest_counters(store, parts)
            self._waits = newest_waits(store, parts[-1])
            self._count_set_aside(parts)
            if stretch is not None:
                ledger.add(stretch)
            self._refit_in_time(parts)
        except InvalidTracesError as problem:
            self._say(f"nothing can be measured: {problem}")
            return False
        return True

    def _characterised(self, since_ns: int, *, fit_delay: FitLaw = fit_law) -> Characterisation:
        store = self.plan.closing.store
        return characterise_store(store, self.plan.system, since_ns=since_ns, fit_delay=fit_delay)

    def _newest(self) -> System | None:
        """Fit the newest part with all its distributions; None where that cannot be done."""
        try:
            return self._characterised(self.plan.closing.parts()[-1].from_ns).system
        except TidingsError as problem:
            self._say(f"the newest part cannot be fitted: {problem}")
            return None

    def _count_set_aside(self, parts: Sequence[StorePart]) -> None:
        """Add the rows that nobody can use, of all parts that were counted since this was done."""
        assert self._found is not None
        rows, until_ns = self._set_aside
        new = [part for part in parts if part.from_ns >= until_ns]
        if not new:
            return
        found = self._found
        if len(new) > 1:
            found = self._characterised(new[0].from_ns, fit_delay=fit_moments)
        self._set_aside = rows + unusable_rows(found.quality), parts[-1].until_ns

    def _compact(self) -> None:
        """Keep the store small; if somebody is reading it, the next time."""
        self.progress("keeping the store small")
        try:
            self.plan.closing.compact(self.spark, self.progress)
        except InvalidTracesError as problem:
            self._say(f"old parts stay as they are for now: {problem}")

    def _judge(
        self, latest: MicroBatch | None, started: float, *, is_new: bool
    ) -> tuple[State, tuple[Alarm, ...]]:
        """Judge what is new, and list what to tell; alarms stay as they are while nothing is."""
        self.progress("judging")
        counted, newest = self._ledger.read(), self._ledger.newest
        look = Look(
            known=self._known,
            predicted=self._predicted,
            counted=counted,
            newest={} if newest is None else newest.counts,
            found=self._found,
            longer=self._longer,
            down_since=self._down,
            waits=self._waits,
            queues=self._queues[0],
            queues_before=self._queues[1],
            window_s=self.plan.window_s,
            look_s=max(self.plan.every_s, self.plan.closing.period_s),
            sampled=self.plan.closing.sampled(),
            lasting=self._alarms,
        )
        told: tuple[Alarm, ...] = ()
        if is_new:
            turn = turned(self._alarms, alarms(look), look.at_ns)
            fitted = self._newest() if turn.begun and self._found is not None else None
            if fitted is not None and any(each.kind == CHANGED for each in turn.begun):
                self._keep(fitted, look.at_ns)
            begun = self._advised(turn.begun, fitted)
            advised = dict(zip(turn.begun, begun, strict=True))
            self._alarms = tuple(advised.get(each, each) for each in turn.alarms)
            told = (*begun, *turn.ended)
            self._warn_of_margin()
            self._judged_ns = self.plan.closing.counted_until_ns()
        return self._state(replace(look, predicted=self._predicted), latest, started), told

    def _warn_of_margin(self) -> None:
        margin_s = self.plan.closing.margin_s
        late = [] if self._found is None else travelled_longer(self._found, margin_s)
        if late:
            self._say(
                f"events to {', '.join(late[:3])} travelled longer than the margin of "
                f"{margin_s:g} s: such events may count as lost; watch with a longer --margin and "
                "a new --store"
            )

    def _state(self, look: Look, latest: MicroBatch | None, started: float) -> State:
        now_ns = time.time_ns()
        newest_ns = -1 if latest is None else latest.newest_ns
        return State(
            at_ns=now_ns,
            system=self.plan.name,
            window_s=self.plan.window_s,
            standings=standings(look),
            alarms=self._alarms,
            backlogs={each.name: round(each.waiting) for each in queues(look)},
            system_file=self._fitted,
            health=Health(
                batch=-1 if latest is None else latest.number,
                rows=0 if latest is None else latest.rows,
                late_rows=self._strays + (0 if latest is None else latest.late_rows),
                set_aside_rows=self._set_aside[0],
                set_aside_until_ns=self._set_aside[1],
                judged_ns=self._judged_ns,
                refused_files=0 if latest is None else latest.refused_files,
                batch_s=time.monotonic() - started,
                trigger_s=self.plan.every_s,
                behind_s=0.0 if newest_ns < 0 else (now_ns - newest_ns) / 1e9,
                fitted_ns=self._fitted_ns,
                problem="; ".join(self._problems),
            ),
        )

    def _refit_in_time(self, parts: Sequence[StorePart]) -> None:
        """Fit the parts of the last hour together, every hour: what is rare needs longer."""
        now_ns = parts[-1].until_ns
        self._known_ns = self._known_ns or now_ns
        hour_ns = round(self.plan.refit_s * 1e9)
        if now_ns - self._known_ns >= hour_ns:
            since_ns = min(part.from_ns for part in parts if part.until_ns > now_ns - hour_ns)
            self._longer = self._characterised(since_ns)
            self._keep(self._longer.system, now_ns)

    def _keep(self, system: System, at_ns: int) -> None:
        """Keep a fitted system, and predict it from now on."""
        path = self.plan.folder / FITTED_FILE
        try:
            reading.save(system, path)
        except TidingsError as problem:
            self._say(f"the fitted system cannot be kept: {problem}")
            return
        self._fitted, self._fitted_ns, self._known_ns = str(path.absolute()), at_ns, at_ns
        self._predicted = self._foretold(system) or self._predicted

    def _foretold(self, system: System) -> Outcome | None:
        self.progress("predicting")
        try:
            return predict(system, causes=True, delays=False, error_bars=True, seconds=PREDICT_S)
        except TidingsError as problem:
            self._say(f"nothing can be predicted: {problem}")
            return None

    def _advised(self, begun: tuple[Alarm, ...], newest: System | None) -> tuple[Alarm, ...]:
        """Add to alarms that begin the dearest cause, and the single change that acts on them."""
        if not begun or newest is None:
            return begun
        self.progress("explaining")
        try:
            budget = explain(newest)
        except TidingsError as problem:
            self._say(f"nothing can be advised: {problem}")
            return begun
        cause = budget.totals[0][0].words if budget.totals else ""
        return tuple(
            replace(
                each,
                # What has changed has its own cause or none: the dearest may lie elsewhere.
                cause=each.cause or ("" if each.kind == CHANGED else cause),
                do=advice(each, budget.remedies),
            )
            for each in begun
        )

    def _fitted_before(self) -> System | None:
        """Read the system that an earlier run fitted last; None where there is none."""
        path = self.plan.folder / FITTED_FILE
        try:
            system = reading.load(path) if path.is_file() else None
        except TidingsError:
            return None
        if system is not None:
            self._fitted = str(path.absolute())
        return system


@contextmanager
def watching(
    plan: WatchPlan, spark: SparkSession, tell: Tell, progress: Progress
) -> Iterator[Watcher]:
    """Yield a watcher with its state folder to itself, and with the watching of its store."""
    places = {plan.folder.resolve(), (plan.closing.store / WATCH_FOLDER).resolve()}
    with ExitStack() as held:
        for place in sorted(places):
            held.enter_context(locked(place, alone=True))
        yield Watcher(plan=plan, spark=spark, tell=tell, progress=progress)


def watch(
    watcher: Watcher,
    *,
    for_s: float | None,
    once: bool,
    show: Callable[[State], None],
    first: AbstractContextManager[object] | None = None,
) -> None:
    """Look at every trigger until the time is up; ``once``, look a single time.

    The first look, which may have much to take in, lies in the block of ``first``.
    """
    begun = time.monotonic()
    while True:
        due = time.monotonic() + watcher.plan.every_s
        with first or nullcontext():
            state = watcher.round()
        first = None
        show(state)
        if once or (for_s is not None and due - begun >= for_s):
            return
        time.sleep(max(due - time.monotonic(), 0.0))
