"""Histograms as interval-censored data: laws, bounds, growth; and which source is believed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from scipy import optimize

from exact_levels import with_outages
from tidings.characterisation.count.histograms import histogram_statistics
from tidings.characterisation.fit.censored import Buckets, buckets_by_name, fit_buckets
from tidings.characterisation.fit.combining import fit_reported, with_reported
from tidings.characterisation.fit.counting import Observed
from tidings.characterisation.fit.fitted import Characterisation
from tidings.characterisation.fit.parameters import Parameter
from tidings.characterisation.fit.queues import CountedQueue, Counters, InTime
from tidings.characterisation.fit.reported import Reported, add_reported
from tidings.characterisation.job import characterise
from tidings.errors import InvalidTracesError
from tidings.model.arrays import Floats
from tidings.model.delay_grid import BINS
from tidings.model.laws import Exponential
from tidings.model.reading import from_document, system_document
from tidings.model.system import System
from tidings.model.trace_files import trace_table
from tidings.model.trace_tables import HISTOGRAMS
from tidings.traces.reading import Traces, read_rows
from tidings.traces.window import TraceWindow

S = 10**9
# As Prometheus's clients have them.
DEFAULT_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, math.inf)
OBSERVED = Observed(
    tables=("levels",), window=TraceWindow(from_ns=0, until_ns=100 * S), source="polls"
)
BETWEEN_S = (0.003, 0.007, 0.017, 0.035, 0.07, 0.17, 0.35, 0.7, 1.7, 3.5, 7.0)


def counted(times_s: Floats) -> Buckets:
    return Buckets.of([(bound, int((times_s <= bound).sum())) for bound in DEFAULT_S])


def times_of(kind: str) -> Floats:
    rng = np.random.default_rng(11)
    if kind == "queue with outages":
        served = with_outages(rng, events=40_000, rate=20.0, service_s=0.03, up_s=300.0, down_s=8.0)
        return served.left_s - served.entered_s
    if kind == "two speeds":
        fast = rng.random(40_000) < 0.8
        return np.where(fast, rng.gamma(4.0, 0.005, 40_000), rng.gamma(6.0, 0.2, 40_000))
    return {
        "exponential": rng.exponential(0.3, 40_000),
        "lognormal": rng.lognormal(-2.0, 1.0, 40_000),
        "erlang": rng.gamma(5.0, 0.04, 40_000),
    }[kind]


@pytest.mark.parametrize(
    "kind", ["exponential", "lognormal", "erlang", "two speeds", "queue with outages"]
)
def test_shares_between_default_bounds_are_within_two_hundredths(kind: str) -> None:
    times_s = times_of(kind)
    buckets = counted(times_s)
    fitted = fit_buckets(buckets)
    for within_s in BETWEEN_S:
        truth = float(np.mean(times_s <= within_s))
        low, high = buckets.share(within_s)
        assert low <= truth <= high
        assert float(np.asarray(fitted.law.cdf(within_s))) == pytest.approx(truth, abs=0.02)
    assert max(np.diff([buckets.share(each) for each in BETWEEN_S]))[0] > 0.1  # open by so much


def test_long_lists_of_quantiles_are_given_back() -> None:
    percent = np.concatenate(
        [np.arange(0.5, 99.5, 0.5), 100.0 - 10.0 ** -np.arange(0.0, 4.0, 0.25)]
    )
    delays_s = np.exp(0.8 * np.sort(np.random.default_rng(2).normal(-5.0, 1.0, percent.size)))
    events = np.round(percent / 100.0 * 18e6)
    law = fit_buckets(Buckets.of(zip(delays_s, events, strict=True))).law
    for share, delay_s in zip(events / events[-1], delays_s, strict=True):
        at_s = optimize.brentq(
            lambda t, share=share: float(np.asarray(law.cdf(t))) - share + 1e-12,
            0.0,
            2.0 * delays_s[-1],
            xtol=1e-9,
        )
        assert at_s == pytest.approx(delay_s, rel=0.05)


def test_series_with_other_bounds_are_fitted_together() -> None:
    times_s = times_of("exponential")
    first, second = times_s[:20_000], times_s[20_000:]
    bounds = (0.2, 0.7, math.inf)
    other = Buckets.of([(bound, int((second <= bound).sum())) for bound in bounds])
    both = Buckets.joined([counted(first), other])
    assert both.events == 40_000
    assert fit_buckets(both).law.mean_s == pytest.approx(times_s.mean(), rel=0.02)


def histogram_rows(*rows: tuple[str, str, str, float, float, int]) -> pa.Table:
    names = ("name", "what", "series", "at_s", "up_to_s", "events")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    columns["at_ns"] = [int(each * S) for each in columns.pop("at_s")]
    return trace_table("histograms", {name: list(each) for name, each in columns.items()})


def test_growth_is_counted_over_resets_and_changed_bounds(
    spark: SparkSession, few_rows: None
) -> None:
    inf = math.inf
    rows = histogram_rows(
        ("q", "delay", "a", 1.0, 0.1, 100), ("q", "delay", "a", 1.0, inf, 200),
        ("q", "delay", "a", 2.0, 0.1, 110), ("q", "delay", "a", 2.0, inf, 230),
        # A restart: 5 and 60 since then, although the lower one alone would seem to have grown.
        ("q", "delay", "a", 3.0, 0.1, 115), ("q", "delay", "a", 3.0, inf, 160),
        ("q", "delay", "b", 1.0, 0.5, 7), ("q", "delay", "b", 1.0, inf, 9),  # read once
        ("s", "service", "a", 1.0, 0.1, 10), ("s", "service", "a", 2.0, 0.1, 30),
        ("s", "service", "a", 3.0, 0.2, 500), ("s", "service", "a", 4.0, 0.2, 504),
        ("s", "service", "a", 5.0, math.nan, 1), ("s", "size", "a", 5.0, 1.0, 1),
        ("s", "service", "a", 5.0, -1.0, 1),
    )  # fmt: skip
    frame = read_rows(spark.createDataFrame(rows), HISTOGRAMS)
    grown = histogram_statistics(frame).toPandas()
    cells = {(r.name, r.series, r.up_to_s): r.events for r in grown.itertuples(index=False)}
    assert cells == {
        ("q", "a", 0.1): 10 + 115,
        ("q", "a", inf): 30 + 160,
        ("q", "b", 0.5): 7,
        ("q", "b", inf): 9,
        ("s", "a", 0.1): 20,
        ("s", "a", 0.2): 4,
    }
    buckets = buckets_by_name(grown)
    assert buckets["q", "delay"].events == 199
    assert buckets["q", "delay"].share(0.1) == (125 / 199, (125 + 7) / 199)
    window = TraceWindow(from_ns=0, until_ns=5 * S)
    fitted = characterise(Traces(tables={"histograms": frame}, window=window))
    aside = fitted.quality[fitted.quality["fate"] == "set aside"]
    assert dict(zip(aside["reason"], aside["rows"], strict=True)) == {
        "no up_to_s": 1,
        "up_to_s is negative": 1,
        "what is not delay or service": 1,
    }
    assert set(fitted.parameters["source"]) == {"histograms"}
    assert set(fitted.parameters["path"]) == {
        "subscribers.q.link.delay", "subscribers.s.processing",
    }  # fmt: skip


def base() -> System:
    subscriber = {"at": "hub", "wants": {"a": 1}, "processing": {"exponential": "1ms"}}
    return from_document(
        {
            "tidings": 1,
            "lifetime": "1s",
            "brokers": {"hub": {"service": "5ms"}, "edge": {"service": "5ms"}},
            "links": [{"between": ["hub", "edge"]}],
            "publishers": {
                "pub": {"at": "hub", "every": {"rate": "1/s"}, "content": {"event": {"a": 1}}}
            },
            "subscribers": dict.fromkeys(("traced", "both", "counted", "silent"), subscriber),
        }
    )


def queue(name: str) -> CountedQueue:
    """Ten a second, each two seconds in the queue, worked off at twenty a second."""
    drawn = np.zeros(BINS)
    drawn[300] = 1000.0
    return CountedQueue(
        name=name, rate_per_s=10.0, rate_se=0.1, events=1000, mean_s=2.0, mean_se_s=0.2,
        least_mean_s=1.0, most_mean_s=4.0,
        in_time={1.0: InTime(share=0.8, standard_error=0.01, low=0.7, high=0.85, events=1000.0)},
        delays={"drawn": drawn, "least": drawn, "most": drawn}, polls=10, apart_s=15.0, resets=0,
        busy_per_s=20.0, slowest_per_s=16.0, fastest_per_s=25.0, busy_events=400,
        stalls=0, stalled_s=0.0, redelivered=0.0, dropped={},
        counters=Counters(
            polls=10, from_ns=0, until_ns=100 * 10**9, entered=np.full(32, 1000 / 32),
            again=np.zeros(32), dropped={},
        ),
    )  # fmt: skip


def test_traces_beat_histograms_and_these_beat_counters() -> None:
    served = counted(np.random.default_rng(1).exponential(0.02, 20_000))
    reported = Reported(
        queues={name: queue(name) for name in ("traced", "both", "counted", "stranger")},
        buckets={
            ("both", "service"): served,
            ("both", "delay"): counted(times_of("exponential")),
            ("hub", "service"): served,
            ("edge", "service"): served,
        },
    )
    added = add_reported(base(), reported, traced={"traced"}, learnt={"brokers.edge.service"})
    numbers = {each.path: each for each in added.parameters}
    assert numbers["brokers.hub.service"].source == "histograms"
    assert "brokers.edge.service" not in numbers  # traces have told it
    sources = {
        name: numbers[f"subscribers.{name}.processing"].source
        for name in ("traced", "both", "counted")
    }
    assert sources == {"traced": "levels", "both": "histograms", "counted": "levels"}
    laws = {each.name: each.processing for each in added.system.subscribers}
    assert laws["counted"] == Exponential(mean_s=1.0 / 20.0)
    assert laws["both"].mean_s == pytest.approx(0.02, rel=0.02)  # type: ignore[union-attr]
    assert laws["silent"] == Exponential(mean_s=0.001)
    assert {row["subscriber"]: row["by"] for row in added.rows} == {
        "both": "histograms", "counted": "levels",
    }  # fmt: skip
    counted_row = next(row for row in added.rows if row["subscriber"] == "counted")
    assert (counted_row["on_time"], counted_row["error"]) == (0.8, pytest.approx(0.1))
    assert all(each.bound >= 0 and each.source for each in added.parameters)
    assert any("stranger" in note for note in added.notes)


def test_a_system_that_sends_a_queue_something_else_says_so_in_its_predictions() -> None:
    (told,) = added_to(base()).remarks
    assert told.startswith("queue 'counted' got 10 ± 0.1 events/s, and the system's publishers")
    (publisher,) = base().publishers
    right = replace(publisher, every=Exponential(mean_s=1.0 / 10.2))
    assert added_to(replace(base(), publishers=(right,))).remarks == ()


def added_to(system: System) -> System:
    reported = Reported(queues={"counted": queue("counted")})
    return add_reported(system, reported, traced=(), learnt=()).system


def test_without_a_backlog_the_mean_time_bounds_the_handling_time() -> None:
    idle = replace(queue("counted"), busy_events=0, busy_per_s=math.nan)
    added = add_reported(base(), Reported(queues={"counted": idle}), traced=(), learnt=())
    handled = {each.path: each for each in added.parameters}["subscribers.counted.processing"]
    # M/M/1 with 10/s: two seconds in the queue is a service of s with s/(1 − 10 s) = 2.
    assert handled.estimate == pytest.approx(2.0 / 21.0)
    assert handled.bound == pytest.approx((4.0 / 41.0 - 1.0 / 11.0) / 2.0)


def test_pauses_that_no_poll_shows_are_in_the_bound_of_the_handling_time() -> None:
    def handled(each: CountedQueue) -> Parameter:
        added = add_reported(base(), Reported(queues={"counted": each}), traced=(), learnt=())
        return {each.path: each for each in added.parameters}["subscribers.counted.processing"]

    assert handled(queue("counted")).bound == pytest.approx((1 / 16 - 1 / 25) / 2)
    # Where no time between polls was free of outages, all of it may be these.
    stood = handled(replace(queue("counted"), busy_events=0, stalls=3, stalled_s=45.0))
    assert stood.bound == stood.estimate


@pytest.mark.parametrize(
    ("apart_s", "stalls", "says", "not_said"),
    [
        (0.5, 0, "it is from 0.20 to 0.85", "prediction"),
        (15.0, 0, "or use the prediction", "leaves out"),
        (15.0, 4, "leaves out the outages", "use the prediction"),
    ],
)
def test_a_wide_bound_is_told_and_no_prediction_recommended_that_leaves_outages_out(
    apart_s: float, stalls: int, says: str, not_said: str
) -> None:
    wide = InTime(share=0.8, standard_error=0.01, low=0.2, high=0.85, events=1000.0)
    polled = replace(queue("counted"), in_time={1.0: wide}, apart_s=apart_s, stalls=stalls)
    added = add_reported(base(), Reported(queues={"counted": polled}), traced=(), learnt=())
    (row,) = added.rows
    assert says in row["why"]
    assert not_said not in row["why"]


@pytest.mark.parametrize("service", ["0s", None])
def test_a_delay_becomes_that_of_the_link_where_brokers_take_no_time(service: str | None) -> None:
    document = system_document(base())
    broker = {} if service is None else {"service": service}
    document |= {"brokers": dict.fromkeys(document["brokers"], broker)}
    system = replace(from_document(document), links=())
    delays = {("counted", "delay"): counted(times_of("exponential"))}
    added = add_reported(system, Reported(buckets=delays, window_s=9.0), traced=(), learnt=())
    assert [each.path for each in added.parameters] == ["subscribers.counted.link.delay"]
    assert added.notes == ()


def test_without_a_base_each_queue_is_a_subscriber_of_its_own() -> None:
    names = {name: replace(queue(name), rate_per_s=rate) for name, rate in (("a", 1.0), ("b", 2.0))}
    alone = fit_reported(Reported(queues=names), OBSERVED, None)
    rates = {each.name: each.rate_per_s for each in alone.system.publishers}
    assert rates == {"into a": pytest.approx(1.0), "into b": pytest.approx(2.0)}
    assert {each.name: each.processing for each in alone.system.subscribers} == {
        "a": Exponential(mean_s=0.05), "b": Exponential(mean_s=0.05),
    }  # fmt: skip
    assert alone.measured.on_time == 1.0  # nobody said that events are ever of no use


def test_a_histogram_of_whole_delays_beats_the_counters_of_its_queue() -> None:
    delays = {("a", "delay"): counted(times_of("exponential"))}
    alone = fit_reported(Reported(queues={"a": queue("a")}, buckets=delays), OBSERVED, None)
    (subscriber,) = alone.system.subscribers
    assert subscriber.processing is None  # else the delay would be counted twice
    assert subscriber.link.delay.mean_s == pytest.approx(times_of("exponential").mean(), rel=0.05)
    sources = alone.parameters.set_index("path")["source"].to_dict()
    assert sources.pop("subscribers.a.link.delay") == "histograms"
    assert set(sources.values()) == {"levels"}


def test_what_tells_nothing_is_refused() -> None:
    with pytest.raises(InvalidTracesError, match="two polls"):
        fit_reported(Reported(), OBSERVED, None)


def test_nothing_is_said_of_tables_that_have_no_rows() -> None:
    assert buckets_by_name(pd.DataFrame(columns=["name", "what", "series", "bounds"])) == {}


def test_counters_add_to_traces_what_these_do_not_tell(characterised: Characterisation) -> None:
    measured = characterised.measured.subscribers
    name = str(measured.loc[measured["events"] > 0, "subscriber"].iloc[0])
    both = with_reported(characterised, Reported(queues={name: queue(name)}), None)
    old, new = (each.measured.subscribers.set_index("subscriber") for each in (characterised, both))
    pd.testing.assert_frame_equal(old, new)  # deliveries were recorded: they are surer
    numbers = both.parameters.set_index("path")
    assert numbers.loc[f"subscribers.{name}.processing", "source"] == "levels"
    assert (numbers["source"] == "traces").sum() == len(characterised.parameters)
    assert (characterised.parameters["bound"] == 0.0).all()


@pytest.mark.parametrize("is_bare", [True, False])
def test_a_whole_delay_is_not_added_to_times_of_the_path(is_bare: bool) -> None:
    reported = Reported(buckets={("silent", "delay"): counted(times_of("exponential"))})
    system = base()
    if is_bare:
        document = {"brokers": {"hub": {}}, "links": [], "tidings": 1}
        system = from_document(system_document(system) | document)
    added = add_reported(system, reported, traced=set(), learnt=set())
    fitted = {each.path for each in added.parameters}
    assert fitted == ({"subscribers.silent.link.delay"} if is_bare else set())
    assert any("not fitted" in note for note in added.notes) != is_bare
    assert [row["subscriber"] for row in added.rows] == ["silent"]  # measured all the same
