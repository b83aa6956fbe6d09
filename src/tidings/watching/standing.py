"""How a watched system stands: who gets what was promised and predicted, and what is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tidings.characterisation.fit.fitted import Characterisation
from tidings.characterisation.fit.queues import Counters
from tidings.model.causes import causes_of
from tidings.model.laws import Law
from tidings.model.outcome import Outcome
from tidings.model.system import System
from tidings.simulation.network import compile_system
from tidings.watching import judging
from tidings.watching.certainty import DAY_S
from tidings.watching.counts import EventCounts
from tidings.watching.reference import known_values
from tidings.watching.shares import (
    StretchTally,
    burn_rates,
    measured_shares,
)
from tidings.watching.state import EVERYBODY, Alarm, Share, Standing

MOST_NAMED = 5  # of those that the known system does not have


@dataclass(frozen=True, kw_only=True, eq=False)
class Known:
    """The system as given, and what is predicted of it: what alarms are held against."""

    system: System  # with its targets
    expected: Outcome | None

    @cached_property
    def values(self) -> dict[str, judging.Value]:
        """The numbers of the system by path."""
        return known_values(self.system)

    @cached_property
    def shares(self) -> dict[str, Share]:
        """Predicted on-time shares by subscriber."""
        shares = predicted_shares(self.expected)
        return {name: share for name, share in shares.items() if name != EVERYBODY}

    @cached_property
    def delivered(self) -> dict[str, float]:
        """Predicted shares of events that arrive at all, by subscriber."""
        if self.expected is None:
            return {}
        rows = self.expected.subscribers[["subscriber", "delivered"]].dropna()
        return dict(zip(rows["subscriber"].tolist(), rows["delivered"].tolist(), strict=True))

    def late_until_gone(self, broker: str, wait_s: float) -> float:
        """Predict the share of what passes a broker until its queue is gone that will be late."""
        if self.expected is None:
            return 0.0
        usual_s = self.waits.get(broker, (0.0, 0.0))[0]
        rows = self.expected.subscribers.dropna(subset="delay_mean_s")
        weights = (rows["wanted_per_s"] * rows["count"]).to_numpy()
        mean_s = (
            float(rows["delay_mean_s"].to_numpy() @ weights / weights.sum()) if len(rows) else 0
        )
        return judging.late_until_gone(
            wait_s, max(mean_s - usual_s, 0.0), self._lifetimes.get(broker, ())
        )

    @cached_property
    def _lifetimes(self) -> dict[str, list[tuple[float, Law | None]]]:
        """The lifetimes of what passes each broker, each with its share of the events there."""
        compiled = compile_system(self.system)
        cells, rows = compiled.cells, compiled.routes.rows
        flows = np.bincount(cells.broker, weights=cells.flow_per_s)
        passing: dict[str, list[tuple[float, Law | None]]] = {}
        parts = zip(
            cells.broker.tolist(), cells.row.tolist(), cells.flow_per_s.tolist(), strict=True
        )
        for broker, row, flow in parts:
            name = self.system.brokers[broker].name
            if flow > 0.0:
                passing.setdefault(name, []).append((flow / flows[broker], rows[row].lifetime))
        return passing

    @cached_property
    def waits(self) -> dict[str, tuple[float, float]]:
        """Predicted mean waits in seconds, and how busy each broker is."""
        if self.expected is None:
            return {}
        rows = self.expected.brokers
        columns = (rows[name].tolist() for name in ("broker", "wait_mean_s", "utilisation"))
        return {name: (wait, busy) for name, wait, busy in zip(*columns, strict=True)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """All that is known when a system is looked at."""

    known: Known
    predicted: Outcome | None  # of the system as fitted last: what is to be expected now
    counted: StretchTally  # events measured, of everybody and of each subscriber
    newest: Mapping[str, EventCounts]  # by subscriber, of the newest stretch
    found: Characterisation | None  # of the newest part
    window_s: float  # over which shares are measured
    look_s: float  # time between two looks
    sampled: float = 1.0  # share of all events that is recorded: counts are of these alone
    longer: Characterisation | None = None  # of a longer time, for what is rare
    lasting: Sequence[Alarm] = field(default=())
    down_since: Mapping[str, int] = field(default_factory=dict)  # components, as recorded
    waits: Mapping[str, float] = field(default_factory=dict)  # in seconds, newest, by broker
    queues: Mapping[str, Counters] = field(default_factory=dict)  # by their newest polls
    queues_before: Mapping[str, Counters] = field(default_factory=dict)

    @property
    def at_ns(self) -> int:
        """Until when events were measured; 0 where none were."""
        return int(self.counted.until_ns[-1]) if self.counted.until_ns.size else 0

    @property
    def newest_ns(self) -> int:
        """When the newest of what was measured began; 0 where nothing was."""
        return int(self.counted.from_ns[-1]) if self.counted.from_ns.size else 0

    @property
    def since_ns(self) -> int:
        """When the window begins over which shares are measured."""
        return self.at_ns - round(self.window_s * 1e9)

    @property
    def looks_per_day(self) -> float:
        """How often a day it is looked at."""
        return DAY_S / self.look_s


def standings(look: Look) -> tuple[Standing, ...]:
    """List how everybody stands, and then every subscriber, the worst first."""
    targets = {each.name: each.target for each in look.known.system.subscribers}
    promised = {EVERYBODY: _common(targets.values()), **targets}
    recent = look.counted.of(promised).since(look.since_ns)
    wanted, shares = recent.wanted.sum(axis=1), measured_shares(recent)
    budgets = np.array([0.0 if each is None else each for each in promised.values()])
    rates = burn_rates(look.counted.of(promised), budgets, look.at_ns)
    delays = _delays(look.found)
    causes = {} if look.predicted is None else causes_of(look.predicted)
    foretold = predicted_shares(look.predicted)
    found = []
    for n, (name, target) in enumerate(promised.items()):
        median_s, p99_s = delays.get(name, (None, None))
        found.append(
            Standing(
                name=name,
                promised=target,
                measured=Share(
                    share=float(shares.share[n]),
                    low=float(shares.low[n]),
                    high=float(shares.high[n]),
                )
                if wanted[n]
                else None,
                predicted=foretold.get(name),
                wanted=round(wanted[n] / look.sampled),
                burn_rates=None
                if target is None
                else {window: float(each[n]) for window, each in rates.items()},
                median_s=median_s,
                p99_s=p99_s,
                cause=causes[name][0][0].words if causes.get(name) else "",
            )
        )
    worst = sorted(found[1:], key=_badness)
    return (found[0], *worst)


def queues(look: Look) -> list[judging.WaitingEvents]:
    """List the queues at brokers, as long as waits were last."""
    if look.found is None:
        return []
    servers = {each.name: each.servers for each in look.known.system.brokers}
    rows = look.found.measured.brokers
    names = ("broker", "arrivals_per_s", "service_mean_s", "wait_mean_s")
    columns = (rows[name].tolist() for name in names)
    return [
        judging.WaitingEvents(
            name=name,
            rate_per_s=rate_per_s,
            service_s=service_s,
            wait_s=look.waits.get(name, wait_s),
            servers=servers.get(name, 1),
        )
        for name, rate_per_s, service_s, wait_s in zip(*columns, strict=True)
        if math.isfinite(wait_s)
    ]


def predicted_shares(outcome: Outcome | None) -> dict[str, Share]:
    """List predicted on-time shares with their intervals, by subscriber and of everybody."""
    if outcome is None:
        return {}
    columns = ["subscriber", "on_time", "error", "wanted_per_s", "count"]
    rows = outcome.subscribers[columns].dropna(subset="on_time")
    shares = {
        str(name): _share(float(share), float(error))
        for name, share, error in zip(*(rows[each] for each in columns[:3]), strict=True)
    }
    weight = (rows["wanted_per_s"] * rows["count"]).to_numpy()
    if weight.sum() > 0:
        error = float(np.nan_to_num(rows["error"].to_numpy()) @ weight / weight.sum())
        shares[EVERYBODY] = _share(float(outcome.on_time), error)
    return shares


def travelled_longer(found: Characterisation, margin_s: float) -> list[str]:
    """List subscribers of whom some events travelled longer than a margin: parts may miss them."""
    delays = found.measured.delays
    over = delays["delay_s"] > margin_s
    within = delays[~over].groupby("subscriber")["arrived"].max()
    in_all = delays[over].groupby("subscriber")["arrived"].max()
    later = in_all > within.reindex(in_all.index, fill_value=0.0)
    return [str(name) for name in in_all.index[later]]


# ---- small things --------------------------------------------------------------------------------


def _share(share: float, error: float) -> Share:
    half = error if math.isfinite(error) else 1.0
    return Share(share=share, low=max(share - half, 0.0), high=min(share + half, 1.0))


def _common(targets: Iterable[float | None]) -> float | None:
    """Give the target that all have; None where they differ or have none."""
    values = set(targets)
    return values.pop() if len(values) == 1 else None


def _badness(standing: Standing) -> tuple[float, str]:
    """Rank by what is missing of the promise, or else of all events; the worst comes first."""
    share = 1.0 if standing.measured is None else standing.measured.share
    return share - (standing.promised if standing.promised is not None else 1.0), standing.name


def _delays(found: Characterisation | None) -> dict[str, tuple[float | None, float | None]]:
    if found is None:
        return {}
    rows = found.measured.subscribers
    return {
        str(row.subscriber): (
            None if math.isnan(row.delay_p50_s) else float(row.delay_p50_s),
            None if math.isnan(row.delay_p99_s) else float(row.delay_p99_s),
        )
        for row in rows.itertuples()
    }
