"""How tests are shared out to processes, and which modules are searched for examples."""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

# A file whose tests ask for the session, or for frames of it, or say that they need Spark.
NEEDS_SPARK = re.compile(r"\b(?:spark|frame)\b[,)]|mark\.spark\b")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Modules without an example are not imported to look for some."""
    collectors = yield
    if file_path.suffix == ".py" and ">>> " not in file_path.read_text(encoding="utf-8"):
        return [each for each in collectors if type(each) is pytest.Module]
    return collectors


@cache
def needs_spark(file: Path) -> bool:
    """Whether the tests of a file go where Spark is."""
    is_test = file.name.startswith("test_")
    return is_test and bool(NEEDS_SPARK.search(file.read_text(encoding="utf-8")))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever uses the session needs Spark, and says so."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            if not needs_spark(item.path):
                raise pytest.UsageError(
                    f"{item.nodeid} uses Spark by way of a fixture, so that a second process would "
                    "start one: mark it with pytest.mark.spark"
                )
            item.add_marker(pytest.mark.spark)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """All files that need Spark go to one process, which starts it once; others as they come."""
    from xdist.scheduler import LoadFileScheduling

    class ByNeed(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "spark" if needs_spark(config.rootpath / file) else file

    return ByNeed(config, log) if config.getvalue("dist") == "loadfile" else None
