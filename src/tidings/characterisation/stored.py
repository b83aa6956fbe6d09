"""Fit a system to all days of a store together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pandas as pd

from tidings.characterisation.count.merging import SCALES, laid_out, without
from tidings.characterisation.count.store import (
    Catalogue,
    StorePart,
    counted_subscriptions,
    load_partial,
    locked,
    read_catalogue,
    stretches_of,
    window_of,
)
from tidings.characterisation.count.stored_values import check_whole
from tidings.characterisation.fit.assembling import check_base
from tidings.characterisation.fit.collected import statistics_of
from tidings.characterisation.fit.contents import asked_attributes
from tidings.characterisation.fit.counting import Observed
from tidings.characterisation.fit.fitted import Characterisation
from tidings.characterisation.fit.fitting import fit
from tidings.characterisation.fit.laws import FitLaw, fit_law
from tidings.characterisation.fit.parameters import parameter_table
from tidings.characterisation.fit.queues import Counters, read_counters
from tidings.characterisation.fit.reported import counter_parameters
from tidings.characterisation.fit.subscribers import find_subscribers
from tidings.characterisation.job import check_tables
from tidings.characterisation.statistics import (
    BATCHES,
    Partial,
    batch_lengths_s,
    batch_widths,
    batches_of,
    merged,
)
from tidings.errors import InvalidTracesError, TidingsError
from tidings.model.system import System
from tidings.traces.reading import sampling_notes
from tidings.traces.window import TraceWindow

Between = tuple[int, int]  # two moments, in nanoseconds


def characterise_store(
    store: Path,
    base: System | None = None,
    *,
    since_ns: int | None = None,
    measured_ns: Between | None = None,
    fit_delay: FitLaw = fit_law,
) -> Characterisation:
    """Fit a system to all parts of a store together, with the outcome and how far to trust both.

    Needs no Spark: everything has been counted. A store may come from somebody else: what of it
    cannot be put together is refused, whatever it makes of the arithmetic. Of a store that grows,
    only parts that begin at ``since_ns`` or later may be asked for, and the outcome of events
    published between two moments, both ends of batches (:func:`end_of_batches`): later ones may be
    on their way. Times up and down, connected and away are always those of the whole store.
    """
    if base is not None:
        check_base(base)
    with locked(store, alone=False):
        catalogue = read_catalogue(store)
        if catalogue is None or not catalogue.parts:
            raise InvalidTracesError(
                f"{store}: not a store; wants a folder written by characterise --into"
            )
        try:
            return _characterised(store, catalogue, base, since_ns or 0, measured_ns, fit_delay)
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as problem:
            if isinstance(problem, TidingsError):
                raise
            raise InvalidTracesError(
                f"{store}: got statistics that do not fit together "
                f"({type(problem).__name__}: {problem}); wants those that were counted: add the "
                "traces again"
            ) from problem


def _characterised(
    store: Path,
    catalogue: Catalogue,
    base: System | None,
    since_ns: int,
    measured_ns: Between | None,
    fit_delay: FitLaw,
) -> Characterisation:
    counted = _whole(store, catalogue, since_ns=since_ns, measured_ns=measured_ns)
    carried = catalogue.carried.tables if catalogue.carried else ()
    here = [name for part in catalogue.parts for name in part.tables]
    tables = tuple(dict.fromkeys((*carried, *here)))
    catalogue = _since(store, catalogue, since_ns)
    stretches = stretches_of(catalogue.parts)
    check_tables(str(store), tables, base)
    window = window_of(catalogue.parts)
    measured = window.shortened(catalogue.settle_s)
    more_ns = round(catalogue.settle_s * 1e9) * (len(stretches) - 1)
    measured = replace(measured, unobserved_ns=measured.unobserved_ns + more_ns)
    if measured_ns is not None:
        measured = TraceWindow(from_ns=measured_ns[0], until_ns=measured_ns[1])
    _check_folding(counted, store, base, window)
    said = (
        []
        if len(stretches) == 1
        else [f"nothing was recorded between the {len(stretches)} stretches of time in this store"]
    )
    observed = Observed(
        tables=tables,
        window=window,
        source=str(store),
        notes=(*said, *sampling_notes(catalogue.sampled)),
        sampled=catalogue.sampled,
    )
    batches_s = _batches_s(catalogue.parts, stretches, catalogue.settle_s)
    seen = replace(statistics_of(counted), batches_s=batches_s)
    if any(part.batches_ns for part in catalogue.parts):
        seen = replace(seen, intervals=seen.intervals[seen.intervals["statistic"] != SCALES])
    fitted = fit(observed, seen, measured, base, fit_delay=fit_delay)
    if "levels" not in counted.tables:
        return fitted
    shares = [
        each
        for name, counters in read_counters(counted.tables["levels"]).items()
        for each in counter_parameters(name, counters)
    ]
    together = pd.concat([fitted.parameters, parameter_table(shares)], ignore_index=True)
    return replace(fitted, parameters=together)


def stored_counters(store: Path, parts: Sequence[StorePart]) -> dict[str, Counters]:
    """Read how far the counters of queues went in some parts, by the queue's name."""
    if not parts:
        return {}
    with locked(store, alone=False):
        ends = [
            load_partial(store / part.folder, only="levels").tables["levels"].assign(stretch=number)
            for number, stretch in enumerate(stretches_of(parts))
            for part in stretch
            if "levels" in part.tables
        ]
    return read_counters(pd.concat(ends)) if ends else {}


def stored_waits(store: Path, part: StorePart, last: int) -> dict[str, tuple[float, int]]:
    """Read the mean wait in seconds, and of how many events, of the last batches of a part.

    By broker; of those only at which something began to be served.
    """
    with locked(store, alone=False):
        hops = load_partial(store / part.folder, only="hops").tables["hops"]
    latest = hops[(hops["statistic"] == "batches") & (hops["batch"] >= BATCHES - last)]
    sums = latest.groupby("broker")[["wait_total_s", "count"]].sum()
    return {
        str(broker): (row["wait_total_s"] / row["count"], int(row["count"]))
        for broker, row in sums[sums["count"] > 0].iterrows()
    }


def _batches_s(
    parts: Sequence[StorePart], stretches: Sequence[Sequence[StorePart]], settle_s: float
) -> tuple[float, ...]:
    """Compute how many seconds each batch of all parts has, without what is left to settle."""
    last = {stretch[-1].folder for stretch in stretches}
    counted_ns = [
        part.until_ns - part.from_ns - round(settle_s * 1e9) * (part.folder in last)
        for part in parts
    ]
    return batch_lengths_s([part.lengths_ns for part in parts], counted_ns)


def _since(store: Path, catalogue: Catalogue, since_ns: int) -> Catalogue:
    """Select what belongs to the parts that begin at a moment or later; raise where none do."""
    parts = tuple(part for part in catalogue.parts if part.from_ns >= since_ns)
    if not parts:
        raise InvalidTracesError(f"{store}: got no part that begins at {since_ns} ns or later")
    folders = {part.folder for part in parts}
    seams = tuple(each for each in catalogue.seams if each.before in folders)
    return replace(catalogue, parts=parts, seams=seams)


def _whole(
    store: Path, catalogue: Catalogue, *, since_ns: int = 0, measured_ns: Between | None = None
) -> Partial:
    """Merge the statistics of the parts since a moment, and of the seams between them.

    Of earlier parts only who had subscribed, and how long states lasted.
    """
    chosen = _since(store, catalogue, since_ns)
    steps = counted_subscriptions(store, catalogue.uncarried(catalogue.parts), catalogue.carried)
    partials = list(laid_out(store, chosen.parts, chosen.seams, steps))
    if measured_ns is not None:
        begin, end = (_batches_until(chosen.parts, at_ns) for at_ns in measured_ns)
        partials = [_measured_between(each, begin, end) for each in partials]
    if steps is not None:
        partials = [without(each, "subscriptions") for each in partials]
        partials.append(Partial(tables={"subscriptions": steps}))
    if catalogue.periods is not None:
        every = {name for part in chosen.parts for name in part.tables}
        partials.append(load_partial(store / catalogue.periods, every, periods=True))
    whole = merged(partials, batches_of([part.lengths_ns for part in chosen.parts]))
    try:
        check_whole(whole.tables, window_of(chosen.parts))
    except ValueError as problem:
        raise InvalidTracesError(
            f"{store}: its statistics are inconsistent ({problem}); add the traces again, "
            "to a new store"
        ) from problem
    return whole


def end_of_batches(parts: Sequence[StorePart], at_ns: int) -> int:
    """Find when the last batch ends that ends by a moment; the beginning of the parts if none does.

    >>> part = StorePart(folder="", from_ns=0, until_ns=64, source="", tables=())
    >>> end_of_batches([part], 13)
    12
    """
    ends = [end for part in parts for end in _batch_ends(part)]
    return max((end for end in ends if end <= at_ns), default=parts[0].from_ns)


def _batches_until(parts: Sequence[StorePart], at_ns: int) -> int:
    """Count the batches of these parts that end by a moment."""
    whole = [
        BATCHES if part.until_ns <= at_ns else sum(end <= at_ns for end in _batch_ends(part))
        for part in parts
    ]
    return sum(whole)


def _batch_ends(part: StorePart) -> list[int]:
    return [part.from_ns + end for end in accumulate(batch_widths(part.lengths_ns))]


def _measured_between(partial: Partial, begin: int, end: int) -> Partial:
    """Keep, of what became of events, only what was published in some batches."""
    tables = dict(partial.tables)
    if "publications" in tables:
        rows = tables["publications"]
        outside = (rows["statistic"] == "batches") & ~rows["batch"].between(begin, end - 1)
        tables["publications"] = rows.assign(batch=rows["batch"].mask(outside))
    if "deliveries" in tables:
        rows = tables["deliveries"]
        kept = (rows["statistic"] != "pairs") | rows["batch"].between(begin, end - 1)
        tables["deliveries"] = rows[kept]
    return replace(partial, tables=tables)


def _check_folding(counted: Partial, store: Path, base: System | None, window: TraceWindow) -> None:
    """Raise where contents were told apart by less than filters ask for by now."""
    if counted.folded is None:
        return
    steps: pd.DataFrame | None = counted.tables.get("subscriptions")
    wanted = find_subscribers(steps, base, window).subscribers
    missing = sorted(set(asked_attributes(each.wants for each in wanted)) - set(counted.folded))
    if missing:
        raise InvalidTracesError(
            f"{store}: contents of an earlier part were kept by "
            f"{', '.join(counted.folded)} only, and filters now use {', '.join(missing)} "
            "too; add the earlier parts again"
        )
