"""Traces made on Spark: every statistic finds what was planted, with dirt and without."""

from __future__ import annotations

import numpy as np
import pytest

from tidings.characterisation.count import gathering
from tidings.characterisation.fit.stationarity import STEADY
from tidings.characterisation.fit.workloads import Measuring
from tidings.characterisation.job import characterise, measure_workload
from tidings.model.laws import Exponential, LogNormal, Uniform
from tidings.model.reading import loads
from tidings.simulation.recording import record
from tidings.simulation.trace_rows import EPOCH_NS
from tidings.sweeps.dirt import CLEAN, Dirt
from tidings.sweeps.generating import Planting, generate_traces, write_generated
from tidings.traces.reading import read_traces

# Alice is reached by what neither fails nor goes away. West fails, its link loses in a row and its
# clock is ahead; Bob is at times away, Carol unsubscribed. For Dave all of fx always goes to west.
TEXT = """
tidings: 1
lifetime: 35ms
brokers:
  hub: {service: {exponential: 3ms}}
  east: {service: {uniform: [1ms, 5ms]}}
  west: {service: 2ms FAILURE}
links:
  - {between: [east, hub], delay: {lognormal: {mean: 8ms, scv: 0.5}}, reliability: 0.98}
  - {between: [hub, west], delay: 10ms, reliability: 0.8 BURST}
publishers:
  ticker:
    at: hub
    every: {exponential: 10ms}
    content:
      - {p: 0.7, event: {topic: stock, price: 12}}
      - {p: 0.3, event: {topic: fx}}
    link: {delay: {deterministic: 1ms}, reliability: 0.99}
  tower:
    at: east
    every: {uniform: [10ms, 30ms]}
    lifetime: 90ms
    content: [{p: 1, event: {topic: wind}}]
subscribers:
  alice:
    at: east
    wants: {topic: stock}
    link: {delay: {weibull: {scale: 20ms, shape: 2}}, reliability: 0.97}
  bob: {at: hub, wants: {topic: wind}, link: {delay: {exponential: 4ms}} CONNECTIVITY}
  carol: {at: west, wants: {topic: fx} CHURN}
  dave: {at: west, wants: {topic: fx}}
"""
CHANGING = {
    "FAILURE": ", failure: {up: {exponential: 400ms}, down: {exponential: 100ms}}",
    "BURST": ", loss_burst: 4",
    "CONNECTIVITY": ", connectivity: {on: {exponential: 300ms}, off: {exponential: 200ms}}",
    "CHURN": ", stays: {exponential: 250ms}, away: {exponential: 250ms}",
}
AHEAD_S = 0.004  # of the clock of west
SPAN_S = 160.0
END_NS = EPOCH_NS + round(SPAN_S * 1e9)


def system(without=()):
    text = TEXT
    for place, words in CHANGING.items():
        text = text.replace(f" {place}", "" if place in without else words)
    return loads(text)


SYSTEM = system()
EXPECTED = {
    "brokers.hub.service": 0.003,
    "brokers.east.service": 0.003,
    "brokers.west.service": 0.002,
    "brokers.west.failure.mtbf": 0.4,
    "brokers.west.failure.mttr": 0.1,
    "links.east--hub.delay": 0.008,
    "links.east--hub.back.delay": 0.008,
    "links.hub--west.delay": 0.010 + AHEAD_S,
    "links.hub--west.back.delay": 0.010 - AHEAD_S,
    "links.east--hub.reliability": 0.98,
    "links.east--hub.back.reliability": 0.98,
    "links.hub--west.reliability": 0.8,
    "links.hub--west.loss_burst": 4.0,
    "links.hub--west.back.loss_burst": 4.0,
    "publishers.ticker.rate": 100.0,
    "publishers.tower.rate": 50.0,
    "publishers.ticker.link.reliability": 0.99,
    "publishers.ticker.content.1.p": 0.7,
    "subscribers.alice.link.delay": SYSTEM.subscribers[0].link.delay.mean_s,
    "subscribers.alice.link.reliability": 0.97,
    "subscribers.bob.link.delay": 0.004,
    "subscribers.bob.connectivity.on": 0.3,
    "subscribers.bob.connectivity.off": 0.2,
    "subscribers.carol.stays": 0.25,
    "subscribers.carol.away": 0.25,
}
# A few hundred of each; losses on the way to west come in so many rows.
FEW = ("failure", "connectivity", "stays", "away", "loss_burst", "hub--west.reliability")


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    "dirt",
    [
        CLEAN,
        pytest.param(  # test_round_trip and test_job ask the same of dirt every time
            Dirt(twice=0.02, nameless=0.01, impossible=0.01), marks=pytest.mark.nightly
        ),
    ],
    ids=["clean", "dirty"],
)
def test_what_is_planted_is_found(spark, tmp_path, monkeypatch, dirt):
    monkeypatch.setattr(gathering, "MOST_CONTENTS", 1)  # so that contents are folded, too
    planting = Planting(seed=3, probes=6000, sample_s=0.5, ahead_s={"west": AHEAD_S}, dirt=dirt)
    made = generate_traces(spark, SYSTEM, SPAN_S, planting)
    traces = read_traces(spark, write_generated(made, tmp_path / "traces"))
    found = characterise(traces)
    assert missed(found.parameters.set_index("path"), dirt) == {}
    check_laws(found, dirt)
    check_account(found, dirt)
    check_measured(found, dirt)
    west = found.clocks.set_index(["source", "target"]).loc[("hub", "west")]
    ends_s = (west["low_s"], west["high_s"])  # both ways take 10 ms
    assert ends_s == pytest.approx((AHEAD_S - 0.01, AHEAD_S + 0.01), abs=1e-12)
    if dirt == CLEAN:  # whose hops lost their ids worked all the same, which samples tell
        check_workload(traces)
        check_periods_are_kept(traces.tables)


def missed(table, dirt):
    """Estimates further than five standard errors from the truth, or with errors that tell none."""
    found = {}
    for path, truth in EXPECTED.items():
        estimate, error = table.loc[path, ["estimate", "standard_error"]]
        few = any(each in path for each in FEW)
        spoilt = dirt != CLEAN and path.endswith(".rate")  # as many as are spoilt may be missing
        blunt = 0.4 if few or spoilt else 0.1
        if abs(estimate - truth) > 5 * error + 5e-10 or 5 * error >= blunt * truth:
            found[path] = (estimate, truth, error)
    return found


def check_laws(found, dirt):
    laws = {broker.name: broker.service.law for broker in found.system.brokers}
    assert isinstance(laws["hub"], Exponential)
    assert isinstance(laws["east"], Uniform)
    assert isinstance(found.system.links[0].there.delay, LogNormal)
    ticker, tower = found.system.publishers
    assert isinstance(ticker.every, Exponential)
    if dirt == CLEAN:
        assert isinstance(tower.every, Uniform)
    else:
        check_kept_intervals(found.laws["publishers.tower.rate"].sample, dirt.kept)
    assert (ticker.lifetime.value_s, tower.lifetime.value_s) == (0.035, 0.09)
    assert found.stationarity["verdict"].tolist() == [STEADY, STEADY]
    contents = [row.event for row in ticker.content.rows()]
    assert contents == [{"topic": "stock"}, {"topic": "fx"}]  # nobody asks for the price
    (note,) = (note for note in found.notes if "distinct contents" in note)
    assert "(topic)" in note
    waited = found.waits.set_index("path")["estimate"]
    assert waited["brokers.hub.waiting.share"] > 0.3  # busy for 0.45 of the time


def check_kept_intervals(sample, kept):
    """Those of the share p that is kept are sums of one, two or more, of c² = p c² + 1 − p."""
    # In means, fourth moments of one interval about 1, and of the sum of two.
    error = ((kept * (1 / 2) ** 4 / 5 + (1 - kept) * 2.1) / sample.count) ** 0.5
    planted = SYSTEM.publishers[1].every.scv
    assert sample.scv == pytest.approx(kept * planted + 1 - kept, abs=5 * error)
    assert 5 * error < 0.016  # no gaps would be 0.018 off


def check_account(found, dirt):
    fates = found.quality.groupby(["table", "fate"])["rows"].sum()
    read, published = found.quality.query("table == 'publications'")["rows"].sum(), 150 * SPAN_S
    copies = int(fates.get(("publications", "duplicate"), 0))
    # Counts of the Poisson publisher vary as their mean, those of the other as a renewal's.
    assert read - copies == pytest.approx(published, abs=5 * (104.2 * SPAN_S) ** 0.5)
    assert copies == pytest.approx(dirt.twice * published, abs=5 * (dirt.twice * published) ** 0.5)
    spoilt = (1.0 - dirt.kept) * published
    set_aside = int(fates.get(("publications", "set aside"), 0))
    assert set_aside == pytest.approx(spoilt, abs=5 * spoilt**0.5)


def check_measured(found, dirt):
    """What Alice gets is what she gets in a much longer run: shares, delays, losses."""
    longer = record(system(without=["BURST"]), seed=5, duration_s=50 * SPAN_S, probes_per_s=0.0)
    published = longer.tables["publications"].to_pandas().set_index("event")["published_ns"]
    got = longer.tables["deliveries"].to_pandas().query("subscriber == 'alice'")
    delays_s = (got["received_ns"] - got["event"].map(published)).to_numpy() / 1e9
    survives = 0.99 * 0.98 * 0.97
    arrives = dirt.kept * survives  # of deliveries that are spoilt nobody knows
    row = found.measured.subscribers.set_index("subscriber").loc["alice"]
    on_time = (delays_s <= 0.035).mean()
    assert 0.4 < on_time < 0.8  # so that a wrong time matters
    assert row["on_time"] == pytest.approx(arrives * on_time, abs=5 * row["on_time_se"])
    assert 5 * row["on_time_se"] < 0.06
    error = np.sqrt(arrives * (1 - arrives) / row["events"])
    assert row["delivered"] == pytest.approx(arrives, abs=5 * error)
    if dirt == CLEAN:  # hops that have lost their ids look like losses
        # Where sessions are recorded, what is lost on the last link may have been lost otherwise.
        shares = {"lost_link": 1 - 0.99 * 0.98, "lost_unexplained": 0.99 * 0.98 * 0.03}
        for name, share in shares.items():
            error = np.sqrt(share * (1 - share) / row["events"])
            assert row[name] == pytest.approx(share, abs=5 * error), name
    assert row["delay_mean_s"] == pytest.approx(delays_s.mean(), abs=5 * row["delay_mean_se_s"])
    # Half of what arrived came sooner: a share of 1/2 has an error of 1/(2 √n).
    band = 0.5 + np.array([-2.5, 2.5]) / np.sqrt(row["events"] * arrives)
    low_s, high_s = np.quantile(delays_s, band)
    assert low_s < row["delay_p50_s"] < high_s < 1.1 * low_s


def check_periods_are_kept(tables):
    """Nothing comes to a broker that is down, and nothing sets out to whoever is away."""
    behind_ns = round(AHEAD_S * 1e9)
    came = tables["hops"].where("broker = 'west'").select("arrived_ns").toPandas()
    states = tables["states"].where("component = 'west'").toPandas()
    state, _ = at_those_times(came["arrived_ns"] - behind_ns, states)
    assert set(state) == {"up"}
    got = tables["deliveries"].where("subscriber = 'bob'").select("received_ns").toPandas()
    sessions = tables["sessions"].where("peer = 'bob'").toPandas()
    state, since_s = at_those_times(got["received_ns"], sessions)
    # What was under way when he left arrives: of delays on his link e⁻¹⁵ are longer than this.
    assert since_s[state == "disconnected"].max() < 15 * 0.004
    assert since_s[state == "connected"].max() > 0.5


def at_those_times(at_ns, changes):
    """In which state somebody was at each moment of the window, and for how long."""
    ordered, inside = changes.sort_values("at_ns"), at_ns[at_ns < END_NS].to_numpy()
    place = np.searchsorted(ordered["at_ns"].to_numpy(), inside, side="right") - 1
    since_s = (inside - ordered["at_ns"].to_numpy()[place]) / 1e9
    return ordered["state"].to_numpy()[place], since_s


def check_workload(traces):
    workload = measure_workload(traces, Measuring(services="utilisation"))
    routing = workload.routing.set_index(["publisher", "broker", "next_broker"])
    for next_broker, share in (("east", 0.7), ("west", 0.3)):
        row = routing.loc[("ticker", "hub", next_broker)]
        assert row["probability"] == pytest.approx(share, abs=5 * row["probability_se"])
        assert 5 * row["probability_se"] < 0.1 * share
    services = workload.services.set_index("broker")
    for broker, mean_s in (("hub", 0.003), ("east", 0.003), ("west", 0.002)):
        row = services.loc[broker]
        error_s = row["service_mean_se_s"]
        assert row["service_mean_s"] == pytest.approx(mean_s, abs=5 * error_s + 1e-9)
        # A load that is always there is told apart, so that only how counts N vary tells: of n
        # samples the error is √(N Var S)/√(n Var N), 0.23 ms of 3 ms at the hub.
        assert 5 * error_s < 0.5 * mean_s
