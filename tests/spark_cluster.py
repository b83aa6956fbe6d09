"""Spark in other processes of this machine, for tests: a master and two workers, or a server."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, replace
from pathlib import Path

import pyspark

import tidings
from tidings.traces.java import ensure_java

WITHIN_S = 180.0
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # for what lives for seconds
# To compile a query takes longer than to run it as it stands, where rows are a handful.
AS_IT_STANDS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
FEW_ROWS = {
    **AS_IT_STANDS,
    "spark.sql.shuffle.partitions": "4",
    "spark.executor.memory": "600m",
}


def _free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@dataclass(frozen=True)
class Cluster:
    url: str
    page: str
    environment: dict[str, str]
    worker_pids: tuple[int, ...] = ()

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
    environment = _environment(folder)
    port, page = _free_port(), _free_port()
    found = Cluster(
        url=f"spark://127.0.0.1:{port}", page=f"http://127.0.0.1:{page}", environment=environment
    )
    deploy = "org.apache.spark.deploy"
    master = [f"{deploy}.master.Master", "--port", str(port), "--webui-port", str(page)]
    worker = [f"{deploy}.worker.Worker", "-c", "1", "-m", "1g", "--webui-port", "0"]
    starts = [master, *([*worker, "-d", str(folder / f"w{n}"), found.url] for n in range(2))]
    commands = [[each[0], "--host", "127.0.0.1", *each[1:]] for each in starts]
    with _begun(folder, environment, commands, lambda: found.workers == 2) as pids:
        yield replace(found, worker_pids=pids[1:])


@contextlib.contextmanager
def connect_server(folder: Path):
    """A Spark Connect server with one core, ended with the context."""
    environment = {**_environment(folder), "SPARK_DAEMON_MEMORY": "1g"}
    port = _free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
    }
    command = ["org.apache.spark.deploy.SparkSubmit", "--master", "local[1]"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    with _begun(folder, environment, [[*command, "spark-internal"]], lambda: _answers(port)):
        yield Cluster(url=f"sc://127.0.0.1:{port}", page="", environment=environment)


def _environment(folder: Path):
    folder.mkdir(parents=True)
    ensure_java()
    return {
        **os.environ,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "JAVA_TOOL_OPTIONS": QUICK_JAVA,  # of master, workers, executors and driver
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(tidings.__file__).parents[1]),
        "SPARK_LOG_DIR": str(folder),
    }


@contextlib.contextmanager
def _begun(folder: Path, environment, commands, ready):
    """Processes of Spark, as soon as they are ready; ended with the context."""
    start = str(Path(environment["SPARK_HOME"]) / "bin" / "spark-class")
    with contextlib.ExitStack() as begun:
        log = begun.enter_context((folder / "log").open("wb"))
        processes = []
        for each in commands:
            process = subprocess.Popen([start, *each], env=environment, stdout=log, stderr=log)
            begun.callback(_end, process)
            processes.append(process)
        until = time.monotonic() + WITHIN_S
        while not ready():
            said = (folder / "log").read_text(errors="replace")[-3000:]
            assert all(process.poll() is None for process in processes), said
            assert time.monotonic() < until, said
            time.sleep(0.3)
        yield tuple(process.pid for process in processes)


def _answers(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _end(process):
    process.terminate()
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
