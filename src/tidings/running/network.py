"""What could be learnt of a running network, and the commented system file that says it.

Every number is a ``SeenValue``: reported by a broker, or assumed with a reason. Readers of one kind
of broker each make a ``SeenNetwork``; the file is written in one place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tidings.model import units
from tidings.running.subject_shares import example_subject

# Words that YAML reads as themselves, whatever its version; everything else is quoted.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_NOT_TEXT = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
_PLACEHOLDER = "placeholder"
_WIDE = 44  # columns until a comment begins


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenValue:
    """A value as the file says it, and where it comes from."""

    value: str  # YAML
    source: str  # who reported it, or why this is assumed
    assumed: bool = False

    @property
    def remark(self) -> str:
        """The comment behind it."""
        return f"assumed: {self.source}" if self.assumed else self.source


def reported(value: str, source: str) -> SeenValue:
    """Make the figure of a value that a broker reported."""
    return SeenValue(value=value, source=source)


def assumed(value: str, why: str) -> SeenValue:
    """Make the figure of a value that nobody reported, with why it had to be assumed."""
    return SeenValue(value=value, source=why, assumed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenBroker:
    """A broker, and what it takes to forward one event."""

    name: str
    service: SeenValue


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenLink:
    """A link between two brokers, and its delay one way."""

    ends: tuple[str, str]
    delay: SeenValue


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPublisher:
    """A client that publishes: how often, and which events with which share."""

    name: str
    at: str
    every: SeenValue
    events: tuple[tuple[float, dict[str, str]], ...]
    events_from: SeenValue
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenSubscriber:
    """A client or a consumer that wants events; ``settings`` are those of its ``consumers``."""

    name: str
    at: str
    wants: tuple[dict[str, dict[str, str] | str], ...]
    remark: str = ""
    lifetime: SeenValue | None = None
    settings: tuple[tuple[str, SeenValue], ...] = ()
    processing: SeenValue | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenNetwork:
    """All that could be learnt of a network; ``notes`` is what to know beside the file."""

    description: str
    lifetime: SeenValue
    brokers: tuple[SeenBroker, ...]
    links: tuple[SeenLink, ...] = ()
    # Attribute of events that names the broker where they enter, if links form cycles: they go by
    # fewest hops from there. Where links are a tree there is but one way, and none is needed.
    enters: str | None = None
    publishers: tuple[SeenPublisher, ...] = ()
    subscribers: tuple[SeenSubscriber, ...] = ()
    notes: tuple[str, ...] = field(default=())


def seconds(value_s: float) -> str:
    """Write a time, given in seconds, as the file says it, with three digits.

    >>> seconds(0.000121), seconds(0.0234567), seconds(90)
    ('121us', '23.5ms', '90s')
    """
    return units.format_seconds(float(f"{value_s:.3g}")).replace(" ", "").replace("µ", "u")


def every(rate_per_s: float) -> str:
    """Write Poisson events of this rate, per second, as the file says it.

    >>> every(40)
    '{rate: 40/s}'
    """
    return f"{{rate: {rate_per_s:.4g}/s}}"


def completed(network: SeenNetwork) -> SeenNetwork:
    """Add a placeholder where nobody publishes or subscribes, without which it is no system.

    It publishes one event for each pattern that anybody wants, or wants everything.
    """
    home = network.brokers[0].name
    notes = list(network.notes)
    publishers, subscribers = network.publishers, network.subscribers
    if not subscribers:
        remark = "assumed: a placeholder that wants everything, for nobody was seen to subscribe"
        subscribers = (SeenSubscriber(name=_PLACEHOLDER, at=home, wants=({},), remark=remark),)
        notes.append("the file has a placeholder for subscribers: put yours in its place")
    if not publishers:
        events = [_wanted(wants) for each in subscribers for wants in each.wants]
        if network.enters is not None:
            events = [{network.enters: home, **event} for event in events]
        different = list({json.dumps(event): event for event in events}.values())
        publisher = SeenPublisher(
            name=_PLACEHOLDER,
            at=home,
            every=assumed(every(1.0), "a placeholder, for nobody was seen to publish"),
            events=tuple((1.0 / len(different), event) for event in different),
            events_from=assumed("", "what subscribers want, in equal shares; wildcards as 'any'"),
        )
        publishers = (publisher,)
        notes.append(
            "the file has a placeholder for publishers, at 1/s: put who publishes what, where and "
            "how often in its place, or ask again while they do"
        )
    return replace(network, publishers=publishers, subscribers=subscribers, notes=tuple(notes))


def _wanted(wants: Mapping[str, Mapping[str, str] | str]) -> dict[str, str]:
    """Give an event that passes a filter.

    >>> _wanted({"account": "A", "subject": {"nats": "orders.*.eu"}})
    {'account': 'A', 'subject': 'orders.any.eu'}
    """
    event = {
        name: value if isinstance(value, str) else example_subject(next(iter(value.values())))
        for name, value in wants.items()
    }
    return event or {"subject": "any"}


def assumptions(network: SeenNetwork) -> list[dict[str, str]]:
    """List every assumed value: where it stands, what it is, why."""
    return [
        {"where": where, "value": figure.value, "why": figure.source}
        for where, figure in _figures(network)
        if figure.assumed
    ]


def file_text(network: SeenNetwork) -> str:
    """Write the system file of a network; comments mark what was reported and what was assumed."""
    lines = [
        f"# {_commented(network.description)}",
        "# Numbers marked 'assumed' were not reported by any broker: replace them, or let",
        "# 'tidings characterise' measure them from traces.",
        "tidings: 1",
        f"description: {text_of(network.description)}",
        _line(f"lifetime: {network.lifetime.value}", network.lifetime.remark),
    ]
    if network.enters is not None:
        names = [text_of(broker.name) for broker in network.brokers]
        roots = ", ".join(f"{name}: {name}" for name in names)
        routing = f"{{root: {names[0]}, by: {network.enters}, roots: {{{roots}}}}}"
        lines.append(_line(f"routing: {routing}", "fewest hops from where an event enters"))
    lines.append("brokers:")
    for broker in network.brokers:
        named = f"  {text_of(broker.name)}: {{service: {broker.service.value}}}"
        lines.append(_line(named, broker.service.remark))
    if network.links:
        lines.append("links:")
    for link in network.links:
        ends = ", ".join(map(text_of, link.ends))
        text = f"  - {{between: [{ends}], delay: {link.delay.value}}}"
        lines.append(_line(text, link.delay.remark))
    lines.append("publishers:")
    for publisher in network.publishers:
        lines += _publisher_lines(publisher)
    lines.append("subscribers:")
    for subscriber in network.subscribers:
        lines += _subscriber_lines(subscriber)
    return "\n".join(lines) + "\n"


def _publisher_lines(publisher: SeenPublisher) -> Iterator[str]:
    yield f"  {text_of(publisher.name)}:"
    yield f"    at: {text_of(publisher.at)}"
    yield _line(f"    every: {publisher.every.value}", publisher.every.remark)
    if publisher.size_bytes:
        yield _line(f"    size: {publisher.size_bytes}B", "mean over all its messages")
    yield _line("    content:", publisher.events_from.remark)
    # Shares have five digits, and the first takes what rounding leaves, so that they sum to 1.
    others = [round(share, 5) for share, _ in publisher.events[1:]]
    shares = [round(1 - sum(others), 5), *others]
    for share, (_, event) in zip(shares, publisher.events, strict=True):
        yield f"      - {{p: {share:.5g}, event: {flow(event)}}}"


def _subscriber_lines(subscriber: SeenSubscriber) -> Iterator[str]:
    yield _line(f"  {text_of(subscriber.name)}:", subscriber.remark)
    yield f"    at: {text_of(subscriber.at)}"
    wants = [flow(each) for each in subscriber.wants]
    yield f"    wants: {wants[0] if len(wants) == 1 else '[' + ', '.join(wants) + ']'}"
    for name in ("lifetime", "processing"):
        figure = getattr(subscriber, name)
        if figure is not None:
            yield _line(f"    {name}: {figure.value}", figure.remark)
    if subscriber.settings:
        yield "    consumers:"
    for name, figure in subscriber.settings:
        yield _line(f"      {name}: {figure.value}", figure.remark)


def _figures(network: SeenNetwork) -> Iterator[tuple[str, SeenValue]]:
    yield "lifetime", network.lifetime
    for broker in network.brokers:
        yield f"brokers.{broker.name}.service", broker.service
    for link in network.links:
        yield f"links.{link.ends[0]}–{link.ends[1]}.delay", link.delay
    for publisher in network.publishers:
        yield f"publishers.{publisher.name}.every", publisher.every
        yield f"publishers.{publisher.name}.content", publisher.events_from
    for subscriber in network.subscribers:
        at = f"subscribers.{subscriber.name}"
        for name in ("lifetime", "processing"):
            if getattr(subscriber, name) is not None:
                yield f"{at}.{name}", getattr(subscriber, name)
        yield from ((f"{at}.consumers.{name}", each) for name, each in subscriber.settings)


def _line(text: str, remark: str) -> str:
    return f"{text.ljust(_WIDE)}  # {_commented(remark)}" if remark else text


def _commented(text: str) -> str:
    """Make text stay on its line, whatever a broker's clients are called."""
    return "".join(each if each.isprintable() else "?" for each in text)


def text_of(text: str) -> str:
    """Write a name as YAML, quoted unless it is a plain word."""
    if _PLAIN.fullmatch(text) and text.lower() not in _NOT_TEXT:
        return text
    return json.dumps(text, ensure_ascii=True)


def flow(mapping: Mapping[str, Mapping[str, str] | str]) -> str:
    """Write a mapping as YAML on one line.

    >>> flow({"topic": "orders", "key": {"prefix": "a b"}})
    '{topic: orders, key: {prefix: "a b"}}'
    """
    parts: Sequence[str] = [
        f"{text_of(key)}: {flow(value) if isinstance(value, Mapping) else text_of(value)}"
        for key, value in mapping.items()
    ]
    return "{" + ", ".join(parts) + "}"
