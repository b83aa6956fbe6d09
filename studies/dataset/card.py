"""The data card of a sample, written from what is in its folder and nothing else."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from studies.dataset.counting import PARTS
from tidings.model.outcome_files import load_outcome
from tidings.model.reading import load
from tidings.model.trace_tables import MANIFEST, TRACE_TABLES
from tidings.samples.loading import CARD, MEASURED, SYSTEM

TEMPLATE = Path(__file__).with_name("card.md")
_LATE = ("relay_p50", "relay_p99", "publisher_p50", "publisher_p99")


def card(name: str, folder: Path) -> str:
    """Write the data card of the sample in a folder, as Markdown."""
    said = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    truth = load_outcome(folder / MEASURED)
    late_ms = {each: f"{1e3 * said['lateness'][f'{each}_s']:.2f}" for each in _LATE}
    return TEMPLATE.read_text(encoding="utf-8").format(
        name=name,
        description=load(folder / SYSTEM).description,
        seconds=(said["until_ns"] - said["from_ns"]) / 1e9,
        seed=said["seed"],
        took="took" if said["takes_precedence"] else "did not take",
        parts=PARTS,
        shares="\n".join(_shares(truth.subscribers)),
        files="\n".join(_files(folder)),
        columns="\n".join(_columns(folder)),
        **late_ms,
        **truth.provenance,
    )


def _shares(rows: pd.DataFrame) -> Iterator[str]:
    again = rows["handled_again"].notna().any()
    yield "| subscriber | events wanted | on time | delivered | mean delay, s |" + (
        " handled again |" if again else ""
    )
    yield "|---|---|---|---|---|" + ("---|" if again else "")
    for row in rows.itertuples():
        share = f"{row.on_time:.4f} ± {row.on_time_se:.4f}"
        cells = [row.subscriber, f"{row.events:.0f}", share, f"{row.delivered:.4f}"]
        cells.append(f"{row.delay_mean_s:.4f}")
        if again:
            cells.append("" if math.isnan(row.handled_again) else f"{row.handled_again:.4f}")
        yield f"| {' | '.join(cells)} |"


def _files(folder: Path) -> Iterator[str]:
    yield "| file | rows | bytes | SHA-256 |"
    yield "|---|---|---|---|"
    for path in sorted(folder.iterdir()):
        if path.name != CARD:
            data = path.read_bytes()
            rows = str(pq.read_metadata(path).num_rows) if path.suffix == ".parquet" else ""
            digest = hashlib.sha256(data).hexdigest()
            yield f"| {path.name} | {rows} | {len(data)} | `{digest}` |"


def _columns(folder: Path) -> Iterator[str]:
    yield "| table | column | type | meaning |"
    yield "|---|---|---|---|"
    for name, table in TRACE_TABLES.items():
        if (folder / f"{name}.parquet").exists():
            yield f"| **{name}** | | | {table.row} |"
            for each in table.columns:
                nulls = ", may be null" if each.nullable else ""
                yield f"| | {each.name} | {each.type}{nulls} | {each.meaning} |"
