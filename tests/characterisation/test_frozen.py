"""All counted statistics and all that is fitted to them, against what they were when frozen.

Of planted traces, clean and dirty, at once and day by day. Counts and words are the same; sums of
times agree to rounding, which differs between processors; what an optimiser seeks, to as much as
it seeks it. Where a change is wanted, ``TIDINGS_FREEZE=1`` writes the file anew (and fails).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pytest

from dirty_days import WINDOW_S, changes_of, dirty, with_copies, write_days
from tidings.characterisation.count.adding import add_traces
from tidings.characterisation.count.gathering import gather
from tidings.characterisation.fit.collected import statistics_of
from tidings.characterisation.fit.fitting import fit
from tidings.characterisation.fit.workloads import Measuring
from tidings.characterisation.job import measure_workload, observed_in
from tidings.characterisation.statistics import STATISTICS, in_stretch
from tidings.characterisation.stored import characterise_store
from tidings.model.reading import system_document
from tidings.traces.reading import read_traces

COUNTED = {name for name, each in STATISTICS.items() if each.keys}
ROUNDING = 1e-9
SOUGHT = 1e-4  # optimisers stop at steps of 1e-5 in the logarithm of a parameter
# Where numbers come from an optimiser: shapes of laws, and the laws of times that are cut off.
OPTIMISED = ("system/", "goodness", "stays", "away", "connectivity", "failure", "workload/laws")
LEAST = ("lowest_s", "first_", "least_")
MOST = ("highest_s", "last_", "most_")
TABLES = ("parameters", "waits", "quality", "coverage", "stationarity", "clocks", "rates")
MEASURED = ("subscribers", "pairs", "brokers", "links", "delays")


def leaves(value, path=""):
    """Every number and text of a document, by where it stands."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, f"{path}/{key}")
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from leaves(each, f"{path}/{index}")
    else:
        yield path, value


def of_frame(frame):
    """A table as a document: rows by number, in its order."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return {str(index): row for index, row in enumerate(rows)}


def of_cells(name, table):
    """A statistic by key: counts cell by cell, sums and extremes of times over all bins."""
    every = STATISTICS[name].keys
    keys = [key for key in every if key in table and key not in ("stretch", "content_key")]
    keys += ["least_lifetime_ns"] if name == "publications" else []
    wide = [key for key in keys if key != "bin"]
    text = table[keys].astype(object).where(table[keys].notna(), None).astype(str)
    document = {}
    for column in table.columns.difference([*every, "least_lifetime_ns", "stretch"]):
        real = column.endswith(("_s", "squares", "logs", "size_total_bytes"))
        values = table[column].astype(float if real else "Int64")
        grouped = values.groupby([text[key] for key in (wide if real else keys)])
        merge = "min" if column.startswith(LEAST) else "max" if column.startswith(MOST) else "sum"
        for key, value in grouped.agg(merge).items():
            said = "|".join(key) if isinstance(key, tuple) else key
            document[f"{said}/{column}"] = None if pd.isna(value) else value
    return document


def of_fit(fitted):
    """What was fitted and measured."""
    frames = {name: getattr(fitted, name) for name in TABLES}
    for name in ("parameters", "waits"):  # of traces alone these two say nothing new
        assert set(frames[name]["source"]) == {"traces"}
        assert not frames[name]["bound"].any()
        frames[name] = frames[name].drop(columns=["source", "bound"])
    tables = {name: of_frame(frame) for name, frame in frames.items()}
    measured = {name: of_frame(getattr(fitted.measured, name)) for name in MEASURED}
    document = json.loads(json.dumps(system_document(fitted.system)))
    return {**tables, "measured": measured, "system": document, "notes": list(fitted.notes)}


def of_workload(measured):
    """A measured workload: its tables, and the laws of its flows."""
    tables = {name: of_frame(getattr(measured, name)) for name in ("routing", "paths", "services")}
    sources = [(each.name, each.home, each.reliability) for each in measured.workload.sources]
    laws = [repr(law) for flow in measured.workload.flows for _, law in flow.services]
    families = [law.split("(")[0] for law in laws]
    return {**tables, "sources": sources, "families": families, "notes": list(measured.notes)}


@pytest.fixture(scope="module", params=["clean", "dirty"])
def said(request, spark, few_rows, plant_traces, tmp_path_factory):
    """What traces tell, as a table: path, and a text or a number; and where it is frozen."""
    tables = plant_traces(11, window_s=WINDOW_S, probes=500).tables
    if request.param == "dirty":
        turns_s = [0.5 * turn for turn in range(1, 25)]
        away = changes_of("peer", "alice", ("connected", "disconnected"), *turns_s)
        tables = dirty(tables) | {"sessions": with_copies(away)}
    place = tmp_path_factory.mktemp(request.param)
    whole, days = write_days(tables, place)
    traces = read_traces(spark, whole)
    measured = traces.window.shortened(1.0)
    counted = gather(traces, measured, lambda _: None)
    found = statistics_of(in_stretch(counted))
    document = {
        "cells": {
            name: of_cells(name, counted.tables[name]) for name in COUNTED & counted.tables.keys()
        },
        "fit": of_fit(fit(observed_in(traces), found, measured, None)),
    }
    for day in days:
        add_traces(read_traces(spark, day), place / "store", margin_s=5.0)
    document["store"] = of_fit(characterise_store(place / "store"))
    how = Measuring(event_type="topic")
    if request.param == "clean":
        document["workload"] = of_workload(measure_workload(traces, how))
    return as_table(document), Path(__file__).parent / f"frozen-{request.param}.parquet"


def as_table(document):
    rows = [
        (path.lstrip("/"), *((None, float(v)) if is_real(v) else (str(v), None)))
        for path, v in leaves(document)
    ]
    table = pd.DataFrame(rows, columns=["path", "text", "number"])
    texts = table["text"].str.replace(r"/[^ ]*/(store|whole|day\d)", r"\1", regex=True)
    return table.assign(text=texts).sort_values("path", ignore_index=True)


def is_real(value):
    return isinstance(value, float)


@pytest.mark.slow
def test_statistics_and_fits_are_those_that_were_frozen(said):
    said, file = said
    if os.environ.get("TIDINGS_FREEZE"):
        said.to_parquet(file, index=False, compression="zstd", compression_level=19)
        pytest.fail(f"frozen anew: {len(said)} values in {file.name}")
    frozen = pd.read_parquet(file)
    assert list(said["path"]) == list(frozen["path"])
    words = said["text"].fillna("") == frozen["text"].fillna("")
    assert words.all(), pd.concat([said, frozen], axis="columns")[~words].head(9).to_string()
    sought = said["path"].str.contains("|".join(OPTIMISED))
    for chosen, within in ((sought, SOUGHT), (~sought, ROUNDING)):
        now, then = (each.loc[chosen, "number"].to_numpy(float) for each in (said, frozen))
        assert now == pytest.approx(then, rel=within, abs=1e-12, nan_ok=True)
