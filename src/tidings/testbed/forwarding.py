"""Which links events went on by at every broker, by the servers' own words."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from tidings.testbed.runs import Run
from tidings.testbed.tables import sent_to


def forwarding(run: Run) -> pd.DataFrame:
    """By direction of a link: how many events could have gone over it, and how many did.

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
