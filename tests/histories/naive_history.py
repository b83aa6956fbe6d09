"""A history checked row by row, as its definitions say."""

from __future__ import annotations

import json
from collections import Counter

from tidings.model.filters import as_filter, matches

END = float("inf")


def naive_lives(subscriptions):
    """(subscriber, subscription, filter, from, until) of every subscribe."""
    found = []
    for row in subscriptions:
        if row["action"] != "subscribe":
            continue
        key = (row["subscriber"], row["subscription"])
        ends = [
            each["at_ns"]
            for each in subscriptions
            if each["action"] == "unsubscribe"
            and (each["subscriber"], each["subscription"]) == key
            and each["at_ns"] > row["at_ns"]
        ]
        wants = as_filter(json.loads(row["filter"]))
        found.append((*key, wants, row["at_ns"], min(ends, default=END)))
    return found


def naive_check(history, t_sub, t_diff, in_time):
    """Violations (kind, event, subscriber, notified) with how often, and what was guaranteed."""
    publications, subscriptions, deliveries = history
    alive = naive_lives(subscriptions)
    first = {}
    for row in sorted(publications, key=lambda row: (row["published_ns"], row["content"])):
        first.setdefault(row["event"], row)
    violations, guaranteed = Counter(), set()
    for row in deliveries:
        event, at, who = first.get(row["event"]), row["received_ns"], row["subscriber"]
        if event is None or at <= event["published_ns"]:
            violations["validity", row["event"], who, at] += 1
        if event is not None:
            content = json.loads(event["content"])
            entitled = any(
                name == who and s < at < u and matches(wants, content)
                for name, _, wants, s, u in alive
            )
            if not entitled:
                violations["legality", row["event"], who, at] += 1
    for event in first.values():
        t, content = event["published_ns"], json.loads(event["content"])
        owed = {
            name
            for name, _, wants, s, u in alive
            if s + t_sub <= t and t + t_diff <= u and matches(wants, content)
        }
        guaranteed |= {(event["event"], name) for name in owed}
        mine = [row for row in deliveries if row["event"] == event["event"]]
        for name in owed:
            came = [row["received_ns"] for row in mine if row["subscriber"] == name]
            if not any(not in_time or at <= t + t_diff for at in came):
                violations["liveness", event["event"], name, min(came, default=None)] += 1
    return violations, guaranteed
