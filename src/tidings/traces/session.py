"""Spark, started inside this process or reached over the network, quiet and leaving nothing behind.

Only commands and users start a session; every other function is handed one, or DataFrames.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tidings.errors import EngineError
from tidings.traces.class_archive import archive_options
from tidings.traces.embedded import compile_once, look_up_once
from tidings.traces.java import ensure_java

EMBEDDED = "local[*]"
LOOPBACK = "127.0.0.1"
_REACHED_WITHIN_S = 10.0
_ENDS_WITHIN_S = 10.0
_SHOWN_LINES = 12
_CONNECT_PORT = 15002

# What our queries count on, whatever spark-defaults.conf says.
_ANYWHERE = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
    # A broker in a folder broker=007 is called 007, not 7.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
_CLASSIC = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # To remember the line of Python behind every column costs a third of the time to plan a query.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # One characterisation makes more than the hundred classes that Spark would keep: a second one,
    # of another day or of half the window, would compile all of them again. Many more are no use to
    # what watches for hours: every look makes some that no other asks for.
    "spark.sql.codegen.cache.maxEntries": "300",
    # Of every query Spark keeps the plan in words for its pages, a fifth of a megabyte, up to the
    # last thousand: what watches for hours would grow by that much.
    "spark.sql.ui.retainedExecutions": "10",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
}
# A JVM that does small things starts soonest with one collector thread and the quick compiler. Java
# would leave that compiler 48 MB of code, which a few characterisations fill: from then on nothing
# is compiled any more, or Spark stops. So much as with both compilers is reserved, not used.
_LOCAL_JVM = "-XX:+UseSerialGC"
_SMALL_JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"


def spark_session(
    master: str | None = None,
    *,
    app: str = "tidings",
    memory: str | None = None,
    small: bool = False,
    settings: Mapping[str, str] | None = None,
    java_options: str | None = None,
) -> SparkSession:
    """Start or join a Spark session, in this process unless ``master`` names a cluster.

    ``master`` is ``local[2]``, ``spark://host:7077``, ``yarn`` and so on, or ``sc://host`` for
    Spark Connect; ``memory`` is the driver's, such as ``4g``; ``small`` tunes an embedded JVM for
    jobs of seconds rather than minutes; ``settings`` are Spark's own and win over those of
    ``spark-defaults.conf``, which win over ours; ``java_options`` are further ones of an embedded
    JVM, which else uses the archive of classes if there is one. Use it as a context manager, or
    call ``stop()``. Raises :class:`EngineError` when Spark cannot be had.
    """
    where = master or EMBEDDED
    own = dict(settings or {})
    if where.startswith("sc://"):
        _check_reachable(where, default_port=_CONNECT_PORT)
        return _connect(where, {**_ANYWHERE, **own})
    if where.startswith("spark://"):
        _check_reachable(where)
    home = ensure_java()
    _name_python(local=where.startswith("local"))
    tuning = f"{_LOCAL_JVM} {_SMALL_JVM}" if small else _LOCAL_JVM
    more = archive_options(home) if java_options is None else java_options
    ours = _settings_here(where, f"{tuning} {more}")
    chosen = {**_CLASSIC, **ours, **_defaults(), **_ANYWHERE}
    if memory is not None:
        chosen["spark.driver.memory"] = memory
    chosen |= own
    return _start(SparkConf(loadDefaults=False).setAll(list(chosen.items())), where, app)


def is_exposed(master: str | None) -> bool:
    """Test whether Spark here listens on the network: workers on other machines must reach it.

    >>> is_exposed("spark://cluster:7077"), is_exposed("spark://127.0.0.1:7077"), is_exposed(None)
    (True, False, False)
    """
    where = master or EMBEDDED
    if where.startswith(("local", "sc://")):  # behind Spark Connect nothing listens here
        return False
    hosts = re.split(r"[/;]", where.partition("://")[2])[0].split(",")
    return not all(re.fullmatch(r"(localhost|127\.[0-9.]+|\[::1\])(:\d+)?", host) for host in hosts)


def end_java() -> None:
    """End the Java that an embedded session runs in, whatever it is doing; no session outlives it.

    For a program that was interrupted: Spark's own way to stop waits for what it has under way.
    """
    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()  # unlike a kill, it lets Java remove its temporary folders
    try:
        process.wait(timeout=_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _launch(conf: SparkConf, said: IO[bytes]) -> Any:
    """Start Java, and end it if that is interrupted: alone, it would wait for ever to be called."""
    begun: list[subprocess.Popen[bytes]] = []

    def remember(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        begun.append(subprocess.Popen(*arguments, **options))
        return begun[-1]

    module: Any = java_gateway
    usual, module.Popen = module.Popen, remember
    try:
        return module.launch_gateway(conf, {"stderr": said})
    except BaseException:
        for process in begun:
            _end(process)
        raise
    finally:
        module.Popen = usual


def _settings_here(master: str, java_options: str) -> dict[str, str]:
    logging = f"-Dlog4j2.configurationFile={_log_settings().as_uri()}"
    warehouse = Path(tempfile.gettempdir()) / f"tidings-warehouse-{os.getpid()}"
    everywhere = {"spark.sql.warehouse.dir": warehouse.as_uri()}
    if not is_exposed(master):
        os.environ["SPARK_LOCAL_IP"] = LOOPBACK
        ends = ("spark.driver.host", "spark.driver.bindAddress")
        everywhere |= dict.fromkeys(ends, LOOPBACK)
    if not master.startswith("local"):
        return {**everywhere, "spark.driver.extraJavaOptions": logging}
    return {
        **everywhere,
        "spark.driver.extraJavaOptions": f"{logging} {java_options}",
        "spark.driver.memory": f"{_default_memory_mib()}m",
        "spark.sql.shuffle.partitions": str(max(4, 2 * (os.cpu_count() or 1))),
    }


def _defaults() -> dict[str, str]:
    """Read ``spark-defaults.conf``, where there is one; the master is chosen by us.

    Spark reads this file too, but what a program sets wins over it, and we set much.
    """
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else None)
    if folder is None:
        return {}
    try:
        lines = (Path(folder) / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as problem:
        raise EngineError(f"{folder}/spark-defaults.conf cannot be read: {problem}") from problem
    pairs = (re.split(r"\s*[=:\s]\s*", line.strip(), maxsplit=1) for line in lines)
    known = {pair[0]: pair[1] for pair in pairs if len(pair) == 2 and pair[0].startswith("spark.")}
    return {key: value for key, value in known.items() if key != "spark.master"}


def _default_memory_mib() -> int:
    """Compute a quarter of the machine's memory, from one to four GiB, in MiB.

    1024 where the machine does not say.
    """
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1024
    return min(4096, max(1024, total // 4 // 2**20))


def _log_settings() -> Path:
    with resources.as_file(resources.files("tidings.traces") / "log4j2.properties") as path:
        return path.resolve()


def _name_python(*, local: bool) -> None:
    """Make Spark's workers run this Python.

    Theirs would be whatever ``python3`` is on the path.
    """
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        if local or name not in os.environ:
            os.environ[name] = sys.executable


def _start(conf: SparkConf, master: str, app: str) -> SparkSession:
    conf = conf.setMaster(master).setAppName(app)
    with tempfile.TemporaryFile(mode="w+b") as said:
        try:
            if SparkContext._active_spark_context is None:
                gateway = SparkContext._gateway or _launch(conf, said)
                context = SparkContext(conf=conf, gateway=gateway)
                look_up_once(context)
                if master.startswith("local"):
                    compile_once(context)
            builder: Any = SparkSession.builder
            session: SparkSession = builder.config(conf=conf).getOrCreate()
        except Exception as problem:
            raise EngineError(_why_not(master, problem, said)) from problem
    return session


def _connect(url: str, settings: Mapping[str, str]) -> SparkSession:
    try:
        builder: Any = SparkSession.builder
        session: SparkSession = builder.remote(url).getOrCreate()
        for key, value in settings.items():
            if key.startswith("spark.sql."):
                session.conf.set(key, value)
    except ImportError as problem:
        raise EngineError(
            f"Spark Connect ({url}) needs more packages ({problem}). "
            "Run: pip install 'tidings[connect]'"
        ) from problem
    except Exception as problem:
        raise EngineError(f"no Spark session at {url}: {_first_line(problem)}") from problem
    return session


def _check_reachable(url: str, default_port: int | None = None) -> None:
    """Try to open a connection first: Spark itself would go on trying for minutes."""
    failures = []
    scheme, _, rest = url.partition("://")
    for each in re.split(r"[/;]", rest)[0].split(","):
        try:
            parts = urlsplit(f"{scheme}://{each}")
            host, port = parts.hostname, parts.port or default_port
        except ValueError:
            host, port = None, None
        if host is None or port is None:
            raise EngineError(f"'{url}' is not a Spark master; wants {scheme}://HOST:PORT")
        try:
            socket.create_connection((host, port), timeout=_REACHED_WITHIN_S).close()
        except OSError as problem:
            failures.append(f"{host}:{port}: {problem.strerror or problem}")
        else:
            return
    raise EngineError(
        f"nothing answers at {url} ({'; '.join(failures)}). Start the cluster, or leave "
        "--master out to run Spark on this machine"
    )


def _why_not(master: str, problem: Exception, said: IO[bytes]) -> str:
    """Say what went wrong, with the last lines that Java wrote: the reason is usually there."""
    said.seek(0)
    lines = said.read().decode(errors="replace").splitlines()
    noise = re.compile(r"^\s*(at |\.\.\. \d+ more|WARNING: Using incubator)")
    shown = [line for line in lines if line.strip() and not noise.match(line)][-_SHOWN_LINES:]
    headline = f"Spark did not start with master '{master}': {_first_line(problem)}"
    return "\n".join([headline, *(f"  {line}" for line in shown)])


def _first_line(problem: Exception) -> str:
    if isinstance(problem, PySparkException):
        return str(problem).strip().splitlines()[0]
    java = getattr(problem, "java_exception", None)
    text = str(java.toString() if java is not None else problem).strip()
    return text.splitlines()[0] if text else type(problem).__name__
