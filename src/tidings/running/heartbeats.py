"""Heartbeats over the links of running NATS servers, and the queues of their JetStream consumers.

A heartbeat is a trace-only message at one server that a listener at every other one would want:
servers report when they hand it on and when they get it, each by its own clock, and deliver
nothing. So a link that carries no traffic has a delay too, and clocks can be compared.
"""

from __future__ import annotations

import asyncio
import csv
import datetime
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tidings.errors import EngineError
from tidings.model import json_text
from tidings.running.asking import Pages
from tidings.running.polling import take

SUBJECT = "tidings.heartbeat"
_MARK = "beat-"
_MOST_REPORTS_PER_S = 20.0
_LEAST_S = 1.0  # between two heartbeats, and between two polls
_POLLS = 60  # of a capture, if it is long enough
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class Heartbeats:
    """Heartbeats sent from every server in turn, and what servers report of them."""

    def __init__(self, destination: str) -> None:
        self._destination = destination
        self._reports: list[Mapping[str, Any]] = []
        self.sent = 0

    async def send(self, clients: Sequence[Any]) -> None:
        """Send them for as long as this runs; every server reports each, so few are many."""
        for client in clients:
            await client.subscribe(SUBJECT)  # so that servers have somebody to hand them on to
            await client.flush()
        every_s = max(_LEAST_S, len(clients) ** 2 / _MOST_REPORTS_PER_S)
        while True:
            await asyncio.sleep(every_s)
            for client in clients:
                headers = {
                    "Nats-Trace-Dest": self._destination,
                    "Nats-Trace-Only": "true",
                    "Nats-Msg-Id": f"{_MARK}{self.sent}",
                }
                self.sent += 1
                await client.publish(SUBJECT, b"", headers=headers)

    def take(self, data: bytes) -> bool:
        """Keep a server's report if it is of a heartbeat; tells whether it is."""
        if _MARK.encode() not in data:  # most are of messages
            return False
        report = json_text.parse(data)
        ours = _event_of(report).startswith(_MARK)
        if ours:
            self._reports.append(report)
        return ours

    def write(self, file: Path) -> int:
        """Write what became of them on every link as probes, in CSV; gives how many there are."""
        rows = probe_rows(self._reports)
        with file.open("w", encoding="utf-8", newline="") as text:
            table = csv.writer(text)
            table.writerow(("source", "target", "sent_ns", "received_ns"))
            table.writerows(rows)
        return len(rows)


def probe_rows(reports: Iterable[Mapping[str, Any]]) -> list[tuple[str, str, int, int | None]]:
    """Give source, target, when it left and when it came, each in nanoseconds of its own clock.

    A hop has a name, which the server that hands on and the one that gets it both report; one that
    nobody got is lost.
    """
    left: dict[tuple[str, str], tuple[str, str, int]] = {}
    came: dict[tuple[str, str], tuple[str, int]] = {}
    for report in reports:
        server = str((report.get("server") or {}).get("name"))
        event, own_hop = _event_of(report), _header(report, "Nats-Trace-Hop")
        for step in report.get("events") or ():
            if step.get("type") == "in" and own_hop:
                came[event, own_hop] = (server, _ns(step["ts"]))
            elif step.get("type") == "eg" and step.get("hop"):
                left[event, step["hop"]] = (server, str(step.get("name")), _ns(step["ts"]))
    rows: list[tuple[str, str, int, int | None]] = []
    for hop, (source, name, sent_ns) in left.items():
        target, received_ns = came.get(hop, (name, None))
        rows.append((source, target, sent_ns, received_ns))
    return rows


async def poll_consumers(
    pages: Sequence[Pages], seconds: float, folder: Path, problems: list[str]
) -> None:
    """Poll servers' JetStream consumers into a folder for as long as this runs."""
    every_s = max(_LEAST_S, seconds / _POLLS)
    while True:
        for number, each in enumerate(pages):
            try:
                await asyncio.to_thread(_take_consumers, each, folder / str(number))
            except EngineError as problem:
                problems.append(str(problem))
        await asyncio.sleep(every_s)


def _take_consumers(pages: Pages, folder: Path) -> None:
    take(pages, "jsz", folder, worth=_has_consumers)


def _has_consumers(page: Mapping[str, Any]) -> bool:
    return any(
        stream.get("consumer_detail")
        for account in page.get("account_details") or ()
        for stream in account.get("stream_detail") or ()
    )


def _event_of(report: Mapping[str, Any]) -> str:
    return _header(report, "Nats-Msg-Id")


def _header(report: Mapping[str, Any], name: str) -> str:
    headers = (report.get("request") or {}).get("header") or {}
    return str(next(iter(headers.get(name) or ()), ""))


def _ns(text: str) -> int:
    """Convert a moment as NATS writes it to nanoseconds since 1970.

    >>> _ns("1970-01-01T00:00:01.000000012Z"), _ns("1970-01-01T01:00:02+01:00")
    (1000000012, 2000000000)
    """
    whole, _, rest = text.partition(".")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    zone = rest[len(digits) :] if rest else ""
    moment = datetime.datetime.fromisoformat(f"{whole}{zone}")
    return round((moment - _EPOCH).total_seconds()) * 10**9 + int(digits.ljust(9, "0")[:9])
