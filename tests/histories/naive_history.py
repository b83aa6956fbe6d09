"""A history checked row by row, as its definitions say."""

from __future__ import annotations

import json

from tidings.model.filters import as_filter, matches

END = float("inf")


def naive_lives(subscriptions):
    """(subscriber, subscription, filter, from, until) of every subscribe."""
    found = []
    for row in subscriptions:
        if row["action"] != "subscribe":
            continue
        ends = [
            each["at_ns"]
            for each in subscriptions
            if each["action"] == "unsubscribe"
            and (each["subscriber"], each["subscription"])
            == (row["subscriber"], row["subscription"])
            and each["at_ns"] > row["at_ns"]
        ]
        wants = as_filter(json.loads(row["filter"]))
        key = (row["subscriber"], row["subscription"])
        found.append((*key, wants, row["at_ns"], min(ends, default=END)))
    return found


def naive_check(publications, subscriptions, deliveries, t_sub, t_diff, in_time):
    """The set of (kind, event, subscriber, notified) and the guaranteed (event, subscriber)."""
    alive = naive_lives(subscriptions)
    first = {}
    for row in sorted(publications, key=lambda row: (row["published_ns"], row["content"])):
        first.setdefault(row["event"], row)
    violations, guaranteed = [], set()
    for row in deliveries:
        event, at, who = first.get(row["event"]), row["received_ns"], row["subscriber"]
        if event is None or at <= event["published_ns"]:
            violations.append(("validity", row["event"], who, at))
        if event is not None:
            content = json.loads(event["content"])
            entitled = any(
                name == who and s < at < u and matches(wants, content)
                for name, _, wants, s, u in alive
            )
            if not entitled:
                violations.append(("legality", row["event"], who, at))
    for event in first.values():
        t, content = event["published_ns"], json.loads(event["content"])
        owed = {
            name
            for name, _, wants, s, u in alive
            if s + t_sub <= t and t + t_diff <= u and matches(wants, content)
        }
        told = {
            row["subscriber"]
            for row in deliveries
            if row["event"] == event["event"] and (not in_time or row["received_ns"] <= t + t_diff)
        }
        guaranteed |= {(event["event"], name) for name in owed}
        violations += [("liveness", event["event"], name, None) for name in owed - told]
    return violations, guaranteed
