from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from tidings.characterisation.count.cells import delay_bin, sample_sums, summed_up
from tidings.characterisation.fit.samples import sample_of
from tidings.model.delay_grid import EDGES_S, bin_of


def test_spark_and_numpy_put_every_time_in_the_same_bin(frame):
    rng = np.random.default_rng(3)
    around = (EDGES_S[:, None] * np.array([1 - 1e-12, 1.0, 1 + 1e-12, 1 + 1e-6])).ravel()
    whole_ns = np.rint(10 ** rng.uniform(2, 17, 5000)) / 1e9
    times = np.concatenate([[0.0, 1e99], around, whole_ns])
    given = frame([(float(t),) for t in times], "t double")
    rows = given.select("t", delay_bin(F.col("t")).alias("bin")).toPandas()
    assert (rows["bin"].to_numpy() == bin_of(rows["t"].to_numpy())).all()


def test_nothing_has_no_bin(frame):
    given = frame([(None,)], "t double")
    assert given.select(delay_bin(F.col("t"))).collect()[0][0] is None


def test_sums_are_those_of_a_sample_and_nulls_do_not_count(frame):
    times = [0.0, 0.25, 2.0, 8.0]
    given = frame([(t,) for t in [*times, None]], "t double")
    row = given.agg(*sample_sums(F.col("t"))).collect()[0]
    sample = sample_of(times)
    for name in ("count", "total_s", "squares", "logs", "squared_logs", "lowest_s", "highest_s"):
        assert row[name] == pytest.approx(getattr(sample, name), rel=1e-12), name


def test_cells_are_summed_over_whatever_a_statistic_does_not_ask_for(frame):
    cells = frame(
        [("x", 0, None, 1, 5.0, 7.0), ("x", 1, "r", 2, 3.0, 9.0), ("y", 1, None, 4, 6.0, 6.0)],
        "key string, batch int, reason string, rows bigint, lowest_s double, highest_s double",
    )
    sets = {"quality": ["reason"], "keys": ["key"], "batches": ["key", "batch"]}
    expected = frame(
        [
            ("quality", None, None, None, 5, 5.0, 7.0),
            ("quality", "r", None, None, 2, 3.0, 9.0),
            ("keys", None, "x", None, 3, 3.0, 9.0),
            ("keys", None, "y", None, 4, 6.0, 6.0),
            ("batches", None, "x", 0, 1, 5.0, 7.0),
            ("batches", None, "x", 1, 2, 3.0, 9.0),
            ("batches", None, "y", 1, 4, 6.0, 6.0),
        ],
        "statistic string, reason string, key string, batch int, rows bigint, "
        "lowest_s double, highest_s double",
    )
    assertDataFrameEqual(summed_up(cells, sets), expected)
