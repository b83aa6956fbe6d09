"""How tests are shared out to processes, and which modules are searched for examples."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ONE_ROOM = "tests/characterisation/"


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Modules without an example are not imported to look for some."""
    collectors = yield
    if file_path.suffix == ".py" and ">>> " not in file_path.read_text(encoding="utf-8"):
        return [each for each in collectors if type(each) is pytest.Module]
    return collectors


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whatever uses the session needs Spark; the process that shares tests out is told so."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
    if hasattr(config, "workerinput"):
        items.sort(key=_turn)
        needs_spark = [each.nodeid for each in items if each.get_closest_marker("spark")]
        place = _list_of(os.getppid())
        draft = place.with_name(f"{place.name}-{os.getpid()}")
        draft.write_text(json.dumps(needs_spark), encoding="utf-8")
        draft.replace(place)


def _turn(item: pytest.Item) -> int:
    """When a test is given out: what takes longest first, so that each process has half of it."""
    if item.get_closest_marker("spark") is None:
        return 2
    return 0 if item.nodeid.startswith(ONE_ROOM) else 1


def _list_of(process: int) -> Path:
    """Where those who run tests tell the process that shares them out which need Spark."""
    return Path(tempfile.gettempdir()) / f"tidings-tests-{process}.json"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests that need Spark go to two processes, which start it once each; others by their file.

    Those of one room stay together, for they share what was characterised; with the rest they take
    about equally long. Where there is one process it has both.
    """
    from xdist.scheduler import LoadFileScheduling

    @cache
    def needs_spark() -> frozenset[str]:
        place = _list_of(os.getpid())
        told = frozenset(json.loads(place.read_text(encoding="utf-8")))
        place.unlink()
        return told

    config.option.loadscopereorder = False  # given out in the order of their turns

    class ByNeed(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            if nodeid not in needs_spark():
                return super()._split_scope(nodeid)
            return "spark, one room" if nodeid.startswith(ONE_ROOM) else "spark, the rest"

    return ByNeed(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """A test that starts Spark says so: else a second process starts one."""
    before = _has_spark()
    yield
    if _has_spark() and not before and item.get_closest_marker("spark") is None:
        pytest.fail("it starts Spark: mark it with pytest.mark.spark")


def _has_spark() -> bool:
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return context is not None and context._active_spark_context is not None
