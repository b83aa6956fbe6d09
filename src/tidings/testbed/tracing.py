"""What the servers say of each message themselves: one JSON document per server and message."""

from __future__ import annotations

import json
from dataclasses import dataclass

DESTINATION = "trace.out"
QUEUE = "collectors"  # every server has a collector of its own, which it prefers to distant ones
_CLIENT, _BROKER = 0, 4  # kinds of connections


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """An event as a server took it in: from whom, and to which it sent it on, by their labels."""

    event: str
    broker: str
    came_from: str
    sent_to: tuple[str, ...]


def sighting(document: bytes, header: str) -> Sighting | None:
    """Read one trace document of a server; None where it is not about an event of ours."""
    trace = json.loads(document)
    names = trace.get("request", {}).get("header", {}).get(header)
    came = [each for each in trace.get("events") or () if each.get("type") == "in"]
    if not names or not came:
        return None
    leaving = (each for each in trace["events"] if each.get("type") == "eg")
    return Sighting(
        event=names[0],
        broker=trace["server"]["name"],
        came_from=came[0].get("name", ""),
        sent_to=tuple(each["name"] for each in leaving if each.get("kind") == _BROKER),
    )
