"""Where rates change: planted changes are found, and none where there are none."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation import regimes
from tidings.characterisation.count.publications import hourly_counts
from tidings.characterisation.fit.stationarity import (
    CANNOT_TELL,
    DRIFTS,
    LEAST_BATCHES,
    MOST_REGIMES,
    STEADY,
    counts_of,
    even_batches_s,
    parted,
    parted_ring,
    rates_over_time,
    stationarity,
)
from tidings.characterisation.job import characterise
from tidings.characterisation.regimes import (
    BY_HOUR,
    Regime,
    Regimes,
    characterise_regimes,
    find_regimes,
    hours_of,
    said_of_regimes,
)
from tidings.characterisation.statistics import BATCHES
from tidings.model.reading import loads
from tidings.sweeps.generating import generate_traces
from tidings.traces.reading import Traces
from tidings.traces.window import DAY_NS, HOUR_NS, DailyHours, TraceWindow


def steps(rng, *parts_and_rates):
    """Poisson counts of two publishers; a regime is how many parts, and the rates of both."""
    return np.concatenate(
        [rng.poisson(rates, (parts, 2)).T for parts, *rates in parts_and_rates], axis=1
    )


@pytest.mark.statistical
def test_planted_changes_are_found_where_they_are():
    rng = np.random.default_rng(7)
    for _ in range(20):
        found = parted(steps(rng, (9, 100, 900), (13, 300, 900), (10, 100, 500)).astype(float))
        assert found.starts == (0, 9, 22)


@pytest.mark.statistical
def test_what_stays_is_not_parted():
    rng = np.random.default_rng(1)
    found = [len(parted(steps(rng, (32, 40, 1000)).astype(float)).starts) for _ in range(300)]
    assert sum(n > 1 for n in found) == 0  # one in 10⁴ by design; a tenth of the cost gives many


def test_regimes_are_few_and_none_is_too_short():
    saw = np.where(np.arange(32) % 2, 1000.0, 10.0)[None, :]
    found = parted(saw).starts
    assert len(found) <= MOST_REGIMES
    assert all(b - a >= LEAST_BATCHES for a, b in zip(found, [*found[1:], 32], strict=True))
    assert parted(np.zeros((0, 32))).starts == (0,)
    assert parted(np.zeros((1, 32))).starts == (0,)


def test_counts_that_vary_less_tell_more():
    part_s = 5.0
    at_s = (np.arange(32) + 0.5) * part_s
    rates = pd.DataFrame({"publisher": "p", "at_s": at_s, "per_s": 8.0})
    assert counts_of(rates, {"p": 0.25})[0].tolist() == [160.0] * 32


def told(**counts):
    """What is told of counts of publishers by part of an hour, as far as regimes ask for it."""
    rows = [(name, batch, n) for name, row in counts.items() for batch, n in enumerate(row)]
    batches = pd.DataFrame(rows, columns=["publisher", "batch", "rows"])
    whole = SimpleNamespace(
        stationarity=stationarity(batches, {}, even_batches_s(3600.0)),
        rates=rates_over_time(batches, even_batches_s(3600.0)),
        laws={},
    )
    parting = find_regimes(whole, TraceWindow(from_ns=0, until_ns=HOUR_NS))
    assert parting.windows == ()
    found = Regimes(regimes=(), verdict=parting.verdict)
    return parting.verdict, said_of_regimes(found, whole, "there")


def test_that_rates_stay_is_said_only_where_the_test_says_so():
    bursts = np.full(BATCHES, 100)
    bursts[::2] = 135  # faster than any regime is long, and far beyond chance: χ²/31 is 2.6
    assert told(steady=[100] * BATCHES)[0] == STEADY
    verdict, said = told(steady=[100] * BATCHES, bursty=bursts, rare=[1] * BATCHES)
    assert verdict == DRIFTS
    assert "Rates change, that of bursty from 0.889 to 1.2 events/s" in said
    assert "there are no periods" in said
    assert "traces.json" in said  # what to do
    verdict, said = told(rare=[1] * BATCHES)
    assert verdict == CANNOT_TELL
    assert "Too few events to decide" in said
    verdict, said = told(steady=[100] * BATCHES, rare=[1] * BATCHES)
    assert "Rates are steady throughout (unknown for 1 publishers with few events)" in said


@pytest.mark.statistical
def test_hours_of_the_day_are_found_on_the_ring_whatever_was_watched_of_each():
    rng = np.random.default_rng(3)
    watched_s = np.where(np.arange(24) < 10, 3, 2) * 3600.0  # two days and ten hours
    busy = np.isin(np.arange(24), range(8, 18))
    for _ in range(20):
        two = rng.poisson(np.where(busy, 0.05, 0.03) * watched_s, (1, 24)).astype(float)
        assert parted_ring(two, watched_s).starts == (8, 18)
        one = rng.poisson(0.05 * watched_s, (2, 24)).astype(float)
        assert parted_ring(one, watched_s).starts == (0,)
    assert parted_ring(np.zeros((0, 24)), watched_s).starts == (0,)


def test_a_daily_cycle_that_the_parts_of_the_window_hide_is_found_by_the_hour():
    """Of 32 days, every part of the window is a day: only hours tell."""
    batches = pd.DataFrame({"publisher": "p", "batch": range(BATCHES), "rows": 2400})
    window = TraceWindow(from_ns=0, until_ns=BATCHES * DAY_NS)
    whole = SimpleNamespace(
        stationarity=stationarity(batches, {}, even_batches_s(window.seconds)),
        rates=rates_over_time(batches, even_batches_s(window.seconds)),
        laws={},
    )
    rows = np.where(np.arange(24) < 12, 150, 50) * BATCHES
    hourly = pd.DataFrame({"publisher": "p", "hour": range(24), "rows": rows})
    parting = find_regimes(whole, window, hourly)
    assert [(each.begin_ns, each.seconds) for each in parting.windows] == [
        (0, 16 * 86400.0),
        (12 * HOUR_NS, 16 * 86400.0),
    ]


BUSY_PER_S, QUIET_PER_S = 0.05, 0.02
CITY = loads(f"""
tidings: 1
brokers:
  hub: {{service: {{exponential: 3s}}}}
publishers:
  ticker:
    at: hub
    rates: {{slot: 1h, per_s: {[BUSY_PER_S if 8 <= h < 18 else QUIET_PER_S for h in range(24)]}}}
    content: [{{p: 1, event: {{topic: stock}}}}]
subscribers:
  alice: {{at: hub, wants: {{topic: stock}}}}
""")


_NOTHING = pd.DataFrame({name: [] for name in ("publisher", "verdict", "at_s", "per_s")})
UNKNOWN = SimpleNamespace(stationarity=_NOTHING, rates=_NOTHING, laws={})


@pytest.mark.slow
@pytest.mark.statistical
def test_a_planted_day_and_night_are_found_and_the_nights_fitted_as_one(spark, few_rows):
    """Two days and a half: the nights are three stretches, two of them cut off by the ends."""
    made = generate_traces(spark, CITY, 2.5 * 86400)
    tables = {name: frame.cache() for name, frame in made.tables.items()}
    traces = Traces(tables=tables, window=made.window)
    # What the 32 parts of the window tell is not needed where hours tell all; it takes its time.
    hourly = hourly_counts(tables["publications"], made.window).toPandas()
    parting = find_regimes(UNKNOWN, made.window, hourly)
    assert parting.verdict == BY_HOUR
    assert [hours_of(each) for each in parting.windows] == [("08:00", "18:00"), ("18:00", "08:00")]
    day, night = parting.windows
    assert (day.seconds, night.seconds) == (24 * 3600.0, 36 * 3600.0)
    found = characterise(replace(traces, window=night))
    parameters = found.parameters.set_index("path")
    for path, planted in (("publishers.ticker.rate", QUIET_PER_S), ("brokers.hub.service", 3.0)):
        estimate, error = parameters.loc[path, ["estimate", "standard_error"]]
        assert estimate == pytest.approx(planted, abs=5 * error)
        assert 5 * error < 0.15 * planted  # both rates as one would be 0.032
    (publisher,) = found.system.publishers
    # Nobody watched between two nights: no interval may reach over the day.
    assert found.laws["publishers.ticker.rate"].sample.highest_s < 3600
    assert publisher.every.scv == pytest.approx(1.0, abs=0.15)
    assert found.stationarity["verdict"].tolist() == [STEADY]
    for frame in tables.values():
        frame.unpersist()


def test_every_regime_is_fitted_and_told_and_only_the_last_must_settle(monkeypatch):
    asked = []

    def characterise_part(part, *, base, settle_s):
        asked.append((part.window.from_ns, part.window.until_ns, settle_s))
        return SimpleNamespace(system=CITY)

    monkeypatch.setattr(regimes, "characterise", characterise_part)
    rates = [1.0] * 20 + [3.0] * 12
    counts = pd.DataFrame(
        {"publisher": "p", "batch": range(BATCHES), "rows": [100 * each for each in rates]}
    )
    lengths_s = even_batches_s(3600.0)
    whole = SimpleNamespace(
        stationarity=stationarity(counts, {}, lengths_s),
        rates=rates_over_time(counts, lengths_s),
        laws={},
    )
    traces = Traces(tables={}, window=TraceWindow(from_ns=0, until_ns=HOUR_NS))
    found = characterise_regimes(traces, whole, settle_s=5.0)
    cut_ns = 20 * HOUR_NS // BATCHES
    assert asked == [(0, cut_ns, 0.0), (cut_ns, HOUR_NS, 5.0)]
    said = said_of_regimes(found, whole, "there")
    assert said.startswith("2 regimes, with a system each in there:")
    assert "1: 0 h to 0.625 h, 0.0325 events/s" in said
    hours = DailyHours(from_ns=0, until_ns=2 * DAY_NS, begin_ns=0, length_ns=6 * HOUR_NS)
    daily = Regime(window=hours, fitted=SimpleNamespace(system=CITY))
    said = said_of_regimes(Regimes(regimes=(daily,), verdict=BY_HOUR), whole, "there")
    assert "1: 00:00 to 06:00 of every day, 12 h in all, 0.0325 events/s" in said
