"""Trace tables in memory and on disk, as whoever records a system writes them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidings.model.filters import filter_document
from tidings.model.system import Subscriber
from tidings.model.trace_tables import MANIFEST, TRACE_TABLES
from tidings.model.writing import new_folder

_TYPES = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "array<string>": pa.list_(pa.string()),
}


def trace_table(name: str, columns: Mapping[str, Any]) -> pa.Table:
    """Make the trace table of this name from its columns, each an array or a list.

    Nullable columns may be left out, and are empty then.
    """
    fields = TRACE_TABLES[name].columns
    schema = pa.schema(
        [pa.field(each.name, _TYPES[each.type], nullable=each.nullable) for each in fields]
    )
    rows = len(next(iter(columns.values())))
    arrays = [
        pa.nulls(rows, _TYPES[each.type])
        if each.nullable and each.name not in columns
        else pa.array(columns[each.name])
        for each in fields
    ]
    return pa.table(arrays, schema=schema)


def filter_text(subscriber: Subscriber) -> str:
    """Write what a subscriber wants as canonical JSON."""
    document = filter_document(subscriber.wants)
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def subscription_table(subscribers: Iterable[Subscriber], at_ns: int) -> pa.Table:
    """Make the table of everybody's subscription as it stands from ``at_ns`` on, in ns."""
    everyone = list(subscribers)
    columns = {
        "subscription": [f"{each.name}/1" for each in everyone],
        "subscriber": [each.name for each in everyone],
        "broker": [each.at for each in everyone],
        "action": ["subscribe"] * len(everyone),
        "at_ns": [at_ns] * len(everyone),
        "filter": [filter_text(each) for each in everyone],
    }
    return trace_table("subscriptions", columns)


def write_trace_folder(
    tables: Mapping[str, pa.Table],
    manifest: Mapping[str, Any],
    folder: str | os.PathLike[str],
    *,
    overwrite: bool = False,
) -> None:
    """Write tables as a folder of Parquet with its manifest; it appears whole or not at all."""
    with new_folder(folder, replace=overwrite) as place:
        for name, table in tables.items():
            (place / name).mkdir()
            pq.write_table(table, place / name / "part-00000.parquet")
        text = json.dumps(manifest, indent=1)
        (place / MANIFEST).write_text(text + "\n", encoding="utf-8")
