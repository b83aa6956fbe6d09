"""A Spark cluster of real processes on this machine, for tests: a master and two workers."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pyspark

import tidings
from tidings.traces.java import ensure_java

WITHIN_S = 180.0


def _free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@dataclass(frozen=True)
class Cluster:
    url: str
    page: str
    environment: dict[str, str]

    @property
    def workers(self):
        """How many have registered."""
        with contextlib.suppress(OSError):
            found = json.loads(urllib.request.urlopen(f"{self.page}/json/", timeout=5).read())
            return sum(each["state"] == "ALIVE" for each in found["workers"])
        return 0

    def run(self, script, *arguments):
        """What a script printed as JSON; it finds this cluster as its first argument."""
        done = subprocess.run(
            [sys.executable, "-c", script, self.url, *arguments],
            env=self.environment, capture_output=True, text=True, timeout=10 * WITHIN_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@contextlib.contextmanager
def cluster(folder: Path):
    """A master and two workers of one core each, ended with the context."""
    folder.mkdir(parents=True)
    ensure_java()
    home = Path(pyspark.__file__).parent
    port, page = _free_port(), _free_port()
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(tidings.__file__).parents[1]),
        "SPARK_LOG_DIR": str(folder),
    }
    found = Cluster(
        url=f"spark://127.0.0.1:{port}", page=f"http://127.0.0.1:{page}", environment=environment
    )
    deploy = "org.apache.spark.deploy"
    master = [f"{deploy}.master.Master", "--port", str(port), "--webui-port", str(page)]
    worker = [f"{deploy}.worker.Worker", "-c", "1", "-m", "1g", "--webui-port", "0"]
    starts = [master, *([*worker, "-d", str(folder / f"w{n}"), found.url] for n in range(2))]
    with contextlib.ExitStack() as begun:
        log = begun.enter_context((folder / "log").open("wb"))
        for each in starts:
            command = [str(home / "bin" / "spark-class"), each[0], "--host", "127.0.0.1", *each[1:]]
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            begun.callback(_end, process)
        until = time.monotonic() + WITHIN_S
        while found.workers < 2:
            assert time.monotonic() < until, (folder / "log").read_text(errors="replace")[-3000:]
            time.sleep(0.3)
        yield found


def _end(process):
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
