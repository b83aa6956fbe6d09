"""From planted traces back to what was planted."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidings.characterisation.fit.channels import LEAST_AFTER_LOSS
from tidings.characterisation.fit.contents import read_contents
from tidings.characterisation.fit.fitting import fit
from tidings.characterisation.fit.quality import COPY, quality_table
from tidings.characterisation.fit.subscribers import find_subscribers
from tidings.characterisation.job import characterise, collect, observed_in, with_examples
from tidings.errors import InvalidTracesError, UnsupportedError
from tidings.model.behaviour import Service, Station
from tidings.model.delay_grid import EDGES_S
from tidings.model.filters import as_filter, matches
from tidings.model.laws import Deterministic, Exponential, LogNormal, Uniform
from tidings.model.reading import dumps, loads
from tidings.model.system import Routing
from tidings.model.trace_tables import TRACE_TABLES
from tidings.traces.reading import Traces, read_traces
from tidings.traces.window import TraceWindow
from tidings.validation.back_testing import back_test

pytestmark = pytest.mark.statistical

S = 10**9
EPOCH_NS = 1_700_000_000 * S


def rows_read(quality) -> dict[str, int]:
    """How many rows of each table were read: used, set aside and duplicates together."""
    return quality.groupby("table")["rows"].sum().to_dict()


def test_tables_are_read_and_rows_are_moved_as_the_page_says(characterised_by):
    _, plans = characterised_by
    page = (Path(__file__).parents[2] / "docs/reference/spark-plan.md").read_text()
    queries, scans, moves = re.search(
        r"(\w+) queries do it.*read files (\d+) times and move rows (\d+) times", page, re.DOTALL
    ).groups()
    moved = re.compile("Exchange (hashpartitioning|SinglePartition|RoundRobin|range)")
    counted = (
        len(plans),
        sum(plan.count("FileScan") for plan in plans),
        sum(len(moved.findall(plan)) for plan in plans),
    )
    assert counted == ({"Nine": 9, "Ten": 10, "Eleven": 11}[queries], int(scans), int(moves))


def expected_parameters(truth) -> dict[str, float]:
    """Everything that was planted, by the path it should be found under."""
    found = {f"brokers.{name}.service": law.mean_s for name, law in truth.services.items()}
    found |= {f"publishers.{name}.rate": 1 / law.mean_s for name, law in truth.every.items()}
    places = {
        ("hub", "west"): "links.hub--west",
        ("west", "hub"): "links.hub--west.back",
        ("east", "hub"): "links.east--hub",
        ("hub", "east"): "links.east--hub.back",
        ("ticker", "west"): "publishers.ticker.link",
        ("tower", "west"): "publishers.tower.link",
        ("west", "carol"): "subscribers.carol.link",
        ("hub", "bob"): "subscribers.bob.link",
        ("east", "alice"): "subscribers.alice.link",
    }
    for way, (delay, kept) in truth.links.items():
        found |= {f"{places[way]}.delay": delay.mean_s, f"{places[way]}.reliability": kept}
        probes = truth.tables["probes"]
        mine = probes[(probes["source"] == way[0]) & (probes["target"] == way[1])]
        if mine["received_ns"].isna().iloc[:-1].sum() >= LEAST_AFTER_LOSS:
            found[f"{places[way]}.loss_burst"] = 1 / kept
    for name, rows in truth.contents.items():
        for position, (p, _, _) in enumerate(sorted(rows, key=lambda row: -row[0]), start=1):
            found[f"publishers.{name}.content.{position}.p"] = p
    return found


def test_everything_planted_is_found_within_five_standard_errors(planted, characterised):
    table = characterised.parameters.set_index("path")
    expected = expected_parameters(planted)
    assert set(table.index) == set(expected)
    for path, truth in expected.items():
        estimate, error = table.loc[path, ["estimate", "standard_error"]]
        # half a nanosecond: what rounding to whole nanoseconds may do
        assert abs(estimate - truth) <= 5 * error + 5e-10, path
        assert 5 * error < 0.1 * truth, f"{path} is too uncertain to notice an error"
    deterministic = table.loc["links.east--hub.back.delay"]
    assert deterministic["estimate"] == pytest.approx(0.005, abs=1e-9)


def test_the_families_planted_are_found(planted, characterised):
    system = characterised.system
    laws = {broker.name: broker.service.law for broker in system.brokers}
    assert {name: type(law) for name, law in laws.items()} == {
        "west": Exponential,
        "hub": Uniform,
        "east": LogNormal,
    }
    # The mean is that of the sample: one end is the seen one, the other off by twice its error.
    error_s = characterised.parameters.set_index("path")["standard_error"]["brokers.hub.service"]
    assert laws["hub"].low_s == pytest.approx(0.001, abs=2 * 5 * error_s)
    assert laws["hub"].high_s == pytest.approx(0.007, abs=2 * 5 * error_s)
    assert laws["east"].scv == pytest.approx(2.0, rel=0.1)
    assert isinstance(system.links[0].back.delay, Deterministic)


def test_the_system_is_whole_and_reads_back(planted, characterised):
    system = characterised.system
    assert loads(dumps(system)) == system
    assert characterised.notes == ()
    assert [link.name for link in system.links] == ["east--hub", "hub--west"]
    homes = {each.name: each.at for each in system.subscribers}
    assert homes == {"alice": "east", "bob": "hub", "carol": "west"}
    ticker, tower = system.publishers
    assert (ticker.lifetime, ticker.size_bytes) == (Deterministic(value_s=0.05), 64)
    assert {row.lifetime for row in tower.content.rows()} == {Deterministic(value_s=0.03), None}
    errors = dict(system.standard_errors)
    window_s = planted.window_s
    rate_se = np.sqrt(60 * window_s) / window_s
    assert errors["publishers.ticker.rate"] == pytest.approx(rate_se, rel=0.05)


def naive_outcome(truth) -> pd.DataFrame:
    """Events wanted, delivered and on time, and mean delay: by a join in pandas, event by event."""
    published = truth.tables["publications"]
    received = truth.tables["deliveries"].merge(published, on="event")
    delay = received["received_ns"] - received["published_ns"]
    received = received.assign(
        delay_s=delay / 1e9, ok=(delay <= received["lifetime_ns"]).fillna(True).astype(bool)
    )
    rows = []
    for name, (_, document) in truth.wants.items():
        wants = as_filter(document)
        wanted = sum(matches(wants, json.loads(text)) for text in published["content"])
        mine = received[received["subscriber"] == name]
        rows.append((name, wanted, len(mine), mine["ok"].sum(), mine["delay_s"].mean()))
    columns = ["subscriber", "wanted", "delivered", "on_time", "delay_s"]
    return pd.DataFrame(rows, columns=columns).set_index("subscriber")


def test_the_measured_outcome_is_the_exact_count(planted, characterised):
    naive = naive_outcome(planted)
    found = characterised.measured.subscribers.set_index("subscriber")
    assert (found["events"] == naive["wanted"]).all()
    assert found["wanted_per_s"].to_dict() == (naive["wanted"] / planted.window_s).to_dict()
    for column in ("on_time", "delivered"):
        share = naive[column] / naive["wanted"]
        assert found[column].to_numpy() == pytest.approx(share.to_numpy(), rel=1e-12)
    assert found["delay_mean_s"].to_numpy() == pytest.approx(naive["delay_s"], rel=1e-9)
    # every hop says to whom it was sent, so that everything missing is known to be lost on a link
    total = found["on_time"] + found["late"] + found["lost_link"]
    assert total.to_numpy() == pytest.approx(1.0, rel=1e-12)
    assert (found["lost_unexplained"] == 0).all()
    assert ((found["on_time_se"] > 0) & (found["on_time_se"] < 0.01)).all()


def test_coverage_counts_what_can_be_followed(planted, characterised):
    naive = naive_outcome(planted)
    found = characterised.coverage.set_index("what")
    published = planted.tables["publications"]
    first = planted.tables["hops"][planted.tables["hops"]["broker"] == "west"]
    seen = found.loc["events seen by at least one broker"]
    assert (seen["number"], seen["of"]) == (first["event"].nunique(), len(published))
    delivered = found.loc["wanted copies that were delivered"]
    assert delivered["number"] == naive["delivered"].sum()
    assert delivered["of"] == naive["wanted"].sum()
    lost = found.loc["wanted copies lost on a known link", "number"]
    assert lost == naive["wanted"].sum() - naive["delivered"].sum()
    assert found.loc["deliveries whose publication is known", "share"] == 1.0


def test_pairs_add_up_to_subscribers(characterised):
    pairs = characterised.measured.pairs
    whole = characterised.measured.subscribers.set_index("subscriber")
    for name, part in pairs.groupby("subscriber"):
        assert part["events"].sum() == whole.loc[name, "events"]
        mean = np.average(part["on_time"], weights=part["events"])
        assert mean == pytest.approx(whole.loc[name, "on_time"], rel=1e-12)
    known = pairs[pairs["delivered"] > 0]
    assert known["delay_mean_se_s"].gt(0).all()
    np.testing.assert_allclose(pairs["delivered"] + pairs["lost_link"], 1.0, rtol=1e-12)


def test_delays_end_at_what_was_delivered_and_give_the_quantiles(planted, characterised):
    measured = characterised.measured
    whole = measured.subscribers.set_index("subscriber")
    received = planted.tables["deliveries"].merge(planted.tables["publications"], on="event")
    for name, part in measured.delays.groupby("subscriber"):
        assert part["arrived"].is_monotonic_increasing
        assert part["arrived"].iloc[-1] == pytest.approx(whole.loc[name, "delivered"], rel=1e-12)
        mine = received[received["subscriber"] == name]
        delays = ((mine["received_ns"] - mine["published_ns"]) / 1e9).to_numpy()
        middle = part.iloc[len(part) // 2]
        share = (delays <= middle["delay_s"] * (1 + 1e-9)).sum() / whole.loc[name, "events"]
        assert middle["arrived"] == pytest.approx(share, rel=1e-12)
        assert middle["delay_s"] in EDGES_S
        assert whole.loc[name, "delay_p95_s"] == pytest.approx(np.quantile(delays, 0.95), rel=0.02)


def hops_in_window(truth) -> pd.DataFrame:
    """Without those of the last events, which went on after its end."""
    hops = truth.tables["hops"]
    return hops[hops["arrived_ns"] < EPOCH_NS + round(truth.window_s * S)]


def test_brokers_are_as_loaded_as_their_hops_say(planted, characterised):
    found = characterised.measured.brokers.set_index("broker")
    table, window_s = characterised.waits.set_index("path"), planted.window_s
    for name, hops in hops_in_window(planted).groupby("broker"):
        service_s = (hops["left_ns"] - hops["started_ns"]) / 1e9
        wait_s = (hops["started_ns"] - hops["arrived_ns"]) / 1e9
        row = found.loc[name]
        assert row["arrivals_per_s"] == pytest.approx(len(hops) / window_s, rel=1e-12)
        assert row["utilisation"] == pytest.approx(service_s.sum() / window_s, rel=1e-9)
        assert row["service_mean_s"] == pytest.approx(service_s.mean(), rel=1e-9)
        assert row["wait_mean_s"] == pytest.approx(wait_s.mean(), rel=1e-9)
        assert 0 < row["wait_mean_se_s"] < 0.16 * row["wait_mean_s"]
        waiting = table.loc[f"brokers.{name}.waiting"]
        share = table.loc[f"brokers.{name}.waiting.share", "estimate"]
        assert share == pytest.approx((wait_s > 0).mean(), rel=1e-12)
        assert waiting["count"] == (wait_s > 0).sum()
        law = characterised.laws[f"brokers.{name}.waiting"]
        assert law.sample.mean_s == pytest.approx(wait_s[wait_s > 0].mean(), rel=1e-9)


def test_links_carry_what_was_sent(planted, characterised):
    links = characterised.measured.links.set_index(["source", "target"])
    hops = hops_in_window(planted)
    sent = (hops["broker"] == "west") & (hops["sent_to"].map(len) > 0)
    rate = links.loc[("west", "hub"), "events_per_s"]
    # what arrived and a measured loss of 2 ± 0.2 %
    assert rate == pytest.approx(sent.sum() / planted.window_s, rel=0.01)
    assert links.loc[("west", "hub"), "lost"] == pytest.approx(0.02, abs=0.01)


def test_quality_counts_every_row(planted, characterised):
    assert rows_read(characterised.quality) == {
        name: len(table) for name, table in planted.tables.items()
    }
    aside = characterised.quality[characterised.quality["fate"] != "used"]
    late = len(planted.tables["hops"]) - len(hops_in_window(planted))
    assert aside["rows"].sum() == late
    assert set(aside["reason"]) <= {"arrived outside the observed window"}


@pytest.fixture(scope="module")
def tested(spark, planted_folder):
    """The second half foretold from the first, and what was said on the way."""
    told = []
    traces = read_traces(spark, planted_folder)
    return back_test(traces, share=0.5, settle_s=5.0, progress=told.append), told


@pytest.mark.slow
def test_the_rest_is_as_the_first_half_makes_us_expect(tested, characterised):
    found, told = tested
    assert [stage for stage in told if stage.startswith("predicting")] == ["predicting the rest"]
    assert told[0] == "first, subscriptions, 1 of at most 8 steps"
    assert told[-1].startswith("the rest, fitting, ")
    # the first part has no end where recording stopped, so that nothing need settle there
    settled = [each.provenance["settle_s"] for each in (found.first.measured, found.measured)]
    assert settled == [0.0, 5.0]
    begin, rest = (each.provenance for each in (found.first.measured, found.measured))
    assert begin["until_ns"] == rest["from_ns"]
    summary = found.comparison.summary
    assert summary.compared == summary.with_se == 3
    assert summary.mean_absolute < 0.02
    for row in found.comparison.subscribers.itertuples():
        assert abs(row.on_time_difference) < 5 * row.on_time_se + 0.01, row  # models are not exact
    assert f"off by {summary.mean_absolute:.3g} on average" in found.text
    # not for want of anything to foretell
    assert (characterised.measured.subscribers["on_time"] < 0.9).any()


@pytest.mark.slow
def test_half_the_window_tells_the_same_rates_and_loads(planted, characterised, tested):
    found = tested[0].first
    middle = found.measured.provenance["until_ns"]
    hops = planted.tables["hops"]
    used = found.quality.query("table == 'hops' and fate == 'used'")["rows"].sum()
    assert used == (hops["arrived_ns"] < middle).sum()
    assert rows_read(found.quality)["hops"] == len(hops)
    whole, half = (each.measured.brokers.set_index("broker") for each in (characterised, found))
    for name in whole.index:
        # half of the whole is the half: their difference has the variance of half the window
        error = half.loc[name, "utilisation_se"]
        change = half.loc[name, "utilisation"] - whole.loc[name, "utilisation"]
        assert abs(change) < 5 * error < 0.2 * whole.loc[name, "utilisation"]
        rates = half.loc[name, "arrivals_per_s"], whole.loc[name, "arrivals_per_s"]
        assert abs(rates[0] - rates[1]) < 5 * np.sqrt(rates[1] / (planted.window_s / 2))
    halves = found.parameters.set_index("path")
    for path, row in characterised.parameters.set_index("path").iterrows():
        error = 5 * halves.loc[path, "standard_error"] + 1e-9
        assert abs(halves.loc[path, "estimate"] - row["estimate"]) <= error, path
    links = [
        each.measured.links.set_index(["source", "target"])["events_per_s"]
        for each in (characterised, found)
    ]
    assert links[1].to_numpy() == pytest.approx(links[0].to_numpy(), rel=0.05)


@pytest.fixture(scope="module")
def without_probes_and_starts(spark, planted, write_traces, tmp_path_factory):
    """The usual traces, but links were hardly probed and west does not tell when service begins.

    Many rows stand there twice.
    """
    silent = copy.copy(planted)
    hops = planted.tables["hops"].astype({"started_ns": "Int64"})
    hops.loc[hops["broker"] == "west", "started_ns"] = pd.NA
    probes = planted.tables["probes"]
    few = probes[(probes["source"] == "hub") & (probes["target"] == "east")].head(30)
    silent.tables = {
        **planted.tables,
        "hops": pd.concat([hops, hops.iloc[::4]]),
        "probes": few,
        "deliveries": pd.concat([planted.tables["deliveries"]] * 2),
    }
    folder = tmp_path_factory.mktemp("silent")
    return characterise(read_traces(spark, write_traces(silent, folder)))


@pytest.mark.slow
def test_links_are_told_without_probes(planted, without_probes_and_starts):
    found = without_probes_and_starts
    table = found.parameters.set_index("path")
    expected = expected_parameters(planted)
    for path in ("links.hub--west.back", "links.east--hub.back", "publishers.tower.link"):
        for what in ("delay", "reliability"):
            row = table.loc[f"{path}.{what}"]
            assert abs(row["estimate"] - expected[f"{path}.{what}"]) <= (
                5 * row["standard_error"] + 5e-10
            ), path
    used = hops_in_window(planted)
    sent = used[used["sent_to"].str.len() > 0].groupby("broker").size()
    assert table.loc["links.hub--west.back.reliability", "count"] == sent["west"]
    assert table.loc["links.east--hub.back.reliability", "count"] == sent["hub"]  # not 30
    alice = table.loc["subscribers.alice.link.delay"]
    assert abs(alice["estimate"] - 0.003) < 5 * alice["standard_error"]
    kept = table.loc["subscribers.alice.link.reliability"]
    lost = kept["estimate"] - expected["subscribers.alice.link.reliability"]
    assert abs(lost) <= 5 * kept["standard_error"]
    assert any("nothing crossed it from hub to west" in note for note in found.notes)


@pytest.mark.slow
def test_service_is_reconstructed_where_no_starts_were_recorded(planted, without_probes_and_starts):
    found = without_probes_and_starts
    row = found.parameters.set_index("path").loc["brokers.west.service"]
    arrivals = (hops_in_window(planted)["broker"] == "west").sum()
    # the first event of each of the short batches has no predecessor in it
    assert arrivals - 256 <= row["count"] < arrivals
    assert abs(row["estimate"] - 0.004) < 5 * row["standard_error"]
    assert row["family"] == "exponential"
    assert any("reconstructed assuming one server" in note for note in found.notes)
    hops = found.quality[found.quality["table"] == "hops"].set_index("fate")["rows"]
    copies = hops_in_window(planted).index % 4 == 0
    assert (hops["used"], hops["duplicate"]) == (copies.size, copies.sum())
    assert hops.sum() == len(planted.tables["hops"].iloc[::4]) + len(planted.tables["hops"])
    whole = found.measured.brokers.set_index("broker")
    truth = hops_in_window(planted).query("broker == 'west'")
    busy = ((truth["left_ns"] - truth["started_ns"]) / 1e9).sum() / planted.window_s
    # so many are missing, of any length
    assert whole.loc["west", "utilisation"] == pytest.approx(busy, rel=1.5 * 256 / arrivals)


@pytest.mark.slow
def test_dirt_is_counted_and_changes_nothing_else(
    spark, planted, characterised, write_traces, tmp_path
):
    dirty = copy.copy(planted)
    tables = {name: table.copy() for name, table in planted.tables.items()}
    many = tables["publications"].head(50)
    bad_publications = pd.concat(
        [
            many.assign(event=""),
            many.assign(published_ns=-5),
            many.assign(content="nonsense", event="bad-" + many["event"]),
            many.assign(content='{"a":[1]}', event="odd-" + many["event"]),
            many.assign(published_ns=5),
            many,
            many,
            many.assign(event="two-" + many["event"]),
            many.assign(event="two-" + many["event"], published_ns=many["published_ns"] + 1),
        ]
    )
    few = tables["deliveries"].head(30)
    bad_deliveries = pd.concat(
        [
            few.assign(event="unheard-of"),
            few.assign(received_ns=1),
            few.assign(event="bad-ticker-1"),
        ]
    ).assign(subscriber="alice")
    hop = tables["hops"].head(20)
    tables["publications"] = pd.concat([tables["publications"], bad_publications])
    tables["deliveries"] = pd.concat([tables["deliveries"], bad_deliveries, few, few])
    tables["hops"] = pd.concat(
        [tables["hops"], hop.assign(left_ns=0), hop.assign(broker=""), hop, hop, hop.head(7)]
    )
    steps = tables["subscriptions"]
    no_filters = steps.assign(filter="{")
    tables["subscriptions"] = pd.concat([steps, no_filters, no_filters.head(1), steps.head(2)])
    tables["probes"] = pd.concat([tables["probes"], tables["probes"].iloc[::5]])
    dirty.tables = tables
    traces = read_traces(spark, write_traces(dirty, tmp_path / "traces"))
    found = with_examples(characterise(traces), traces, to=tmp_path / "aside")
    assert rows_read(found.quality) == {name: len(table) for name, table in tables.items()}
    fates = found.quality.set_index(["table", "reason"])["rows"].to_dict()
    assert fates["publications", "no event"] == 50
    assert fates["publications", "content is not an event in JSON"] == 100
    assert fates["publications", "published outside the observed window"] == 50
    assert fates["publications", "published_ns is negative"] == 50
    assert fates["publications", "published before with the same id and content"] == 100
    assert fates["publications", "a different publication has the same id"] == 100
    assert fates["deliveries", "received again by the same subscriber"] == 60
    assert fates["deliveries", "its publication is missing or was set aside"] == 60
    assert fates["deliveries", "it was received before it was published"] == 30
    assert fates["hops", "it left before it started"] == 20
    assert fates["hops", "no broker"] == 20
    assert fates["subscriptions", "filter is not a filter in JSON"] == 3
    assert fates["hops", COPY] == 47
    assert fates["subscriptions", COPY] == 3
    assert fates["probes", COPY] == len(planted.tables["probes"]) // 5
    aside = {
        (place.name, why): rows
        for place in (tmp_path / "aside").iterdir()
        for why, rows in pd.read_parquet(place)["reason"].value_counts().items()
    }
    told = found.quality[found.quality["fate"] == "set aside"]
    # A row set aside and its copy are both written; the account has one as a duplicate.
    copies = {("subscriptions", "filter is not a filter in JSON"): 1}
    for key, rows in told.set_index(["table", "reason"])["rows"].items():
        assert aside.pop(key) == rows + copies.get(key, 0), key
    assert not aside
    # Only how sure rates and losses are: as many rows as could not be used may be missing.
    spoilt = 300 / (len(tables["publications"]) - 50)
    expected = characterised.parameters.copy()
    rates = expected["path"].str.endswith(".rate")
    assert rates.sum() == 2
    expected.loc[rates, "standard_error"] = np.hypot(
        expected["standard_error"], spoilt * expected["estimate"]
    )
    kept = expected["path"].str.endswith(".reliability")
    pd.testing.assert_frame_equal(found.parameters[~kept], expected[~kept], rtol=1e-9)
    wider = found.parameters.loc[kept, "standard_error"] / expected.loc[kept, "standard_error"]
    assert (wider >= 1.0 - 1e-9).all()
    assert wider.max() > 1.1
    assert list(found.parameters.loc[kept, "path"]) == list(expected.loc[kept, "path"])
    # Where rows that could not be used blur what crossed a link, its probes are surer.
    off = found.parameters.loc[kept, "estimate"] - expected.loc[kept, "estimate"]
    assert (off.abs() <= 3.0 * found.parameters.loc[kept, "standard_error"]).all()
    (note,) = [each for each in found.notes if "of the rows of publications" in each]
    assert note.startswith(f"{100 * spoilt:.2g} %")
    pd.testing.assert_frame_equal(
        found.measured.subscribers, characterised.measured.subscribers, rtol=1e-9
    )


@pytest.fixture(scope="module")
def settled(spark, characterised, planted_folder):
    """The usual traces without subscriptions and without the events of the last minute."""
    stages: list[str] = []
    traces = without_subscriptions(spark, planted_folder)
    base = characterised.system
    return characterise(traces, base=base, settle_s=60.0, progress=stages.append), stages


def without_subscriptions(spark, folder) -> Traces:
    traces = read_traces(spark, folder)
    tables = {name: frame for name, frame in traces.tables.items() if name != "subscriptions"}
    return Traces(tables=tables, window=traces.window)


def test_without_subscriptions_the_base_system_says_who_wants_what(
    spark, planted, characterised, planted_folder, settled
):
    with pytest.raises(InvalidTracesError, match="give a base system"):
        characterise(without_subscriptions(spark, planted_folder))
    found, _ = settled
    assert any("are taken from the base system" in note for note in found.notes)
    assert [each.wants for each in found.system.subscribers] == [
        each.wants for each in characterised.system.subscribers
    ]
    kept = found.parameters["path"].str.endswith(".reliability")  # of fewer events than all
    now, before = (each.parameters for each in (found, characterised))
    pd.testing.assert_frame_equal(now[~kept], before[~kept], rtol=1e-9)
    moved = (now["estimate"] - before["estimate"])[kept].abs()
    assert (moved < 2 * before["standard_error"][kept]).all()


def test_events_of_the_last_seconds_may_be_left_out(planted, settled):
    found, stages = settled
    early = copy.copy(planted)
    published = planted.tables["publications"]
    kept = published[published["published_ns"] < EPOCH_NS + round((planted.window_s - 60) * S)]
    early.tables = {**planted.tables, "publications": kept}
    naive = naive_outcome(early)
    row = found.measured.subscribers.set_index("subscriber")
    assert (row["events"] == naive["wanted"]).all()
    assert row["on_time"].to_numpy() == pytest.approx(naive["on_time"] / naive["wanted"], rel=1e-12)
    assert (row["lost_unexplained"] == 0).all()
    names = ["hops", "publications", "links", "intervals", "deliveries", "fitting"]
    assert stages == [f"{name}, {n} of at most 8 steps" for n, name in enumerate(names, start=1)]
    assert found.measured.provenance["settle_s"] == pytest.approx(60.0)


WINDOW = TraceWindow(from_ns=0, until_ns=100 * S)


def traces_of(frame, **rows) -> Traces:
    names = {"publications", "hops", "deliveries", "subscriptions"} | set(rows)
    return Traces(
        tables={
            name: frame(rows.get(name, []), TRACE_TABLES[name].ddl.replace(" NOT NULL", ""))
            for name in names
        },
        window=WINDOW,
    )


@pytest.fixture(scope="module")
def thin(frame, uncompiled):
    """One event that one broker had: the traces, and what was counted."""
    traces = traces_of(
        frame,
        publications=[("e1", "p", "hub", 5 * S, '{"a":1}', None, None)],
        hops=[("e1", "hub", "p", 6 * S, None, 7 * S, None)],
        subscriptions=[
            ("s1", "s", "hub", "subscribe", 0, "{}"),
            ("s2", "t", "hub", "subscribe", 0, '{"b":2}'),
        ],
    )
    with uncompiled():
        return observed_in(traces), collect(traces, WINDOW, lambda _: None)


def test_empty_tables_are_no_system_and_the_error_says_what_is_missing(thin):
    traces, seen = thin
    counted = {each.name: getattr(seen, each.name) for each in fields(seen)}
    nothing = {
        name: table.head(0) for name, table in counted.items() if isinstance(table, pd.DataFrame)
    }
    with pytest.raises(InvalidTracesError, match="or give a base system") as told:
        fit(traces, replace(seen, contents=read_contents([]), **nothing), WINDOW, None)
    for missing in ("one of the brokers", "one of the publishers", "one of the subscribers"):
        assert missing in str(told.value)


def test_thin_traces_give_no_made_up_numbers(thin):
    found = fit(*thin, WINDOW, None)
    assert loads(dumps(found.system)) == found.system
    hub = found.system.brokers[0]
    assert hub.service is None
    text = "\n".join(found.notes)
    assert "broker 'hub': its service time was not recorded" in text
    assert "publisher 'p': too few events to fit its intervals" in text
    assert "the links of s, t were not measured" in text
    measured = found.measured.subscribers.set_index("subscriber")
    # its home broker had it, so that only its own link can have lost it
    lost = ["events", "on_time", "lost_link", "lost_unexplained"]
    assert measured.loc["s", lost].tolist() == [1, 0, 1, 0]
    assert measured.loc["s", "on_time_se"] > 0.2  # one event proves little
    assert np.isnan(measured.loc["t", "on_time"])  # nobody publishes what it wants
    delay = found.parameters.set_index("path").loc["publishers.p.link.delay"]
    assert (delay["count"], delay["estimate"]) == (1, 1.0)
    assert np.isnan(delay["standard_error"])
    assert "publishers.p.link.delay" not in dict(found.system.standard_errors)


names = st.sampled_from(["", "a", "b", "hub"])
times = st.one_of(st.none(), st.integers(0, 120 * S), st.integers(-(2**63), 2**63 - 1))
texts = st.sampled_from(["{}", '{"a":1}', "{", "null", '{"a":{"b":1}}', '{"a":1e999}', ""])


@given(
    publications=st.lists(
        st.tuples(names, names, names, times, texts, times, times), min_size=8, max_size=40
    ),
    hops=st.lists(
        st.tuples(names, names, names, times, times, times, st.sampled_from([None, ["a", None]])),
        max_size=40,
    ),
    deliveries=st.lists(st.tuples(names, names, names, times), max_size=40),
    subscriptions=st.lists(
        st.tuples(names, names, names, st.just("subscribe"), times, texts), max_size=4
    ),
    sessions=st.lists(
        st.tuples(names, st.sampled_from(["connected", "disconnected", "on", None]), times),
        max_size=8,
    ),
    utilisation=st.lists(
        st.tuples(names, names, times, times, st.sampled_from([None, -1.0, 0.5, float("nan")])),
        max_size=4,
    ),
)
@settings(deadline=None, max_examples=2, suppress_health_check=list(HealthCheck))
@pytest.mark.slow
def test_whatever_stands_in_the_tables_the_counts_add_up(frame, uncompiled, **rows):
    traces = traces_of(frame, **rows)
    with uncompiled():
        seen = collect(traces, WINDOW, lambda _: None)
    bad = find_subscribers(seen.subscriptions, None, WINDOW).bad_rows
    quality = quality_table(seen, bad_filters=bad)
    assert rows_read(quality) == {name: len(part) for name, part in rows.items()}
    assert (quality["rows"] >= 0).all()
    try:
        found = fit(observed_in(traces), seen, WINDOW, None)
    except InvalidTracesError:  # what these tables tell need not be a system
        return
    assert loads(dumps(found.system)) == found.system
    shares = found.measured.subscribers[["on_time", "delivered"]].dropna()
    assert ((shares >= 0) & (shares <= 1)).all().all()


# ---- traces of a few rows ------------------------------------------------------------------------


def ring(frame, hops, *, probes=(), more=(), deliveries=(), published=None):
    """A publisher at a, a subscriber at c, and whatever hops there are between a, b and c."""
    plain = [(f"e{i}", "p", "a", i * S, "{}", None, None) for i in range(1, 5)]
    return traces_of(
        frame,
        publications=published or plain,
        deliveries=list(deliveries),
        hops=[("e1", "a", "p", S, S, S + 5, ["b"]), *hops],
        subscriptions=[("s1", "s", "c", "subscribe", 0, "{}"), *more],
        probes=list(probes),
    )


def hop(event, source, target):
    return (event, target, source, 2 * S, 2 * S, 2 * S + 5, [])


THERE = [hop("e1", "a", "b"), hop("e1", "b", "c")]
ROUND = [("a", "b", S, S + 1), ("b", "c", S, S + 1), ("c", "a", S, S + 1)]


@pytest.fixture(scope="module")
def probed_ring(frame, uncompiled):
    """A ring that was probed, and some oddities in it: the traces, what was counted, what it tells.

    Lifetimes a percent apart, contents that are none, a client t that was probed beside one that
    was not, and somebody of whom only a probe tells.
    """
    good = [(f"e{i}", "p", "a", i * S, "{}", (101 + i % 2) * S // 100, None) for i in range(1, 7)]
    bad = [(f"x{i}", "p", "a", i * S, f"nonsense {i}", S // 2, None) for i in range(1, 4)]
    traces = ring(
        frame,
        THERE,
        published=good + bad,
        probes=[*ROUND, ("c", "t", S, S + 7), ("a", "ghost", S, S + 1)],
        more=[("s2", "t", "c", "subscribe", 0, "{}")],
        deliveries=[
            ("e1", name, "c", 2 * S + 5 + delay) for name, delay in (("s", 3000), ("t", 5000))
        ],
    )
    with uncompiled():
        seen = collect(traces, WINDOW, lambda _: None)
    observed = observed_in(traces)
    return observed, seen, fit(observed, seen, WINDOW, None)


def test_of_links_in_a_cycle_events_follow_those_they_used(probed_ring):
    found = probed_ring[2]
    assert [link.name for link in found.system.links] == ["a--b", "a--c", "b--c"]
    assert found.system.routing == Routing(tree=(("a", "b"), ("b", "c")))
    assert loads(dumps(found.system)) == found.system
    assert any("the links form a cycle" in note for note in found.notes)


def test_a_cycle_that_events_went_all_around_needs_a_base_to_say_the_tree(probed_ring):
    traces, seen, told = probed_ring
    arrival = seen.hops.query("statistic == 'arrivals' and broker == 'b'")
    around = replace(seen, hops=pd.concat([seen.hops, arrival.assign(broker="c")]))
    with pytest.raises(InvalidTracesError, match=r"a cycle through .*give a base system"):
        fit(traces, around, WINDOW, None)
    base = replace(told.system, routing=Routing(root="a"))
    found = fit(traces, around, WINDOW, base)
    assert found.system.routing == Routing(root="a")
    assert loads(dumps(found.system)) == found.system


def test_what_does_not_hang_together_is_an_error_not_a_system(probed_ring):
    traces, seen, _ = probed_ring
    seen = replace(seen, probes=None)
    broken = replace(
        seen,
        hops=seen.hops[seen.hops["came_from"] != "b"],
        crossings=seen.crossings[seen.crossings["source"] != "b"],
    )
    with pytest.raises(InvalidTracesError, match="no path from a to c"):
        fit(traces, broken, WINDOW, None)
    bad = seen.subscriptions.assign(filter='{"x":{"regex":3}}')
    with pytest.raises(
        InvalidTracesError, match=r"earlier warnings: .*not a filter in JSON.*regex"
    ):
        fit(traces, replace(seen, subscriptions=bad), WINDOW, None)
    peer = seen.subscriptions.assign(subscriber="p")  # somebody who publishes and subscribes
    both = fit(traces, replace(seen, subscriptions=peer), WINDOW, None).system
    assert [each.name for each in (*both.publishers, *both.subscribers)] == ["p", "p"]


def test_whoever_is_left_out_is_named(probed_ring):
    traces, seen, told = probed_ring
    silent = replace(told.system.publishers[0], name="mute")
    deaf = replace(told.system.subscribers[0], name="deaf")
    base = replace(
        told.system,
        publishers=(*told.system.publishers, silent),
        subscribers=(*told.system.subscribers, deaf),
    )
    found = fit(traces, seen, WINDOW, base)
    text = "\n".join(found.notes)
    assert "ghost appear in probes only" in text
    assert "publisher mute of the base system published nothing in the recorded time" in text
    assert "never subscribed: deaf" in text
    assert [each.name for each in found.system.publishers] == ["p"]


def test_a_client_that_was_probed_hides_no_other(probed_ring):
    estimates = probed_ring[2].parameters.set_index("path")["estimate"]
    assert estimates["subscribers.s.link.delay"] == pytest.approx(3e-6)
    assert estimates["subscribers.t.link.delay"] == pytest.approx(7e-9)


def test_lifetimes_a_percent_apart_stay_two_and_bad_contents_change_nothing(probed_ring):
    found = probed_ring[2]
    rows = found.system.publishers[0].content.rows()
    assert sorted((row.lifetime.value_s, row.probability) for row in rows) == [
        (1.01, 0.5),
        (1.02, 0.5),
    ]
    fates = found.quality.set_index(["table", "reason"])["rows"].to_dict()
    assert fates["publications", "content is not an event in JSON"] == 3
    assert fates["publications", ""] == 6


@pytest.mark.parametrize(
    ("change", "saw"),
    [
        ({"servers": 2}, "2 servers"),
        ({"cpu": Station(service=Service(law=Deterministic(value_s=0.1)))}, r"stations \(cpu\)"),
    ],
)
def test_a_base_whose_brokers_are_several_queues_is_refused(probed_ring, change, saw):
    base = probed_ring[2].system
    base = replace(base, brokers=(replace(base.brokers[0], **change), *base.brokers[1:]))
    with pytest.raises(UnsupportedError, match=f"broker 'a' has {saw}"):
        characterise(probed_ring[0], base=base)


def test_a_table_broken_in_its_middle_is_an_error_in_one_line(
    spark, planted, write_traces, tmp_path, recwarn
):
    write_traces(planted, tmp_path)
    part = tmp_path / "hops" / "part-0.parquet"
    body = bytearray(part.read_bytes())
    body[1000 : len(body) // 2] = b"\xff" * (len(body) // 2 - 1000)
    part.write_bytes(bytes(body))
    with pytest.raises(InvalidTracesError, match="the table hops cannot be read: ") as told:
        characterise(read_traces(spark, tmp_path))
    assert "\n" not in str(told.value)
    assert "part-0.parquet" in str(told.value)
    assert told.value.__cause__ is None
    assert not recwarn.list
