"""Ctrl-C, as a person presses it: a real signal to a real process."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tidings
from tidings.demonstration.sample_system import market_and_weather
from tidings.model import reading

TIDINGS = [sys.executable, "-c", "from tidings.cli.main import main; main()"]
PATH = str(Path(tidings.__file__).parents[1])
SAMPLES = Path(__file__).parents[2] / "docs" / "samples"
PATIENCE_S = 240.0


def start(*words):
    return subprocess.Popen(
        [*TIDINGS, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": PATH},
        preexec_fn=_heed_hangups,
    )


def _heed_hangups():
    """Tests may run under nohup, whose children ignore hang-ups, as they should."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def interrupt(process, how=signal.SIGINT):
    """Ctrl-C reaches everything that the terminal runs, Java too; twice, out of impatience."""
    for _ in range(2):
        os.killpg(process.pid, how)
        time.sleep(0.05)
    out, err = process.communicate(timeout=PATIENCE_S)
    return process.returncode, out, err


def wait_until_heeded(process):
    """Python catches SIGINT alone from the beginning, and a command SIGTERM too."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        status = Path(f"/proc/{process.pid}/status").read_text()
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
        if int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.01)


def alive_in_group(group):
    """What still runs; the dead that nobody has buried yet do not count."""
    listed = subprocess.check_output(["ps", "-A", "-o", "pgid=,stat=,args="], text=True)
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return [row for row in rows if row[0] == str(group) and not row[1].startswith("Z")]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_import_is_one_line(tmp_path, how):
    process = start("demo", "--to", tmp_path / "demo")
    wait_until_heeded(process)  # the import of the command takes longer than that
    code, out, err = interrupt(process, how)
    assert (code, out, err) == (130, "", "interrupted\n")
    assert list(tmp_path.iterdir()) == []


# What a library does that opens a pipe in compiled code and begins again when interrupted; nobody
# has to wait long for the end of it here.
WAITING = """
import sys
from tidings.cli import commands, interrupts, main
interrupts.TIDYING_S = interrupts._LONGEST_TIDYING_S = 1.0
def wait(arguments):
    import pyarrow.csv
    print("waiting", flush=True)
    {reads}
commands.run = wait
main.main()
"""
READS = {
    "opening": "pyarrow.csv.read_csv(sys.argv[1])",
    "reading": "pyarrow.csv.read_csv(open(sys.argv[1], 'r+b', buffering=0))",
    "heeding nothing": """
    while True:
        try:
            open(sys.argv[1])
        except BaseException:
            pass""",
}


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("reads", READS.values(), ids=READS)
def test_a_command_ends_whatever_it_waits_for(tmp_path, reads, how):
    os.mkfifo(tmp_path / "pipe")
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING.format(reads=reads), tmp_path / "pipe"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert "waiting" in (line.strip() for line in process.stdout)
        time.sleep(0.5)
        process.send_signal(how)
        _, err = process.communicate(timeout=30.0)
    finally:
        process.kill()
    assert (process.returncode, err) == (130, "interrupted\n")


@pytest.mark.slow
def test_an_interrupted_simulation_does_not_wait_for_its_end(tmp_path):
    reading.save(market_and_weather(), tmp_path / "system.yaml")
    process = start("simulate", tmp_path / "system.yaml", "--events", 10**9, "--seed", 2)
    lines = (line for line in process.stderr if "replication" in line or "simulating" in line)
    next(lines)
    code, out, err = interrupt(process)
    assert (code, out) == (130, "")
    assert err.splitlines()[-1] == "interrupted"
    assert "Traceback" not in err


@pytest.mark.spark
@pytest.mark.slow
def test_an_interruption_while_spark_works_leaves_no_java_and_no_files(tmp_path):
    header, *rows = (SAMPLES / "brokers.csv").read_text().splitlines()
    long, to = tmp_path / "long.csv", tmp_path / "traces"
    long.write_text("\n".join([header, *rows * (400_000 // len(rows))]))
    mapping = SAMPLES / "brokers.yaml"
    process = start("import", "table", long, "--mapping", mapping, "--to", to)
    said = []
    for line in process.stderr:  # Spark is at work from the first line read on
        said.append(line)
        if "reading" in line:
            break
    code, out, err = interrupt(process)
    assert "reading" in said[-1], "the import ended before it could be interrupted"
    assert (code, out) == (130, "")
    assert err.splitlines()[-1] == "interrupted"
    assert len(err.splitlines()) <= 2  # perhaps one more line of progress
    assert list(tmp_path.iterdir()) == [long]
    assert alive_in_group(process.pid) == []
