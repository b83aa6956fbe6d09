"""What all tests share: one Spark session, started when the first test asks for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest_plugins = ["sharing_out"]

# Tests ask kernels as they are written now, function by function; a library has only whole parts.
os.environ.setdefault("TIDINGS_KERNELS", "compiled")
os.environ.pop("COLUMNS", None)  # how wide the terminal is in which they run is no affair of tests

BROWSERS = ("/usr/bin/chromium", "chromium", "chromium-browser", "google-chrome")
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--headless"]

# How long an example takes is the machine's affair: two busy cores are slow at times.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A state folder of their own for the tests and the commands that they start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One embedded session for all tests of a process: starting one takes about ten seconds."""
    from tidings.traces.session import spark_session

    with spark_session("local[2]", app="tidings-tests", memory="1g", small=True) as session:
        yield session


@pytest.fixture(scope="session")
def uncompiled(spark: SparkSession) -> Callable[[], AbstractContextManager[None]]:
    """A context in which queries are not compiled: quicker where rows are a handful."""
    from spark_cluster import AS_IT_STANDS

    @contextmanager
    def as_it_stands() -> Iterator[None]:
        for name, value in AS_IT_STANDS.items():
            spark.conf.set(name, value)
        try:
            yield
        finally:
            for name in AS_IT_STANDS:
                spark.conf.unset(name)

    return as_it_stands


@pytest.fixture(scope="module")
def few_rows(uncompiled: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """Queries of a whole module are not compiled."""
    with uncompiled():
        yield


@pytest.fixture(scope="session")
def frame(spark: SparkSession) -> Callable[[Sequence[Sequence[Any]], str], DataFrame]:
    """Rows as a DataFrame, without the Python processes that Spark would start for them.

    The last columns may be left out of rows, and are empty then.
    """
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    def make(rows: Sequence[Sequence[Any]], ddl: str) -> DataFrame:
        schema = StructType.fromDDL(ddl)
        arrow = to_arrow_schema(schema)
        columns = [
            pa.array([row[i] if i < len(row) else None for row in rows], type=field.type)
            for i, field in enumerate(arrow)
        ]
        return spark.createDataFrame(pa.Table.from_arrays(columns, schema=arrow), schema)

    return make


@pytest.fixture(scope="module")  # its event loop runs as long as it does: no other can meanwhile
def browser() -> Iterator[Any]:
    """A real browser; set TIDINGS_REQUIRE_BROWSER=1 to fail, not skip, without one."""
    program = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if program is None:
        reason = f"NO BROWSER, so the page was not opened: none of {', '.join(BROWSERS)} is here"
        if os.environ.get("TIDINGS_REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=OPTIONS)
        yield running
        running.close()
