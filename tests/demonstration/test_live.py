"""The live demo: real brokers, a page, and an alarm that names the broker that became slow."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tidings.demonstration.live import SLOW


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_the_alarm_names_the_broker_that_became_slow(tmp_path):
    words = ["-m", "tidings.cli.main", "demo", "--live", "--json", "--minutes", "12", "--port", "0"]
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=1000,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    alarms = [json.loads(line) for line in done.stdout.splitlines()]
    assert any(alarm["where"] == [SLOW] and "slower" in alarm["what"] for alarm in alarms)
    left = subprocess.run(["pgrep", "-f", "tidings-live-"], capture_output=True, check=False)
    assert left.returncode == 1, left.stdout
