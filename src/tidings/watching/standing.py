"""How a watched system stands: who gets what was promised and predicted, and what is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tidings.characterisation.fit.fitted import Characterisation
from tidings.model.causes import causes_of
from tidings.model.outcome import Outcome
from tidings.model.system import System
from tidings.watching import judging
from tidings.watching.counts import Stretch
from tidings.watching.reference import known_values, learnt_values
from tidings.watching.state import BACKLOG, CHANGED, EVERYBODY, TARGET, Alarm, Share, Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """All that is known when a system is looked at."""

    system: System  # as given, with its targets
    expected: Outcome | None  # predicted of the system as given: what alarms are held against
    predicted: Outcome | None  # of the system as fitted last: what is to be expected now
    stretches: Sequence[Stretch]  # measured, in the order of time, the newest last
    found: Characterisation | None  # of the newest part
    window_s: float  # over which shares are measured
    look_s: float  # time between two looks
    longer: Characterisation | None = None  # of a longer time, for what is rare
    lasting: Sequence[Alarm] = field(default=())
    down_since: Mapping[str, int] = field(default_factory=dict)  # components, as recorded

    @property
    def at_ns(self) -> int:
        """Until when events were measured; 0 where none were."""
        return self.stretches[-1].until_ns if self.stretches else 0

    @property
    def recent(self) -> list[Stretch]:
        """What was measured in the window."""
        since_ns = self.at_ns - round(self.window_s * 1e9)
        return [each for each in self.stretches if each.until_ns > since_ns]

    @property
    def looks_per_day(self) -> float:
        """How often a day it is looked at."""
        return judging.DAY_S / self.look_s


def standings(look: Look) -> tuple[Standing, ...]:
    """List how everybody stands, and then every subscriber, the worst first."""
    recent = look.recent
    promised = {each.name: each.target for each in look.system.subscribers}
    delays = _delays(look.found)
    causes = {} if look.predicted is None else causes_of(look.predicted)
    foretold = predicted_shares(look.predicted)
    found = []
    for name in (EVERYBODY, *promised):
        target = _common(promised.values()) if name == EVERYBODY else promised[name]
        counts = judging.counts_of(recent, name)
        wanted = sum(each.wanted for each in counts)
        median_s, p99_s = delays.get(name, (None, None))
        found.append(
            Standing(
                name=name,
                promised=target,
                measured=judging.measured_share(counts) if wanted else None,
                predicted=foretold.get(name),
                wanted=wanted,
                burn_rates=None
                if target is None
                else judging.burn_rates(look.stretches, name, target, look.at_ns),
                median_s=median_s,
                p99_s=p99_s,
                cause=causes[name][0][0].words if causes.get(name) else "",
            )
        )
    worst = sorted(found[1:], key=_badness)
    return (found[0], *worst)


def alarms(look: Look) -> list[Alarm]:
    """List everything that is wrong now."""
    if not look.stretches:
        return []
    changed = list(_changed(look))
    return [*_broken_promises(look), *(changed or _unforeseen(look)), *_backlogs(look)]


def queues(look: Look) -> list[judging.Queue]:
    """List the queues at brokers, as measured."""
    if look.found is None:
        return []
    servers = {each.name: each.servers for each in look.system.brokers}
    return [
        judging.Queue(
            name=str(row.broker),
            rate_per_s=float(row.arrivals_per_s),
            service_s=float(row.service_mean_s),
            wait_s=float(row.wait_mean_s),
            servers=servers.get(str(row.broker), 1),
        )
        for row in look.found.measured.brokers.itertuples()
        if math.isfinite(row.wait_mean_s)
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
    late = []
    for name, rows in found.measured.delays.groupby("subscriber"):
        within = rows[rows["delay_s"] <= margin_s]["arrived"].max()
        if rows["arrived"].max() > (0.0 if math.isnan(within) else within):
            late.append(str(name))
    return late


# ---- what is wrong -------------------------------------------------------------------------------


def _broken_promises(look: Look) -> Iterator[Alarm]:
    promises = sum(each.target is not None for each in look.system.subscribers)
    z = judging.certain(promises, look.looks_per_day)
    for subscriber in look.system.subscribers:
        promised = subscriber.target
        if promised is None:
            continue
        sure = judging.burn_rates(look.stretches, subscriber.name, promised, look.at_ns, z=z)
        rates = judging.burn_rates(look.stretches, subscriber.name, promised, look.at_ns)
        if judging.breaks_promise(sure, rates, promised):
            yield Alarm(
                name=f"{TARGET} {subscriber.name}",
                kind=TARGET,
                where=(subscriber.name,),
                what="fewer events are on time than promised",
                size=rates["1h"],
                unit="times the budget",
                since_ns=look.stretches[-1].from_ns,
            )


def _changed(look: Look) -> Iterator[Alarm]:
    if look.found is None:
        return
    reference, learnt = known_values(look.system), learnt_values(look.found)
    over_longer = {} if look.longer is None else learnt_values(look.longer)
    newest = look.stretches[-1]
    lasting = [
        each.name.partition(" ")[2]
        for each in look.lasting
        if each.kind == CHANGED and each.until_ns is None
    ]
    gone = sorted({*_gone(look), *judging.find_cut_off(learnt, reference)})
    heard = {path.split(".")[1] for path in learnt if path.startswith("publishers.")}
    provenance = look.found.measured.provenance
    watched_s = (provenance["until_ns"] - provenance["from_ns"]) / 1e9
    silent = judging.find_silent(reference, heard, watched_s, look.looks_per_day)
    homes = {each.name: each.at for each in look.system.publishers}
    homes |= {each.name: each.at for each in look.system.subscribers}
    yield from _outages(look)
    for kind, names, words in (
        ("gone", gone, "subscriber receives next to nothing any more"),
        ("silent", silent, "publisher has fallen silent"),
    ):
        for name in names:
            home = homes.get(name)
            yield Alarm(
                name=f"{CHANGED} {kind} {name}",
                kind=CHANGED,
                where=(name,),
                what=words,
                size=0.0,
                unit="events",
                since_ns=newest.from_ns,
                cause=f"broker {home} is down" if home in look.down_since else "",
            )
    of_gone = tuple(f"subscribers.{name}." for name in gone)
    tests = (learnt, {path: value for path, value in over_longer.items() if _is_rare(path, learnt)})
    for moved in (
        each
        for values in tests
        for each in judging.find_moved(values, reference, look.looks_per_day, lasting)
    ):
        if not moved.path.startswith(of_gone or ("\n",)):
            yield Alarm(
                name=f"{CHANGED} {moved.path}",
                kind=CHANGED,
                where=(moved.name,),
                what=moved.words,
                size=moved.size,
                unit=moved.unit,
                since_ns=newest.from_ns,
                cause=f"it was {moved.was:.3g} and is {moved.now:.3g}, "
                f"{moved.distance:.0f} standard errors away",
            )


def _outages(look: Look) -> Iterator[Alarm]:
    """Yield alarms for brokers and links that are recorded to be down."""
    for name, since_ns in sorted(look.down_since.items()):
        yield Alarm(
            name=f"{CHANGED} down {name}",
            kind=CHANGED,
            where=(name,),
            what=f"{'link' if '--' in name else 'broker'} is down",
            size=max(look.at_ns - since_ns, 0) / 1e9,
            unit="s",
            since_ns=since_ns,
        )


def _is_rare(path: str, learnt: Mapping[str, judging.Value]) -> bool:
    """Test whether the newest part has too little of something to tell."""
    return path not in learnt or learnt[path].count < judging.LEAST_COUNT


def _gone(look: Look) -> list[str]:
    rows = None if look.expected is None else look.expected.subscribers
    if rows is None:
        return []
    delivered = {
        str(name): float(share)
        for name, share in zip(rows["subscriber"], rows["delivered"], strict=True)
        if share == share
    }
    return judging.find_gone(look.stretches[-1].counts, delivered, look.looks_per_day)


def _unforeseen(look: Look) -> Iterator[Alarm]:
    """Yield alarms for shares that are not as predicted, where no parameter says why."""
    foretold, recent = predicted_shares(look.expected), look.recent
    for name, share in foretold.items():
        counts = judging.counts_of(recent, name)
        by = judging.differs_from_predicted(counts, share, len(foretold), look.looks_per_day)
        if name != EVERYBODY and by is not None:
            yield Alarm(
                name=f"{CHANGED} share {name}",
                kind=CHANGED,
                where=(name,),
                what=f"{'fewer' if by < 0 else 'more'} events are on time than predicted",
                size=by,
                unit="of events",
                since_ns=recent[0].from_ns,
            )


def _backlogs(look: Look) -> Iterator[Alarm]:
    usual: Mapping[str, float] = {}
    if look.expected is not None:
        rows = look.expected.brokers
        columns = (rows[name] for name in ("broker", "wait_mean_s", "utilisation"))
        usual = {
            str(name): judging.unusual_wait_s(wait, busy, len(rows), look.looks_per_day)
            for name, wait, busy in zip(*columns, strict=True)
            if math.isfinite(wait)
        }
    for queue in queues(look):
        if judging.is_behind(queue, usual.get(queue.name, 0.0), look.look_s):
            never = math.isinf(queue.catch_up_s)
            cause = (
                "events come faster than they are served"
                if never
                else f"they are gone after {queue.catch_up_s:.3g} s if nothing changes"
            )
            yield Alarm(
                name=f"{BACKLOG} {queue.name}",
                kind=BACKLOG,
                where=(queue.name,),
                what="events wait",
                size=queue.waiting,
                unit="events",
                since_ns=look.stretches[-1].from_ns,
                cause=cause,
            )


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
