"""Batches of publishers and of members, against closed forms and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import tidings as td
from tidings.simulation.run import replicate

CONSTANT = "{deterministic: 10ms}"


def sending(batch, every="{rate: 100/s}", link=""):
    link = f", link: {link}" if link else ""
    return td.loads(f"""
        tidings: 1
        lifetime: 1s
        size: 100B
        brokers: {{b: {{}}}}
        publishers:
          p: {{at: b, every: {every}, content: {{event: {{x: 1}}}}, batch: {batch}{link}}}
        subscribers: {{s: {{at: b, wants: {{}}}}}}
    """)


def fetching(consumers, *, every="{rate: 20/s}", processing="{exponential: 40ms}", more=""):
    return td.loads(f"""
        tidings: 1
        lifetime: 200ms
        size: 100B
        brokers: {{b: {{}}}}
        publishers: {{p: {{at: b, every: {every}, content: {{event: {{x: 1}}}}}}}}
        subscribers:
          w: {{at: b, wants: {{x: 1}}, processing: {processing}, consumers: {consumers}{more}}}
    """)


def mean_s(of, duration_s=30.0):
    """The mean delay of one long stretch of whole batches, and what was counted."""
    counts = replicate(of, seed=1, replication=0, warmup_s=0.0, duration_s=duration_s)
    assert np.all(counts.delivered == counts.wanted)
    return counts.delay_sum_s.sum() / counts.delivered.sum()


def row_of(of, **options):
    found = td.simulate(of, seed=4, **({"events": 200_000, "replications": 8} | options))
    return found.subscribers.iloc[0]


def assert_near(row, column, expected):
    error = row[f"{column[:-2]}_se_s" if column.endswith("_s") else f"{column}_se"]
    assert 0 < error < 0.01 * expected
    assert abs(row[column] - expected) < 4 * error, (row[column], expected, error)


# ---- publishers ----------------------------------------------------------------------------------


def mean_wait_to_fill(rate, size, linger):
    """Per batch, the integral of how many wait; over how many there are (renewal reward).

    The first opens a batch, which is still open after s if fewer than size − 1 others have come.
    """

    def waiting(s):
        others = np.arange(size - 1)
        return float(((1 + others) * stats.poisson.pmf(others, rate * s)).sum())

    gathered = 1 + sum(stats.poisson.sf(k, rate * linger) for k in range(size - 1))
    return integrate.quad(waiting, 0, linger)[0] / gathered


@pytest.mark.parametrize(("size", "linger_s"), [(5, 10.0), (5, 0.03), (50, 0.02)])
def test_a_poisson_stream_fills_batches_in_truncated_erlang_times(size, linger_s):
    row = row_of(sending(f"{{size: {size}, linger: {linger_s}}}"))
    assert_near(row, "delay_mean_s", mean_wait_to_fill(100, size, linger_s))
    assert row["delivered"] == 1.0


def test_events_at_constant_intervals_wait_for_those_behind_them():
    waits_s = [0.03, 0.02, 0.01, 0.0]
    assert mean_s(sending("{size: 4, linger: 1s}", CONSTANT), 40.0) == pytest.approx(
        np.mean(waits_s), rel=1e-3
    )
    # The first lingers for 25 ms; two others come by then.
    assert mean_s(sending("{size: 4, linger: 25ms}", CONSTANT), 30.0) == pytest.approx(
        np.mean([0.025, 0.015, 0.005]), rel=1e-3
    )


def test_a_batch_crosses_the_link_as_one():
    of = sending("{size: 4, linger: 1s}", CONSTANT, link="{reliability: 0.5, delay: 1ms}")
    lost = []
    for number in range(6):
        counts = replicate(of, seed=1, replication=number, warmup_s=0.0, duration_s=4.0)
        assert counts.published.sum() == 400
        lost.append(counts.lost.sum())
    assert all(0 < each < 400 and each % 4 == 0 for each in lost)


def test_a_batch_is_as_long_on_a_narrow_link_as_its_events():
    link = "{delay: 1ms, bandwidth: 100kB/s}"
    of = sending("{size: 4, linger: 1s}", CONSTANT, link=link)
    assert mean_s(of, 40.0) == pytest.approx(0.015 + 0.001 + 4 * 0.001, rel=1e-3)


def test_batches_wait_for_their_publisher_to_be_connected():
    """There for a second, away for another; a batch is due half a second after it has gone.

    What comes while it is there leaves when it is back; what comes while it is away opens the next
    batch then, and leaves a whole cycle later: half of them wait 1.5 s in the mean, half 2.5.
    """
    of = td.loads("""
        tidings: 1
        lifetime: 5s
        brokers: {b: {}}
        publishers:
          p:
            at: b
            every: {rate: 50/s}
            content: {event: {x: 1}}
            connectivity: {on: {deterministic: 1s}, off: {deterministic: 1s}}
            batch: {size: 100000, linger: 1.5s}
        subscribers: {s: {at: b, wants: {}}}
    """)
    row = row_of(of, events=100_000)
    assert row["delivered"] == 1.0
    assert_near(row, "delay_mean_s", 2.0)


# ---- members -------------------------------------------------------------------------------------


def test_events_handled_together_are_served_in_bulk():
    """M/M[1,4]/1: the number that wait behind a busy server is geometric."""
    rate, mu, most = 60.0, 25.0, 4
    row = row_of(fetching("{count: 1, fetch: {size: 4, handled: together}}", every="{rate: 60/s}"))
    root = optimize.brentq(lambda r: mu * r ** (most + 1) - (rate + mu) * r + rate, 0.0, 1 - 1e-9)
    busy = 1.0 / (1.0 / (1.0 - root) + mu / rate)
    wait_s = busy * root / (1.0 - root) ** 2 / rate
    assert_near(row, "delay_mean_s", wait_s + 1 / mu)


def test_one_member_that_handles_one_by_one_is_no_slower_for_fetching():
    row = row_of(fetching("{count: 1, fetch: {size: 8}}"))
    assert_near(row, "delay_mean_s", 1 / (25 - 20))
    assert_near(row, "on_time", 1.0 - math.exp(-(25 - 20) * 0.2))


def test_a_member_waits_for_others_as_long_as_it_may():
    at = {"every": CONSTANT, "processing": "{deterministic: 5ms}"}
    together = "{count: 1, fetch: {size: 3, linger: %s, handled: together}}"
    full = mean_s(fetching(together % "100ms", **at))
    assert full == pytest.approx(np.mean([0.025, 0.015, 0.005]), rel=1e-3)
    lingering = mean_s(fetching(together % "12ms", **at))
    assert lingering == pytest.approx(np.mean([0.017, 0.007]), rel=1e-3)
    one_by_one = mean_s(fetching("{count: 1, fetch: {size: 3, linger: 100ms}}", **at))
    assert one_by_one == pytest.approx(np.mean([0.025, 0.020, 0.015]), rel=1e-3)


def test_what_came_while_a_member_was_busy_lingers_from_when_it_came():
    """Handled for 35 ms: those that come meanwhile have lingered by then, and are all taken."""
    at = {"every": CONSTANT, "processing": "{deterministic: 35ms}"}
    delay = mean_s(fetching("{count: 1, fetch: {size: 9, linger: 20ms, handled: together}}", **at))
    # Three or four each time, which waited half of 35 ms in the mean.
    assert 0.035 + 0.0125 < delay < 0.035 + 0.0225


def test_a_batch_that_is_lost_is_delivered_again():
    lossy = ", link: {reliability: 0.8, delay: 1ms}"
    settings = "{count: 4, fetch: {size: 4, handled: together}, ack_wait: 1s, deliveries: 2}"
    row = row_of(fetching(settings, more=lossy), events=50_000)
    error = math.sqrt(0.04 * 0.96 / row["events"]) * 2  # those of a batch share their fate
    assert abs(row["lost_dead_letter"] - 0.04) < 4 * error
    once = row_of(fetching("{count: 4, fetch: {size: 4}}", more=lossy), events=50_000)
    error = math.sqrt(0.2 * 0.8 / once["events"]) * 2
    assert abs(once["lost_link"] - 0.2) < 4 * error


def test_a_fetched_batch_is_as_long_on_a_narrow_link_as_its_events():
    narrow = ", link: {delay: 1ms, bandwidth: 100kB/s}"
    at = {"every": CONSTANT, "processing": "{deterministic: 5ms}", "more": narrow}
    settings = "{count: 2, fetch: {size: 4, linger: 1s, handled: together}}"
    waited_s, crossed_s = np.mean([0.03, 0.02, 0.01, 0.0]), 0.001 + 4 * 0.001
    delay = mean_s(fetching(settings, **at), 40.0)
    assert delay == pytest.approx(waited_s + crossed_s + 0.005, rel=1e-3)


@pytest.mark.parametrize("handled", ["together", "one by one"])
def test_a_member_that_crashes_loses_hold_of_its_batch(handled):
    """Both crash over what they hold; all of it is handed out again, none is lost or left."""
    failing = "members: {a: {failure: {mtbf: 2s, mttr: 1s}}, b: {failure: {mtbf: 2s, mttr: 1s}}}"
    row = row_of(
        fetching(f"{{{failing}, fetch: {{size: 3, linger: 10ms, handled: {handled}}}}}"),
        events=20_000,
    )
    assert row["delivered"] == 1.0
    assert row["handled_again"] == 0.0
