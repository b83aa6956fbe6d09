"""Starts and ends servers on behalf of a testbed; ends them all when the testbed is gone.

Run as a program of its own, so that nothing outlives a testbed that was killed: it reads one JSON
command a line and leaves, with everything it started, when its input ends. A watchdog that it keeps
informed sees the end of *its* input then, also if the supervisor itself was killed: it kills what
is left and removes the folder of the servers' files. Both know only what was started here, and
import nothing but the standard library.

    {"start": "hub", "command": ["nats-server", "-c", "hub.conf"], "log": "hub.log"}
    {"stop": "hub", "signal": 9}
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time

_PATIENCE_S = 3.0  # between asking a server to end and ending it
_TRIES = 30
_WATCH = "watch"


class _Servers:
    """What was started and has not been seen to end; the watchdog hears of either at once."""

    def __init__(self, watchdog: subprocess.Popen[str]) -> None:
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._watchdog = watchdog

    def start(self, name: str, words: list[str], log: str) -> int:
        """Start a server; gives its process id."""
        with open(log, "ab") as output:
            # A session of its own: Ctrl-C goes to the testbed alone, which ends the rest in order.
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._running[name] = process
        self._tell("+", process.pid)
        return process.pid

    def stop(self, name: str, how: int) -> int:
        """End a server by a signal; gives its exit code."""
        process = self._running.pop(name)
        process.send_signal(how)
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._tell("-", process.pid)
        return process.returncode

    def ended(self) -> dict[str, int]:
        """List the exit codes of servers that ended by themselves."""
        codes = {}
        for name, process in self._running.items():
            if (code := process.poll()) is not None:
                self._tell("-", process.pid)
                codes[name] = code
        return codes

    def close(self) -> None:
        """End whatever still runs."""
        for process in self._running.values():
            with contextlib.suppress(OSError):
                process.terminate()
        for name in list(self._running):
            self.stop(name, signal.SIGTERM)

    def _tell(self, sign: str, pid: int) -> None:
        assert self._watchdog.stdin is not None
        with contextlib.suppress(OSError):  # without a watchdog servers are ended all the same
            self._watchdog.stdin.write(f"{sign}{pid}\n")
            self._watchdog.stdin.flush()


def _obey(command: dict[str, object], servers: _Servers) -> dict[str, object]:
    if "start" in command:
        name, words = str(command["start"]), command["command"]
        assert isinstance(words, list)
        return {"name": name, "pid": servers.start(name, words, str(command["log"]))}
    if "stop" in command:
        name = str(command["stop"])
        return {"name": name, "exit_code": servers.stop(name, int(str(command["signal"])))}
    return {"ended": servers.ended()}


def supervise(folder: str) -> None:
    """Obey commands until there are no more; then end whatever still runs."""
    # In a session of its own, so that who ends this one does not end it too.
    words = [sys.executable, "-S", "-E", __file__, folder, _WATCH]
    dog = subprocess.Popen(words, stdin=subprocess.PIPE, text=True, start_new_session=True)
    servers = _Servers(dog)
    with contextlib.closing(servers), contextlib.suppress(BrokenPipeError):
        for line in sys.stdin:
            try:
                said = _obey(json.loads(line), servers)
            except (OSError, KeyError) as problem:
                said = {"failed": f"{type(problem).__name__}: {problem}"}
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()
    assert dog.stdin is not None
    with contextlib.suppress(OSError):
        dog.stdin.close()
    if dog.wait():  # it was killed, and nobody else tidies up
        _remove(folder)


def watch(folder: str) -> None:
    """Hear what was started and ended until there is no more to hear; then leave nothing of it."""
    left: set[int] = set()
    for line in sys.stdin:
        pid = int(line[1:])
        left.add(pid) if line[0] == "+" else left.discard(pid)
    for pid in left:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    _remove(folder)


def _remove(folder: str) -> None:
    for _ in range(_TRIES):  # a server that is being killed may still write
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):
            break
        time.sleep(_PATIENCE_S / _TRIES)


if __name__ == "__main__":
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # The end of the input is what ends it. Servers would inherit it if these were ignored.
        signal.signal(each, lambda *_: None)
    watch(sys.argv[1]) if sys.argv[2:] == [_WATCH] else supervise(sys.argv[1])
    os._exit(0)  # nobody may be left to read what is still to be written
