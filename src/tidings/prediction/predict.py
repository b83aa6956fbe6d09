"""Predict which share of its events each subscriber gets in time, within an error that is kept.

Theory answers first. Where its error, as it was measured over many systems, is more than is wanted,
the simulator answers, for as long as it takes or is allowed. Each row says who answered it, how far
it can be off, and why it is not theory's, or not as good as wanted.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict, Unpack

import numpy as np
import pandas as pd

from tidings.errors import InvalidInputError, UnstableError, UnsupportedError
from tidings.kernels.replications import Clock
from tidings.model.arrays import Bools, Floats
from tidings.model.causes import at_most_missing
from tidings.model.loads import FULL_LOAD
from tidings.model.outcome import Outcome, table
from tidings.model.progress import Progress
from tidings.model.remarks import UNSTEADY, Remark
from tidings.model.system import System
from tidings.prediction.choices import SECONDS, WITHIN
from tidings.prediction.overloaded_brokers import with_full_queues
from tidings.prediction.overloaded_groups import with_overload, without_queues
from tidings.prediction.precision import Within, read_within
from tidings.prediction.recorded import SHARE as RECORD_SHARE
from tidings.prediction.recorded import with_record_errors
from tidings.prediction.rough_causes import (
    calmed,
    causes_by_theory,
    joined_causes,
    with_cost_errors,
)
from tidings.prediction.row_joining import joined
from tidings.prediction.simulated_causes import SECONDS as CAUSE_SECONDS
from tidings.prediction.simulated_causes import (
    AskedCauses,
    Playing,
    causes_beyond_theory,
    simulated_causes,
)
from tidings.simulation.collapse import collapsed_groups
from tidings.simulation.options import SimulationOptions
from tidings.simulation.run import overloaded_groups, simulate
from tidings.theory.answer import TheoryAnswer, answer_by_theory
from tidings.theory.error_table import measured_errors
from tidings.theory.feature_names import IN_WORDS
from tidings.theory.models import MODELS

ENGINES = ("theory", "simulation")
_UNLIMITED = 1_000_000  # replications; the seconds are the limit
_FOR_CAUSES = CAUSE_SECONDS / SECONDS  # of the seconds allowed: what is kept for their costs


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictOptions:
    """What a prediction is asked for, all of it by name."""

    within: float | str = WITHIN  # wanted half-width (95 %): a share, or "10% of misses"
    by: str | None = None  # an engine, if one alone is to answer
    seconds: float = SECONDS  # CPU seconds of simulation at most
    seed: int = 1
    model: str = MODELS[0]  # how theory sees queues; with another it answers alone
    faults: str = MODELS[1]  # how theory sees failures; likewise
    pairs: bool = False  # also a row for every publisher and subscriber
    delays: bool | None = None  # whole delay distributions; None: unless there are thousands
    error_bars: bool | None = None  # from standard errors of parameters; None: where quick
    causes: bool | None = None  # what each cause costs everybody; None: in small systems

    def __post_init__(self) -> None:
        read_within(self.within)
        if self.by is not None and self.by not in ENGINES:
            raise InvalidInputError(f"by is {self.by!r}; wants one of {', '.join(ENGINES)}")
        if not (self.seconds > 0 and math.isfinite(self.seconds)):
            raise InvalidInputError(f"seconds is {self.seconds}; wants a number above 0")

    @property
    def is_measured(self) -> bool:
        """Whether the errors of the models of theory asked for are known."""
        return (self.model, self.faults) == MODELS

    @property
    def by_theory_alone(self) -> bool:
        """Whether nothing is to be simulated: so asked for, or by naming a model of theory."""
        return self.by == "theory" or (self.by is None and not self.is_measured)


class PredictChanges(TypedDict, total=False):
    """The options of a prediction by name; tests hold them to :class:`PredictOptions`."""

    within: float | str
    by: str | None
    seconds: float
    seed: int
    model: str
    faults: str
    pairs: bool
    delays: bool | None
    error_bars: bool | None
    causes: bool | None


def predict(
    system: System,
    options: PredictOptions | None = None,
    *,
    progress: Progress | None = None,
    **changes: Unpack[PredictChanges],
) -> Outcome:
    """Predict which share of its events each subscriber gets in time, and why not the rest.

    Options are those of :class:`PredictOptions`, also by name: ``predict(system, within=0.001)``.
    Every row carries its ``error`` (half-width, 95 %, of the engine's own error), who it is ``by``,
    and ``why`` where it is simulated or not held. A row keeps the answer with the smaller error.
    """
    asked = dataclasses.replace(options or PredictOptions(), **changes)
    within = read_within(asked.within)
    tell = progress or (lambda _: None)
    refusal = "simulation was asked for"
    answer = None
    if asked.by != "simulation":
        answer, refusal = _by_theory(system, asked, tell)
    if answer is None:
        return _by_simulation_alone(system, asked, within, refusal, tell)
    if (answer.subscribers["lost_overload"] > 0).any():
        answer = _saying_overload(answer)
    missed = _exceeds(answer, within)
    if asked.by_theory_alone or not missed.any():
        return _told(answer, within, asked)
    tell("simulating where theory is not precise enough")
    wanted = _wanted(within, missed)
    try:
        simulated = _simulated(system, asked, wanted, tell)
    except UnstableError:
        answer = _beside_full_queues(_saying_overload(answer), system, asked, wanted, tell)
        return _told(answer, within, asked, "an overloaded system has no steady state to simulate")
    except UnsupportedError as refused:
        return _told(answer, within, asked, f"the simulation does not handle {_feature(refused)}")
    stated = answer.subscribers["error"]
    answer = dataclasses.replace(
        answer, causes=with_cost_errors(answer.causes, _seen_beside(answer, simulated))
    )
    better = simulated.subscribers["error"] < stated
    simulated.subscribers["why"] = answer.subscribers["why"]
    chosen = (missed & better).to_numpy()
    return _told(joined(answer, simulated, chosen), within, asked)


def _seen_beside(answer: Outcome, simulated: Outcome) -> pd.DataFrame:
    """Give theory's rows with errors that are no larger than what a simulation shows.

    By how much the two differ says of theory here what its errors elsewhere cannot.
    """
    rows, other = answer.subscribers, simulated.subscribers
    apart = (rows["on_time"] - other["on_time"]).abs()
    return rows.assign(error=np.fmin(rows["error"], apart + other["error"]))


def _beside_full_queues(
    answer: Outcome,
    system: System,
    asked: PredictOptions,
    wanted: Callable[[Floats], Floats],
    tell: Progress,
) -> Outcome:
    """Hold theory's answer for overloaded brokers to a simulation in which their queues are full.

    Where queues cannot be bounded, or something else has no steady state, it stays as it is.
    """
    full = with_full_queues(system, answer)
    if full is None:
        return answer
    try:
        simulated = _simulated(full, asked, wanted, tell)
    except (UnstableError, UnsupportedError):
        return answer
    rows = _seen_beside(answer, simulated)
    causes = with_cost_errors(answer.causes, rows)
    return dataclasses.replace(answer, subscribers=rows, causes=causes)


# ---- the two engines ---------------------------------------------------------------------------


def _by_theory(system: System, asked: PredictOptions, tell: Progress) -> tuple[Outcome | None, str]:
    """Give theory's answer with its measured errors, or None and why there is none."""
    try:
        theory = answer_by_theory(
            system,
            model=asked.model,
            faults=asked.faults,
            pairs=asked.pairs,
            delays=asked.delays,
            error_bars=asked.error_bars,
            causes=asked.causes,
            progress=tell,
        )
    except UnsupportedError as refused:
        if asked.by_theory_alone:
            raise
        return None, f"theory does not handle {_feature(refused)}"
    except (ArithmeticError, ValueError, RuntimeError) as failure:
        if asked.by_theory_alone:
            raise
        return None, f"theory failed: {str(failure).splitlines()[0][:60]}"
    regimes = theory.regimes
    if not asked.is_measured:
        regimes = regimes * np.nan
    return _with_errors(theory, regimes, read_within(asked.within)), ""


def _feature(refused: UnsupportedError) -> str:
    return refused.features[0] if refused.features else str(refused).splitlines()[0]


def _with_errors(theory: TheoryAnswer, regime: pd.DataFrame, within: Within) -> Outcome:
    """State theory's measured errors in its rows, and why those are not small."""
    known, answer, roughness = measured_errors(), theory.outcome, theory.roughness
    rows = answer.subscribers.copy()
    share = rows["on_time"].to_numpy()
    stated, where = known.tail_errors(regime, 1.0 - share, roughness), known.unmeasured(regime)
    # A share is off by no more than its distance to 0 or to what can be in time at all; what is
    # stuck is late for certain, and where all that is not lost before is stuck, nothing is on time.
    stuck = rows["lost_overload"].to_numpy()
    free = np.where((stuck > 0.0) & (share + rows["late"] == 0.0), 0.0, 1.0 - stuck)
    rows["error"] = np.minimum(stated, np.minimum(np.fmax(share, theory.possible - share), free))
    rows["by"] = np.where(np.isnan(share), "", "theory")
    why = np.full(len(rows), "", dtype=object)
    exceeds = np.flatnonzero(rows["error"] > within.half_widths(share))
    untested = {name: f"theory was not tested where {words}" for name, words in IN_WORDS.items()}
    why[exceeds] = [
        untested.get(name, "theory's error is larger than asked") for name in where[exceeds]
    ]
    rows["why"] = why
    pairs = answer.pairs.copy()
    if len(pairs):
        of = rows.set_index("subscriber")["error"].reindex(pairs["subscriber"]).to_numpy()
        pairs["error"], pairs["by"] = of, "theory"
    causes = with_cost_errors(answer.causes, rows)
    return dataclasses.replace(answer, subscribers=rows, pairs=pairs, causes=causes)


def _simulated(
    system: System, asked: PredictOptions, wanted: Callable[[Floats], Floats], tell: Progress
) -> Outcome:
    """Simulate until the rows that matter are as precise as wanted, or the seconds end.

    Where it is misses that are wanted precisely, and they are few, by splitting.
    """
    recorded = any(each.publishes is not None for each in system.publishers)
    seconds = asked.seconds / (1.0 + RECORD_SHARE) if recorded else asked.seconds
    options = SimulationOptions(
        seed=asked.seed,
        precision=wanted,
        split=read_within(asked.within).of_misses,
        seconds=seconds,
        max_replications=_UNLIMITED,
    )
    outcome = simulate(system, options, progress=tell)
    if recorded:
        outcome = with_record_errors(outcome, system, seconds, asked.seed)
    rows = {"pairs": outcome.pairs if asked.pairs else table("pairs")}
    rows["delays"] = table("delays") if asked.delays is False else outcome.delays
    # Which rows are not held is said of the rows that are answered.
    remarks = tuple(each for each in outcome.remarks if each.kind != "not held")
    return dataclasses.replace(outcome, remarks=remarks, **rows)


def _by_simulation_alone(
    system: System, asked: PredictOptions, within: Within, why: str, tell: Progress
) -> Outcome:
    everybody = np.ones(len(system.subscribers), dtype=np.bool_)
    clock = Clock(asked.seconds)
    overloaded = collapsed_groups(system, asked.seed, clock)
    try:
        if not overloaded:
            kept_s = 0.0 if asked.causes is False else _FOR_CAUSES * asked.seconds
            of_shares = dataclasses.replace(
                asked, seconds=asked.seconds - max(kept_s, clock.spent_s)
            )
            answer = _simulated(system, of_shares, _wanted(within, everybody), tell)
    except UnstableError:
        overloaded = overloaded_groups(system)
        if not overloaded:
            raise
    if overloaded:
        relieved = predict(without_queues(system, overloaded), asked, progress=tell)
        return with_overload(relieved, system, overloaded)
    answer.subscribers["why"] = why
    clock.spend(answer.provenance.get("cpu_s", 0.0))
    roughly = _causes_roughly(system, answer, asked, clock.left_s, tell)
    remarks = (*answer.remarks, *roughly.remarks())
    answer = dataclasses.replace(answer, source="predicted", causes=roughly.causes, remarks=remarks)
    return _told(answer, within, asked)


def _causes_roughly(
    system: System, answer: Outcome, asked: PredictOptions, left_s: float, tell: Progress
) -> AskedCauses:
    """Give costs of causes by what theory can play; where it still has no answer, by simulation."""
    if asked.causes is False:
        return AskedCauses(causes=table("causes"))
    playing = Playing(
        seed=asked.seed,
        # Whoever allows more seconds than usual allows more for causes, too; of what is left.
        seconds=min(max(CAUSE_SECONDS, _FOR_CAUSES * asked.seconds), left_s),
        warmup_s=answer.provenance.get("warmup_s"),
        known=answer,
        progress=tell,
    )
    try:
        theory = answer_by_theory(
            calmed(system), delays=False, error_bars=False, causes=asked.causes
        )
    except (UnsupportedError, ArithmeticError, ValueError, RuntimeError):
        beyond, by_theory = simulated_causes(system, playing), table("causes")
    else:
        beyond = causes_beyond_theory(system, playing)
        calm = _with_errors(theory, theory.regimes, read_within(asked.within))
        by_theory = causes_by_theory(system, answer, calm)
    joined_rows = joined_causes(answer, by_theory, beyond.causes)
    return dataclasses.replace(beyond, causes=joined_rows)


# ---- what is wanted, and what is said ----------------------------------------------------------


def _exceeds(answer: Outcome, within: Within) -> Bools:
    """Find the rows whose error is more than is wanted."""
    rows = answer.subscribers
    exceeds: Bools = (rows["error"] > within.half_widths(rows["on_time"].to_numpy())).to_numpy()
    return exceeds


def _wanted(within: Within, rows: Bools) -> Callable[[Floats], Floats]:
    """Give what the simulator is to reach: of these rows what is wanted, of others nothing."""
    return lambda shares: np.where(rows, within.half_widths(shares), np.inf)


def _told(answer: Outcome, within: Within, asked: PredictOptions, reason: str = "") -> Outcome:
    """Say of each row that is not held why, and clear reasons where none is needed."""
    rows = answer.subscribers.copy()
    missed = _exceeds(answer, within)
    do = "" if reason else "allow more seconds (--seconds), or accept a larger error (--within)"
    reason = reason or "the CPU seconds ran out"
    if asked.by_theory_alone:
        reason, do = "theory alone was used", "allow simulation, or accept the errors shown"
    unsteady = {name for each in answer.remarks if each.kind == UNSTEADY for name in each.where}
    among = rows["subscriber"].isin(unsteady).to_numpy()
    why = np.where(rows["by"] == "simulation", rows["why"], "").astype(object)
    why[missed] = f"less precise than asked: {reason}"
    why[missed & among] = "less precise than asked: runs do not tell what it gets in the long run"
    rows["why"] = why
    counts = rows["by"].value_counts()
    promise = {
        "within": str(within),
        "seconds": asked.seconds,
        "by": {engine: int(counts.get(engine, 0)) for engine in ENGINES},
        "not_held": int(missed.sum()),
    }
    return dataclasses.replace(
        answer,
        subscribers=rows,
        causes=at_most_missing(answer.causes, rows),
        provenance={**answer.provenance, "promise": promise},
        remarks=(*answer.remarks, *_not_held(rows, missed & ~among, reason, do)),
    )


def _saying_overload(answer: Outcome) -> Outcome:
    """Remark that something is overloaded, where theory has not: of a peer, not a broker."""
    if any(each.kind == "overload" for each in answer.remarks):
        return answer
    over = answer.brokers[answer.brokers["utilisation"] >= FULL_LOAD]
    stuck = answer.subscribers[answer.subscribers["lost_overload"] > 0]
    remark = Remark(
        kind="overload",
        what="work arrives faster than it can be done, so there is no steady state to simulate",
        where=tuple(over["broker"]) or tuple(stuck["subscriber"][:20]),
        do="add servers, make it faster, or send it fewer events",
    )
    return dataclasses.replace(answer, remarks=(*answer.remarks, remark))


def _not_held(rows: pd.DataFrame, missed: Bools, reason: str, do: str) -> list[Remark]:
    worst = rows[missed].sort_values("error", ascending=False, kind="stable")
    if worst.empty:
        return []
    return [
        Remark(
            kind="not held",
            what=f"on-time shares are less precise than asked, because {reason}",
            where=tuple(worst["subscriber"][:20]),
            size=float(worst["error"].iloc[0]),
            unit="at worst (half-width, 95 %)",
            do=do,
        )
    ]
