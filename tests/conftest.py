"""What all tests share: one Spark session, started when the first test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One embedded session for the whole run: starting one takes about ten seconds."""
    from tidings.traces.session import spark_session

    with spark_session("local[2]", app="tidings-tests", memory="1g", small=True) as session:
        yield session


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever uses the session needs Spark, and says so."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
