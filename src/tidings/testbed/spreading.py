"""How subscriptions and events spread over the brokers: measured beside what the delays predict.

Also which links events went on by at every broker, by the servers' own words.
"""

from __future__ import annotations

from collections import Counter

import pandas as pd

from tidings.model import topology
from tidings.model.routes import route
from tidings.model.system import System
from tidings.model.system_workload import workload_of
from tidings.operational.analysing import analyse
from tidings.testbed.churning import learnings
from tidings.testbed.runs import Run
from tidings.testbed.tables import sent_to


def subscription_spread(run: Run, fitted: System) -> pd.DataFrame:
    """Tabulate how long a subscription takes to become known to each broker (T_sub), in seconds.

    Predicted: the mean delays of the links on its way, as nothing else holds it up. Brokers that
    knew already, since others want the same, are left out.
    """
    took = pd.DataFrame(
        [
            {
                "subscriber": run.system.subscribers[run.stays[each.stay].subscriber].name,
                "broker": each.broker,
                "took_s": each.at_s - run.stays[each.stay].begin_s,
            }
            for each in learnings(run, run.routes, run.subjects.of_subscriber)
            if each.learnt and each.at_s > run.stays[each.stay].begin_s
        ],
        columns=["subscriber", "broker", "took_s"],
    )
    predicted = {
        (name, broker): delay_s
        for name in took["subscriber"].unique()
        for broker, delay_s in _delays_from(fitted, name).items()
    }
    return _summary(took, "subscriber", predicted)


def event_spread(run: Run, fitted: System) -> pd.DataFrame:
    """Tabulate how long an event takes to come to each broker (T_diff), in seconds.

    Predicted by means, as operational analysis does.
    """
    kept = {each.event: each for each in run.publications if each.at_s >= run.options.warmup_s}
    took = pd.DataFrame(
        [
            {
                "publisher": run.system.publishers[kept[each.event].publisher].name,
                "broker": each.broker,
                "took_s": each.arrived_s - run.start_s - kept[each.event].at_s,
            }
            for each in run.layout.journal.visits
            if each.event in kept
        ],
        columns=["publisher", "broker", "took_s"],
    )
    analysis = analyse(workload_of(fitted))
    at_broker = analysis.centres.set_index("centre")["response_mean_s"]
    predicted = {
        (str(row.publisher), str(row.broker)): float(row.latency_mean_s)
        - float(at_broker.get(row.broker, 0.0))
        for row in analysis.deliveries.itertuples()
    }
    return _summary(took, "publisher", predicted)


def _delays_from(fitted: System, subscriber: str) -> dict[str, float]:
    """Compute the mean delay from a subscriber to every broker, in seconds."""
    routes = route(fitted)
    at = next(i for i, each in enumerate(fitted.subscribers) if each.name == subscriber)
    delays_s: dict[int, float] = {}
    for broker, into in topology.walk(
        routes.trees[0], routes.arcs, int(routes.home_of_subscriber[at])
    ):
        if into < 0:
            delays_s[broker] = fitted.subscribers[at].link.delay.mean_s
        else:
            arc = routes.arcs[into]
            delays_s[broker] = delays_s[arc.source] + arc.channel.delay.mean_s
    return {fitted.brokers[broker].name: delay_s for broker, delay_s in delays_s.items()}


def _summary(took: pd.DataFrame, key: str, predicted: dict[tuple[str, str], float]) -> pd.DataFrame:
    grouped = took.groupby([key, "broker"], sort=False)["took_s"]
    table = pd.DataFrame(
        {
            "measured_s": grouped.mean(),
            "standard_error_s": grouped.sem(),
            "times": grouped.size(),
        }
    ).reset_index()
    pairs = zip(table[key], table["broker"], strict=True)
    return table.assign(predicted_s=[predicted.get(pair, float("nan")) for pair in pairs])


def forwarding(run: Run) -> pd.DataFrame:
    """Count, by direction of a link, the events that could have gone over it, and those that did.

    Events are those published after the warm-up, each followed to its end; what came over a link
    cannot go back over it.
    """
    sent = sent_to(run)
    kept = {each.event for each in run.published if each.at_s >= run.options.warmup_s}
    neighbours: dict[str, list[str]] = {broker.name: [] for broker in run.system.brokers}
    for link in run.system.links:
        for here, there in (link.between, link.between[::-1]):
            neighbours[here].append(there)
    could: Counter[tuple[str, str]] = Counter()
    did: Counter[tuple[str, str]] = Counter()
    for visit in run.layout.journal.visits:
        went = sent.get((visit.event, visit.broker))
        if visit.event in kept and went is not None:
            for other in neighbours[visit.broker]:
                if other != visit.came_from:
                    could[visit.broker, other] += 1
                    did[visit.broker, other] += other in went
    rows = [(*hop, events, did[hop]) for hop, events in could.items()]
    return pd.DataFrame(rows, columns=["source", "target", "events", "went"])
