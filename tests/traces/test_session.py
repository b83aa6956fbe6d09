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


@pytest.fixture
def chosen(monkeypatch, tmp_path):
    """What Spark would be started with, and the file with its users' defaults."""
    monkeypatch.setattr(session, "_start", lambda conf, where, app: dict(conf.getAll()))
    monkeypatch.setattr(session, "ensure_java", lambda: tmp_path)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    return session.spark_session, tmp_path / "spark-defaults.conf"


def test_defaults_of_the_user_win_over_ours_and_what_is_asked_for_over_both(chosen):
    start, defaults = chosen
    defaults.write_text(
        "# of this site\n\nspark.driver.memory  3g\nspark.hadoop.fs.s3a.endpoint = http://s3:9000\n"
        "spark.sql.shuffle.partitions=7\nspark.master yarn\nnot.spark x\n"
    )
    settings = start("local[2]", java_options="", settings={"spark.sql.shuffle.partitions": "9"})
    assert settings["spark.driver.memory"] == "3g"
    assert settings["spark.hadoop.fs.s3a.endpoint"] == "http://s3:9000"
    assert settings["spark.sql.shuffle.partitions"] == "9"
    assert not {"spark.master", "not.spark"} & settings.keys()
    assert start("local[2]", java_options="", memory="5g")["spark.driver.memory"] == "5g"


def test_what_queries_count_on_is_no_default(chosen):
    start, defaults = chosen
    defaults.write_text("spark.sql.session.timeZone Asia/Tokyo\nspark.sql.ansi.enabled false\n")
    settings = start("local[2]", java_options="")
    assert settings["spark.sql.session.timeZone"] == "UTC"
    assert settings["spark.sql.ansi.enabled"] == "true"


def test_without_a_file_of_defaults_ours_hold(chosen, monkeypatch):
    start, defaults = chosen
    assert start("local[2]", java_options="")["spark.ui.enabled"] == "false"
    monkeypatch.delenv("SPARK_CONF_DIR")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert start("local[2]", java_options="")["spark.ui.enabled"] == "false"
    monkeypatch.setenv("SPARK_CONF_DIR", str(defaults.parent))
    defaults.write_bytes(b"spark.driver.memory \xff\n")
    with pytest.raises(EngineError, match=r"spark-defaults\.conf cannot be read"):
        start("local[2]", java_options="")


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
