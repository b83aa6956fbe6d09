"""What-if scenarios on Spark: each is predicted whole on one worker, by the same code as alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from tidings.errors import EngineError
from tidings.model import reading
from tidings.model.system import System
from tidings.planning.evidence import foretell
from tidings.planning.scenarios import SUBSCRIBER_FIELDS, Scenario, assess, unique_names
from tidings.traces.actions import reason_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TEXTS = ("subscriber", "broker", "by")
_ROWS = ", ".join(
    f"{name}: {'string' if name in _TEXTS else 'double'}" for name in SUBSCRIBER_FIELDS
)
ASSESSMENTS = (
    "scenario string, error string, on_time double, change double, worst string, "
    "worst_on_time double, loser string, most_loss double, bottleneck string, "
    f"utilisation double, subscribers array<struct<{_ROWS}>>"
)
_LISTS = pa.list_(pa.string())
SCENARIOS_PER_TASK = 20  # they take different times: small tasks even that out


def assess_all(spark: SparkSession, system: System, scenarios: Sequence[Scenario]) -> DataFrame:
    """Make a row for every scenario (``ASSESSMENTS``): what it does, with a row per subscriber.

    Lazy: whoever reads it more than once should write it first.
    """
    unique_names(scenarios)
    document = reading.system_document(system)  # not as text: names of files carry permissions
    before = foretell(system)

    def on_worker(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        whole = reading.from_document(document)
        for batch in batches:
            columns = (batch[name] for name in ("scenario", "changes", "below"))
            rows = [
                assess(
                    whole,
                    Scenario(
                        name=name,
                        changes=tuple(changes),
                        below=None if below is None else tuple(below),
                    ),
                    before,
                )
                for name, changes, below in zip(*columns, strict=True)
            ]
            yield pd.DataFrame(rows)

    asked = pa.table(
        {
            "scenario": pa.array([each.name for each in scenarios], pa.string()),
            "changes": pa.array([each.changes for each in scenarios], _LISTS),
            "below": pa.array([each.below for each in scenarios], _LISTS),
        }
    )
    tasks = -(-len(scenarios) // SCENARIOS_PER_TASK)
    frame = spark.createDataFrame(asked).repartition(tasks)
    return frame.mapInPandas(on_worker, ASSESSMENTS)


def summaries(rows: DataFrame, to: Path | None = None) -> list[dict[str, Any]]:
    """Collect a row for every scenario without its subscribers; with ``to``, write all there first.

    Raises :class:`EngineError` where Spark fails; what is wrong with a scenario is in its row.
    """
    try:
        if to is not None:
            rows.write.parquet(str(to))
            rows = rows.sparkSession.read.parquet(str(to))
        answers: Any = rows.drop("subscribers").toPandas()
    except Exception as problem:
        raise EngineError(f"Spark failed on the scenarios: {reason_of(problem)}") from None
    return [{str(key): value for key, value in row.items()} for row in answers.to_dict("records")]
