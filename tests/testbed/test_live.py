"""A run that is recorded while it goes on tells what the whole run tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tidings.demonstration.live import small_shop
from tidings.testbed.live import SETTLED_S, Recorder
from tidings.testbed.running import run_testbed
from tidings.testbed.runs import Run, TestbedOptions
from tidings.testbed.tables import trace_tables

KEYS = {
    "publications": ["event", "publisher", "published_ns"],
    "hops": ["event", "broker", "arrived_ns", "left_ns"],
    "deliveries": ["event", "subscriber", "received_ns"],
}


def _texts(names: Sequence[str] | None) -> str:
    return "unknown" if names is None else ",".join(names)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Path]:
    folder = tmp_path_factory.mktemp("live")

    async def record(run: Run) -> None:
        await Recorder(run=run, folder=folder).record(0.5)

    options = TestbedOptions(duration_s=4.0, warmup_s=0.5, seed=3)
    return run_testbed(small_shop(), options, beside=(record,)), folder


@pytest.mark.parametrize("table", KEYS)
def test_what_is_recorded_is_the_run_but_for_its_last_moments(
    recorded: tuple[Run, Path], table: str
) -> None:
    run, folder = recorded
    whole = trace_tables(run)[table].to_pandas()
    live = pq.read_table(folder / table).to_pandas()
    key = KEYS[table]
    assert not live.duplicated(key).any()
    met = live.merge(whole, on=key, how="left", suffixes=("", "_whole"), indicator=True)
    assert (met["_merge"] == "both").all()
    at_ns = whole[key[-1]]
    surely = whole[at_ns < at_ns.max() - round((SETTLED_S + 1.5) * 1e9)]
    assert len(surely) > 50
    assert len(surely.merge(live, on=key)) == len(surely)
    if table == "hops":
        sent, at_last = (met[name].map(_texts) for name in ("sent_to", "sent_to_whole"))
        assert list(sent) == list(at_last)


def test_subscriptions_are_told_of_once(recorded: tuple[Run, Path]) -> None:
    run, folder = recorded
    assert [each.name for each in (folder / "subscriptions").iterdir()] == ["000001.parquet"]
    told = pq.read_table(folder / "subscriptions")
    assert told.num_rows == len(run.system.subscribers)


def test_what_goes_wrong_beside_a_run_ends_it() -> None:
    async def fail(run: Run) -> None:
        raise RuntimeError("the disk is full")

    options = replace(TestbedOptions(), duration_s=30.0, warmup_s=0.0)
    run = run_testbed(small_shop(), options, beside=(fail,))
    assert "the disk is full" in (run.incomplete or "")
