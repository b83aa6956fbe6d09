"""Delays of links by hour of the day, from traces to a prediction, at once and day by day."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pyarrow.parquet import write_table

from tidings.characterisation.count.adding import add_traces
from tidings.characterisation.job import characterise
from tidings.characterisation.stored import characterise_store
from tidings.model.parameter_values import parameter_values
from tidings.model.reading import loads
from tidings.simulation.recording import record
from tidings.simulation.run import simulate
from tidings.traces.reading import read_traces

DAYS = 3
DAY_S = 86_400.0
EVENING = [2.0 if 17 <= hour < 23 else 2.0 / 3.0 for hour in range(24)]  # of which the mean is 1
SYSTEM = f"""
tidings: 1
lifetime: 60ms
brokers: {{a: {{}}, b: {{}}}}
links:
  - between: [a, b]
    delay: {{exponential: 40ms}}
    delay_by_time: {{slot: 1h, times: {EVENING}}}
publishers: {{p: {{at: a, every: {{exponential: 4s}}, content: {{event: {{x: 1}}}}}}}}
subscribers:
  near: {{at: a, wants: {{}}, link: {{delay: {{exponential: 30ms}}}}}}
  far: {{at: b, wants: {{}}, link: {{delay: 1ms}}}}
"""


@pytest.fixture(scope="module")
def truth():
    return loads(SYSTEM)


@pytest.fixture(scope="module")
def recorded(truth):
    return record(truth, seed=11, duration_s=DAYS * DAY_S, probes_per_s=0.02)


def written(recorded, folder, from_ns, until_ns, leave_out=()):
    """Rows of a time, as traces whose window it is."""
    folder.mkdir()
    begun = {
        "publications": "published_ns", "hops": "arrived_ns", "deliveries": "received_ns",
        "probes": "sent_ns",
    }  # fmt: skip
    for name, table in recorded.tables.items():
        if name in leave_out:
            continue
        frame = table.to_pandas()
        if name in begun:
            at_ns = frame[begun[name]]
            table = table.filter(((at_ns >= from_ns) & (at_ns < until_ns)).to_numpy())
        write_table(table, folder / f"{name}.parquet")
    document = {**recorded.manifest, "from_ns": from_ns, "until_ns": until_ns}
    (folder / "traces.json").write_text(pd.Series(document).to_json(), encoding="utf-8")
    return folder


def off(fitted, truth, path):
    rows = fitted.parameters.set_index("path").loc[path]
    return (rows["estimate"] - dict(parameter_values(truth))[path]) / rows["standard_error"]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.statistical
@pytest.mark.parametrize("probed", [True, False])
def test_hours_are_learnt_from_probes_and_from_events(spark, recorded, truth, tmp_path, probed):
    leave_out = () if probed else ("probes",)
    until_ns = recorded.until_ns
    folder = written(recorded, tmp_path / "all", recorded.from_ns, until_ns, leave_out)
    fitted = characterise(read_traces(spark, folder))
    link = fitted.system.links[0].there
    assert link.delay_by_time is not None
    hours = [off(fitted, truth, f"links.a--b.delay_by_time.{hour}") for hour in range(24)]
    assert np.abs(hours).max() < 5.0
    assert abs(off(fitted, truth, "links.a--b.delay")) < 5.0
    family = fitted.parameters.set_index("path").loc["links.a--b.delay", "family"]
    assert family == "exponential"  # of all hours at once it is none
    peers = {each.name: each.link for each in fitted.system.subscribers}
    assert peers["near"].delay_by_time is None
    assert peers["far"].delay_by_time is None
    assert any("follow the hour of the day" in note for note in fitted.notes)
    measured = fitted.measured.subscribers.set_index("subscriber")
    played = simulate(fitted.system, seed=1, replications=4).subscribers.set_index("subscriber")
    for name in ("near", "far"):
        error = np.hypot(*(each.loc[name, "on_time_se"] for each in (measured, played)))
        difference = played.loc[name, "on_time"] - measured.loc[name, "on_time"]
        assert abs(difference) < 4.5 * error
        assert abs(difference) < 0.008


@pytest.mark.slow
@pytest.mark.spark
def test_days_one_by_one_tell_what_all_tell_at_once(spark, recorded, tmp_path):
    day_ns = int(DAY_S) * 10**9
    for day in range(DAYS):
        begin_ns = recorded.from_ns + day * day_ns
        part = written(recorded, tmp_path / f"day{day}", begin_ns, begin_ns + day_ns, ("probes",))
        add_traces(read_traces(spark, part), tmp_path / "store")
    at_once = written(
        recorded, tmp_path / "all", recorded.from_ns, recorded.from_ns + DAYS * day_ns, ("probes",)
    )
    whole = characterise(read_traces(spark, at_once))
    stored = characterise_store(tmp_path / "store")
    one, other = (each.parameters.set_index("path")["estimate"] for each in (whole, stored))
    hours = [f"links.a--b.delay_by_time.{hour}" for hour in range(24)]
    np.testing.assert_allclose(one[hours], other[hours], rtol=1e-9)
    assert one["links.a--b.delay"] == pytest.approx(other["links.a--b.delay"], rel=1e-9)
