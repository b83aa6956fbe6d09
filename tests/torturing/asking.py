"""Asks ``tidings serve`` for its metrics and pages again and again: answers stay the same."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from tidings.model.writing import write_file
from torturing.clients import ask, say, serving

PATHS = ("/metrics", "/subscribers", "/past")
TIMES = 20
# Of the server and of this moment, not of what is watched.
_CHANGING = re.compile(r"(age|requests|process|python)_")


def main() -> None:
    answers: dict[str, object] = {}
    with serving("serve", "in/watched") as url:
        for turn in range(TIMES):
            for path in PATHS:
                status, text = ask(url, path=path)
                lines = [each for each in text.splitlines() if not _CHANGING.search(each)]
                answer = {"status": status, "lines": lines}
                if answers.setdefault(path, answer) != answer:
                    say(f"{path} answered otherwise at turn {turn}")
                    sys.exit(1)
    write_file(Path("out/answers.json"), json.dumps(answers).encode())


if __name__ == "__main__":
    main()
