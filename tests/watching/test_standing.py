"""How a system stands, and what is wrong with it, from records made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import tidings as td
from tidings.characterisation.fit.fitted import Characterisation
from tidings.characterisation.fit.parameters import PARAMETER_COLUMNS
from tidings.characterisation.fit.queues import Counters
from tidings.model.outcome import Outcome, table
from tidings.watching.alarms import alarms
from tidings.watching.counts import EventCounts, Stretch
from tidings.watching.reference import learnt_values
from tidings.watching.shares import tally
from tidings.watching.standing import Known, Look, queues, standings, travelled_longer
from tidings.watching.state import EVERYBODY

MINUTE_NS = 60_000_000_000
SYSTEM = td.loads(
    """
tidings: 1
lifetime: 500ms
brokers: {hub: {service: {exponential: 5ms}}}
publishers:
  ann: {at: hub, every: {exponential: 20ms}, content: {event: {t: 1}}}
subscribers:
  bob: {at: hub, wants: {t: 1}, target: 0.95}
  eve: {at: hub, wants: {t: 1}}
"""
)


def outcome(source, waits_s=0.001, **on_time):
    """What both subscribers get, and how long events wait at the broker."""
    rows = [
        {
            "subscriber": name, "broker": "hub", "count": 1, "wanted_per_s": 50.0, "on_time": share,
            "error": 0.002, "delivered": share, "delay_p50_s": 0.01, "delay_p99_s": 0.04,
        }
        for name, share in on_time.items()
    ]  # fmt: skip
    broker = {
        "broker": "hub", "arrivals_per_s": 50.0, "service_mean_s": 0.0199, "utilisation": 0.995,
        "wait_mean_s": waits_s,
    }  # fmt: skip
    delays = [
        {"subscriber": "bob", "delay_s": 0.1, "arrived": 0.9},
        {"subscriber": "bob", "delay_s": 5.0, "arrived": 1.0},
    ]
    return Outcome(
        source=source,
        subscribers=table("subscribers", rows),
        brokers=table("brokers", [broker]),
        delays=table("delays", delays),
        provenance={"from_ns": 0, "until_ns": MINUTE_NS},
    )


def learnt(rate=50.0, service_s=0.005, waits_s=0.001, count=3000):
    """A part in which these parameters were learnt; None: of nobody."""
    rows = [
        ("publishers.ann.rate", rate, 50.0 / np.sqrt(count), count),
        ("brokers.hub.service", service_s, 0.005 / np.sqrt(count), count),
    ]
    known = [dict(zip(PARAMETER_COLUMNS, row[:4], strict=False)) for row in rows if row[1]]
    frame = pd.DataFrame(known, columns=list(PARAMETER_COLUMNS))
    nothing = pd.DataFrame()
    return Characterisation(
        system=SYSTEM, measured=outcome("measured", waits_s, bob=0.99, eve=0.99), parameters=frame,
        waits=nothing, quality=nothing, coverage=nothing, stationarity=nothing, clocks=nothing,
        kinds={}, traffic=nothing, dispersion=nothing, laws={}, rates=nothing,
    )  # fmt: skip


def test_what_is_under_way_when_a_part_ends_is_neither_lost_nor_quick():
    """Events over a slow link, seen for a minute that cuts off those that have not arrived."""
    rng, rate, mean_s, reliability, window_s = np.random.default_rng(3), 500.0, 2.0, 0.98, 60.0
    sent = rng.uniform(-30.0, window_s, rng.poisson(rate * (window_s + 30.0)))
    delays = rng.exponential(mean_s, len(sent))
    arrived = rng.random(len(sent)) < reliability
    before_end = arrived & (sent + delays < window_s)
    seen = before_end & (sent > 0)
    lost = int((~before_end & (sent > 0)).sum())
    tried = int((before_end & (sent + delays > 0)).sum()) + lost
    deviation_s = delays[seen].std(ddof=1) / np.sqrt(seen.sum())
    rows = [
        ("links.a--b.delay", delays[seen].mean(), deviation_s, seen.sum()),
        ("links.a--b.reliability", 1.0 - lost / tried, np.sqrt(0.02 * 0.98 / tried), tried),
    ]
    frame = pd.DataFrame(rows, columns=list(PARAMETER_COLUMNS[:4]))
    assert (np.abs(frame["estimate"] - (mean_s, reliability)) > 4 * frame["standard_error"]).all()
    values = learnt_values(replace(learnt(), parameters=frame))
    for path, true in (("delay", mean_s), ("reliability", reliability)):
        found = values[f"links.a--b.{path}"]
        assert found.value == pytest.approx(true, abs=4 * found.error)
    assert values["links.a--b.reliability"].error < 0.002  # sharp enough to notice


def stretches(minutes=60, **shares):
    """An hour of a minute each, with these shares."""
    shares = {"bob": 0.99, "eve": 0.99, **shares}

    def counts(share):
        return EventCounts(wanted=3000, delivered=round(3000 * share), on_time=round(3000 * share))

    return [
        Stretch(
            from_ns=n * MINUTE_NS,
            until_ns=(n + 1) * MINUTE_NS,
            counts={name: counts(share) for name, share in shares.items()},
        )
        for n in range(minutes)
    ]


def a_look(past=None, known=None, **changes):
    foretold = outcome("predicted", bob=0.99, eve=0.99)
    past = stretches() if past is None else past
    known = known or Known(system=SYSTEM, expected=foretold)
    names = [EVERYBODY, *(each.name for each in known.system.subscribers)]
    usual = Look(
        known=known, predicted=foretold, counted=tally(past, names),
        newest=past[-1].counts if past else {}, found=learnt(), window_s=600.0, look_s=60.0,
    )  # fmt: skip
    return replace(usual, **changes)


def test_nothing_is_wrong_while_all_is_as_known():
    assert alarms(a_look()) == []
    assert alarms(a_look(past=[])) == []


def test_everybody_comes_first_and_then_the_worst():
    everybody, first, second = standings(a_look(past=stretches(bob=0.97, eve=0.9)))
    assert (everybody.name, first.name, second.name) == (EVERYBODY, "eve", "bob")
    assert everybody.promised is None  # of one only something is promised
    assert everybody.wanted == 2 * 3000 * 10  # of ten minutes
    assert everybody.measured.share == pytest.approx(0.935)
    assert second.burn_rates["1h"] == pytest.approx(0.6)
    assert first.burn_rates is None
    assert second.predicted.low == pytest.approx(0.988)
    assert (second.median_s, second.p99_s) == (0.01, 0.04)


def named(look):
    return [(each.kind, each.where, each.what) for each in alarms(look)]


def test_what_is_wrong_is_named():
    late = named(a_look(past=stretches(bob=0.8)))
    assert ("target", ("bob",), "fewer events are on time than promised") in late
    assert ("changed", ("bob",), "fewer events are on time than predicted") in late
    more = named(a_look(found=learnt(rate=75.0)))
    assert more == [("changed", ("ann",), "publisher ann publishes more often")]
    slow = named(a_look(found=learnt(service_s=0.0065), past=stretches(eve=0.8)))
    assert slow == [("changed", ("hub",), "broker hub is slower")]  # which says why eve is late
    silent = named(a_look(found=learnt(rate=None)))
    assert silent == [("changed", ("ann",), "publisher has fallen silent")]
    gone = named(a_look(past=stretches(eve=0.0)))
    assert gone == [("changed", ("eve",), "subscriber receives next to nothing any more")]


def test_where_few_events_are_recorded_silence_says_less():
    """Three of a publisher's events are expected in a minute: none of them may be by chance."""
    look = a_look(found=learnt(rate=None), sampled=0.1)
    assert [each.what for each in alarms(look)] == ["publisher has fallen silent"]
    assert alarms(replace(look, sampled=0.001)) == []
    assert standings(look)[0].wanted == 10 * 2 * 3000 * 10  # of all events


def test_a_share_that_falls_suddenly_is_told_within_minutes():
    """All arrive, and late: no parameter says why. Minutes in which all goes well are no news."""
    past = stretches()
    late = [
        replace(
            each,
            counts={
                name: EventCounts(wanted=3000, delivered=2970, on_time=30)
                for name in ("bob", "eve")
            },
        )
        for each in past[-5:]
    ]
    look = a_look([*past[:-5], *late], window_s=3600.0)
    told = alarms(look)
    assert [each.where for each in told] == [("bob",), ("eve",)]
    for each in told:
        assert each.what == "fewer events are on time than predicted"
        assert each.since_ns == late[0].from_ns
    known = Known(system=SYSTEM, expected=outcome("predicted", bob=0.95, eve=0.95))
    # Far above what was predicted for the whole hour: that is since its beginning.
    more = Known(system=SYSTEM, expected=outcome("predicted", bob=0.8, eve=0.8))
    assert {each.since_ns for each in alarms(a_look(known=more, window_s=3600.0))} == {0}
    some = [stretches(60, bob=share, eve=share) for share in (0.9, 0.999)]
    comes_and_goes = [some[n % 3 != 0][n] for n in range(55)]
    assert alarms(a_look([*comes_and_goes, *some[1][-5:]], known, window_s=3600.0)) == []


def test_one_of_two_whose_names_begin_alike_is_missed():
    """As on NATS: the other one is still heard; and what goes to one says nothing of the other."""
    twins = td.loads(
        """
tidings: 1
brokers: {hub: {service: 5ms}}
publishers:
  wire.eu: {at: hub, every: {exponential: 20ms}, content: {event: {t: 1}}}
  wire.us: {at: hub, every: {exponential: 20ms}, content: {event: {t: 1}}}
subscribers:
  arch: {at: hub, wants: {t: 1}}
  arch.ive: {at: hub, wants: {t: 1}}
"""
    )
    foretold = outcome("predicted", **{"arch": 0.99, "arch.ive": 0.99})
    found = learnt()
    paths = {"publishers.ann.rate": "publishers.wire.eu.rate"}
    paths["brokers.hub.service"] = "subscribers.arch.ive.link.delay"
    rows = found.parameters.assign(path=found.parameters["path"].map(paths))
    look = a_look(
        known=Known(system=twins, expected=foretold),
        found=replace(found, parameters=rows, system=twins),
        past=stretches(**{"arch": 0.0, "arch.ive": 0.99}),
    )  # fmt: skip
    assert named(look) == [
        ("changed", ("arch",), "subscriber receives next to nothing any more"),
        ("changed", ("wire.us",), "publisher has fallen silent"),
        ("changed", ("arch.ive",), "link arch.ive is slower"),
    ]


def test_what_is_down_is_named_and_why_others_get_nothing():
    look = a_look(past=stretches(eve=0.0), down_since={"hub": 59 * MINUTE_NS + 45 * 10**9})
    hub, eve = alarms(look)
    assert (hub.what, hub.where, hub.size, hub.unit) == ("broker is down", ("hub",), 15.0, "s")
    assert hub.since_ns == 59 * MINUTE_NS + 45 * 10**9
    assert (eve.where, eve.cause) == (("eve",), "broker hub is down")
    (link,) = alarms(a_look(down_since={"hub--edge": 0}))
    assert link.sentence() == "link is down (hub--edge): 3,600 s"


def test_a_subscriber_that_is_gone_stays_so_when_that_is_what_is_expected_now():
    """Alarms are held against the system as given, not against what was fitted since."""
    fitted = outcome("predicted", bob=0.99, eve=0.0)
    gone = named(a_look(past=stretches(eve=0.0), predicted=fitted))
    assert gone == [("changed", ("eve",), "subscriber receives next to nothing any more")]


def test_what_is_rare_is_judged_over_a_longer_time():
    few = learnt(rate=75.0, service_s=0.0065, count=20)
    assert alarms(a_look(found=few)) == []
    both = named(a_look(found=few, longer=learnt(rate=75.0)))
    assert both == [("changed", ("ann",), "publisher ann publishes more often")]
    often = a_look(found=learnt(), longer=learnt(rate=75.0))  # the newest part knows better
    assert alarms(often) == []


def test_events_that_wait_are_told_of_when_they_will_for_long():
    look = a_look(found=learnt(waits_s=1.0))
    (queue,) = queues(look)
    assert queue.waiting == pytest.approx(50.0)
    (alarm,) = alarms(look)
    assert (alarm.kind, alarm.where, alarm.size) == ("backlog", ("hub",), pytest.approx(50.0))
    assert "gone after 3.32 min" in alarm.cause
    assert "50 % of what passes until then will be late" in alarm.cause
    (longer,) = queues(replace(look, waits={"hub": 3.0}))  # a queue that grows
    assert longer.waiting == pytest.approx(150.0)
    usual = outcome("predicted", 0.9, bob=0.99, eve=0.99)
    assert alarms(replace(look, known=Known(system=SYSTEM, expected=usual))) == []


def test_events_that_travel_longer_than_the_margin_are_noticed():
    assert travelled_longer(learnt(), 1.0) == ["bob"]
    assert travelled_longer(learnt(), 6.0) == []


def counted(shares, minutes=1.0, a_batch=100.0, dropped=None):
    """A queue of which these shares, batch by batch, were handed out again."""
    entered = np.full(32, a_batch)
    return Counters(
        polls=64, from_ns=0, until_ns=round(minutes * MINUTE_NS), entered=entered,
        again=np.asarray(shares) * entered,
        dropped={} if dropped is None else {"expired": dropped * entered},
    )  # fmt: skip


def test_redeliveries_and_drops_that_grow_are_named():
    before = {"bob": counted([0.01, 0.03] * 16, minutes=32.0)}
    look = a_look(queues={"bob": counted([0.28, 0.32] * 16)}, queues_before=before)
    (alarm,) = alarms(look)
    assert alarm.what == "queue bob hands out more events again"
    assert (alarm.where, alarm.unit) == (("bob",), "times the share of redeliveries")
    assert alarm.size == pytest.approx(15.0)
    assert alarm.since_ns == look.newest_ns
    assert "it was 2 % and is 30 %" in alarm.cause
    dropping = a_look(queues={"bob": counted([0.02] * 32, dropped=0.1)}, queues_before=before)
    (alarm,) = alarms(dropping)
    assert (alarm.what, alarm.unit) == (
        "queue bob drops more events (expired)", "of events dropped"
    )  # fmt: skip
    assert alarm.where == ("bob",)
    assert alarms(a_look(queues=before, queues_before=before)) == []
    sure = {"bob": counted([0.012] * 32, a_batch=1e6)}
    trifle = a_look(queues={"bob": counted([0.02] * 32, a_batch=1e6)}, queues_before=sure)
    assert alarms(trifle) == []  # certain, and less than a hundredth of events
    assert alarms(a_look(queues=look.queues)) == []  # nothing is known of earlier


def test_redeliveries_that_came_in_a_burst_before_may_come_so_again():
    """A consumer that stops once in a while: three minutes' worth of redeliveries within one."""
    burst = np.zeros(32)
    burst[5] = 0.3
    now = {"bob": counted([0.3] * 32)}
    assert alarms(a_look(queues=now, queues_before={"bob": counted(burst, minutes=32.0)})) == []
    # An hour before has longer batches: what strayed in one of them may have come within a minute.
    hour = {"bob": counted(burst / 2, minutes=64.0, a_batch=200.0)}
    assert alarms(a_look(queues=now, queues_before=hour)) == []
    never = {"bob": counted(np.zeros(32), minutes=32.0)}
    assert [each.where for each in alarms(a_look(queues=now, queues_before=never))] == [("bob",)]


def test_few_polls_are_not_certain():
    few = np.zeros(32)
    few[[3, 20, 30]] = 1000.0
    now = counted([0.05] * 32)
    rough = replace(now, entered=few, again=few * np.linspace(0.25, 0.35, 32))
    before = {"bob": counted([0.01] * 32, minutes=32.0)}
    assert alarms(a_look(queues={"bob": rough}, queues_before=before)) == []


def test_who_is_not_in_the_known_system_is_named():
    more = td.loads(
        """
tidings: 1
lifetime: 500ms
brokers: {hub: {service: {exponential: 5ms}}}
publishers:
  ann: {at: hub, every: {exponential: 20ms}, content: {event: {t: 1}}}
  mallory: {at: hub, every: {exponential: 20ms}, content: {event: {t: 1}}}
subscribers: {bob: {at: hub, wants: {t: 1}}, eve: {at: hub, wants: {t: 1}}}
"""
    )
    (unknown,) = alarms(a_look(found=replace(learnt(), system=more)))
    assert unknown.sentence() == "publishers that the system does not have (mallory): 1 of them"
