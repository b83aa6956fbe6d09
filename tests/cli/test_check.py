"""A mistake in a system file: reported quickly, and missing files are mistakes too."""

import json
import subprocess
import sys

import pytest

from tidings.cli.commands import run

SYSTEM = """
tidings: 1
brokers: {hub: {service: 2ms}}
publishers: {p: {at: hub, every: 100ms, content: {event: {topic: stock}}}}
subscribers: {s: {at: hub, wants: {topic: stock}, connectivity: {trace: sessions.csv}}}
"""
SESSIONS = "state,at_ns\nconnected,0\ndisconnected,5\nconnected,9\ndisconnected,12\n"


def test_a_missing_file_is_a_problem_with_the_path_that_was_looked_at(
    tmp_path, capsys, monkeypatch
):
    (tmp_path / "s.yaml").write_text(SYSTEM)
    monkeypatch.chdir(tmp_path)
    assert run(["check", "s.yaml", "--json"]) == 2
    out, err = capsys.readouterr()
    assert str(tmp_path / "sessions.csv") in err
    [problem] = json.loads(out)["problems"]
    assert problem["at"] == "subscribers.s.connectivity.trace"
    (tmp_path / "sessions.csv").write_text(SESSIONS)
    assert run(["check", "s.yaml"]) == 0


@pytest.mark.parametrize("command", ["check", "predict", "simulate", "explain", "plan deadline"])
def test_a_mistake_is_reported_before_anything_slow_is_imported(command, tmp_path):
    (tmp_path / "bad.yaml").write_text(SYSTEM.replace("at: hub", "at: hob"))
    script = (
        "import sys; from tidings.cli.commands import run; "
        f"code = run([*'{command}'.split(), 'bad.yaml']); "
        "print(code, {'pandas', 'numba', 'networkx', 'scipy.special'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "2 set()"
    assert "got 'hob'" in done.stderr
