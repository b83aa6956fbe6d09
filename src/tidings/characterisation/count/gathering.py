"""Spark's part: all statistics of some traces, collected as tables the size of the model.

How often a table is read: deliveries, states, sessions, subscriptions and utilisation once, probes
three times (delays, losses in a row, clocks), hops three times (services, waits, how far events
came), publications four times (counts, how far they came, intervals, and to meet the deliveries).
On top of that, and only where it is needed:

- subscriptions three times and publications once, where subscriptions come and go;
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

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import each_row_once, small_frame
from tidings.characterisation.count.churners import Steps, find_churners, subscription_statistics
from tidings.characterisation.count.deliveries import delivery_statistics
from tidings.characterisation.count.hops import hop_statistics, used_hops, with_reconstructed_starts
from tidings.characterisation.count.journeys import Places, sighting_statistics
from tidings.characterisation.count.links import crossings
from tidings.characterisation.count.periods import peer_periods, state_periods, stay_periods
from tidings.characterisation.count.probes import (
    clock_statistics,
    loss_run_statistics,
    probe_statistics,
)
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
from tidings.characterisation.fit.channels import nothing_of_links
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
from tidings.traces.actions import bring_here
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
    were probed are followed too.
    """

    silent: Collection[str] | None = None
    subscriptions: pd.DataFrame | None = None
    steps: DataFrame | None = None
    every_link: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OnSeam(Decided):
    """The same for rows at the ends of parts: ``hops`` is the statistic of the whole parts.

    It says who are brokers and who sent to whom. Of hops and of intervals nothing is counted where
    it cannot differ: where no starts are reconstructed, and where there are no copies. Both may be
    asked for.
    """

    hops: pd.DataFrame
    intervals: bool = False


def gather(
    traces: Traces,
    measured: TraceWindow,
    tell: Progress,
    base: System | None = None,
    decided: Decided | None = None,
) -> Partial:
    """All statistics that the tables of some traces allow, as far as Spark counts them.

    Filters, from subscriptions or else from ``base``, say which attributes of contents matter where
    the contents are too many.
    """
    decided = decided or Decided()
    asked, found = _collect_subscriptions(traces, decided, base, tell)
    tell("hops")
    silent: tuple[str, ...] = ()
    on_seam = isinstance(decided, OnSeam)
    if not on_seam or decided.silent:
        found["hops"], silent = count_hops(traces, decided.silent)
    hops = decided.hops if isinstance(decided, OnSeam) else found["hops"]
    tell("publications")
    published = _collect_publications(traces, measured, hops, asked)
    found |= published.tables
    good = published.good
    if published.repeated:
        tell("hops again, without copies")
        traces, found = _with_each_hop_once(traces, found, silent)
        hops = decided.hops if isinstance(decided, OnSeam) else found["hops"]
    if not on_seam or published.copied or (isinstance(decided, OnSeam) and decided.intervals):
        tell("intervals")
        intervals = interval_statistics(good, traces.window)
        found["intervals"] = bring_here(intervals, _named(traces, "publications"))
    tell("links")
    found |= _collect_links(traces, good, hops, every_link=decided.every_link)
    if not on_seam:
        found |= _collect_more(traces)
    tell("deliveries")
    steps = _known_steps(traces, decided, found)
    if steps is not None:
        found["guests"] = pd.DataFrame(
            {"subscriber": changed_subscribers(steps.counted, traces.window)}
        )
    texts = texts_of(found["publications"])[["content", "content_key"]]
    churners = None if steps is None else find_churners(steps, good, texts, traces.window)
    received = delivery_statistics(traces.tables["deliveries"], good, measured, churners)
    found["deliveries"] = bring_here(received, _named(traces, "deliveries", "publications"))
    return Partial(
        tables=found,
        silent=frozenset(silent),
        folded=published.folded,
        notes=(*_said_of_starts(silent), *published.notes),
    )


def _collect_subscriptions(
    traces: Traces, decided: Decided, base: System | None, tell: Progress
) -> tuple[tuple[str, ...], dict[str, pd.DataFrame]]:
    """Which attributes filters ask for; and the statistic of subscriptions, where there are any."""
    found = {}
    if "subscriptions" in traces.tables:
        tell("subscriptions")
        steps = subscription_statistics(traces.tables["subscriptions"])
        found["subscriptions"] = bring_here(steps, _named(traces, "subscriptions"))
    known = [*found.values(), *([] if decided.subscriptions is None else [decided.subscriptions])]
    rows = pd.concat(known) if known else None
    wanted = find_subscribers(rows, base, traces.window).subscribers
    return asked_attributes(each.wants for each in wanted), found


def _known_steps(
    traces: Traces, decided: Decided, found: Mapping[str, pd.DataFrame]
) -> Steps | None:
    """All steps of subscriptions up to the end of these traces; None: nothing tells of any."""
    rows = [
        each for each in (decided.steps, traces.tables.get("subscriptions")) if each is not None
    ]
    counted = [
        each for each in (decided.subscriptions, found.get("subscriptions")) if each is not None
    ]
    if not rows or not counted:
        return None
    together = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), rows)
    return Steps(rows=together, counted=merge_rows("subscriptions", counted))


def _collect_more(traces: Traces) -> dict[str, pd.DataFrame]:
    """Times up and down, connected and away, subscribed and not.

    Of samples of resources it is only counted which can be used: service times are told from them
    where a workload is measured.
    """
    window = traces.window
    asked: dict[str, tuple[str, Callable[[DataFrame], DataFrame]]] = {
        "states": ("states", lambda table: state_periods(table, window)),
        "sessions": ("sessions", lambda table: peer_periods(table, window)),
        "stays": ("subscriptions", lambda table: stay_periods(table, window)),
        "utilisation": ("utilisation", sample_counts),
    }
    return {
        name: bring_here(count(traces.tables[table]), _named(traces, table))
        for name, (table, count) in asked.items()
        if table in traces.tables
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Publications:
    """What was collected of publications, and the good ones, every event once."""

    good: DataFrame
    tables: dict[str, pd.DataFrame]
    copied: bool  # whether some event stood there more than once
    repeated: bool  # whether some broker has more than one hop of an event
    folded: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()


def _collect_publications(
    traces: Traces, measured: TraceWindow, hops: pd.DataFrame, asked: Sequence[str]
) -> _Publications:
    """Counts, contents and sightings; where copies are found, all is counted again without them.

    Where contents are too many, they are counted again by the attributes that are ``asked`` for.
    """
    table, window = traces.tables["publications"], traces.window
    found = _count_publications(traces, table, measured)
    folded = _too_many(found)
    notes: tuple[str, ...] = ()
    if folded:
        mass = bring_here(folding_statistics(table, asked), _named(traces, "publications"))
        notes = (folding_note(mass, asked),)
        table = folded_contents(table, asked)
        found = _count_publications(traces, table, measured)
    if len(found) > MOST_CELLS:
        raise too_many_contents(f"more than {MOST_CELLS:,} counts of")
    rows = texts_of(found)
    bad = rows[rows["content"].isin(read_contents(map(str, rows["content"].unique())).bad)]
    good = checked_publications(table, window).where(F.col(REASON).isNull())
    if len(bad):
        texts = bad[["content"]].drop_duplicates()
        frame = small_frame(good.sparkSession, texts)
        few = len(texts) <= MOST_BROADCAST
        good = good.join(F.broadcast(frame) if few else frame, "content", "left_anti")
    places = _places(hops, found)
    sightings = _follow(traces, good, measured, places)
    if (sightings["statistic"] == UNFORESEEN).any():
        sightings = _follow(traces, good, measured, replace(places, ways=None))
    repeated = sightings["statistic"] == REPEATED
    sightings = sightings[~repeated]
    counts = sightings[sightings["statistic"] == PUBLISHED]
    copied = bool(counts["rows"].sum() > counts["events"].sum())
    if copied:
        good = each_once(good)
        again = _count_publications(traces, good, measured)
        quality = found["statistic"] == "quality"
        found = pd.concat([found[quality], again[again["statistic"] != "quality"]])
    return _Publications(
        good=good,
        tables={
            "publications": _with_exact_lifetimes(found, good, _named(traces, "publications")),
            "bad_contents": bad.groupby("content", as_index=False)["rows"].sum(),
            "sightings": sightings,
        },
        copied=copied,
        repeated=bool(repeated.any()),
        folded=tuple(asked) if folded else None,
        notes=notes,
    )


def _places(hops: pd.DataFrame, publications: pd.DataFrame) -> Places:
    """The brokers that record hops, the ways between them that events came, both there and back."""
    brokers = {str(name) for name in hops["broker"].dropna()}
    came = hops.loc[hops["statistic"] == "arrivals", ["came_from", "broker"]].dropna()
    pairs = {(str(a), str(b)) for a, b in came.itertuples(index=False) if a in brokers}
    return Places(
        brokers=tuple(sorted(brokers)),
        ways=tuple(sorted(pairs | {(b, a) for a, b in pairs})),
        publishers=tuple(sorted(str(name) for name in publications["publisher"].dropna().unique())),
    )


def _follow(traces: Traces, good: DataFrame, measured: TraceWindow, places: Places) -> pd.DataFrame:
    seen = sighting_statistics(traces.tables["hops"], good, measured, places)
    return bring_here(seen, _named(traces, "publications", "hops"))


def _too_many(found: pd.DataFrame) -> bool:
    """Whether there are more contents than a system can hold, or counts than are brought here."""
    return len(found) > MOST_CELLS or found["content"].nunique() > MOST_CONTENTS


def _count_publications(traces: Traces, rows: DataFrame, measured: TraceWindow) -> pd.DataFrame:
    counts = publication_statistics(rows, traces.window, measured)
    return bring_here(counts.limit(MOST_CELLS + 1), _named(traces, "publications"))


def _named(traces: Traces, *tables: str) -> str:
    """Tables as an error names them."""
    kind = "table" if len(tables) == 1 else "tables"
    return f"{traces.source}: the {kind} {' and '.join(tables)}"


def _with_exact_lifetimes(publications: pd.DataFrame, good: DataFrame, named: str) -> pd.DataFrame:
    """The statistics of publications; lifetimes that share a bin are read again, one by one."""
    rows = publications[publications["statistic"] == "contents"]
    pairs = shared_bins(rows[rows["publisher"].notna()])
    if pairs.empty:
        return publications
    wanted = small_frame(good.sparkSession, pairs)
    return with_exact_lifetimes(
        publications, bring_here(exact_lifetimes(good, wanted, MOST_LIFETIMES), named)
    )


def _collect_links(
    traces: Traces, good: DataFrame, hops: pd.DataFrame, *, every_link: bool
) -> dict[str, pd.DataFrame]:
    """What probes tell of links, and what was seen of those without any, or of every one."""
    tables = traces.tables
    found = _collect_probes(traces) if "probes" in tables else {}
    known = nothing_of_links() if every_link else found.get("probes", nothing_of_links())
    unprobed = crossings(tables, good, traces.window, hops, known)
    named = _named(traces, "publications", "hops", "deliveries")
    crossed = nothing_of_links() if unprobed is None else bring_here(unprobed, named)
    return {**found, "crossings": crossed}


def _collect_probes(traces: Traces) -> dict[str, pd.DataFrame]:
    """Losses in a row, which find the copies; then delays and clocks, without these."""
    probes, named = traces.tables["probes"], _named(traces, "probes")
    runs = bring_here(loss_run_statistics(probes, traces.window), named)
    counted = bring_here(probe_statistics(probes), named)
    copies = int(runs["duplicates"].sum())
    if copies:
        probes = each_row_once(probes)
        again = bring_here(probe_statistics(probes), named)
        left_out = pd.DataFrame({"rows": [copies], "duplicates": [copies]})
        parts = (again[again[REASON].isna()], counted[counted[REASON].notna()], left_out)
        counted = pd.concat([each for each in parts if len(each)], ignore_index=True)
    clocks = bring_here(clock_statistics(probes), named)
    return {"probes": counted, "loss_runs": runs, "clocks": clocks}


def count_hops(
    traces: Traces, silent: Collection[str] | None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The statistics of hops, and the brokers without any starts: these are read again."""
    hops, window, named = traces.tables["hops"], traces.window, _named(traces, "hops")
    found = bring_here(hop_statistics(hops, window), named)
    if silent is None:
        counts = found[found["statistic"] == "service"].groupby("broker")["count"].sum()
        silent = tuple(str(name) for name in counts.index[counts == 0])
    if not silent:
        return found, ()
    theirs = used_hops(hops, window).where(F.col("broker").isin(*silent))
    again = bring_here(hop_statistics(with_reconstructed_starts(theirs), window), named)
    replaced = found["broker"].isin(list(silent)) & (found["statistic"] != "quality")
    both = pd.concat([found[~replaced], again[again["statistic"] != "quality"]], ignore_index=True)
    return both, tuple(sorted(silent))


def _with_each_hop_once(
    traces: Traces, found: dict[str, pd.DataFrame], silent: Collection[str]
) -> tuple[Traces, dict[str, pd.DataFrame]]:
    """The traces without copies of hops and, where hops were counted, the statistic without them.

    Where none is a copy (events came to a broker again) all stays as it is.
    """
    once = each_row_once(traces.tables["hops"])
    cleared = replace(traces, tables={**traces.tables, "hops": once})
    if "hops" not in found:
        return cleared, found
    counted = without_copies(found["hops"], traces, silent)
    copied = counted["duplicates"].sum() > 0
    return cleared if copied else traces, {**found, "hops": counted}


def without_copies(counted: pd.DataFrame, traces: Traces, silent: Collection[str]) -> pd.DataFrame:
    """The statistics of hops, ``counted`` with copies, without them; and how many there are."""
    once = each_row_once(traces.tables["hops"])
    again, _ = count_hops(replace(traces, tables={"hops": once}), silent)
    quality = counted[counted["statistic"] == "quality"]
    copies = _good_rows(counted) - _good_rows(again)
    quality = quality.assign(duplicates=quality[REASON].isna() * copies)
    return pd.concat([quality, again[again["statistic"] != "quality"]], ignore_index=True)


def _good_rows(hops: pd.DataFrame) -> int:
    quality = hops[(hops["statistic"] == "quality") & hops[REASON].isna()]
    return int(quality["rows"].sum())


def _said_of_starts(silent: Sequence[str]) -> list[str]:
    if not silent:
        return []
    return [
        f"no starts of service at {', '.join(silent[:5])}{' …' if len(silent) > 5 else ''}: "
        "reconstructed as for one server, first come first served"
    ]
