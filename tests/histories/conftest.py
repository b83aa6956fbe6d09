"""Histories as plain rows, and as the frames that are checked."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tidings.model.events import canonical_event
from tidings.model.trace_tables import TRACE_TABLES

NAMES = ("publications", "subscriptions", "deliveries")
FILTERS = (
    [{}], [{"a": 1}], [{"a": {"above": 1}}], [{"b": {"nats": "*"}}],
    [{"a": 2}, {"b": {"exists": True}}]
)  # fmt: skip


def event(name, at, **content):
    return {
        "event": name, "publisher": "p", "published_ns": at, "content": canonical_event(content)
    }  # fmt: skip


def step(who, at, action, filter_=None, name="s"):
    text = None if filter_ is None else json.dumps(filter_)
    return {
        "subscription": name, "subscriber": who, "broker": "b", "action": action,
        "at_ns": at, "filter": text,
    }  # fmt: skip


def notice(name, who, at):
    return {"event": name, "subscriber": who, "received_ns": at}


def random_history(random, name, size=6):
    """A small history on a small clock, so that moments often fall together."""
    people = [f"{name}/p{n}" for n in range(3)]

    def clock():
        return int(random.integers(0, 12))

    subscriptions = []
    for _ in range(size):
        who, ours = people[random.integers(3)], f"s{random.integers(2)}"
        wants = [{"h": name, **each} for each in FILTERS[random.integers(len(FILTERS))]]
        act = "subscribe" if random.random() < 0.6 else "unsubscribe"
        subscriptions.append(step(who, clock(), act, wants if act == "subscribe" else None, ours))
    publications = []
    for _ in range(size):
        says = {"a": int(random.integers(1, 4)), "b": "x"}
        kept = {key: value for key, value in says.items() if random.random() < 0.7}
        publications.append(event(f"{name}/e{random.integers(size)}", clock(), h=name, **kept))
    deliveries = [
        notice(f"{name}/e{random.integers(size + 1)}", people[random.integers(3)], clock())
        for _ in range(2 * size)
    ]
    return publications, subscriptions, deliveries


def joined(histories):
    """Histories that have nothing to do with each other, as one: one job checks them all.

    Contents and filters name their history, so that nobody wants what another one publishes.
    """
    return tuple([row for part in histories for row in part[table]] for table in range(3))


@pytest.fixture
def many_histories():
    def make(count, seed):
        random = np.random.default_rng(seed)
        return [random_history(random, f"h{n}") for n in range(count)]

    return make


@pytest.fixture
def tables(frame):
    """The canonical frames of a history."""

    def make(history):
        found = {}
        for name, rows in zip(NAMES, history, strict=True):
            table = TRACE_TABLES[name]
            values = [[row.get(column.name) for column in table.columns] for row in rows]
            found[name] = frame(values, table.ddl.replace(" NOT NULL", ""))
        return found

    return make
