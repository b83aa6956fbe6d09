"""Publishers as fitted: home, intervals, contents, lifetimes, sizes, own link."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tidings.characterisation.fit.channels import FittedChannel
from tidings.characterisation.fit.collected import Statistics
from tidings.characterisation.fit.contents import Contents, lifetimes, numbered
from tidings.characterisation.fit.laws import FittedLaw, fit_law
from tidings.characterisation.fit.parameters import Parameter
from tidings.characterisation.fit.samples import Sample, sample_from_rows, sample_of
from tidings.characterisation.fit.traffic import Traffic
from tidings.characterisation.statistics import Direction, adjoining
from tidings.model.behaviour import PERFECT, Channel
from tidings.model.content import ContentRow, ContentTable
from tidings.model.laws import Exponential, Law
from tidings.model.naming import few
from tidings.model.standard_errors import share_se
from tidings.model.system import Publisher, System


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPublishers:
    """The publishers that could be made out, their parameters, and what must be said of them."""

    publishers: tuple[Publisher, ...]
    parameters: tuple[Parameter, ...]
    notes: tuple[str, ...]


def fit_publishers(
    seen: Statistics,
    channels: Mapping[Direction, FittedChannel],
    base: System | None,
    *,
    window_s: float,
    spoilt: float = 0.0,
    traffic: Mapping[str, Traffic] | None = None,
) -> FittedPublishers:
    """Fit home, rate per second, contents, lifetimes and link of every publisher seen.

    ``spoilt`` is the share of publications that could not be used: rates may miss as many.
    ``traffic`` says when they publish where independent intervals do not.
    """
    kinds = traffic or {}
    known = {each.name: each for each in base.publishers} if base else {}
    publishers: list[Publisher] = []
    parameters: list[Parameter] = []
    notes: list[str] = []
    samples = interval_samples(seen.intervals)
    contents = numbered(seen.publications_by("contents"), seen.contents)
    rows_by_publisher = contents.groupby("publisher")
    homes, arrivals = seen.publications_by("publishers"), seen.hops_by("arrivals")
    for key, rows in rows_by_publisher:
        name = str(key)
        home = _home(name, homes, arrivals, known.get(name), notes)
        if home is None:
            notes.append(f"publisher '{name}': its home broker was not recorded; it is left out")
            continue
        count = int(rows["rows"].sum())
        every, rate = fit_interval(name, count, samples.get(name), window_s, notes)
        kind = kinds.get(name)
        own_error = rate.standard_error if kind is None else kind.rate_se(rate.standard_error)
        unsure = math.hypot(own_error, spoilt * rate.estimate)
        rate = replace(rate, standard_error=unsure)
        content, shares = _content(name, rows, seen.contents)
        fitted = channels.get((name, home))
        base_link = known[name].link if name in known else PERFECT
        if fitted is None:
            notes.append(
                f"publisher '{name}': its link was not measured; it is {_assumed(base_link)}"
            )
        else:
            parameters += fitted.parameters(f"publishers.{name}.link")
        parameters += [rate, *shares]
        link = base_link if fitted is None else fitted.channel(base_link)
        plain = Publisher(name=name, at=home, every=every, content=content, link=link)
        if kind is not None and not kind.is_renewal:
            plain = replace(plain, every=None, rates=kind.rates, publishes=kind.publishes)
        if name in known:
            plain = replace(plain, connectivity=known[name].connectivity)
        publishers.append(_with_common_parts(plain, rows))
    silent = sorted(set(known) - {str(name) for name in rows_by_publisher.groups})
    if silent:
        notes.append(
            f"{_listed(silent)} of the base system published nothing in the recorded time; left out"
        )
    return FittedPublishers(
        publishers=tuple(publishers), parameters=tuple(parameters), notes=tuple(notes)
    )


def interval_samples(intervals: pd.DataFrame) -> dict[str, Sample]:
    """Sample times between events per publisher, in seconds, with those that bridge two batches.

    Batches of different stretches of time, where the rows name them, have a gap between them.
    """
    samples = {}
    for publisher, rows in intervals.groupby("publisher"):
        inside = sample_from_rows(rows[rows["statistic"] == "intervals"])
        ends = rows[rows["statistic"] == "ends"].sort_values("batch")
        first = ends["first_ns"].to_numpy(dtype=np.int64)
        last = ends["last_ns"].to_numpy(dtype=np.int64)
        between = (first[1:] - last[:-1]) / 1e9
        samples[str(publisher)] = inside.merged(sample_of(between[adjoining(ends)]))
    return samples


def fit_interval(
    name: str, count: int, sample: Sample | None, window_s: float, notes: list[str]
) -> tuple[Law, Parameter]:
    """Fit a distribution to intervals, with the mean that the rate demands; give the rate, too.

    The variance of a count over a long window is that of a renewal process: count · c².
    """
    rate = count / window_s
    fitted: FittedLaw | None = (
        fit_law(sample, near=1.0) if sample is not None and sample.count else None
    )
    if fitted is None or fitted.law.mean_s <= 0:
        notes.append(
            f"publisher '{name}': too few events to fit its intervals; assumed to be Poisson"
        )
        every: Law = Exponential(mean_s=1.0 / rate)
    else:
        every = fitted.law.scaled(1.0 / (rate * fitted.law.mean_s))
    scv = sample.scv if sample is not None and sample.count >= 2 else 1.0
    return every, Parameter(
        path=f"publishers.{name}.rate",
        estimate=rate,
        standard_error=math.sqrt(count * scv) / window_s,
        count=count,
        unit="1/s",
        family=fitted.family if fitted else "",
        goodness=fitted.distance if fitted else math.nan,
        verdict=fitted.verdict if fitted else "too few events",
        fitted=fitted,
    )


def _content(
    name: str, rows: pd.DataFrame, contents: Contents
) -> tuple[ContentTable, list[Parameter]]:
    """Make the content table of a publisher, and its probabilities as parameters."""
    total = float(rows["rows"].sum())
    equal_sizes = equal_size(rows) is not None
    table: list[ContentRow] = []
    parameters: list[Parameter] = []
    counts = rows.groupby("event")["rows"].sum().sort_values(ascending=False, kind="stable")
    parts = dict(list(rows.groupby("event")))
    for number in counts.index:
        part = parts[number]
        sizes = float(part["sizes"].sum())
        # Nothing at all is no size that a system can have; it is as good as unknown.
        own_size = (float(part["size_total_bytes"].sum()) / sizes or None) if sizes else None
        for count, lifetime in lifetimes(part):
            parameters.append(
                Parameter(
                    path=f"publishers.{name}.content.{len(table) + 1}.p",
                    estimate=count / total,
                    standard_error=float(share_se(count, total)),
                    count=int(total),
                    unit="share",
                )
            )
            table.append(
                ContentRow(
                    probability=count / total,
                    event=contents.events[int(number)],
                    lifetime=lifetime,
                    size_bytes=None if equal_sizes else own_size,
                )
            )
    return ContentTable(table=tuple(table)), parameters


def equal_size(rows: pd.DataFrame) -> float | None:
    """Find the one size of all publications that have any, in bytes; None where they differ.

    >>> rows = pd.DataFrame({"least_size_bytes": [64, None], "most_size_bytes": [64, None]})
    >>> equal_size(rows), equal_size(rows.tail(1).astype("Int64"))
    (64.0, None)
    """
    sizes = rows[["least_size_bytes", "most_size_bytes"]].stack().dropna().unique()
    return float(sizes[0]) if len(sizes) == 1 else None


def _with_common_parts(publisher: Publisher, rows: pd.DataFrame) -> Publisher:
    """Say once, of the publisher, what all of its contents have in common."""
    # Nothing at all is no size that a system can have; it is as good as unknown.
    size = equal_size(rows) or None
    table = publisher.content.rows()
    common = table[0].lifetime
    if common is None or any(row.lifetime != common for row in table):
        return replace(publisher, size_bytes=size)
    plain = ContentTable(table=tuple(replace(row, lifetime=None) for row in table))
    return replace(publisher, size_bytes=size, lifetime=common, content=plain)


def _home(
    name: str,
    rows: pd.DataFrame,
    arrivals: pd.DataFrame,
    known: Publisher | None,
    notes: list[str],
) -> str | None:
    """Find the broker that most of its events name, or first reached; else the one known before."""
    named = rows[(rows["publisher"] == name) & rows["broker"].notna() & (rows["broker"] != "")]
    if named.empty:
        named = arrivals[arrivals["came_from"] == name]
    if named.empty:
        return known.at if known else None
    counts = named.groupby("broker")["rows"].sum().sort_values(ascending=False, kind="stable")
    home = str(counts.index[0])
    if len(counts) > 1:
        notes.append(
            f"publisher '{name}' used {len(counts)} brokers; {home}, which it used most, "
            "is taken as its home broker"
        )
    return home


def _listed(names: Sequence[str]) -> str:
    return f"publisher{'s' if len(names) > 1 else ''} {few(names)}"


def _assumed(link: Channel) -> str:
    return (
        "assumed to have no delay and no loss" if link == PERFECT else "taken from the base system"
    )
