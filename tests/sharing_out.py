"""How tests are shared out to processes, and which modules are searched for examples."""

from __future__ import annotations

import sys
from collections.abc import Generator
from pathlib import Path

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Modules without an example are not imported to look for some."""
    collectors = yield
    if file_path.suffix == ".py" and ">>> " not in file_path.read_text(encoding="utf-8"):
        return [each for each in collectors if type(each) is pytest.Module]
    return collectors


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests that need Spark go to one process, which starts it once; others by their file."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        needs_spark = item.get_closest_marker("spark") is not None
        group = "spark" if needs_spark else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(group))


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
