"""Consumer groups against closed forms, and against an obvious group that shares no code."""

from __future__ import annotations

import math

import numpy as np
import pytest

import naive_groups
import tidings as td
from exact_queues import erlang_c
from tidings.errors import InvalidSystemError

LIFETIME_S = 0.2
SERVICE_S = 0.04


def group(consumers, *, rate=80, processing="{exponential: 40ms}", link="", more=""):
    link = f", link: {link}" if link else ""
    return td.loads(f"""
        tidings: 1
        lifetime: {LIFETIME_S}
        {more}
        brokers: {{b: {{}}}}
        publishers: {{p: {{at: b, every: {{rate: {rate}/s}}, content: {{event: {{x: 1}}}}}}}}
        subscribers:
          w: {{at: b, wants: {{x: 1}}, processing: {processing}, consumers: {consumers}{link}}}
    """)


def row_of(system, **options):
    found = td.simulate(system, seed=4, **({"events": 200_000, "replications": 8} | options))
    row = found.subscribers.iloc[0]
    assert row["delivered"] + row[[c for c in row.index if c.startswith("lost_")]].sum() == (
        pytest.approx(1.0, abs=1e-9)
    )
    return row


def assert_near(row, column, expected, most_se=None):
    error = row[f"{column[:-2]}_se_s" if column.endswith("_s") else f"{column}_se"]
    assert 0 < error < (most_se or 0.01 * max(expected, 0.01))
    assert abs(row[column] - expected) < 4.0 * error, (row[column], expected, error)


def sojourn_of_mmc(rate, mean, members, t):
    """P(sojourn ≤ t) and its mean in M/M/c."""
    waits = erlang_c(members, rate * mean)
    mu, spare = 1 / mean, members / mean - rate
    late = math.exp(-mu * t)
    if abs(mu - spare) > 1e-9:
        late += waits * mu * (math.exp(-mu * t) - math.exp(-spare * t)) / (spare - mu)
    return 1.0 - late, mean + waits / spare


@pytest.mark.parametrize("members", [1, 4, 16])
def test_competing_consumers_are_one_queue_with_many_servers(members):
    rate = 0.8 * members / SERVICE_S
    row = row_of(group(members, rate=rate))
    share, mean = sojourn_of_mmc(rate, SERVICE_S, members, LIFETIME_S)
    assert_near(row, "on_time", share)
    assert_near(row, "delay_mean_s", mean)


def test_events_pushed_at_random_make_queues_of_members():
    row = row_of(group("{count: 4, prefetch: 0, choose: random}"))
    assert_near(row, "on_time", 1.0 - math.exp(-(25 - 20) * LIFETIME_S))


def test_events_pushed_in_turn_make_more_regular_queues():
    """Every fourth Poisson arrival: E4/M/1, whose sojourn is exponential."""
    row = row_of(group("{count: 4, prefetch: 0, choose: round robin}"))
    sigma = 0.5
    for _ in range(200):
        sigma = (80 / (80 + 25 * (1 - sigma))) ** 4
    assert_near(row, "on_time", 1.0 - math.exp(-25 * (1 - sigma) * LIFETIME_S))


def test_the_least_busy_member_is_chosen():
    """Between one queue for all and one drawn at random."""
    ideal, _ = sojourn_of_mmc(80, SERVICE_S, 4, LIFETIME_S)
    rows = [
        row_of(group(f"{{count: 4, prefetch: 0, choose: {choice}}}"))
        for choice in ("least busy", "round robin")
    ]
    least, turns = (row["on_time"] for row in rows)
    assert ideal - 4 * rows[0]["on_time_se"] > least > turns + 4 * rows[1]["on_time_se"]


def test_partitions_are_queues_of_their_owners():
    shares, owners = (0.4, 0.3, 0.2, 0.1), ("1", "2", "1", "2")
    row = row_of(
        group(
            "{count: 2, partitions: {count: 4, shares: [0.4, 0.3, 0.2, 0.1], "
            "owners: ['1', '2', '1', '2']}}",
            rate=35,
        )
    )
    expected = 0.0
    for member in ("1", "2"):
        part = sum(s for s, o in zip(shares, owners, strict=True) if o == member)
        expected += part * (1.0 - math.exp(-(25 - 35 * part) * LIFETIME_S))
    assert_near(row, "on_time", expected)


def test_members_beyond_the_partitions_have_nothing_to_do():
    row = row_of(group("{count: 5, partitions: {count: 2}}", rate=30))
    assert_near(row, "on_time", 1.0 - math.exp(-(25 - 15) * LIFETIME_S))


def test_the_way_of_acknowledgements_keeps_a_member_with_one_event():
    """M/G/1 with the round trip in the service; the event is handled before the way back."""
    row = row_of(group("{count: 1}", rate=10, link="{delay: 10ms}"))
    held_s, second = SERVICE_S + 0.02, 2 * SERVICE_S**2 + 2 * SERVICE_S * 0.02 + 0.02**2
    wait_s = 10 * second / (2 * (1 - 10 * held_s))
    assert_near(row, "delay_mean_s", wait_s + 0.01 + SERVICE_S)
    unbound = row_of(group("{count: 1, prefetch: 100}", rate=10, link="{delay: 10ms}"))
    assert_near(unbound, "delay_mean_s", 0.01 + 1 / (25 - 10))


@pytest.mark.parametrize("when_full", ["drop new", "drop old"])
def test_full_queues_drop_as_many_whichever_is_dropped(when_full):
    """M/M/2/5: the number there does not depend on who leaves."""
    row = row_of(group(f"{{count: 2, buffer: 3, when_full: {when_full}}}", rate=60))
    offered = 60 * SERVICE_S
    weights = [offered**n / math.factorial(n) for n in range(3)]
    weights += [weights[2] * (offered / 2) ** n for n in range(1, 4)]
    lost = weights[-1] / sum(weights)
    error = math.sqrt(lost * (1 - lost) / row["events"]) * 2.5  # losses come in clusters
    assert abs(row["lost_overflow"] - lost) < 4 * error
    fresh = row_of(group("{count: 2, buffer: 3, when_full: drop old}", rate=60))
    assert fresh["delay_mean_s"] <= row["delay_mean_s"] + 4 * row["delay_mean_se_s"]


def test_a_lost_delivery_is_lost_without_acknowledgements_and_repeated_with_them():
    link = "{reliability: 0.9}"
    once = row_of(group("{count: 4, prefetch: 0}", rate=5, link=link))
    assert abs(once["lost_link"] - 0.1) < 4 * math.sqrt(0.09 / once["events"])
    again = row_of(group("{count: 4, prefetch: 0, ack_wait: 10s}", rate=5, link=link))
    assert again["delivered"] == 1.0
    assert again["late"] > 0.1


def test_slow_handling_ends_in_dead_letters_that_were_handled():
    slow = "{count: 4, ack_wait: 30ms, deliveries: 1}"
    row = row_of(group(slow, rate=1, processing="{deterministic: 40ms}"), events=20_000)
    assert row["dead_letters"] == 1.0
    assert row["lost_dead_letter"] == 0.0
    assert row["handled_again"] == 0.0
    twice = row_of(
        group(
            "{count: 40, ack_wait: 30ms, deliveries: 2}", rate=1, processing="{deterministic: 50ms}"
        ),
        events=20_000,
    )
    assert twice["handled_again"] == pytest.approx(1.0, abs=1e-3)


def test_dead_letters_that_nobody_handled_are_losses():
    row = row_of(
        group("{count: 4, ack_wait: 1s, deliveries: 2}", rate=5, link="{reliability: 0.7}")
    )
    assert abs(row["lost_dead_letter"] - 0.09) < 4 * math.sqrt(0.09 * 0.91 / row["events"])
    assert row["dead_letters"] == pytest.approx(row["lost_dead_letter"], abs=1e-4)


def test_members_that_crash_are_servers_that_break_down():
    """M/M/1 with a server up and down: the mean number there by its chain, truncated far out."""
    failing = "{members: {a: {failure: {mtbf: 4s, mttr: 1s}}}}"
    row = row_of(group(failing, rate=12), events=400_000)
    assert_near(row, "delay_mean_s", _mean_number_with_breakdowns(12, 25, 0.25, 1.0) / 12, 0.01)


def _mean_number_with_breakdowns(rate, mu, fails, mends, most=1500):
    size = 2 * most
    flow = np.zeros((size, size))
    for n in range(most):
        up, down = 2 * n, 2 * n + 1
        if n + 1 < most:
            flow[up, up + 2] = flow[down, down + 2] = rate
        if n > 0:
            flow[up, up - 2] = mu
        flow[up, down], flow[down, up] = fails, mends
    flow -= np.diag(flow.sum(axis=1))
    balance = flow.T.copy()
    balance[-1] = 1.0
    goal = np.zeros(size)
    goal[-1] = 1.0
    chances = np.linalg.solve(balance, goal)
    return float((chances.reshape(-1, 2).sum(axis=1) * np.arange(most)).sum())


@pytest.mark.parametrize("count", [1, 4])
def test_rebalancing_stops_the_whole_group(count):
    failing = "members: {a: {failure: {mtbf: 60s, mttr: 5s}}, b: {}}"
    rows = [
        row_of(group(f"{{{failing}, partitions: {{count: {count}, rebalance: {pause}}}}}", rate=10))
        for pause in ("0s", "3s")
    ]
    # Twice a cycle of 65 s nothing is handled for 3 s; what comes then waits and is late.
    lost = rows[0]["on_time"] - rows[1]["on_time"]
    stopped = 2 * 3 / 65
    assert stopped * 0.9 < lost < stopped * 1.6


@pytest.mark.parametrize(
    ("members", "prefetch", "deliveries", "rate", "refill"),
    [
        (2, 10, 3, 14, None),
        (2, 4, 3, 18, None),
        (3, 5, 2, 44, None),
        (2, 10, 3, 9, 5),
        (3, 6, 2, 36, 4),
    ],
)
def test_redelivery_agrees_with_the_obvious_group(members, prefetch, deliveries, rate, refill):
    """Handlers that take almost as long as acknowledgements may: what is prefetched comes twice."""
    asking = "" if refill is None else f", choose: longest waiting, refill: {refill}"
    settings = (
        f"{{count: {members}, prefetch: {prefetch}, ack_wait: 45ms, deliveries: {deliveries}"
        f"{asking}}}"
    )
    row = row_of(group(settings, rate=rate, processing="{deterministic: 28ms}"), events=50_000)
    twins = []
    for seed in range(8):
        twin = naive_groups.Group(
            rate=rate,
            processing=lambda _: 0.028,
            members=members,
            prefetch=prefetch,
            ack_wait=0.045,
            deliveries=deliveries,
            seed=seed,
            refill=refill,
        )
        messages = [m for m in twin.run(500.0) if 50.0 < m.born < 450.0]
        twins.append(
            (
                np.mean([len(m.handled) > 1 for m in messages]),
                np.mean([m.dead for m in messages]),
                np.mean(
                    [bool(m.handled) and m.handled[0] - m.born <= LIFETIME_S for m in messages]
                ),
            )
        )
    mean, error = np.mean(twins, axis=0), np.std(twins, axis=0, ddof=1) / math.sqrt(len(twins))
    found = row[["handled_again", "dead_letters", "on_time"]].to_numpy(dtype=float)
    assert 0.01 < found[0] < 0.99
    assert np.all(np.abs(found - mean) < 4 * np.hypot(error, row["on_time_se"]) + 1e-9)


def test_a_smaller_prefetch_leaves_no_refill_above_it():
    asking = group("{count: 2, prefetch: 10, choose: longest waiting, refill: 5}", rate=5)
    assert td.changed(asking, ["prefetch w 8"]).subscribers[0].consumers.refill == 5
    one = td.changed(asking, ["prefetch w 1"])
    assert one.subscribers[0].consumers.refill is None
    assert td.loads(td.dumps(one)) == one


def test_members_that_crash_forget_what_they_asked_for():
    """One of two servers breaks down: with requests as in turn, for one event at a time."""
    failing = "{members: {a: {failure: {mtbf: 4s, mttr: 1s}}, b: {}}, choose: CHOICE}"
    turns, asked = (
        row_of(group(failing.replace("CHOICE", choice), rate=30), events=100_000)
        for choice in ("round robin", "longest waiting")
    )
    spread = 4 * math.hypot(turns["on_time_se"], asked["on_time_se"])
    assert abs(turns["on_time"] - asked["on_time"]) < spread < 0.02
    assert asked["delivered"] == 1.0


def test_a_link_that_fails_loses_deliveries_unless_they_are_acknowledged():
    link = "{delay: 5ms, failure: {mtbf: 9s, mttr: 1s}}"
    once = row_of(group("{count: 4, prefetch: 0}", rate=5, link=link))
    reached = 0.9 * math.exp(-0.005 / 9)
    assert abs(once["delivered"] - reached) < 4 * once["on_time_se"]
    assert once["lost_path_down"] == pytest.approx(1.0 - once["delivered"], abs=1e-12)
    again = row_of(group("{count: 4, prefetch: 0, ack_wait: 3s}", rate=5, link=link))
    assert again["delivered"] == 1.0
    spread = 4 * math.hypot(once["on_time_se"], again["on_time_se"])
    assert abs(again["on_time"] - once["on_time"]) < spread


def test_a_member_handles_what_expired_on_its_way():
    """Expired events leave the queue of the group; what was sent is handled, late or not."""
    slow = group(4, rate=5, link="{delay: {exponential: 200ms}}", more="expired: in queue")
    row = row_of(slow, events=20_000)
    assert row["late"] > 0.3
    assert row["lost_expired"] < 0.2


# ---- quality of service in MQTT's sense ---------------------------------------------------------

FEWER = {"events": 10_000, "replications": 8}


@pytest.mark.statistical
def test_at_most_once_what_a_member_holds_that_crashes_is_lost():
    """A handling of 40 ms meets no crash with probability exp(−40 ms/MTBF), whatever waits."""
    failing = "members: {a: {failure: {mtbf: 500ms, mttr: 50ms}}}, choose: longest waiting"
    lost, kept = (
        row_of(group(f"{{{failing}, qos: {qos}}}", rate=8, processing="40ms"), **FEWER)
        for qos in (0, 1)
    )
    exact = 1.0 - math.exp(-0.04 / 0.5)
    error = math.sqrt(exact * (1.0 - exact) / lost["events"])
    assert error < 0.05 * exact
    assert abs(lost["lost_path_down"] - exact) < 4.0 * error
    assert lost["delivered"] == pytest.approx(1.0 - lost["lost_path_down"], abs=1e-12)
    assert kept["delivered"] == 1.0


@pytest.mark.statistical
def test_at_most_once_a_broker_that_pushes_loses_all_that_a_member_holds():
    r"""M/M/1 with disasters: \(\mu r^2 - (\lambda + \mu + \delta) r + \lambda = 0\), geometric.

    A crash loses all that is there: of all events \(\delta r / ((1 - r) \lambda)\).
    """
    rate, mu, crashes = 15.0, 1 / SERVICE_S, 2.0
    failing = "{members: {a: {failure: {mtbf: 500ms, mttr: 1us}}}, qos: 0}"
    found = [
        td.simulate(group(failing, rate=rate), seed=seed, events=20_000).subscribers.iloc[0]
        for seed in range(8)
    ]
    lost = np.array([row["lost_path_down"] for row in found])
    both = rate + mu + crashes
    r = (both - math.sqrt(both**2 - 4.0 * mu * rate)) / (2.0 * mu)
    exact = crashes * r / ((1.0 - r) * rate)
    error = lost.std(ddof=1) / math.sqrt(len(lost))
    assert error < 0.02 * exact
    assert abs(lost.mean() - exact) < 4.0 * error


def test_at_most_once_nobody_waits_for_acknowledgements():
    """20 ms there and back would let a member that may hold one event do 25/s of them."""
    row = row_of(
        group("{count: 1, qos: 0}", rate=40, processing="1ms", link="{delay: 20ms}"), **FEWER
    )
    assert row["on_time"] == 1.0


def test_once_slow_handling_is_not_handled_again():
    """What was received is not sent again: as if nobody waited for acknowledgements."""
    often, once, calm = (
        row_of(group(f"{{count: 4, prefetch: 3{more}}}", rate=30), **FEWER)
        for more in (", ack_wait: 30ms, deliveries: 2", ", ack_wait: 30ms, qos: 2", "")
    )
    assert often["handled_again"] > 0.1
    assert once["handled_again"] == 0.0
    assert once["on_time"] == calm["on_time"]
    assert once["delay_mean_s"] == calm["delay_mean_s"]


def test_once_what_is_lost_on_its_way_is_sent_again_and_handled_once():
    """A try more for every loss, 80 ms apart: three of them are in time."""
    model = group(
        "{count: 2, prefetch: 0, ack_wait: 80ms, qos: 2}",
        rate=5,
        processing="1ms",
        link="{reliability: 0.6}",
    )
    row = row_of(model, **FEWER)
    assert (row["delivered"], row["handled_again"]) == (1.0, 0.0)
    assert_near(row, "on_time", 1.0 - 0.4**3)


def test_once_a_copy_that_comes_second_is_dropped():
    """Two tries are under way when the first arrives: it alone is handled, though its clock ran."""
    slow = "{delay: 70ms}"
    once, calm = (
        row_of(
            group(f"{{count: 3, prefetch: 0{more}}}", rate=5, processing="20ms", link=slow), **FEWER
        )
        for more in (", ack_wait: 50ms, qos: 2", "")
    )
    assert once["handled_again"] == 0.0
    assert once["delivered"] == 1.0
    assert once["delay_mean_s"] == pytest.approx(calm["delay_mean_s"], rel=0.02)


@pytest.mark.statistical
def test_once_members_that_crash_have_others_handle_what_they_held_and_nobody_twice():
    failing = "{a: {failure: {mtbf: 300ms, mttr: 100ms}}, b: {failure: {mtbf: 300ms, mttr: 100ms}}}"
    often, once = (
        row_of(
            group(
                f"{{members: {failing}, ack_wait: 60ms, qos: {qos}}}",
                rate=10,
                processing="40ms",
                link="{delay: 15ms}",
            ),
            **FEWER,
        )
        for qos in (1, 2)
    )
    assert often["handled_again"] > 0.05
    assert once["handled_again"] == 0.0
    assert once["delivered"] == 1.0
    assert once["delay_mean_s"] < often["delay_mean_s"]


@pytest.mark.parametrize(
    ("consumers", "said"),
    [
        ("{count: 2, qos: 0, ack_wait: 1s}", "with 0 nothing is acknowledged"),
        ("{count: 2, qos: 2}", "after which what did not arrive is sent again"),
        ("{count: 2, qos: 2, ack_wait: 1s, fetch: {size: 2}}", "come one by one"),
        ("{count: 2, qos: 3}", "qos"),
    ],
)
def test_qualities_of_service_that_contradict_the_rest_are_refused(consumers, said):
    with pytest.raises(InvalidSystemError, match=said):
        group(consumers)
