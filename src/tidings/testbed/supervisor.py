"""Starts and ends servers on behalf of a testbed; ends them all when the testbed is gone.

Run as a program of its own, so that nothing outlives a testbed that was killed: it reads one JSON
command a line and leaves, with everything it started, when its input ends. It knows only what it
started itself, and imports nothing but the standard library.

    {"start": "hub", "command": ["nats-server", "-c", "hub.conf"], "log": "hub.log"}
    {"stop": "hub", "signal": 9}
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys

_PATIENCE_S = 3.0  # between asking a server to end and ending it


def _answer(**said: object) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


def _obey(command: dict[str, object], running: dict[str, subprocess.Popen[bytes]]) -> None:
    if "start" in command:
        name = str(command["start"])
        words = command["command"]
        assert isinstance(words, list)
        with open(str(command["log"]), "ab") as log:
            # A session of its own: Ctrl-C goes to the testbed alone, which ends the rest in order.
            running[name] = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        _answer(name=name, pid=running[name].pid)
    elif "stop" in command:
        name = str(command["stop"])
        process = running.pop(name)
        process.send_signal(int(str(command["signal"])))
        _wait(process)
        _answer(name=name, exit_code=process.returncode)
    elif "alive" in command:
        codes = {name: each.poll() for name, each in running.items()}
        _answer(ended={name: code for name, code in codes.items() if code is not None})


def _wait(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main() -> None:
    """Obey commands until there are no more; then end whatever still runs."""
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # the end of the input is what ends it
    running: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for line in sys.stdin:
            try:
                _obey(json.loads(line), running)
            except (OSError, KeyError) as problem:
                _answer(failed=f"{type(problem).__name__}: {problem}")
    finally:
        for process in running.values():
            with contextlib.suppress(OSError):
                process.terminate()
        for process in running.values():
            _wait(process)
        os._exit(0)


if __name__ == "__main__":
    main()
