"""Sends spans to ``tidings receive``, and notes which were acknowledged, as exporters do.

What was not acknowledged is sent by the next one. With ``all``, everything is sent once more.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from torturing.clients import ask, say, serving

SPANS, BYTES = 200, 1500
ACKNOWLEDGED = Path("kept/acknowledged")
FOLDER = Path("out/spans")
TRIES, PAUSE_S = 6, 0.1


def names() -> list[str]:
    return [f"{n + 1:016x}" for n in range(SPANS)]


def export(name: str) -> bytes:
    """One span as an export of OTLP."""
    text = {"key": "text", "value": {"stringValue": "x" * BYTES}}
    span = {"traceId": name * 2, "spanId": name, "name": "send", "kind": 4,
            "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000000000000001",
            "attributes": [text]}  # fmt: skip
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def ids_in(folder: Path, *, hidden: bool = False) -> set[str]:
    """Read the ids of all spans in a folder, each line of which must be whole."""
    found = set()
    for file in folder.glob(".spans-*" if hidden else "spans-*.jsonl"):
        lines = file.read_text().splitlines(keepends=True)
        for line in lines:
            if hidden and not line.endswith("\n"):
                continue  # half a line, which was not acknowledged
            (resource,) = json.loads(line)["resourceSpans"]
            found |= {span["spanId"] for each in resource["scopeSpans"] for span in each["spans"]}
    return found


def main() -> None:
    ACKNOWLEDGED.touch()
    known = set() if "all" in sys.argv else set(ACKNOWLEDGED.read_text().split())
    refused = ""
    with serving("receive", str(FOLDER), "--every", "50ms") as url:
        for name in names():
            if name in known:
                continue
            for _ in range(TRIES):
                status, said = ask(url, export(name))
                if status == 200:
                    with ACKNOWLEDGED.open("a") as kept:
                        kept.write(f"{name}\n")
                    break
                refused = f"{status}: {said}"
                time.sleep(PAUSE_S)
            else:
                break
        else:
            refused = ""
    if refused:
        say(f"not acknowledged: {refused}")
        sys.exit(2)


if __name__ == "__main__":
    main()
