"""Subscribers as fitted: home, what they want, own link."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pandas as pd

from tidings.characterisation.fit.channels import FittedChannel
from tidings.characterisation.fit.parameters import Parameter
from tidings.characterisation.statistics import BAD_FILTER, Direction, ObservedWindow
from tidings.model import json_text
from tidings.model.behaviour import PERFECT
from tidings.model.document import Place
from tidings.model.filters import Filter, read_filter
from tidings.model.naming import few
from tidings.model.system import Subscriber, System

if TYPE_CHECKING:
    from tidings.characterisation.fit.losses import OwnLosses

_SHOWN = 3  # of bad filters


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSubscribers:
    """The subscribers, what must be said of them, and how many rows had no good filter."""

    subscribers: tuple[Subscriber, ...]
    parameters: tuple[Parameter, ...] = ()
    notes: tuple[str, ...] = ()
    bad_rows: int = 0
    bad_texts: tuple[str, ...] = ()  # of filters that are none


def find_subscribers(
    rows: pd.DataFrame | None,
    base: System | None,
    window: ObservedWindow,
    *,
    reported: Collection[str] = (),
) -> FoundSubscribers:
    """Find everybody who subscribed, all filters as one; without a table, those of ``base``.

    Those of ``base`` are there, too, of whose queues there are reports.
    """
    if rows is None:
        note = (
            "there are no subscriptions in the traces: subscribers and filters are taken "
            "from the base system"
        )
        return FoundSubscribers(subscribers=tuple(base.subscribers) if base else (), notes=(note,))
    steps = rows[rows["reason"].isna()]
    subscribed = steps[steps["action"] == "subscribe"]
    texts = {str(text): parse_filter(str(text)) for text in subscribed["filter"].unique()}
    bad = subscribed["filter"].map(lambda text: texts[str(text)] is None).astype(bool)
    known = {each.name: each for each in base.subscribers} if base else {}
    subscribers, notes = [], []
    good = subscribed[~bad].dropna(subset=["subscriber"])
    filters = good.drop_duplicates(["subscriber", "filter"]).groupby("subscriber")["filter"]
    wanted_by = filters.agg(list)
    brokers = good.groupby("subscriber")["broker"].nunique()
    latest = good.sort_values("last_ns", kind="stable").drop_duplicates("subscriber", keep="last")
    home_of = latest.set_index("subscriber")["broker"]
    for key, wanted in wanted_by.items():
        name, home = str(key), str(home_of[key])
        if brokers[key] > 1:
            notes.append(
                f"subscriber '{name}' changed its broker; the last one, {home}, "
                "is taken as its home broker"
            )
        read = [texts[str(text)] for text in wanted]
        wants = _either([each for each in read if each is not None])
        old = known.get(name)
        given = Subscriber(name=name, at=home, wants=wants)
        subscribers.append(replace(old, at=home, wants=wants) if old else given)
    unheard = {name: known[name] for name in sorted(set(known) - {s.name for s in subscribers})}
    subscribers += [each for name, each in unheard.items() if name in reported]
    silent = [name for name in unheard if name not in reported]
    if silent:
        notes.append(
            f"subscribers of the base system that never subscribed: {few(silent)}; left out"
        )
    notes += [
        f"subscriptions were set aside, as their {BAD_FILTER}: {str(text)[:80]}"
        for text in subscribed.loc[bad, "filter"].unique()[:_SHOWN]
    ]
    notes += _changes(rows, window)
    return FoundSubscribers(
        subscribers=tuple(subscribers),
        notes=tuple(notes),
        bad_rows=int((subscribed["rows"] - subscribed["duplicates"])[bad].sum()),
        bad_texts=tuple(map(str, subscribed.loc[bad, "filter"].unique())),
    )


def with_links(
    subscribers: tuple[Subscriber, ...], channels: Mapping[Direction, FittedChannel]
) -> FoundSubscribers:
    """Give subscribers their own links as measured, and note those of whom none was."""
    linked: list[Subscriber] = []
    parameters: list[Parameter] = []
    unseen: list[str] = []
    for each in subscribers:
        fitted = channels.get((each.at, each.name))
        if fitted is None:
            unseen.append(each.name)
            linked.append(each)
        else:
            parameters += fitted.parameters(f"subscribers.{each.name}.link")
            linked.append(replace(each, link=fitted.channel(each.link)))
    if not unseen:
        return FoundSubscribers(subscribers=tuple(linked), parameters=tuple(parameters))
    perfect = all(each.link == PERFECT for each in linked if each.name in set(unseen))
    assumed = "assumed to have no delay and no loss" if perfect else "taken from the base system"
    return FoundSubscribers(
        subscribers=tuple(linked),
        parameters=tuple(parameters),
        notes=(f"the links of {few(unseen)} were not measured; they are {assumed}",),
    )


def with_own_losses(
    system: System, own: OwnLosses, channels: Mapping[Direction, FittedChannel], spoilt: float
) -> tuple[System, list[Parameter]]:
    """Add what subscribers' own links lost, unless probes tell it better; give the parameters.

    ``spoilt`` is the share of deliveries that could not be used.
    """
    parameters, subscribers = [], []
    for index, each in enumerate(system.subscribers):
        fitted = channels.get((each.at, each.name))
        tried, lost = round(own.tried[index]), round(own.lost[index])
        probed = 0 if fitted is None or fitted.lost is None else fitted.tried
        if own.is_known[index] and tried > probed:
            own_link = FittedChannel(tried=tried, lost=lost, delay=None, spoilt=spoilt)
            parameters += own_link.parameters(f"subscribers.{each.name}.link")
            each = replace(each, link=own_link.channel(each.link))
        subscribers.append(each)
    errors = dict(system.standard_errors) | {one.path: one.standard_error for one in parameters}
    changed = replace(
        system, subscribers=tuple(subscribers), standard_errors=tuple(sorted(errors.items()))
    )
    return changed, parameters


def parse_filter(text: str) -> Filter | None:
    """Read the filter that a text in JSON stands for; None where it is no filter.

    >>> parse_filter("{") is None, parse_filter("{}") is None
    (True, False)
    """
    try:
        return read_filter(Place(json_text.parse(text)))
    except ValueError:
        return None


def _either(filters: list[Filter]) -> Filter:
    return Filter(conjunctions=tuple(one for each in filters for one in each.conjunctions))


def changed_subscribers(rows: pd.DataFrame | None, window: ObservedWindow) -> list[str]:
    """List those whose subscriptions came or went while we watched."""
    if rows is None:
        return []
    steps = rows[rows["reason"].isna()]
    arrived = steps[(steps["action"] == "subscribe") & (steps["last_ns"] > window.from_ns)]
    left = steps[steps["action"] == "unsubscribe"]
    return sorted({*map(str, arrived["subscriber"]), *map(str, left["subscriber"])})


def _changes(rows: pd.DataFrame, window: ObservedWindow) -> list[str]:
    """Note those whose subscriptions came or went while we watched."""
    moved = changed_subscribers(rows, window)
    if not moved:
        return []
    return [
        f"{len(moved)} subscribers, such as {moved[0]}, changed their subscriptions "
        "during the recording; an event counts as wanted if it was published during a "
        "matching subscription, and as delivered if it arrived before that ended"
    ]
