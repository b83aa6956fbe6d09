"""Fit a system and the measured outcome to the statistics of some traces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from tidings.characterisation.fit.assembling import (
    assemble,
    fit_network,
    only_probed,
    with_failures,
)
from tidings.characterisation.fit.channels import (
    FittedChannel,
    burst_notes,
    by_clocks,
    day_notes,
    early_notes,
    fit_channels,
    loss_runs,
    nothing_of_links,
    sighted_channels,
    surest,
    well_probed,
)
from tidings.characterisation.fit.clocks import clock_notes, read_clocks
from tidings.characterisation.fit.collected import Statistics
from tidings.characterisation.fit.connectivity import (
    fit_connectivity,
    fit_stays,
    with_connectivity,
    with_stays,
)
from tidings.characterisation.fit.contradictions import without_contradictions
from tidings.characterisation.fit.counting import Observed, count, measured_outcome
from tidings.characterisation.fit.delay_days import find_delay_days
from tidings.characterisation.fit.failures import ever_down, failing_together, fit_failures
from tidings.characterisation.fit.fitted import Characterisation
from tidings.characterisation.fit.groups import who_handle, with_groups
from tidings.characterisation.fit.laws import FitLaw, fit_law
from tidings.characterisation.fit.measured import waiting_parameters
from tidings.characterisation.fit.parameters import (
    Parameter,
    parameter_table,
    unfitted_notes,
)
from tidings.characterisation.fit.publishers import (
    FittedPublishers,
    fit_publishers,
    interval_samples,
)
from tidings.characterisation.fit.quality import (
    BadTexts,
    coverage_table,
    nameless_share,
    quality_table,
    spoilt_notes,
    spoilt_shares,
)
from tidings.characterisation.fit.stationarity import (
    drift_notes,
    even_batches_s,
    rates_over_time,
    stationarity,
)
from tidings.characterisation.fit.subscribers import (
    FoundSubscribers,
    find_subscribers,
    with_links,
    with_own_losses,
)
from tidings.characterisation.fit.together import find_together, together_notes
from tidings.characterisation.fit.traffic import find_traffic
from tidings.characterisation.fit.traffic_notes import (
    dispersion_table,
    doubts,
    traffic_notes,
    traffic_table,
)
from tidings.characterisation.statistics import TOO_EARLY, Direction, ObservedWindow
from tidings.errors import InvalidTracesError
from tidings.model.naming import few
from tidings.model.system import Publisher, Subscriber, System


def fit(
    traces: Observed,
    seen: Statistics,
    measured: ObservedWindow,
    base: System | None,
    *,
    fit_delay: FitLaw = fit_law,
) -> Characterisation:
    """Fit a system to statistics of traces, with standard errors, and measure the outcome.

    Delays of links, of which a system has one for every client, are fitted by ``fit_delay``.
    """
    every = seen
    seen, contradicting, contradicted = without_contradictions(seen, base)
    probed = nothing_of_links() if seen.probes is None else seen.probes
    runs = {} if seen.loss_runs is None else loss_runs(seen.loss_runs)
    clocks = read_clocks(seen.clocks, seen.crossings)
    probe_days = {} if seen.probe_hours is None else find_delay_days(seen.probe_hours, measured)
    fitted_probes = fit_channels(probed, runs, probe_days, fit_delay=fit_delay)
    probed_channels = by_clocks(fitted_probes, clocks.probed, clocks.offsets)
    # A store counts what crossed every link, as tomorrow's probes may be few: one rule for both.
    enough = well_probed(seen.hops, probed)
    wanting = find_subscribers(seen.subscriptions, base, traces.window, reported=traces.reported)
    quality = quality_table(every, bad_filters=wanting.bad_rows, contradicting=contradicting)
    spoilt = spoilt_shares(quality)
    handling = who_handle(seen.handlings)  # what is received then says nothing of the link
    crossing_days = find_delay_days(seen.crossing_hours, measured)
    of_events = fit_channels(seen.crossings, days=crossing_days, fit_delay=fit_delay)
    crossed = {
        arc: each for arc, each in of_events.items() if arc not in enough and arc[1] not in handling
    }
    crossed = by_clocks(_with_spoilt(crossed, seen, spoilt), clocks.crossed, clocks.offsets)
    followed = measured.seconds / traces.window.seconds
    sighted = sighted_channels(seen.sightings, seen.hops, ever_down(seen.states), followed)
    if spoilt.get("hops"):  # which sightings hide more or less, by what others have seen
        sighted = {arc: each for arc, each in sighted.items() if arc not in crossed}
    probed_channels = _as_delivered(probed_channels, seen, spoilt)
    channels = surest(probed_channels, crossed, _with_spoilt(sighted, seen, spoilt))
    spoilt_rates = spoilt.get("publications", 0.0)
    samples = interval_samples(seen.intervals)
    traffic = (
        find_traffic(seen.intervals, samples, traces.window) if _is_whole(seen, traces) else {}
    )
    publishers = fit_publishers(
        seen,
        channels,
        base,
        window_s=traces.window.seconds * traces.sampled,
        spoilt=spoilt_rates,
        traffic=traffic,
    )
    homes = [each.at for each in publishers.publishers] + [each.at for each in wanting.subscribers]
    failures, unsure = ({}, []) if seen.states is None else fit_failures(seen.states)
    together = () if seen.states is None else failing_together(seen.states, failures)
    fitted = fit_network(seen.hops, channels, homes, base)
    network = with_failures(fitted, failures, together)
    groups = with_groups(wanting.subscribers, seen.handlings, seen.pickups, base)
    clients = with_links(groups.subscribers, channels)
    peers = _coming_and_going(seen, publishers, clients)
    parameters = [
        *network.parameters, *publishers.parameters, *groups.parameters, *clients.parameters,
        *peers.parameters,
    ]  # fmt: skip
    with _noted(contradicted, wanting.notes, network.notes, publishers.notes):
        system, said = assemble(network, peers.publishers, peers.subscribers, parameters, base)
    waits = [
        each for broker in system.brokers for each in waiting_parameters(broker.name, seen.hops)
    ]
    counted = count(seen, system, channels, traces, measured, nameless_share(seen.hops))
    system, own = with_own_losses(system, counted.own, channels, spoilt.get("deliveries", 0.0))
    from_deliveries = {each.path for each in own}
    parameters = [*(each for each in parameters if each.path not in from_deliveries), *own]
    scvs = {name: sample.scv for name, sample in samples.items()}
    even_s = even_batches_s(measured.seconds)
    lengths_s = even_s if seen.batches_s is None else np.array(seen.batches_s)
    steady = stationarity(seen.publications_by("batches"), scvs, lengths_s)
    moving_together = together_notes(find_together(traffic))
    system = replace(system, remarks=(*doubts(traffic.values()), *moving_together))
    undescribed = [name for name, each in traffic.items() if each.is_renewal]
    drifting = steady[steady["publisher"].isin(undescribed)] if traffic else steady
    notes = (
        *traces.notes, *seen.notes, *contradicted, *spoilt_notes(spoilt),
        *wanting.notes, *network.notes, *publishers.notes, *groups.notes, *clients.notes,
        *peers.notes, *drift_notes(drifting), *traffic_notes(traffic), *moving_together,
        *unsure, *burst_notes(probed_channels), *day_notes(channels), *unfitted_notes(parameters),
        *clock_notes(clocks.offsets), *early_notes(channels), *_said_of_early(seen), *said,
        *only_probed(probed_channels, _names_seen(seen, system)), *counted.notes,
    )  # fmt: skip
    return Characterisation(
        system=system,
        measured=measured_outcome(counted, traces, measured, notes),
        parameters=parameter_table(parameters),
        waits=parameter_table(waits),
        quality=quality,
        coverage=coverage_table(seen, counted.tables["subscribers"]),
        stationarity=steady,
        clocks=clocks.table,
        laws={each.path: each.fitted for each in (*parameters, *waits) if each.fitted is not None},
        kinds=traffic,
        traffic=traffic_table(traffic),
        dispersion=dispersion_table(traffic, seen.hops_by("batches"), traces.window.seconds),
        rates=rates_over_time(seen.publications_by("batches"), lengths_s),
        notes=notes,
        bad_texts=BadTexts(contents=seen.bad_texts, filters=wanting.bad_texts),
    )


def _is_whole(seen: Statistics, traces: Observed) -> bool:
    """Test whether all events were recorded, in equal parts without gaps: else counts say less."""
    window, lengths_s = traces.window, seen.batches_s
    is_whole = (
        abs(window.seconds - (window.until_ns - window.from_ns) / 1e9) < 1e-6 * window.seconds
    )
    return (
        traces.sampled == 1
        and is_whole
        and (lengths_s is None or max(lengths_s) < 1.01 * min(lengths_s))
    )


def _with_spoilt(
    crossed: Mapping[Direction, FittedChannel], seen: Statistics, spoilt: Mapping[str, float]
) -> dict[Direction, FittedChannel]:
    """Correct links seen in hops and deliveries for the share of these that could not be used.

    What is lost to deliveries stays lost, as it does in what is measured of subscribers.
    """
    brokers, of_deliveries = _recording(seen), spoilt.get("deliveries", 0.0)
    return {
        arc: each.with_spoilt(spoilt.get("hops", 0.0))
        if arc[1] in brokers
        else replace(each, spoilt=of_deliveries)
        for arc, each in crossed.items()
    }


def _as_delivered(
    probed: Mapping[Direction, FittedChannel], seen: Statistics, spoilt: Mapping[str, float]
) -> dict[Direction, FittedChannel]:
    """Have links to subscribers that were probed lose what deliveries lose with spoilt rows too.

    A prediction would else be of more than is measured.
    """
    brokers, of_deliveries = _recording(seen), spoilt.get("deliveries", 0.0)
    takers = set(seen.deliveries["subscriber"].dropna())
    return {
        arc: each.with_lost_rows(of_deliveries) if arc[1] in takers - brokers else each
        for arc, each in probed.items()
    }


def _recording(seen: Statistics) -> set[str]:
    return set(seen.hops["broker"].dropna())


class _Peers(NamedTuple):
    """Publishers and subscribers as they come and go."""

    publishers: tuple[Publisher, ...]
    subscribers: tuple[Subscriber, ...]
    parameters: list[Parameter]
    notes: list[str]


def _coming_and_going(
    seen: Statistics, publishers: FittedPublishers, clients: FoundSubscribers
) -> _Peers:
    peers = _Peers(publishers.publishers, clients.subscribers, [], [])
    if seen.sessions is not None:
        periods, notes = fit_connectivity(seen.sessions)
        senders = with_connectivity(publishers.publishers, "publishers", periods)
        takers = with_connectivity(clients.subscribers, "subscribers", periods)
        said = [*notes, *senders[2], *takers[2], *_strangers(seen.sessions, peers)]
        peers = _Peers(senders[0], takers[0], senders[1] + takers[1], said)
    if seen.stays is not None:
        periods, notes = fit_stays(seen.stays)
        churners, parameters = with_stays(peers.subscribers, periods)
        peers = peers._replace(
            subscribers=churners,
            parameters=peers.parameters + parameters,
            notes=peers.notes + notes,
        )
    return peers


def _strangers(sessions: pd.DataFrame, peers: _Peers) -> list[str]:
    """Note the peers that come and go, and do nothing else."""
    known = {each.name for each in peers.publishers} | {each.name for each in peers.subscribers}
    unknown = sorted(set(map(str, sessions["path"].dropna())) - known)
    if not unknown:
        return []
    return [
        f"sessions of {few(unknown)} are ignored: {len(unknown)} peers of the table sessions "
        "neither publish nor subscribe"
    ]


@contextmanager
def _noted(*notes: tuple[str, ...]) -> Iterator[None]:
    """Add what was noted on the way to the error where no system comes out: it may say why."""
    try:
        yield
    except InvalidTracesError as problem:
        said = "; ".join(note for some in notes for note in some)
        headline = f"{problem.headline} (earlier warnings: {said})" if said else problem.headline
        raise InvalidTracesError(headline, problem.problems) from problem


def _said_of_early(seen: Statistics) -> list[str]:
    """Note deliveries that cannot be: they do not count, so that their events seem lost."""
    rows = seen.deliveries[seen.deliveries["statistic"] == "quality"]
    early = int(rows.loc[rows["reason"] == TOO_EARLY, "rows"].sum())
    if not early:
        return []
    return [
        f"{early} of {int(rows['rows'].sum())} deliveries were received before they were "
        "published according to the two clocks: they are set aside, and their events "
        "count as not delivered. Synchronise the clocks"
    ]


def _names_seen(seen: Statistics, system: System) -> set[str]:
    """List everybody who did more than be probed."""
    brokers = {each.name for each in system.brokers}
    peers = {each.name for each in system.publishers} | {each.name for each in system.subscribers}
    published, deliveries = seen.publications_by("publishers"), seen.deliveries_by("pairs")
    return brokers | peers | {*published["publisher"], *deliveries["subscriber"]}
