"""The GitHub Action, the GitLab job and the pre-commit hook do what the how-to says."""

from __future__ import annotations

import re
import shutil
from importlib.metadata import version
from xml.etree import ElementTree

import pytest

from local_runner import ROOT, run_action, run_gitlab, run_hook

OBJECTIVE = """
apiVersion: openslo/v1
kind: SLO
metadata: {{name: everybody}}
spec: {{service: orders, objectives: [{{target: {}}}]}}
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with a system of which stock and archive get 99 %, billing 81 %."""
    shutil.copy(ROOT / "examples/orders.yaml", tmp_path)
    (tmp_path / "lax.yaml").write_text(OBJECTIVE.format(0.7))
    (tmp_path / "strict.yaml").write_text(OBJECTIVE.format(0.9))
    return tmp_path


def cases(path):
    """Test cases of a JUnit file by name, and whether each failed."""
    root = ElementTree.parse(path).getroot()
    return {each.get("name"): each.find("failure") is not None for each in root.iter("testcase")}


@pytest.mark.slow
def test_the_action_lets_pass_what_meets_its_targets(folder):
    ran = run_action(folder, system="orders.yaml", slo="lax.yaml")
    assert ran.code == 0, ran.out
    assert ran.installed == f"install --quiet {ROOT}\n"
    assert "targets met" in ran.summary
    assert cases(folder / "tidings-gate.xml") == {
        "billing": False,
        "stock": False,
        "archive": False,
    }


@pytest.mark.slow
def test_the_action_stops_what_does_not_and_says_who_why_and_what_to_do(folder):
    ran = run_action(folder, system="orders.yaml", slo="strict.yaml", install="tidings==9")
    assert ran.code == 1
    assert ran.installed == "install --quiet tidings==9\n"
    assert "targets not met" in ran.summary
    for part in ("| billing | west |", "waiting at west", "speed 'west' x2"):
        assert part in ran.summary
    assert cases(folder / "tidings-gate.xml") == {"billing": True, "stock": False, "archive": False}


def test_the_action_fails_on_a_wrong_system_with_the_exit_code_of_wrong_input(folder):
    text = (folder / "orders.yaml").read_text()
    (folder / "orders.yaml").write_text(text.replace("at: west", "at: vest"))
    ran = run_action(folder, system="orders.yaml", target="0.5")
    assert ran.code == 2
    assert "got 'vest'" in ran.out


def test_what_an_input_says_is_not_run(folder):
    ran = run_action(folder, system='x.yaml"; touch "$PWD/run"; "', target="0.5")
    assert ran.code == 2
    assert not (folder / "run").exists()


@pytest.mark.slow
def test_the_gitlab_job_leaves_its_reports(folder):
    ran = run_gitlab(folder, SYSTEM="orders.yaml", SLO="strict.yaml", INSTALL="./tidings.whl")
    assert ran.code == 1
    assert ran.installed == "install --quiet ./tidings.whl\n"
    assert cases(folder / "tidings-gate.xml")["billing"]
    assert "targets not met" in (folder / "tidings-gate.md").read_text("utf-8")


@pytest.mark.parametrize("machine", ["any", "linux_x86_64", "manylinux_2_28_aarch64"])
def test_the_gitlab_job_installs_the_wheel_of_any_machine(folder, machine):
    wheel = f"dist/tidings-{version('tidings')}-py3-none-{machine}.whl"
    (folder / "dist").mkdir()
    (folder / wheel).touch()
    ran = run_gitlab(folder, SYSTEM="absent.yaml")
    assert ran.installed == f"install --quiet {wheel}\n"


def test_the_how_to_installs_the_wheel_that_make_wheel_leaves():
    how_to = (ROOT / "docs/how-to/gate-a-deployment.md").read_text("utf-8")
    installed = re.findall(r"\S+\.whl", how_to)
    assert set(installed) == {"dist/tidings-*.whl"}
    assert "--wheel-dir dist " in (ROOT / "Makefile").read_text("utf-8")
    assert f"tidings@v{version('tidings')} " in how_to


def test_the_hook_checks_every_system_file_it_is_for(folder):
    good = (folder / "orders.yaml").read_text()
    (folder / "a.tidings.yaml").write_text(good)
    (folder / "b.tidings.yml").write_text(good.replace("at: west", "at: vest"))
    ran = run_hook(folder, "lax.yaml", "a.tidings.yaml", "b.tidings.yml")
    assert ran.code == 2
    assert "a.tidings.yaml: a valid system" in ran.out
    assert "got 'vest'" in ran.out
    assert "lax.yaml" not in ran.out
