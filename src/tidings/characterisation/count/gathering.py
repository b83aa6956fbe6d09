"""Spark's part: all statistics of some traces, collected as tables the size of the model.

How often a table is read: deliveries, states, sessions, subscriptions and utilisation once, probes
twice (delays with clocks, losses in a row), hops twice (services with waits, how far events came),
publications four times (counts, how far they came, intervals, and to meet the deliveries).
On top of that, and only where it is needed:

- subscriptions three times and publications once, where subscriptions come and go;
- deliveries once, where they say since when they were handled, or by whom, and once more where
  members of a group share them;
- publications once, where several lifetimes of a content share a bin;
- publications once, and put in order of events before every use, where some stand there twice;
- hops twice, where a broker has more than one of an event, and put in order before every use where
  some are copies; probes once, where some are copies;
- hops once, where brokers record no starts;
- hops and publications once, where events were sent to a broker that none of them reached from
  there: how far events came is counted again, in lists instead of bits;
- hops twice and publications once, for links into brokers that were not probed;
- hops and deliveries once, for links to clients that were not probed, and deliveries once more to
  find them where others were probed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import each_row_once, no_cells, small_frame
from tidings.characterisation.count.deliveries import (
    SubscriptionSteps,
    delivery_statistics,
    find_churners,
    subscription_statistics,
)
from tidings.characterisation.count.handlings import handling_statistics, pickup_statistics
from tidings.characterisation.count.hops import hop_statistics, used_hops, with_reconstructed_starts
from tidings.characterisation.count.journeys import VantagePoints, sighting_statistics
from tidings.characterisation.count.link_hours import split_hours
from tidings.characterisation.count.links import (
    crossings,
    loss_run_statistics,
    probe_statistics,
    split_probes,
)
from tidings.characterisation.count.outages import during_outages
from tidings.characterisation.count.periods import PERIOD_CELLS, PERIODS, table_of
from tidings.characterisation.count.publications import (
    checked_publications,
    each_once,
    exact_lifetimes,
    folded_contents,
    folding_statistics,
    interval_statistics,
    publication_statistics,
)
from tidings.characterisation.count.routing import sample_counts
from tidings.characterisation.fit.channels import nothing_by_hour, nothing_of_links
from tidings.characterisation.fit.collected import texts_of
from tidings.characterisation.fit.contents import (
    MOST_CONTENTS,
    MOST_LIFETIMES,
    asked_attributes,
    folding_note,
    read_contents,
    shared_bins,
    too_many_contents,
    with_exact_lifetimes,
)
from tidings.characterisation.fit.subscribers import changed_subscribers, find_subscribers
from tidings.characterisation.statistics import PUBLISHED, REPEATED, UNFORESEEN, Partial, merge_rows
from tidings.model.progress import Progress
from tidings.model.system import System
from tidings.traces.actions import Start, bring_here, concurrent_queries
from tidings.traces.quarantine import REASON
from tidings.traces.reading import Traces
from tidings.traces.window import TraceWindow

MOST_CELLS = 5_000_000  # counts of publications by content and batch that are brought here
MOST_BROADCAST = 10_000  # texts that are sent to every machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What is decided before anything is counted; what is None is decided by what is counted.

    ``silent`` are brokers whose starts of service are reconstructed, ``subscriptions`` those of
    other traces, counted, and ``steps`` the rows of earlier ones; with ``every_link``, links that
    were probed are followed too. At the ends of parts ``hops`` is the statistic of the whole parts,
    which says who are brokers and who sent to whom; of hops and of intervals nothing is counted
    there where it cannot differ: without reconstructed starts, without copies. Intervals may be
    asked for all the same.
    """

    silent: Collection[str] | None = None
    subscriptions: pd.DataFrame | None = None
    steps: DataFrame | None = None
    every_link: bool = False
    hops: pd.DataFrame | None = None
    intervals: bool = False


def gather(
    traces: Traces,
    measured: TraceWindow,
    tell: Progress,
    base: System | None = None,
    decided: Decided | None = None,
) -> Partial:
    """Count all statistics that the tables of some traces allow.

    Filters, from subscriptions or else from ``base``, say which attributes of contents matter where
    the contents are too many.
    """
    with concurrent_queries(traces.tables["hops"].sparkSession) as start:
        return _gathered(traces, measured, tell, base, decided or Decided(), start)


def _gathered(
    traces: Traces,
    measured: TraceWindow,
    tell: Progress,
    base: System | None,
    decided: Decided,
    start: Start,
) -> Partial:
    on_seam = decided.hops is not None
    counts_hops = not on_seam or bool(decided.silent)
    # Whatever waits for nothing else is begun at once; what is needed first comes first.
    hops_job = start(count_hops, traces, decided.silent) if counts_hops else None
    publications_job = start(_count_cells, traces, measured, traces.tables["publications"])
    subscriptions_job = start(_count_subscriptions, traces)
    probes_job = start(_count_probes, traces)
    if "subscriptions" in traces.tables:
        tell("subscriptions")
    counted = subscriptions_job.result()
    periods_job = None if on_seam else start(_count_periods, traces, counted.get("subscriptions"))
    asked = _asked_attributes(traces, decided, base, counted)
    tell("hops")
    silent: tuple[str, ...] = ()
    if hops_job is not None:
        counted["hops"], silent = hops_job.result()
    tell("publications")
    cells = publications_job.result()
    published = _count_publications(traces, measured, _hops_of(decided, counted), asked, cells)
    counted |= published.tables
    good = published.good
    if published.repeated:
        tell("hops again, without copies")
        traces, counted = _with_each_hop_once(traces, counted, silent)
    intervals_job = None
    if not on_seam or published.copied or decided.intervals:
        intervals_job = start(_count_intervals, traces, good)
    deliveries_job = start(_count_deliveries, traces, good, measured, decided, dict(counted))
    tell("links")
    counted |= probes_job.result()
    known = nothing_of_links() if decided.every_link else counted.get("probes", nothing_of_links())
    counted |= _count_crossings(traces, good, _hops_of(decided, counted), known)
    if intervals_job is not None:
        tell("intervals")
        counted["intervals"] = intervals_job.result()
    if periods_job is not None:
        counted |= periods_job.result()
    tell("deliveries")
    counted |= deliveries_job.result()
    return Partial(
        tables=counted,
        silent=frozenset(silent),
        folded=published.folded,
        notes=(*_said_of_starts(silent), *published.notes),
    )


def _collect(statistic: DataFrame, traces: Traces, *tables: str) -> pd.DataFrame:
    """Run Spark, and name the tables where it fails."""
    kind = "table" if len(tables) == 1 else "tables"
    return bring_here(statistic, f"{traces.source}: the {kind} {' and '.join(tables)}")


def _hops_of(decided: Decided, counted: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    return counted["hops"] if decided.hops is None else decided.hops


def _count_subscriptions(traces: Traces) -> dict[str, pd.DataFrame]:
    """Count subscriptions, where there are any."""
    if "subscriptions" not in traces.tables:
        return {}
    steps = subscription_statistics(traces.tables["subscriptions"])
    return {"subscriptions": _collect(steps, traces, "subscriptions")}


def _asked_attributes(
    traces: Traces, decided: Decided, base: System | None, counted: Mapping[str, pd.DataFrame]
) -> tuple[str, ...]:
    """List the attributes that filters ask for."""
    known = [*counted.values(), *([] if decided.subscriptions is None else [decided.subscriptions])]
    rows = pd.concat(known) if known else None
    wanted = find_subscribers(rows, base, traces.window).subscribers
    return asked_attributes(each.wants for each in wanted)


def _count_intervals(traces: Traces, good: DataFrame) -> pd.DataFrame:
    return _collect(interval_statistics(good, traces.window), traces, "publications")


def _count_deliveries(
    traces: Traces,
    good: DataFrame,
    measured: TraceWindow,
    decided: Decided,
    counted: Mapping[str, pd.DataFrame],
) -> dict[str, pd.DataFrame]:
    """Count what was received; list who subscribes and leaves, where anybody does."""
    steps = _known_steps(traces, decided, counted.get("subscriptions"))
    churners = None
    tables = {}
    if steps is not None:
        changed = changed_subscribers(steps.counted, traces.window)
        tables["guests"] = pd.DataFrame({"subscriber": changed})
        texts = texts_of(counted["publications"])[["content", "content_key"]]
        churners = find_churners(steps, good, texts, traces.window)
    received = delivery_statistics(traces.tables["deliveries"], good, measured, churners)
    tables["deliveries"] = _collect(received, traces, "deliveries", "publications")
    if tables["deliveries"]["handled"].sum() > 0:
        handled = handling_statistics(traces.tables["deliveries"], traces.window)
        tables["handlings"] = _collect(handled, traces, "deliveries")
        if decided.hops is None and tables["handlings"]["member"].notna().any():
            taken_up = pickup_statistics(traces.tables["deliveries"], traces.window)
            tables["pickups"] = _collect(taken_up, traces, "deliveries")
    return tables


def _known_steps(
    traces: Traces, decided: Decided, counted: pd.DataFrame | None
) -> SubscriptionSteps | None:
    """Collect all steps of subscriptions up to the end of these traces; None: there are none."""
    here = traces.tables.get("subscriptions")
    rows = [each for each in (decided.steps, here) if each is not None]
    counts = [each for each in (decided.subscriptions, counted) if each is not None]
    if not rows or not counts:
        return None
    together = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), rows)
    return SubscriptionSteps(rows=together, counted=merge_rows("subscriptions", counts))


def _count_periods(traces: Traces, subscriptions: pd.DataFrame | None) -> dict[str, pd.DataFrame]:
    """Count times up and down, connected and away, subscribed and not.

    Where the steps of ``subscriptions`` show that nobody came or went, there is no stay to look
    for. Of samples of resources it is only counted which can be used: service times come from them
    where a workload is measured.
    """
    counted = {
        name: _collect(count(traces.tables[of], traces.window), traces, of)
        for name, count in PERIODS.items()
        if (of := table_of(name)) in traces.tables
        and (name != "stays" or changed_subscribers(subscriptions, traces.window))
    }
    if subscriptions is not None and "stays" not in counted:
        counted["stays"] = no_cells(PERIOD_CELLS)
    if "utilisation" in traces.tables:
        samples = sample_counts(traces.tables["utilisation"])
        counted["utilisation"] = _collect(samples, traces, "utilisation")
    return counted


@dataclass(frozen=True, slots=True, kw_only=True)
class _Publications:
    """What was counted of publications, and the good ones, every event once."""

    good: DataFrame
    tables: dict[str, pd.DataFrame]
    copied: bool  # whether some event stood there more than once
    repeated: bool  # whether some broker has more than one hop of an event
    folded: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()


def _count_cells(traces: Traces, measured: TraceWindow, publications: DataFrame) -> pd.DataFrame:
    """Count publications by publisher, content, lifetime and batch: at most one cell too many."""
    cells = publication_statistics(publications, traces.window, measured)
    return _collect(cells.limit(MOST_CELLS + 1), traces, "publications")


def _count_publications(
    traces: Traces,
    measured: TraceWindow,
    hops: pd.DataFrame,
    asked: Sequence[str],
    counts: pd.DataFrame,
) -> _Publications:
    """Count contents and sightings beside ``counts``; where there are copies, these again without.

    Where contents are too many, they are counted again by the attributes that are ``asked`` for.
    """
    rows = traces.tables["publications"]
    count = partial(_count_cells, traces, measured)
    folded = len(counts) > MOST_CELLS or counts["content"].nunique() > MOST_CONTENTS
    notes: tuple[str, ...] = ()
    if folded:
        mass = _collect(folding_statistics(rows, asked), traces, "publications")
        notes = (folding_note(mass, asked),)
        rows = folded_contents(rows, asked)
        counts = count(rows)
    if len(counts) > MOST_CELLS:
        raise too_many_contents(f"more than {MOST_CELLS:,} counts of")
    good, bad = _with_good_contents(checked_publications(rows, traces.window), counts)
    sightings = _count_sightings(traces, good, measured, _places(hops, counts))
    repeated = sightings["statistic"] == REPEATED
    published = sightings[sightings["statistic"] == PUBLISHED]
    copied = bool(published["rows"].sum() > published["events"].sum())
    if copied:
        good = each_once(good)
        again = count(good)
        quality = counts["statistic"] == "quality"
        counts = pd.concat([counts[quality], again[again["statistic"] != "quality"]])
    return _Publications(
        good=good,
        tables={
            "publications": _with_exact_lifetimes(counts, good, traces),
            "bad_contents": bad.groupby("content", as_index=False)["rows"].sum(),
            "sightings": sightings[~repeated],
        },
        copied=copied,
        repeated=bool(repeated.any()),
        folded=tuple(asked) if folded else None,
        notes=notes,
    )


def _with_good_contents(checked: DataFrame, counts: pd.DataFrame) -> tuple[DataFrame, pd.DataFrame]:
    """Select good publications whose contents are events; give counts of those that are none."""
    rows = texts_of(counts)
    bad = rows[rows["content"].isin(read_contents(map(str, rows["content"].unique())).bad)]
    good = checked.where(F.col(REASON).isNull())
    if bad.empty:
        return good, bad
    texts = bad[["content"]].drop_duplicates()
    frame = small_frame(good.sparkSession, texts)
    few = len(texts) <= MOST_BROADCAST
    return good.join(F.broadcast(frame) if few else frame, "content", "left_anti"), bad


def _places(hops: pd.DataFrame, publications: pd.DataFrame) -> VantagePoints:
    """List brokers that record hops, links that events came over, both ways, and publishers."""
    brokers = {str(name) for name in hops["broker"].dropna()}
    came = hops.loc[hops["statistic"] == "arrivals", ["came_from", "broker"]].dropna()
    pairs = {(str(a), str(b)) for a, b in came.itertuples(index=False) if a in brokers}
    return VantagePoints(
        brokers=tuple(sorted(brokers)),
        links=tuple(sorted(pairs | {(b, a) for a, b in pairs})),
        publishers=tuple(sorted(str(name) for name in publications["publisher"].dropna().unique())),
    )


def _count_sightings(
    traces: Traces, good: DataFrame, measured: TraceWindow, places: VantagePoints
) -> pd.DataFrame:
    """Count how far events came; again where they used links that were not foreseen."""
    statistic = sighting_statistics(traces.tables["hops"], good, measured, places)
    sightings = _collect(statistic, traces, "publications", "hops")
    if (sightings["statistic"] == UNFORESEEN).any():
        return _count_sightings(traces, good, measured, replace(places, links=None))
    return sightings


def _with_exact_lifetimes(
    publications: pd.DataFrame, good: DataFrame, traces: Traces
) -> pd.DataFrame:
    """Read lifetimes that share a bin again, one by one, into the statistics of publications."""
    rows = publications[publications["statistic"] == "contents"]
    pairs = shared_bins(rows[rows["publisher"].notna()])
    if pairs.empty:
        return publications
    exact = exact_lifetimes(good, small_frame(good.sparkSession, pairs), MOST_LIFETIMES)
    return with_exact_lifetimes(publications, _collect(exact, traces, "publications"))


def _count_crossings(
    traces: Traces, good: DataFrame, hops: pd.DataFrame, known: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    """Count what was seen of links that are not ``known`` from probes."""
    crossed = crossings(traces.tables, good, traces.window, hops, known)
    if crossed is None:
        return {"crossings": nothing_of_links(), "crossing_hours": nothing_by_hour()}
    delays, by_hour = split_hours(_collect(crossed, traces, "publications", "hops", "deliveries"))
    return {"crossings": delays, "crossing_hours": by_hour}


def _count_probes(traces: Traces) -> dict[str, pd.DataFrame]:
    """Count losses in a row, which find the copies; then delays and clocks, without these."""
    if "probes" not in traces.tables:
        return {}
    probes = _probes_in_outages(traces)
    runs = _collect(loss_run_statistics(probes, traces.window), traces, "probes")
    counted = _probe_tables(traces, probes)
    copies = int(runs["duplicates"].sum())
    if copies:
        again = _probe_tables(traces, each_row_once(probes))
        bad = counted["probes"][counted["probes"][REASON].notna()]
        left_out = pd.DataFrame({"rows": [copies], "duplicates": [copies]})
        parts = (again["probes"][again["probes"][REASON].isna()], bad, left_out)
        counts = pd.concat([each for each in parts if len(each)], ignore_index=True)
        counted = {**again, "probes": counts}
    return {**counted, "loss_runs": runs}


def _probe_tables(traces: Traces, probes: DataFrame) -> dict[str, pd.DataFrame]:
    """Count delays of probes, by their length and by hour, and what they tell of clocks."""
    counts = _collect(probe_statistics(probes, hours=True), traces, "probes")
    delays, by_hour = split_hours(counts)
    return {**split_probes(delays), "probe_hours": by_hour}


def _probes_in_outages(traces: Traces) -> DataFrame:
    """Mark which probes were sent during an outage, where any is recorded; give all of them."""
    probes = traces.tables["probes"]
    if "states" not in traces.tables:
        return probes
    pairs = _collect(probes.select("source", "target").distinct(), traces, "probes").dropna()
    arcs = [(str(source), str(target)) for source, target in pairs.itertuples(index=False)]
    return during_outages(probes, "sent_ns", traces.tables, traces.window, arcs)


def count_hops(
    traces: Traces, silent: Collection[str] | None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Count hops, and find the brokers without any starts: these are read again."""
    hops, window = traces.tables["hops"], traces.window
    counts = _collect(hop_statistics(hops, window), traces, "hops")
    if silent is None:
        served = counts[counts["statistic"] == "service"].groupby("broker")["count"].sum()
        silent = tuple(str(name) for name in served.index[served == 0])
    if not silent:
        return counts, ()
    theirs = used_hops(hops, window).where(F.col("broker").isin(*silent))
    again = _collect(hop_statistics(with_reconstructed_starts(theirs), window), traces, "hops")
    replaced = counts["broker"].isin(list(silent)) & (counts["statistic"] != "quality")
    both = pd.concat([counts[~replaced], again[again["statistic"] != "quality"]], ignore_index=True)
    return both, tuple(sorted(silent))


def _with_each_hop_once(
    traces: Traces, counted: dict[str, pd.DataFrame], silent: Collection[str]
) -> tuple[Traces, dict[str, pd.DataFrame]]:
    """Drop copies of hops from the traces and, where hops were counted, from the statistic.

    Where none is a copy (events came to a broker again) all stays as it is.
    """
    once = each_row_once(traces.tables["hops"])
    cleared = replace(traces, tables={**traces.tables, "hops": once})
    if "hops" not in counted:
        return cleared, counted
    hops = without_copies(counted["hops"], traces, silent)
    copied = hops["duplicates"].sum() > 0
    return cleared if copied else traces, {**counted, "hops": hops}


def without_copies(counted: pd.DataFrame, traces: Traces, silent: Collection[str]) -> pd.DataFrame:
    """Drop copies from the statistics of hops, ``counted`` with them; count how many there are."""
    once = each_row_once(traces.tables["hops"])
    again, _ = count_hops(replace(traces, tables={"hops": once}), silent)
    good = [
        each.loc[(each["statistic"] == "quality") & each[REASON].isna(), "rows"].sum()
        for each in (counted, again)
    ]
    quality = counted[counted["statistic"] == "quality"]
    quality = quality.assign(duplicates=quality[REASON].isna() * int(good[0] - good[1]))
    return pd.concat([quality, again[again["statistic"] != "quality"]], ignore_index=True)


def _said_of_starts(silent: Sequence[str]) -> list[str]:
    if not silent:
        return []
    return [
        "no service start times were recorded at "
        f"{', '.join(silent[:5])}{' …' if len(silent) > 5 else ''}: they are "
        "reconstructed assuming one server, first come first served, so service times "
        "are wrong if that does not hold"
    ]
