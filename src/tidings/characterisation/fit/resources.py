"""Fit the queues of brokers and wires: how long events of each type are served there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from tidings.characterisation.fit.laws import fit_law
from tidings.characterisation.fit.samples import sample_from_rows
from tidings.characterisation.fit.utilisation_law import fit_rows, fit_services
from tidings.characterisation.statistics import SIZE_BYTES_PER_S, Direction
from tidings.errors import InvalidInputError, InvalidTracesError
from tidings.model.laws import Exponential, Law
from tidings.model.workload import NO_TIME, Centre

SERVICES = ("spans", "utilisation")
FIRST = ("cpu", "disk")  # in which order an event passes resources; others after, by name
COLUMNS = ("broker", "resource", "type", "service_mean_s", "service_mean_se_s", "count")
ALL = "all"
SHARED = "shared network"


@dataclass(frozen=True, kw_only=True)
class Resources:
    """The queues of all brokers, laws of service by event type and queue, and how sure they are."""

    centres: tuple[Centre, ...]
    of_broker: Mapping[str, tuple[int, ...]]
    laws: Mapping[tuple[str, int], Law]
    table: pd.DataFrame  # broker, resource, type, mean with standard error, count
    notes: tuple[str, ...] = ()


def spanned_resources(cells: pd.DataFrame, brokers: Sequence[str]) -> Resources:
    """Make a queue for each broker, with fitted service times of each type, from hop spans."""
    laws, rows = {}, []
    for (kind, broker), part in cells.groupby(["type", "broker"]):
        sample = sample_from_rows(part)
        if not sample.count:
            raise InvalidTracesError(
                f"the service times at {broker} are unknown: hops have no 'started_ns'. "
                "Record it, or sample utilisation and use --services utilisation"
            )
        laws[str(kind), brokers.index(str(broker))] = fit_law(sample).law
        row = (broker, "", kind, sample.mean_s, sample.mean_se_s, sample.count)
        rows.append(dict(zip(COLUMNS, row, strict=True)))
    return Resources(
        centres=tuple(Centre(name=name) for name in brokers),
        of_broker={name: (at,) for at, name in enumerate(brokers)},
        laws=laws,
        table=pd.DataFrame(rows, columns=list(COLUMNS)),
    )


def sampled_resources(usage: pd.DataFrame, brokers: Sequence[str]) -> Resources:
    """Make a queue for each sampled resource, with mean service times by the utilisation law.

    Raises with all resources at once of which service times cannot be estimated.
    """
    known = usage[usage["broker"].isin(brokers) & ~usage["resource"].str.contains("--")]
    fits = fit_services(known)
    refusals = [each.refusal for each in fits if each.refusal]
    if refusals:
        headline = "\n  ".join(["service times cannot be determined from utilisation:", *refusals])
        raise InvalidTracesError(headline)
    fits.sort(key=lambda fit: (brokers.index(fit.broker), *_order(fit.resource)))
    missing = sorted(set(brokers) - {fit.broker for fit in fits})
    centres, laws = [], {}
    of_broker: dict[str, tuple[int, ...]] = dict.fromkeys(brokers, ())
    for at, fit in enumerate(fits):
        centres.append(Centre(name=f"{fit.broker} {fit.resource}"))
        of_broker[fit.broker] += (at,)
        for kind, mean_s in fit.services_s.items():
            left = 1.0 - fit.background  # for events
            laws[kind, at] = Exponential(mean_s=mean_s / left) if mean_s > 0.0 else NO_TIME
    notes = ["the utilisation law gives means only: service times are assumed to be exponential"]
    notes += [
        f"no resource of {name} was sampled: its service time is taken as 0" for name in missing
    ]
    notes += [
        f"{fit.resource} of {fit.broker} is busy {100 * fit.background:.3g} % of the time "
        "with work other than events, so serving events takes "
        f"{1.0 / (1.0 - fit.background):.3g} times as long"
        for fit in fits
        if fit.background > 0.0
    ]
    notes += [
        "load varied too little to separate events from other work: up to "
        f"{100 * fit.hidden:.3g} % of the {fit.resource} time of {fit.broker} may be other "
        "work, so service times may be overestimated by as much; sample also while little is "
        "published"
        for fit in fits
        if fit.hidden > 0.0
    ]
    return Resources(
        centres=tuple(centres),
        of_broker=of_broker,
        laws=laws,
        table=pd.DataFrame(fit_rows(fits)),
        notes=tuple(notes),
    )


def _order(resource: str) -> tuple[int, str]:
    return FIRST.index(resource) if resource in FIRST else len(FIRST), resource


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidths:
    """How fast wires are: by link (``hub--east``, each direction by itself) or "all"; or one
    network that all connections share, in both directions.
    """

    bytes_per_s: Mapping[str, float] = field(default_factory=dict)
    shared_bytes_per_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class LearntWires:
    """The queue and speed of every way that has one."""

    centres: tuple[Centre, ...]
    centre_of: Mapping[Direction, int]  # position among ``centres``
    bytes_per_s: Mapping[Direction, float]


def find_wires(given: Bandwidths, directions: Sequence[Direction]) -> LearntWires:
    """Find the wires of some directions; refuse names that are no links."""
    if given.shared_bytes_per_s is not None:
        return LearntWires(
            centres=(Centre(name=SHARED),),
            centre_of=dict.fromkeys(directions, 0),
            bytes_per_s=dict.fromkeys(directions, given.shared_bytes_per_s),
        )
    links = {"--".join(each) for arc in directions for each in (arc, arc[::-1])}
    for name in given.bytes_per_s:
        if name != ALL and name not in links:
            listed = ", ".join(sorted("--".join(arc) for arc in directions)[:12])
            raise InvalidInputError(
                f"no events crossed a link '{name}'; wants one of {listed}, or {ALL}"
            )
    speeds = {arc: speed for arc in directions if (speed := _speed(given, arc)) is not None}
    return LearntWires(
        centres=tuple(Centre(name="--".join(arc)) for arc in speeds),
        centre_of={arc: at for at, arc in enumerate(speeds)},
        bytes_per_s=speeds,
    )


def _speed(given: Bandwidths, arc: Direction) -> float | None:
    for name in ("--".join(arc), "--".join(arc[::-1]), ALL):
        if name in given.bytes_per_s:
            return given.bytes_per_s[name]
    return None


def transfers(
    wires: LearntWires,
    links: Sequence[Direction],
    used: Sequence[int],
    sizes: pd.DataFrame,
    flow: str,
) -> Iterator[tuple[int, Law]]:
    """Yield how long wires are busy with a message of a flow, for those directions it uses."""
    chosen = [at for at in used if links[at] in wires.centre_of]
    sample = sample_from_rows(sizes)
    if chosen and not sample.count:
        raise InvalidTracesError(
            f"the messages of {flow} have no size; record 'size_bytes', or leave the bandwidth out"
        )
    for at in chosen:
        yield at, fit_law(sample).law.scaled(SIZE_BYTES_PER_S / wires.bytes_per_s[links[at]])
