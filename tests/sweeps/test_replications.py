from __future__ import annotations

import pandas as pd
import pytest

from planning.small_systems import one_queue
from tidings.errors import UnstableError
from tidings.model.outcome import TABLES
from tidings.simulation.run import simulate
from tidings.simulation.world import Window
from tidings.sweeps import replications
from tidings.sweeps.replications import replicate_on


@pytest.mark.slow
def test_replications_on_spark_have_the_numbers_they_have_here(spark, monkeypatch):
    monkeypatch.setattr(replications, "AT_ONCE", 2)  # some of them in another job
    asked = {"seed": 7, "replications": 3, "events": 300, "warmup_s": 5.0, "precision": 0.03}
    told = []
    there = simulate(one_queue(), **asked, elsewhere=replicate_on(spark), progress=told.append)
    here = simulate(one_queue(), **asked)
    assert "replication 3 of at least 3" in told
    assert here.provenance == there.provenance
    assert here.provenance["replications"] > 3  # those that the precision asked for, too
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(there, name), getattr(here, name), check_exact=True)


@pytest.mark.slow
def test_what_fails_there_is_told_as_it_would_be_here(spark):
    crowded = Window(warmup_s=0.0, end_s=50.0, max_copies=1)
    with pytest.raises(UnstableError, match="copies"):
        list(replicate_on(spark)(one_queue(), crowded, 1, range(1)))
