"""A checked history in a few numbers and rows: what a person or a program is shown."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.histories.checking import Checked
from tidings.histories.judging import VIOLATIONS
from tidings.traces.actions import run_action

Document = dict[str, Any]


def summary(checked: Checked, limit: int) -> Document:
    """Count violations by kind, with totals, the worst subscribers and the first violations."""
    rows = F.sum("rows").alias("rows")
    by_kind = {
        row["kind"]: row["rows"] for row in _records(checked.violations.groupBy("kind").agg(rows))
    }
    counts = checked.counts
    names = [name for name in counts.columns if name != "subscriber"]
    sums = (F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in names)
    (totals,) = _records(counts.agg(F.count(F.lit(1)).alias("subscribers"), *sums))
    worst = [F.desc(name) for name in ("lost", "illegal", "invalid")]
    first = ("kind", "published_ns", "notified_ns", "event", "subscriber")
    return {
        "violations": {kind: by_kind.get(kind, 0) for kind in VIOLATIONS},
        "totals": totals,
        "subscribers": _records(counts.orderBy(*worst, "subscriber").limit(limit)),
        "examples": _records(checked.violations.orderBy(*first).limit(limit)),
        "set_aside": checked.bad_rows.to_dict("records"),
    }


def _records(frame: DataFrame) -> list[Document]:
    """Collect a small table as rows; by Arrow, since pandas would turn nanoseconds into floats."""
    rows: list[Document] = run_action(lambda: frame.toArrow().to_pylist(), "the history")
    return rows
