"""How an outcome came about, as a person reads it: names in words, numbers with their units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tidings.reporting import wording

_HIDDEN = ("warnings", "notes")  # said elsewhere
Fact = tuple[str, str]


def facts(provenance: Mapping[str, Any]) -> list[Fact]:
    """List what a reader may want to know, as names and texts.

    >>> facts({"seed": 7, "warmup_s": 12.345678, "messages": {"per_delivery": {}}})
    [('seed', '7'), ('warm-up', '12.3 s')]
    """
    listed: list[Fact] = []
    for key, value in provenance.items():
        if key in _HIDDEN:
            continue
        if key in _PARTS and isinstance(value, Mapping):
            listed += _PARTS[key](value)
        elif key in _WORDS:
            words, write = _WORDS[key]
            listed.append((words, _written(value, write)))
        elif not isinstance(value, Mapping):
            listed.append((key.replace("_", " "), _plain(value)))
    return listed


def _written(value: Any, write: Callable[[float], str]) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return write(float(value)) if is_number else _plain(value)


def _plain(value: Any) -> str:
    """Write a value as a text, numbers with as many digits as a person reads.

    >>> _plain(1 / 3), _plain(60.0), _plain(120_000), _plain(None), _plain(["a", "b"])
    ('0.3333', '60', '120,000', 'none', 'a; b')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        return "; ".join(map(_plain, value)) or "none"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def _messages(part: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield the messages over links for one delivery, with their standard error."""
    each = (part.get("per_delivery") or {}).get("messages") or {}
    if each.get("value") is not None:
        se = each.get("se")
        error = f" ± {se:.2g}" if se else ""
        yield "messages per delivery", f"{each['value']:.3g}{error}"


def _promise(part: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield what was asked of a prediction, and which engines answered."""
    yield "error asked for", f"± {_plain(part.get('within'))}"
    rows = ", ".join(f"{number:,} by {engine}" for engine, number in part.get("by", {}).items())
    if rows:
        yield "rows", rows
    if part.get("not_held"):
        yield "rows less precise than asked", _plain(part["not_held"])


def _bars(part: Mapping[str, Any]) -> Iterator[Fact]:
    yield "error bars", f"from {_plain(part.get('parameters'))} parameters, {part.get('method')}"


def _drawn(part: Mapping[str, Any]) -> Iterator[Fact]:
    yield (
        "contents",
        f"{_plain(part.get('events'))} drawn for each of {_plain(part.get('publishers'))} "
        "publishers that have too many to list",
    )


def _when(nanoseconds: float) -> str:
    moment = datetime.fromtimestamp(nanoseconds / 1e9, tz=UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


_PARTS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "messages": _messages,
    "promise": _promise,
    "error_bars": _bars,
    "contents_drawn": _drawn,
    "simulation": facts,
}
_WORDS: dict[str, tuple[str, Callable[[float], str]]] = {
    "version": ("version of Tidings", _plain),
    "engine": ("made by", _plain),
    "system": ("fingerprint of the system", _plain),
    "seed": ("seed", lambda value: f"{value:.0f}"),
    "warmup_s": ("warm-up", wording.seconds),
    "duration_s": ("measured time of each replication", wording.seconds),
    "events_published": ("events published", lambda value: f"{value:,.0f}"),
    "half_width": ("largest half-width (95 %)", wording.percent),
    "cpu_s": ("CPU time of the simulation", wording.seconds),
    "splitting": ("misses counted by splitting", _plain),
    "brokers_by": ("brokers and links by", _plain),
    "from_ns": ("from", _when),
    "until_ns": ("until", _when),
    "settle_s": ("left out at the end", wording.seconds),
    "batches": ("parts that standard errors come from", _plain),
}
