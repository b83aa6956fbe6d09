"""What causes cost where theory has no answer: against closed forms, and planted ones by name."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import tidings as td
from tidings.model.behaviour import Channel
from tidings.model.causes import Cause, total_costs
from tidings.model.system import Broker
from tidings.prediction import predict as predicting
from tidings.prediction.simulated_causes import (
    Playing,
    _gains,
    short_run,
    simulated_causes,
)
from tidings.prediction.suspects import Suspect, all_suspects

SYSTEM = """
tidings: 1
lifetime: 100ms
brokers: {{entry: {{service: 1ms}}, hub: {{service: {{exponential: 8ms}}{broker}}}}}
links: [{{between: [entry, hub], delay: 1ms{link}}}]
networks: {networks}
publishers:
  p: {{at: entry, size: 1kB, every: {{exponential: {every}}}, content: {{event: {{}}}}{publisher}}}
subscribers: {{s: {{at: hub, wants: {{}}{subscriber}}}, near: {{at: entry, wants: {{}}}}}}
"""
CALM = dict.fromkeys(("broker", "link", "publisher", "subscriber"), "") | {
    "networks": "{}",
    "every": "20ms",
}
PLANTED = {
    "waiting at hub": {"broker": ", servers: 2", "every": "4.3ms"},
    "the full queue of hub": {"broker": ", buffer: 1"},
    "travelling entry → hub": {"link": ", bandwidth: 55kB/s"},
    "the shared network lan": {"link": ", network: lan", "networks": "{lan: {bandwidth: 55kB/s}}"},
    "batches of p": {"publisher": ", batch: {size: 20, linger: 150ms}"},
    "the queue of s": {
        "subscriber": ", processing: {exponential: 18ms}",
        "broker": ", discipline: processor-sharing",
    },
    "the slow member b of s": {
        "subscriber": ", consumers: {members: {a: {processing: 5ms}, b: {processing: 120ms}}}",
    },
    "a hot partition of s": {
        "subscriber": ", processing: {exponential: 20ms}, "
        "consumers: {count: 4, partitions: {count: 4, shares: [0.7, 0.1, 0.1, 0.1]}}",
    },
    "redeliveries of s": {
        "subscriber": ", processing: 25ms, consumers: {count: 3, prefetch: 2, ack_wait: 30ms, "
        "deliveries: 2}",
        "every": "18ms",
    },
    "loss on entry → hub": {"link": ", reliability: 0.9, bandwidth: 1MB/s"},
}


def system_with(**words):
    return td.loads(SYSTEM.format(**CALM | words))


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_cause_is_named_first(planted):
    rows = simulated_causes(system_with(**PLANTED[planted]), Playing(seed=1)).causes
    first = rows[rows["subscriber"] == "s"].iloc[0]
    assert Cause(first["cause"], first["place"]).words == planted
    assert rows.empty or set(rows["cost"] > 0.0) == {True}


def test_a_full_queue_costs_what_it_turns_away():
    """M/M/1/K: with load a, (1 − a) a^K / (1 − a^(K + 1)) are turned away; few of the rest late."""
    load, room = 8.0 / 20.0, 2
    turned_away = (1.0 - load) * load**room / (1.0 - load ** (room + 1))
    rows = simulated_causes(system_with(broker=", buffer: 1"), Playing(seed=3)).causes
    cost = rows[(rows["subscriber"] == "s") & (rows["cause"] == "overflow")]["cost"].iloc[0]
    events = 20_000
    noise = math.sqrt(turned_away * (1.0 - turned_away) / events)
    late = math.exp(-0.099 / 0.008)  # of one service; two in a row are as unlikely
    # Events that are turned away come in clusters: their share is known half as well.
    assert cost == pytest.approx(turned_away, abs=4.0 * 2.0 * noise + 20.0 * late)


def test_a_prediction_names_the_cause_and_what_to_do():
    system = system_with(**PLANTED["waiting at hub"])
    outcome = td.predict(system, seconds=1.0)
    (cause, *_), *_ = total_costs(outcome)
    assert cause == Cause("waiting", "hub")
    assert td.predict(system, seconds=1.0, causes=False).causes.empty


def outcome_of(system, **columns):
    """A prediction without causes, with other figures in some columns of its tables."""
    outcome = td.predict(system, by="simulation", seconds=0.2, causes=False)
    tables = {name: getattr(outcome, name).assign(**cells) for name, cells in columns.items()}
    return replace(outcome, **tables)


def test_a_lossy_link_is_suspected_as_much_as_a_slow_one_whatever_the_unit_of_time():
    """Ten links take 100 s each of rare events; one loses half of them, and takes no time."""
    brokers = ", ".join(f"b{place}: {{}}" for place in range(12))
    links = ", ".join(f"{{between: [b0, b{place}], delay: 100s}}" for place in range(1, 11))
    lossy = "{between: [b0, b11], reliability: 0.5}"
    system = td.loads(
        f"tidings: 1\nbrokers: {{{brokers}}}\nlinks: [{links}, {lossy}]\n"
        "publishers: {p: {at: b0, every: {exponential: 10s}, content: {event: {}}}}\n"
        "subscribers: {"
        + ", ".join(f"s{place}: {{at: b{place}, wants: {{}}}}" for place in range(1, 12))
        + "}"
    )
    outcome = outcome_of(system)
    first = next(each for each in all_suspects(system, outcome) if each.cause.kind == "travel")
    assert first.cause == Cause("travel", "b0 → b11")
    assert first.when_lost == ("lost_link", Cause("loss", "b0 → b11"))


def test_who_stands_for_many_is_suspected_before_who_misses_a_larger_share():
    names = ("few1", "few2", "few3", "many")
    own = "at: hub, wants: {}, processing: {exponential: 1ms}"
    subscribers = ", ".join(
        f"{name}: {{{own}, count: {100 if name == 'many' else 1}}}" for name in names
    )
    text = SYSTEM.format(**CALM).split("subscribers:")[0]
    system = td.loads(f"{text}subscribers: {{{subscribers}}}")
    outcome = outcome_of(system, subscribers={"on_time": [0.1, 0.2, 0.3, 0.9]})
    queues = [each for each in all_suspects(system, outcome) if each.cause.kind == "own queue"]
    assert [each.cause.place for each in queues] == ["many", "few1", "few2"]


def test_errors_of_costs_cover_the_truth_as_often_as_they_say():
    """M/M/1/K again; of t with 4 degrees half lies within .741 standard errors, 95 % in 2.776."""
    load, room, seeds = 8.0 / 20.0, 2, 60
    turned_away = (1.0 - load) * load**room / (1.0 - load ** (room + 1))
    full = system_with(broker=", buffer: 1")
    empty = replace(full, brokers=(full.brokers[0], Broker(name="hub")))
    suspect = Suspect(cause=Cause("waiting", "hub"), system=empty)
    within, half_within = 0, 0
    for seed in range(seeds):
        how = Playing(seed=seed, warmup_s=1.0)
        before = short_run(full, how)
        cost = next(_gains(suspect, before, short_run(empty, how, before.outcome)))
        off = abs(cost.cost - turned_away)
        within += off <= cost.error
        half_within += off <= cost.error * 0.741 / 2.776
    assert abs(within - 0.95 * seeds) < 4.0 * math.sqrt(0.95 * 0.05 * seeds)
    assert abs(half_within - 0.5 * seeds) < 4.0 * math.sqrt(0.25 * seeds)


def test_a_run_with_few_outages_says_which_part_of_what_is_missed_they_take():
    """All that is missed is missed in outages: they cost what is known to be missed."""
    failing = td.loads(
        "tidings: 1\nlifetime: 1s\nbrokers: {hub: {failure: {mtbf: 900s, mttr: 100s}}}\n"
        "publishers: {p: {at: hub, every: {exponential: 100ms}, content: {event: {}}}}\n"
        "subscribers: {s: {at: hub, wants: {}}}"
    )
    steady = replace(failing, brokers=(Broker(name="hub"),))
    runs = [
        short_run(system, Playing(seed=2, warmup_s=0.0), as_in)
        for system in (failing, steady)
        for as_in in (replace(outcome_of(failing), provenance={"duration_s": 300, "warmup_s": 0}),)
    ]
    known = outcome_of(failing, subscribers={"on_time": [0.9], "error": [0.004]})
    suspect = Suspect(cause=Cause("outages", "hub"), system=steady)
    alone, told = (next(_gains(suspect, *runs, each)) for each in (None, known))
    assert alone.error > 0.1  # five times 300 s: one or two outages
    assert told.cost == pytest.approx(0.1, abs=1e-12)
    assert 0.004 <= told.error < 0.5 * alone.error


def test_the_same_random_numbers_leave_less_error_than_two_runs_apart():
    """What little is gained on a link is known far better than either share."""
    slow = system_with(broker=", servers: 2", every="4.3ms")
    quick = replace(slow, links=(replace(slow.links[0], there=Channel()),))
    how = Playing(seed=5, warmup_s=1.0)
    before = short_run(slow, how)
    after = short_run(quick, how, before.outcome)
    suspect = Suspect(cause=Cause("travel", "entry → hub"), system=quick)
    cost = next(_gains(suspect, before, after))
    apart = math.hypot(*(run.outcome.subscribers["error"].iloc[0] for run in (before, after)))
    assert cost.cost > 0.0
    assert cost.error < 0.2 * apart


def test_causes_that_there_was_no_time_for_are_named():
    system = system_with(broker=", servers: 2", every="4.3ms")
    asked = simulated_causes(system, Playing(seed=1, seconds=0.0))
    assert asked.left_out
    assert asked.causes.empty
    (remark,) = asked.remarks()
    assert "waiting at hub" in remark.where
    assert not simulated_causes(system, Playing(seed=1)).remarks()


def test_a_prediction_says_which_causes_it_left_out(monkeypatch):
    monkeypatch.setattr(predicting, "CAUSE_SECONDS", 1e-9)
    outcome = td.predict(system_with(**PLANTED["waiting at hub"]), seconds=0.5)
    assert any(each.kind == "causes left out" for each in outcome.remarks)
