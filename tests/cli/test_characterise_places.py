"""Places where results of characterising cannot go are refused before the work."""

from __future__ import annotations

import pytest

from tidings.cli.characterising import ResultFiles
from tidings.errors import InvalidInputError

NOWHERE = {"to": None, "measured": None, "regimes": None, "report": None}


def test_regimes_go_to_a_folder_and_not_into_a_file(tmp_path):
    file = tmp_path / "system.yaml"
    file.write_text("tidings: 1")
    with pytest.raises(InvalidInputError, match="not a folder"):
        ResultFiles(**{**NOWHERE, "regimes": file}).check()
    ResultFiles(**{**NOWHERE, "regimes": tmp_path / "new"}).check()
    assert not (tmp_path / "new").exists()
