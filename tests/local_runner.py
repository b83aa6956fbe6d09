"""Steps of pipelines run on this machine, with a stand-in for a runner's environment.

``pip install`` is recorded, not done: the package under test is already there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
_EXPRESSION = re.compile(r"\$\{\{\s*inputs\.(\w+)\s*\}\}")
_PIP = """#!/bin/sh
if [ "$1" = -m ]; then shift 2; fi
echo "$@" >> "$RUNNER_TEMP/installed"
"""


@dataclass(frozen=True)
class Ran:
    """How the steps ended, what they printed, what they asked pip for, and their summary."""

    code: int
    out: str
    installed: str
    summary: str


def run_action(folder: Path, **inputs: str) -> Ran:
    """Run the steps of the GitHub Action in a folder, as its runner does: until one fails."""
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    assert action["runs"]["using"] == "composite"
    declared = action["inputs"]
    assert set(inputs) <= set(declared)
    required = {name for name, each in declared.items() if each.get("required")}
    assert required <= set(inputs)
    values = {name: str(each.get("default", "")) for name, each in declared.items()} | inputs
    steps = [
        (step["run"], {name: _filled(text, values) for name, text in step.get("env", {}).items()})
        for step in action["runs"]["steps"]
    ]
    assert all("${{" not in script for script, _ in steps), "inputs must not be part of a script"
    return _run(folder, steps)


def run_gitlab(folder: Path, **variables: str) -> Ran:
    """Run the script of the GitLab job in a folder, with some of its variables overridden."""
    text = (ROOT / "examples/pipelines/gitlab-ci.yml").read_text("utf-8")
    (job,) = yaml.safe_load(text).values()
    assert set(variables) <= set(job["variables"])
    environment = {**job["variables"], **variables}
    return _run(folder, [(line, environment) for line in job["script"]])


def run_hook(folder: Path, *files: str) -> Ran:
    """Run the pre-commit hook on those of the files that it is for."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    chosen = [each for each in files if re.search(hook["files"], each)]
    assert chosen
    return _run(folder, [(" ".join([hook["entry"], *chosen]), {})])


def _filled(text: Any, values: Mapping[str, str]) -> str:
    return _EXPRESSION.sub(lambda match: values[match[1]], str(text))


def _run(folder: Path, steps: list[tuple[str, Mapping[str, str]]]) -> Ran:
    stand_ins, summary = folder / "runner", folder / "runner" / "summary.md"
    stand_ins.mkdir()
    for name in ("pip", "python"):
        (stand_ins / name).write_text(_PIP)
        (stand_ins / name).chmod(0o755)
    path = [str(stand_ins), str(Path(sys.executable).parent), os.environ["PATH"]]
    runner = {
        "PATH": os.pathsep.join(path),
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_STEP_SUMMARY": str(summary),
        "RUNNER_TEMP": str(stand_ins),
    }
    code, out = 0, ""
    for script, environment in steps:
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script],
            cwd=folder,
            env={**os.environ, **environment, **runner},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        code, out = done.returncode, out + done.stdout
        if code:
            break
    installed = stand_ins / "installed"
    return Ran(
        code=code,
        out=out,
        installed=installed.read_text() if installed.exists() else "",
        summary=summary.read_text("utf-8") if summary.exists() else "",
    )
