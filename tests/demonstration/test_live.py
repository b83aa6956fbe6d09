"""The live demo: real brokers, a page, and an alarm that names what went wrong."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tidings.demonstration.mishaps import MISHAPS, Mishap

NAMED = {Mishap.SLOW: "is slower", Mishap.CUT: "is down", Mishap.BURST: "more often"}


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("mishap", Mishap)
def test_an_alarm_names_what_went_wrong(mishap, tmp_path):
    words = ["-m", "tidings.cli.main", "demo", "--live", "--json", "--minutes", "12", "--port", "0"]
    words += ["--wrong", mishap]
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
    where = [MISHAPS[mishap].where]
    assert any(each["where"] == where and NAMED[mishap] in each["what"] for each in alarms)
    left = subprocess.run(["pgrep", "-f", "tidings-live-"], capture_output=True, check=False)
    assert left.returncode == 1, left.stdout
