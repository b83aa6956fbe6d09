from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import pytest

from tidings.errors import EngineError
from tidings.traces import session
from tidings.traces.session import spark_session


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_a_cluster_that_does_not_answer_is_an_error_at_once(scheme):
    url = f"{scheme}://127.0.0.1:{unused_port()}"
    began = time.monotonic()
    with pytest.raises(EngineError, match=f"nothing answers at {url}.*leave --master out"):
        spark_session(url)
    assert time.monotonic() - began < 15


@pytest.mark.parametrize("url", ["spark://", "spark://host", "spark://host:port"])
def test_a_master_that_is_none_is_said_to_be(url):
    with pytest.raises(EngineError, match="wants spark://HOST:PORT"):
        spark_session(url)


def test_any_of_several_masters_may_answer():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        session._check_reachable(
            f"spark://127.0.0.1:{unused_port()},127.0.0.1:{server.getsockname()[1]}"
        )


def test_only_local_masters_are_tied_to_the_loopback():
    local = session._settings_here("local[2]", "-Dx=y")
    cluster = session._settings_here("spark://host:7077", "-Dx=y")
    assert local["spark.driver.host"] == "127.0.0.1"
    assert "-Dx=y" in local["spark.driver.extraJavaOptions"]
    assert not any("host" in key or "bindAddress" in key for key in cluster)
    assert "-Dx=y" not in cluster["spark.driver.extraJavaOptions"]
    assert "spark.driver.memory" not in cluster


def test_the_session_is_set_up_as_promised(spark):
    settings = spark.conf
    assert settings.get("spark.sql.session.timeZone") == "UTC"
    assert settings.get("spark.ui.enabled") == "false"
    assert settings.get("spark.sql.ansi.enabled") == "true"
    assert not settings.get("spark.sql.warehouse.dir").startswith(f"file:{os.getcwd()}")
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_a_small_session_has_room_for_the_code_of_many_characterisations(spark):
    """One makes about ten megabytes of it; where it is full, nothing more is compiled."""
    pools = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    code = [pool.getUsage().getMax() for pool in pools if pool.getName().startswith("Code")]
    assert sum(code) >= 200 * 2**20


def test_a_second_request_gets_the_running_session(spark):
    assert spark_session("local[2]").sparkContext is spark.sparkContext


@pytest.mark.slow
def test_a_start_that_fails_says_why_in_a_line_and_no_traceback(tmp_path):
    script = (
        "from tidings.errors import EngineError\n"
        "from tidings.traces.session import spark_session\n"
        "try:\n    spark_session('local[1]', memory='nonsense')\n"
        "except EngineError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Spark did not start with master 'local[1]'")
    assert "nonsense" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert "\tat " not in done.stdout
