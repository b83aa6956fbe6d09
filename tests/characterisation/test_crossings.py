from __future__ import annotations

import pandas as pd

from tidings.characterisation.count.links import crossings
from tidings.characterisation.fit.channels import ENOUGH, well_probed
from tidings.model.trace_tables import DELIVERIES, HOPS, PUBLICATIONS, SESSIONS
from tidings.traces.window import TraceWindow


def test_what_waits_for_a_peer_tells_nothing_of_its_link(frame):
    """Of two publishers and two subscribers one comes and goes, and its events wait for it."""
    publications = frame(
        [
            ("e1", "stays", "hub", 0, "{}", None, None),
            ("e2", "goes", "hub", 0, "{}", None, None),
        ],
        PUBLICATIONS.ddl,
    )
    tables = {
        "hops": frame(
            [
                ("e1", "hub", "stays", 5, 5, 10, []),
                ("e2", "hub", "goes", 7_000, 7_000, 8_000, []),
            ],
            HOPS.ddl,
        ),
        "deliveries": frame(
            [("e1", "here", "hub", 13), ("e1", "mobile", "hub", 90_000)], DELIVERIES.ddl
        ),
    }
    hops = pd.DataFrame(
        {"statistic": "arrivals", "came_from": ["stays", "goes"], "broker": "hub", "rows": 1}
    )
    probes = pd.DataFrame({"source": [], "target": [], "rows": []})
    window = TraceWindow(from_ns=0, until_ns=10**9)

    def ways(given):
        found = crossings(given, publications, window, hops, probes).collect()
        return {(row["source"], row["target"]) for row in found}

    everybody = {("stays", "hub"), ("goes", "hub"), ("hub", "here"), ("hub", "mobile")}
    assert ways(tables) == everybody
    sessions = frame([("goes", "connected", 0), ("mobile", "connected", 0)], SESSIONS.ddl)
    assert ways(tables | {"sessions": sessions}) == {("stays", "hub"), ("hub", "here")}


def test_probes_are_enough_where_there_are_thousands_or_more_than_what_crossed():
    probes = pd.DataFrame(
        [("a", "b", ENOUGH), ("b", "a", 60), ("b", "c", 60), ("c", "s", ENOUGH - 1)],
        columns=["source", "target", "rows"],
    )
    hops = pd.DataFrame(
        [("arrivals", "a", "b", 10_000), ("arrivals", "b", "a", 60), ("arrivals", "b", "c", 61)],
        columns=["statistic", "came_from", "broker", "rows"],
    )
    assert well_probed(hops, probes) == {("a", "b"), ("b", "a")}
