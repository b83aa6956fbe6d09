"""From rows that come in to what a browser shows: a change is on the page at the next look."""

from __future__ import annotations

import re
from dataclasses import replace

import pandas as pd
import pytest

import tidings as td
from killing import SYSTEM, put, tables_of
from tidings.model.laws import Exponential
from tidings.serving.live import ServeSettings
from tidings.serving.server import serve
from tidings.watching.closing import Closing
from tidings.watching.measuring import newest_waits
from tidings.watching.rounds import WatchPlan, watching

STEADY_S, SLOW_S = 62.5, 42.0  # the second ends a margin and a half after a period's end
PATIENCE_MS = 60_000


@pytest.mark.spark
@pytest.mark.browser
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("few_rows")
def test_a_slower_broker_is_on_the_page_at_the_next_look(spark, browser, tmp_path):
    # Of so short a life that waits cost events, and a slower broker more of them.
    brief = SYSTEM.replace("lifetime: 500ms", "lifetime: 60ms").replace(
        "target: 0.9", "target: 0.5"
    )
    system, source = td.loads(brief), tmp_path / "in"
    source.mkdir()
    hub, edge = system.brokers
    slow = replace(edge, service=replace(edge.service, law=Exponential(mean_s=0.0065)))
    plan = WatchPlan(
        closing=Closing(
            source=source, store=tmp_path / "store", base=system, period_s=20.0, margin_s=2.0
        ),
        system=system, name="small", folder=tmp_path / "store" / "watch",
    )  # fmt: skip
    for table, rows in tables_of(system, STEADY_S, 1)[0].items():
        put(rows, source, table, "steady")
    complaints = []
    with (
        watching(plan, spark, lambda _: None, lambda _: None) as watcher,
        serve(ServeSettings(folder=plan.folder), port=0) as served,
    ):
        watcher.round()
        page = browser.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(served.url)
        page.locator("#answer .lead").wait_for()
        assert page.locator("#alarms li").count() == 0
        page.evaluate("window.stays = true")
        after = replace(system, brokers=(hub, slow))
        for table, rows in tables_of(after, SLOW_S, 2, STEADY_S, "later-")[0].items():
            if table != "subscriptions":
                put(rows, source, table, "slow")
        watcher.round()
        alarms = page.locator("#alarms li")
        alarms.first.wait_for()
        (told,) = alarms.all_inner_texts()
        assert page.evaluate("window.stays")  # it was not loaded again
        page.close()
    (part,) = plan.closing.parts()[-1:]
    hops = pd.concat(map(pd.read_parquet, (source / "hops").glob("*.parquet")))
    width_ns = -(-(part.until_ns - part.from_ns) // 32)
    last = hops[hops["arrived_ns"].between(part.from_ns + 24 * width_ns, part.until_ns - 1)]
    waits_s = (last["started_ns"] - last["arrived_ns"]).groupby(last["broker"]).mean() / 1e9
    assert newest_waits(plan.closing.store, part) == pytest.approx(waits_s.to_dict())
    assert complaints == []
    assert "Broker edge is slower" in told
    (now_ms,) = re.findall(r"it was 5 ms and is ([0-9.]+) ms", told)
    (times,) = re.findall(r"([0-9.]+) times the service time", told)
    assert 1.1 * 5.0 < float(now_ms) < 1.5 * 5.0
    assert float(times) == pytest.approx(float(now_ms) / 5.0, rel=0.01)
    assert "best single change: speed 'edge'" in told
