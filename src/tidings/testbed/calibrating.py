"""What separate runs say of a system on this machine: its brokers, its links, its repairs.

The traces of a run at low load give service times and link delays as they are here. How late relays
and timers are, and what servers cost, is in the delays of links: a stage of the prediction like any
other.

How long what was repaired takes to join again is seen where every part that fails is taken down on
purpose. A server that lost a neighbour tries again at intervals (the ``reconnect_s`` of the
options), so how long a repair waits to be noticed depends on its phase: at which moment between two
tries it comes. Outages that are shorter than such an interval all wait for the first try; those
that are much longer end at any phase.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tidings.characterisation.fit.laws import FittedLaw, fit_law
from tidings.characterisation.fit.samples import EMPTY
from tidings.characterisation.job import characterise
from tidings.errors import UnstableError
from tidings.model.behaviour import Channel, Service
from tidings.model.laws import Law
from tidings.model.outcome import Outcome
from tidings.model.progress import Progress
from tidings.model.system import Subscriber, System
from tidings.model.trace_files import write_trace_folder
from tidings.prediction.predict import predict
from tidings.testbed.breaking import rejoinings
from tidings.testbed.outages import (
    Outage,
    compressed,
    down_laws,
    failing,
    with_reconnection,
    without_failures,
)
from tidings.testbed.running import require_whole, run_testbed
from tidings.testbed.runs import Rejoining, Run, TestbedOptions
from tidings.testbed.tables import doubts, manifest, trace_tables
from tidings.traces.reading import read_traces

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CALIBRATION_LOAD = 0.15  # of the busiest broker at most; nobody publishes faster than stated
CALIBRATION_LENGTH = 3.0  # beside that of a run
_SEEDS_APART = 1_000  # repetitions and the calibration share no random numbers
_UNLIKE = 4.0  # standard errors: a broker further from those stated like it is not like them


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where and how reality is run: traces are read on ``spark``, every run is as ``options`` say.

    A run has the seed of the options and its number.
    """

    spark: SparkSession
    options: TestbedOptions
    repetitions: int = 3
    progress: Progress = lambda _: None

    def within(self, what: str) -> Bench:
        """Give the same bench, which reports each step as one of something larger."""
        return replace(self, progress=lambda step: self.progress(f"{what}: {step}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What a run at low load says of brokers and links."""

    fitted: System
    notes: tuple[str, ...]
    doubts: tuple[str, ...]  # why it is not to be believed


def calibrate(bench: Bench, system: System, folder: Path) -> Calibration:
    """Run a system at low load and fit brokers and links to it; the traces are left in ``folder``.

    Nothing fails, comes or goes meanwhile, and nobody takes time to handle events. It publishes
    ``CALIBRATION_LENGTH`` times as long: at low load little happens, and whatever is fitted badly
    spoils every prediction. Brokers that the system states alike are fitted together.
    """
    sound = without_handling(steady(system))
    load = busiest_load(predict(sound, delays=False, by="theory"))
    calm = scaled_rates(sound, min(1.0, CALIBRATION_LOAD / load))
    bench.progress("calibrating at low load")
    longer = replace(
        bench.options,
        seed=bench.options.seed + _SEEDS_APART,
        duration_s=CALIBRATION_LENGTH * bench.options.duration_s,
    )
    run = recorded(calm, longer, folder, bench.progress)
    characterisation = characterise(read_traces(bench.spark, folder), progress=bench.progress)
    doubtful = tuple(f"calibration: {doubt}" for doubt in doubts(run))
    pooled = together(system, characterisation.system, characterisation.laws)
    return Calibration(fitted=pooled, notes=characterisation.notes, doubts=doubtful)


def together(system: System, fitted: System, laws: Mapping[str, FittedLaw]) -> System:
    """Pool service distributions of brokers that the system file gives the same service.

    What many brokers tell is surer than what each tells alone. One whose own mean is further than
    ``_UNLIKE`` standard errors from theirs is not like them, whatever was stated, and keeps its
    own law.
    """
    one_for_all = dict(_pooled(system, laws))
    errors = {f"brokers.{name}.service": law.mean_se_s for name, law in one_for_all.items()}
    return replace(
        fitted,
        brokers=tuple(
            replace(each, service=Service(law=one_for_all[each.name].law))
            if each.name in one_for_all
            else each
            for each in fitted.brokers
        ),
        standard_errors=tuple((dict(fitted.standard_errors) | errors).items()),
    )


def _pooled(system: System, laws: Mapping[str, FittedLaw]) -> Iterator[tuple[str, FittedLaw]]:
    groups: dict[Service | None, list[str]] = {}
    for broker in system.brokers:
        if f"brokers.{broker.name}.service" in laws:
            groups.setdefault(broker.service, []).append(broker.name)
    for names in groups.values():
        alone = {name: laws[f"brokers.{name}.service"] for name in names}
        sample = EMPTY
        for law in alone.values():
            sample = sample.merged(law.sample)
        alike = fit_law(sample)
        for name, law in alone.items():
            if abs(law.sample.mean_s - sample.mean_s) <= _UNLIKE * law.mean_se_s:
                yield name, alike


def steady(system: System) -> System:
    """Make the system with everybody there and subscribed all the time, and nothing that fails."""
    return replace(
        without_failures(system),
        publishers=tuple(replace(each, connectivity=None) for each in system.publishers),
        subscribers=tuple(
            replace(each, connectivity=None, stays=None, away=None) for each in system.subscribers
        ),
    )


def without_handling(system: System) -> System:
    """Make the system whose subscribers take no time to handle events: brokers and links alone."""
    return replace(
        system,
        subscribers=tuple(
            replace(each, processing=None, consumers=None) for each in system.subscribers
        ),
    )


def scaled_rates(system: System, factor: float) -> System:
    """Multiply every publisher's rate by a factor; distributions of intervals keep their shape."""
    return replace(
        system,
        publishers=tuple(
            replace(each, every=None if each.every is None else each.every.scaled(1.0 / factor))
            for each in system.publishers
        ),
    )


def with_measured(system: System, fitted: System) -> System:
    """Put fitted services, delays and losses into a system; all else stays as it states."""
    services = {each.name: each.service for each in fitted.brokers}
    channels = {each.name: each.link for each in fitted.publishers}
    channels |= {each.name: each.link for each in fitted.subscribers}
    arcs = {each.between: each.there for each in fitted.links}
    arcs |= {each.between[::-1]: each.back for each in fitted.links}
    known = [
        (path, error)
        for path, error in fitted.standard_errors
        if not path.startswith("publishers.") or ".link." in path
    ]

    def crossed(stated: Channel, measured: Channel | None) -> Channel:
        if measured is None:
            return stated
        return replace(stated, delay=measured.delay, reliability=measured.reliability)

    def delivered(stated: Subscriber) -> Channel:
        """Give a subscriber's link as measured; losses as stated where traces do not tell them."""
        link = crossed(stated.link, channels.get(stated.name))
        if f"subscribers.{stated.name}.link.reliability" in dict(fitted.standard_errors):
            return link
        return replace(link, reliability=stated.link.reliability)

    return replace(
        system,
        brokers=tuple(
            replace(each, service=services.get(each.name, each.service)) for each in system.brokers
        ),
        links=tuple(
            replace(
                each,
                there=crossed(each.there, arcs.get(each.between)),
                back=crossed(each.back, arcs.get(each.between[::-1])),
            )
            for each in system.links
        ),
        publishers=tuple(
            replace(each, link=crossed(each.link, channels.get(each.name)))
            for each in system.publishers
        ),
        subscribers=tuple(replace(each, link=delivered(each)) for each in system.subscribers),
        standard_errors=tuple(known),
    )


def busiest_load(outcome: Outcome) -> float:
    """Give the utilisation of the busiest broker.

    Raises :class:`UnstableError` where it is too much (1 or more), or 0.
    """
    load = float(outcome.brokers["utilisation"].max())
    if not 0.0 < load < 1.0:
        raise UnstableError(
            f"the busiest broker has a utilisation of {load:.3g}; a testbed comparison "
            "needs one above 0 and below 1"
        )
    return load


def recorded(system: System, options: TestbedOptions, place: Path, progress: Progress) -> Run:
    """Run a system and leave its traces in a folder, also where the run broke; then raise why."""
    run = run_testbed(system, options, progress=progress)
    write_trace_folder(trace_tables(run), manifest(run), place)
    require_whole(run, f"its traces are kept in {place} and marked incomplete")
    return run


_NOTICED_S = 0.02  # a shorter cut is none
_FEW_TRIES = 5.0
_LEAST_DOWN_S, _OVER_S = 0.4, 1.1  # long enough to be noticed; between noticing and the next
_REPAIRS = 24  # at least so many are looked at
_PURPOSE = 12  # of the random numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconnection:
    """Times from a repair until events pass again, in seconds: means and standard deviations."""

    brokers_s: float
    links_s: float
    repairs: int
    brokers_sd_s: float = math.nan  # from repair to repair; NaN: fewer than two were seen
    links_sd_s: float = math.nan
    doubts: tuple[str, ...] = ()  # why they are not to be believed

    def added_to(self, system: System) -> System:
        """Lengthen down times by the time to reconnect: the system as events meet it."""
        return with_reconnection(system, self.brokers_s, self.links_s)


def drill(system: System, options: TestbedOptions, progress: Progress) -> Reconnection:
    """Take down everything that fails, one after the other, and see how long it takes to rejoin."""
    again_s = options.reconnect_s
    outages = drill_outages(compressed(system, options.compression), options.seed, again_s)
    length = replace(options, warmup_s=0.0, duration_s=outages[-1].end_s + _up_s(again_s))
    run = run_testbed(system, length, outages=outages, progress=progress)
    require_whole(run, "before all that fails had been taken down and repaired")
    rejoined = rejoinings(run)
    brokers_s, brokers_sd_s = _mean_and_deviation_s(
        rejoined, {each.name for each in system.brokers}
    )
    links_s, links_sd_s = _mean_and_deviation_s(rejoined, {each.name for each in system.links})
    return Reconnection(
        brokers_s=brokers_s,
        links_s=links_s,
        repairs=len(rejoined),
        brokers_sd_s=brokers_sd_s,
        links_sd_s=links_sd_s,
        doubts=tuple(f"repairs: {doubt}" for doubt in doubts(run)),
    )


def _up_s(reconnect_s: float) -> float:
    """Compute how long everything is up between two outages, in seconds.

    A repair must have been noticed, and over.
    """
    return _OVER_S + reconnect_s


def drill_outages(system: System, seed: int, reconnect_s: float) -> list[Outage]:
    """Draw one outage after the other, every part that fails as often as any other.

    Lengths down are such that repairs come at the phases of the reconnect timer at which real ones
    do. They are stratified: all those of brokers cut what is possible into as many slices, one
    random length in each, and so do those of links; those of one part are in slices far apart.
    """
    laws = down_laws(system)
    generator = np.random.default_rng([seed, _PURPOSE])
    parts = failing(system)
    links = {link.name for link in system.links}
    kinds = [[each for each in parts if (each in links) is kind] for kind in (False, True)]
    rounds = math.ceil(_REPAIRS / len(parts))
    outages: list[Outage] = []
    begin_s = 0.0
    for turn in generator.permutation(rounds):
        for kind in kinds:
            for place, part in enumerate(kind):
                slice_ = (turn * len(kind) + place + generator.random()) / (rounds * len(kind))
                end_s = begin_s + _drilled_s(laws[part], float(slice_), reconnect_s)
                outages.append(Outage(component=part, begin_s=begin_s, end_s=end_s))
                begin_s = end_s + _up_s(reconnect_s)
    return outages


def _drilled_s(down: Law, share: float, reconnect_s: float) -> float:
    """Compute how long a part is down in a drill, in seconds.

    ``share`` is the share of real outages that are shorter.

    Outages of a few tries to join again are as long as they are. After many tries those of both
    ends have drifted, and longer ones end at any phase: they are spread evenly over a period.
    """
    brief = float(down.cdf(_FEW_TRIES * reconnect_s))
    if share < brief:
        return max(float(down.quantile(share)), _NOTICED_S)
    return _LEAST_DOWN_S + reconnect_s * (share - brief) / (1.0 - brief)


def _mean_and_deviation_s(rejoined: list[Rejoining], parts: set[str]) -> tuple[float, float]:
    took_s = [each.took_s for each in rejoined if each.component in parts]
    mean_s = float(np.mean(took_s)) if took_s else 0.0
    return mean_s, float(np.std(took_s, ddof=1)) if len(took_s) > 1 else math.nan
