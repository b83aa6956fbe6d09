"""Commands on small systems whose truth is known."""

from __future__ import annotations

import pytest

from planning.truths import played_by


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A system file, and a simulation that finds the system as some changes would make it."""

    def made(text, *truth):
        path = tmp_path / "system.yaml"
        path.write_text(text)
        play = played_by(*truth)
        monkeypatch.setattr("tidings.cli.plan.asking.simulate", lambda plan, *_, **__: play(plan))
        return str(path)

    return made
