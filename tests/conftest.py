"""What all tests share: one Spark session, started when the first test asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One embedded session for the whole run: starting one takes about ten seconds."""
    from tidings.traces.session import spark_session

    with spark_session("local[2]", app="tidings-tests", memory="1g", small=True) as session:
        yield session


@pytest.fixture(scope="session")
def frame(spark: SparkSession) -> Callable[[Sequence[Sequence[Any]], str], DataFrame]:
    """Rows as a DataFrame, without the Python processes that Spark would start for them."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    def make(rows: Sequence[Sequence[Any]], ddl: str) -> DataFrame:
        schema = StructType.fromDDL(ddl)
        arrow = to_arrow_schema(schema)
        columns = [
            pa.array([row[i] for row in rows], type=field.type) for i, field in enumerate(arrow)
        ]
        return spark.createDataFrame(pa.Table.from_arrays(columns, schema=arrow), schema)

    return make


def pytest_itemcollected(item: pytest.Item) -> None:
    """Whatever uses the session needs Spark, and says so.

    Where tests are shared out to several processes, all that need Spark go to one, which starts it
    once; all others of a file stay together, with what they have set up for each other. Groups must
    be known before all tests are collected: then they are already being shared out.
    """
    if "spark" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.spark)
    needs_spark = item.get_closest_marker("spark") is not None
    item.add_marker(pytest.mark.xdist_group("spark" if needs_spark else str(item.path)))
