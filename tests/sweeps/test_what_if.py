from __future__ import annotations

import itertools

import pytest

from planning.small_systems import one_queue
from tidings.errors import InvalidInputError
from tidings.model.json_text import plain
from tidings.planning.evidence import foretell
from tidings.planning.scenarios import Scenario, assess
from tidings.sweeps.what_if import assess_all, summaries

NUMBER = 60  # of scenarios: several tasks, some of several scenarios
SCENARIOS = [
    Scenario(name=f"{number}", changes=(f"rate p x{0.5 + number / NUMBER}", "speed hub x1.1"))
    for number in range(NUMBER)
] + [Scenario(name="wrong", changes=("remove nobody",))]


@pytest.mark.slow
@pytest.mark.spark
def test_scenarios_on_spark_have_the_numbers_they_have_one_by_one(spark, tmp_path):
    system = one_queue()
    before = foretell(system)
    told = summaries(assess_all(spark, system, SCENARIOS), tmp_path / "all")
    assert {row["scenario"] for row in told} == {each.name for each in SCENARIOS}
    found = spark.read.parquet(str(tmp_path / "all")).collect()
    rows = {row["scenario"]: row.asDict(recursive=True) for row in found}
    for one in SCENARIOS:
        assert plain(rows[one.name]) == plain(assess(system, one, before))  # bit by bit
    with pytest.raises(InvalidInputError, match="two scenarios are named 'wrong'"):
        assess_all(spark, system, [SCENARIOS[-1], SCENARIOS[-1]])
    shares = [rows[str(number)]["on_time"] for number in range(NUMBER)]
    assert all(a > b for a, b in itertools.pairwise(shares))  # the more come, the longer it takes
