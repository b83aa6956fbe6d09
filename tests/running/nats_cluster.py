"""A cluster of two real servers and a leaf node with JetStream, for tests that ask them."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

from tidings.testbed.runs import HOST
from tidings.testbed.servers import free_ports

pytest.importorskip("nats")

ACCOUNTS = """
accounts {
  APP { %s users: [{user: app, password: app}] }
  SYS { users: [{user: sys, password: "s e/c:ret"}] }
}
system_account: SYS
no_auth_user: app
"""


@dataclass(frozen=True)
class Cluster:
    client_ports: dict[str, int]
    pages: dict[str, str]

    def url(self, server: str) -> str:
        return f"nats://{HOST}:{self.client_ports[server]}"


@contextlib.contextmanager
def nats_cluster(folder: Path):
    """Servers east and west, joined by a route, and leaf, joined to east; stopped at the end."""
    ports = free_ports(9)
    names = ("east", "west", "leaf")
    clients, pages = (
        dict(zip(names, ports[:3], strict=True)),
        dict(zip(names, ports[3:6], strict=True)),
    )
    east_route, west_route, east_leaf = ports[6:]
    store = f'jetstream {{ store_dir: "{folder}/js", domain: leaf }}'
    own = {
        "east": f'cluster {{ name: C, listen: "{HOST}:{east_route}" }}\n'
        f'leafnodes {{ listen: "{HOST}:{east_leaf}" }}' + ACCOUNTS % "",
        "west": f'cluster {{ name: C, listen: "{HOST}:{west_route}", '
        f'routes: ["nats://{HOST}:{east_route}"] }}' + ACCOUNTS % "",
        "leaf": f'{store}\nleafnodes {{ remotes: [ {{ url: "nats://app:app@{HOST}:{east_leaf}", '
        "account: APP } ] }" + ACCOUNTS % "jetstream: enabled,",
    }
    server = Path(sys.executable).parent / "nats-server"
    processes = []
    try:
        for name, text in own.items():
            file = folder / f"{name}.conf"
            listen = f'server_name: {name}\nlisten: "{HOST}:{clients[name]}"\n'
            file.write_text(f'{listen}http: "{HOST}:{pages[name]}"\n{text}')
            processes.append(subprocess.Popen([server, "-c", file, "-l", folder / f"{name}.log"]))
        addresses = {name: f"http://{HOST}:{port}" for name, port in pages.items()}
        _wait_until_joined(addresses["east"])
        yield Cluster(client_ports=clients, pages=addresses)
    finally:
        for each in processes:
            each.terminate()
        for each in processes:
            each.wait(20)


def _wait_until_joined(page: str, limit_s: float = 60.0) -> None:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            routes = urllib.request.urlopen(f"{page}/routez", timeout=5).read()
            leaves = urllib.request.urlopen(f"{page}/leafz", timeout=5).read()
            if b'"remote_name": "west"' in routes and b'"name": "leaf"' in leaves:
                return
        time.sleep(0.05)
    raise AssertionError("the servers did not find each other")
