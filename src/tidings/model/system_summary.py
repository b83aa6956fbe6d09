"""A system in short: what is in it, as ``check`` tells and as notebooks show."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from tidings.errors import InvalidSystemError, Problem
from tidings.model import reading
from tidings.model.features import used_features
from tidings.model.record_tables import names
from tidings.model.system import System

TRACES = "connectivity from traces"  # the feature that names files
MOST_NAMES = 6  # of a kind that are written out
MOST_LETTERS = 40  # of a name


def check(source: str | Path) -> dict[str, Any]:
    """Check a system file or folder and count what is in it; raises with all problems at once."""
    return facts_of(check_file(Path(source)))


def check_file(source: Path) -> System:
    """Read a system, and refuse it where files that it names are missing."""
    system = reading.load(source)
    if TRACES not in used_features(system):
        return system
    missing: dict[str, str] = {}
    for section in ("publishers", "subscribers"):
        for peer in getattr(system, section):
            trace = peer.connectivity.trace if peer.connectivity is not None else None
            if trace is not None and not Path(trace).exists():
                missing.setdefault(trace, f"{section}.{peer.name}.connectivity.trace")
    if not missing:
        return system
    problems = [
        Problem(
            at=at,
            saw=f"'{trace}', and there is no file {Path(trace).absolute()}",
            want="a file that exists",
            fix="a relative path starts from the folder where the command runs",
        )
        for trace, at in missing.items()
    ]
    count = "1 missing file" if len(problems) == 1 else f"{len(problems)} missing files"
    raise InvalidSystemError(f"{source}: {count}", problems)


def facts_of(system: System) -> dict[str, Any]:
    """Count what is in a system: events published per second, subscribers, features it uses."""
    return {
        "description": system.description or "",
        "brokers": len(system.brokers),
        "links": len(system.links),
        "publishers": len(system.publishers),
        "published_per_s": round(sum(p.rate_per_s for p in system.publishers), 6),
        "subscribers": sum(subscriber.count for subscriber in system.subscribers),
        "distinct_filters": len({subscriber.wants for subscriber in system.subscribers}),
        "features_used": list(used_features(system)),
        "fingerprint": reading.fingerprint(system),
    }


def summary_html(system: System) -> str:
    """Write a small table: brokers, links, publishers with their rates per second, subscribers."""
    rows = "".join(
        f"<tr><th>{kind}</th><td>{count:,}</td><td>{html.escape(text)}</td></tr>"
        for kind, count, text in _rows(system)
    )
    title = html.escape(system.description or "System")
    return f"<p><b>{title}</b></p><table><tbody>{rows}</tbody></table>"


def _rows(system: System) -> Iterator[tuple[str, int, str]]:
    """Give a kind, how many there are of it, and their names or rates."""
    yield "brokers", len(system.brokers), _names(names(system.brokers))
    yield "links", len(system.links), _names([link.name for link in system.links])
    rates = [f"{_cut(each.name)} {each.rate_per_s:.4g}/s" for each in system.publishers]
    total = sum(each.rate_per_s for each in system.publishers)
    yield "publishers", len(rates), f"{total:.4g} events/s: {_named(rates)}"
    yield "subscribers", system.stored_subscriptions, _names(names(system.subscribers))


def _names(every: Sequence[str]) -> str:
    return _named([_cut(each) for each in every[: MOST_NAMES + 1]])


def _named(texts: Sequence[str]) -> str:
    shown = ", ".join(islice(texts, MOST_NAMES))
    return f"{shown}, …" if len(texts) > MOST_NAMES else shown


def _cut(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"
