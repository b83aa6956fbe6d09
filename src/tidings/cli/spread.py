"""``tidings spread``: how fast did subscriptions and events spread, and what did that cost?"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import console, options, spark
from tidings.model.trace_tables import TRACE_TABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from pyspark.sql import DataFrame

    from tidings.characterisation.fit.rapidity import Spreading
    from tidings.traces.reading import Traces
    from tidings.traces.window import TraceWindow

    Step = Any

SHOWN = (0.1, 0.5, 0.9, 0.99)  # of B, with errors


def spread(
    traces: Annotated[
        str,
        typer.Argument(
            metavar="TRACES", help="A folder of trace tables, its URL, or catalog:SCHEMA."
        ),
    ],
    stays: Annotated[
        str | None,
        typer.Option(
            metavar="TIMES",
            help="Upper ends of the bins of subscription length, such as 10s,30s,2min. By "
            "default bins with about equally many events.",
        ),
    ] = None,
    bins: Annotated[
        int,
        typer.Option(metavar="N", min=1, max=1000, help="Number of points of the curves f and g."),
    ] = 10,
    master: options.Master = None,
    memory: options.Memory = None,
    json: options.Json = False,
) -> None:
    """Measure how fast subscriptions and events spread, on Spark, and what was missed meanwhile.

    Needs subscriptions with the times brokers learnt of them, publications, hops and deliveries.

    Example: tidings spread traces/ --stays 10s,30s,2min
    """
    from tidings.histories.checking import NEEDED
    from tidings.reporting.diffusion import diffusion_tables
    from tidings.traces.parsing_once import parsed_once
    from tidings.traces.places import require_tables, table_names
    from tidings.traces.reading import read_traces

    edges_s = None if stays is None else sorted(map(options.seconds, stays.split(",")))
    tables = (*NEEDED, "hops")
    names = table_names(traces)
    if names is not None:
        require_tables(traces, tables, names)
    with console.progress("measuring how things spread") as step:
        step("starting Spark")
        with (
            spark.started(master, memory=memory) as session,
            parsed_once(read_traces(session, traces)) as history,
        ):
            require_tables(traces, tables, history.tables)
            document = {"source": history.source, **_measured(history, edges_s, bins, step)}
    if json:
        console.show_json(document)
    else:
        console.show(*diffusion_tables(document))
    console.warn(history.notes)


def _measured(traces: Traces, edges_s: list[float] | None, bins: int, step: Step) -> dict[str, Any]:
    from tidings.characterisation.count.spreading import (
        couple_shares,
        publication_spreads,
        subscription_spreads,
    )
    from tidings.characterisation.fit.rapidity import fit_rapidity, rapidity_by_area, read_couples
    from tidings.histories.checking import notification_pairs
    from tidings.histories.stays import (
        Margins,
        area_s,
        by_moment,
        by_stay,
        measured_curves,
        measured_shares,
        stay_edges_s,
    )
    from tidings.theory.peers.notification_loss import notified_share
    from tidings.traces.actions import bring_here
    from tidings.traces.quarantine import REASON, with_reasons

    good = {
        name: with_reasons(traces.tables[name], TRACE_TABLES[name]).where(f"{REASON} is null")
        for name in ("subscriptions", "publications", "hops")
    }
    step("how subscriptions spread")
    subscribed = subscription_spreads(good["subscriptions"])
    subscribing, learnt = _spreading(subscribed, traces.window, "subscription")
    step("how publications spread")
    published = publication_spreads(good["hops"], good["publications"])
    publishing, arrived = _spreading(published, traces.window, "publication")
    margins = Margins(subscription_s=subscribing.worst_s, diffusion_s=publishing.worst_s, bins=bins)
    with notification_pairs(traces.tables, step, after_ns=traces.window.from_ns) as pairs:
        step("what was notified")
        edges = stay_edges_s(pairs) if edges_s is None else edges_s
        shares = measured_shares(bring_here(by_stay(pairs, edges), "the history"))
        curves = measured_curves(bring_here(by_moment(pairs, margins), "the history"), margins)
    worst, typical = (fit_rapidity(subscribing, publishing, worst=each) for each in (True, False))
    by_area = rapidity_by_area(area_s(curves), (worst.within_s, worst.within_se_s))
    step("delays of couples")
    stays_s = shares["stay_mean_s"].to_numpy()
    shares["closed_form"] = notified_share(stays_s, worst.within_s, worst.value)
    of_couples = couple_shares(subscribed, published, traces.window, stays_s)
    couples, shares["by_couples"] = read_couples(bring_here(of_couples, "the history"))
    return {
        "subscriptions": _document(subscribing, learnt),
        "publications": _document(publishing, arrived),
        "rapidity": {
            "worst": _plain(asdict(worst)),
            "typical": _plain(asdict(typical)),
            "notified": _plain(asdict(by_area)),
        },
        "couples": couples,
        "curves": _rows(curves),
        "shares": _rows(shares.drop(columns="bin")),
    }


def _spreading(
    spreads: DataFrame, window: TraceWindow, what: str
) -> tuple[Spreading, list[dict[str, float | None]]]:
    """Measure how something spreads, and B with errors where it reaches the shares shown."""
    from tidings.characterisation.count.spreading import reached_by, spread_statistics
    from tidings.characterisation.fit.rapidity import read_reached, read_spreading
    from tidings.traces.actions import bring_here

    rows = bring_here(spread_statistics(spreads, window), "the history")
    spreading = read_spreading(rows, what)
    # One moment may reach several shares.
    times_s = list(dict.fromkeys(spreading.times_to_s(SHOWN)))
    reached = bring_here(reached_by(spreads, window, times_s), "the history")
    points = zip(times_s, read_reached(reached, rows), strict=True)
    return spreading, [
        _plain({"time_s": time_s, "reached": share, "reached_se": error})
        for time_s, (share, error) in points
    ]


def _document(spreading: Spreading, points: list[dict[str, float | None]]) -> dict[str, Any]:
    fields = asdict(spreading)
    times, reached = fields.pop("times_s"), fields.pop("reached")
    curve = [{"time_s": float(t), "reached": float(b)} for t, b in zip(times, reached, strict=True)]
    return {**_plain(fields), "curve": curve, "points": points}


def _plain(values: Mapping[str, float]) -> dict[str, float | None]:
    """Convert numbers to what JSON has: what is not known is null."""
    return {name: None if math.isnan(value) else value for name, value in values.items()}


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in row.items()
        }
        for row in frame.to_dict("records")
    ]
