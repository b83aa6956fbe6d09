"""What the tests of mobile peers share: the slow obvious twin of an ON/OFF queue."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def naive() -> ModuleType:
    """The module ``tests/naive_onoff.py``."""
    place = Path(__file__).parents[2] / "naive_onoff.py"
    spec = importlib.util.spec_from_file_location("naive_onoff", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
