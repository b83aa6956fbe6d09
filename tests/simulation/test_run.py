"""What must hold of any simulation: conservation, repetition, independence, limits, refusals."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from tidings.errors import InvalidInputError, UnstableError, UnsupportedError
from tidings.model.outcome import LOSSES
from tidings.model.reading import loads
from tidings.simulation.network import compile_system
from tidings.simulation.recording import record
from tidings.simulation.run import replicate, simulate
from tidings.simulation.world import FIRST_ROOM, Window, make_world, run_world

CITY = """
tidings: 1
lifetime: 60ms
brokers:
  hub: {service: {exponential: 6ms}}
  east: {service: {uniform: [0ms, 8ms]}, buffer: 3}
  west: {service: {exponential: 4ms}}
links:
  - {between: [hub, east], delay: {exponential: 5ms}, reliability: 0.95}
  - {between: [hub, west], delay: 4ms}
publishers:
  p:
    at: east
    every: {exponential: 16ms}
    content: [{p: 0.6, event: {k: 1}}, {p: 0.4, event: {k: 2}, lifetime: 30ms}]
  q: {at: west, every: {exponential: 20ms}, content: {event: {k: 1}}}
subscribers:
  a: {at: west, wants: {k: 1}}
  b: {at: east, wants: {}}
  c: {at: west, wants: {k: 2}, link: {reliability: 0.9}}
"""


def test_shares_and_losses_make_one_and_events_are_whole():
    found = simulate(loads(CITY), replications=4, events=5_000).subscribers
    total = found["on_time"] + found["late"] + found[list(LOSSES)].sum(axis=1)
    assert np.abs(total - 1.0).max() < 1e-12
    assert (found["lost_overflow"] > 0).any()
    counts = replicate(loads(CITY), seed=1, replication=0, warmup_s=1.0, duration_s=50.0)
    assert counts.wanted.dtype == counts.delivered.dtype == np.int64
    assert (counts.on_time % 1.0 == 0.0).all()
    assert (counts.wanted == counts.delivered + counts.pair_lost.sum(axis=1)).all()


def test_the_outcome_is_the_same_on_any_number_of_cores(monkeypatch):
    outcomes = []
    for cores in (1, 2, 3):
        monkeypatch.setattr("tidings.kernels.replications.usable_cores", lambda cores=cores: cores)
        outcomes.append(simulate(loads(CITY), replications=7, events=2_000, precision=0.03))
    first, *others = outcomes
    for other in others:
        for name in ("subscribers", "pairs", "brokers", "links", "delays"):
            assert getattr(first, name).equals(getattr(other, name)), name
        assert other.provenance == first.provenance


def test_the_same_seed_gives_the_same_outcome_and_another_seed_another():
    first, again, other = (
        simulate(loads(CITY), replications=3, events=3_000, seed=seed) for seed in (4, 4, 5)
    )
    for name in ("subscribers", "pairs", "brokers", "links", "delays"):
        assert getattr(first, name).equals(getattr(again, name)), name
    assert not first.subscribers.equals(other.subscribers)


def test_a_replication_alone_counts_what_it_counts_among_others():
    system = loads(CITY)
    options = {"warmup_s": 2.0, "duration_s": 40.0}
    alone = [replicate(system, seed=9, replication=number, **options) for number in range(5)]
    among = simulate(system, seed=9, replications=5, **options).subscribers
    wanted = sum(each.wanted.sum() for each in alone)
    on_time = sum(each.on_time.sum() for each in alone)
    assert among["events"].sum() == wanted
    assert (among["events"] * among["on_time"]).sum() == pytest.approx(on_time, abs=1e-6)
    again = replicate(system, seed=9, replication=3, **options)
    for field in dataclasses.fields(again):
        assert np.array_equal(getattr(again, field.name), getattr(alone[3], field.name))
    assert not np.array_equal(alone[0].on_time, alone[1].on_time)


def test_an_unrelated_broker_changes_nobody_elses_numbers():
    more = CITY.replace("brokers:\n", "brokers:\n  aside: {service: {exponential: 9ms}}\n")
    more = more.replace("links:\n", "links:\n  - {between: [aside, west], delay: 1ms}\n")
    more = more.replace(
        "publishers:\n", "publishers:\n  z: {at: aside, every: {exponential: 9s}, "
        "content: {event: {other: 1}}}\n",
    )  # fmt: skip
    more = more.replace("wants: {}", "wants: {k: {at_least: 0}}")
    plain = CITY.replace("wants: {}", "wants: {k: {at_least: 0}}")
    options = {"seed": 2, "replication": 1, "warmup_s": 1.0, "duration_s": 60.0}
    before, after = (replicate(loads(text), **options) for text in (plain, more))
    assert before.on_time.tolist() == after.on_time.tolist()
    assert before.delay_sum_s.tolist() == after.delay_sum_s.tolist()
    assert before.lost.tolist() == after.lost.tolist()


def test_memory_does_not_grow_with_simulated_time():
    compiled = compile_system(loads(CITY))
    rooms = []
    for end_s in (300.0, 1200.0, 4800.0):
        window = Window(warmup_s=0.0, end_s=end_s)
        world = make_world(compiled, window, 1, 0)
        run_world(world, compiled, window)
        assert int(world.record[0].published) > 100 * end_s
        rooms.append(sum(table.nbytes for table in world.tables.values()))
    assert len(set(rooms)) == 1


def test_room_grows_with_the_copies_in_the_system_and_changes_nothing():
    # About 20 000 copies on the link at once: five times the room of the beginning.
    system = loads(
        """
        tidings: 1
        brokers: {a: {}, b: {service: {exponential: 0.1ms}}}
        links: [{between: [a, b], delay: {uniform: [9s, 11s]}}]
        publishers: {p: {at: a, every: {rate: 2000/s}, content: {event: {k: 1}}}}
        subscribers: {s: {at: b, wants: {}}}
        """
    )
    compiled = compile_system(system)
    window = Window(warmup_s=0.0, end_s=20.0)
    world = make_world(compiled, window, 1, 0)
    run_world(world, compiled, window)
    assert 4 * FIRST_ROOM < len(world.tables["copies"]) <= 32 * FIRST_ROOM
    cell = world.tables["cells"]
    assert cell.delivered.sum() == world.tables["rows"].published.sum()
    assert cell.delay_sum.sum() / cell.delivered.sum() == pytest.approx(10.0, abs=0.02)


def test_an_overloaded_system_is_refused_by_the_name_of_its_worst_broker():
    text = CITY.replace("hub: {service: {exponential: 6ms}}", "hub: {service: {exponential: 20ms}}")
    text = text.replace(", buffer: 3", "")
    with pytest.raises(
        UnstableError, match=r"broker 'hub' is overloaded, at 2\.19 times its capacity"
    ):
        simulate(loads(text), replications=1)


def test_an_unstable_run_ends_at_the_cap_with_the_name_of_the_broker():
    # The bounded buffer at east hides the load from the check beforehand.
    text = CITY.replace(
        "west: {service: {exponential: 4ms}}", "west: {service: {exponential: 30ms}}"
    )
    with pytest.raises(
        UnstableError, match=r"3,000 copies.*'west' is overloaded, at 3\.28 .*--max-copies"
    ):
        simulate(loads(text), replications=1, events=100_000, max_copies=3_000)


def test_a_small_room_is_not_called_an_overload():
    calm = loads(CITY)
    with pytest.raises(UnstableError, match=r"limit of 12 copies.*") as told:
        simulate(calm, replications=1, events=50_000, max_copies=12, warmup_s=0.0)
    assert "times its capacity" not in str(told.value)


def test_links_have_standard_errors_that_chance_explains():
    system = loads(CITY)
    found = simulate(system, events=20_000, replications=10).links
    truth = {
        way: channel
        for link in system.links
        for way, channel in ((link.between, link.there), (link.between[::-1], link.back))
    }
    used = found[found["events_per_s"] > 0]
    assert len(used) >= 2
    for row in used.itertuples():
        channel = truth[row.source, row.target]
        assert abs(row.lost - (1.0 - channel.reliability)) <= 4.5 * row.lost_se
        trials = row.events_per_s * 10 * 20_000 / (1 / 0.016 + 1 / 0.020)
        assert row.lost_se < 3.0 * math.sqrt(0.25 / trials)
        assert abs(row.delay_mean_s - channel.delay.mean_s) <= 4.5 * row.delay_mean_se_s + 1e-12


def test_precision_is_reached_or_the_shortfall_is_said():
    system = loads(CITY)
    found = simulate(system, precision=0.01, events=2_000, replications=4)
    assert found.provenance["half_width"] <= 0.01
    assert 4 <= found.provenance["replications"] < 100
    assert not found.warnings
    worst = found.subscribers["on_time_se"].max()
    assert found.provenance["half_width"] > 1.96 * worst
    short = simulate(system, precision=1e-4, events=500, replications=3, max_replications=6)
    assert short.provenance["replications"] == 6
    (remark,) = short.remarks
    assert (remark.kind, remark.size) == ("not held", short.subscribers["error"].max())
    assert set(remark.where) == {"a", "b", "c"}
    assert "the allowed replications ran out (" in short.warnings[0]


PERFECT = """
tidings: 1
brokers: {a: {}}
publishers: {p: {at: a, every: 1s, content: {event: {x: 1}}}}
subscribers: {s: {at: a, wants: WANTS}}
"""


def test_a_share_that_never_failed_is_not_known_for_certain():
    """A hundred events that all arrived prove no share to a thousandth, however alike the runs."""
    system = loads(PERFECT.replace("WANTS", "{}"))
    found = simulate(system, precision=0.001, events=50, replications=2)
    assert found.subscribers["on_time"][0] == 1.0
    assert 0 < found.provenance["half_width"] <= 0.001
    # z √2/(n + 4) ≤ 0.001 needs about 2,800 events, 56 replications; at most doubled each time.
    assert 50 <= found.provenance["replications"] <= 120


def test_no_precision_is_waited_for_where_nobody_wants_anything():
    system = loads(PERFECT.replace("WANTS", "{x: 2}"))
    found = simulate(system, precision=0.001, events=50, replications=2)
    assert found.provenance["replications"] == 2
    assert any("no subscriber wants anything" in warning for warning in found.warnings)


@pytest.mark.slow
def test_standard_errors_are_honest_over_many_seeds():
    system = loads(CITY)
    runs = [
        simulate(system, replications=8, events=1_000, seed=seed, warmup_s=1.0).subscribers
        for seed in range(60)
    ]
    shares = np.array([run["on_time"] for run in runs])
    errors = np.array([run["on_time_se"] for run in runs])
    ratio = shares.std(axis=0, ddof=1) / np.sqrt((errors**2).mean(axis=0))
    # A standard deviation of 60 values has a relative standard error of 1/√118 = 0.09.
    assert np.all((ratio > 0.68) & (ratio < 1.4))


def test_length_by_events_or_by_time_but_not_by_both():
    system = loads(CITY)
    rate = 1 / 0.016 + 1 / 0.020
    found = simulate(system, events=1_125, replications=2).provenance
    assert found["duration_s"] == pytest.approx(1_125 / rate)
    assert found["events_published"] == pytest.approx(2_250, abs=6 * math.sqrt(2_250))
    assert simulate(system, duration_s=3.0, replications=1).provenance["duration_s"] == 3.0
    with pytest.raises(InvalidInputError, match="not both"):
        simulate(system, duration_s=3.0, events=10)
    with pytest.raises(InvalidInputError, match="replications is 0"):
        simulate(system, replications=0)
    with pytest.raises(InvalidInputError, match=r"each replication would .*wants at most 1e\+12"):
        simulate(system, duration_s=1e300)
    with pytest.raises(TypeError, match="relpications"):
        simulate(system, relpications=3)


def test_what_is_not_recorded_is_refused_by_name():
    own = "link: {failure: {mtbf: 9s, mttr: 1s}}"
    text = CITY.replace("a: {at: west, wants: {k: 1}}", f"a: {{at: west, wants: {{k: 1}}, {own}}}")
    with pytest.raises(UnsupportedError, match=r"clients' links: subscribers\.a\.link\.failure"):
        record(loads(text))


def test_a_subscriber_that_nothing_is_published_for_has_no_share_and_is_named():
    found = simulate(loads(CITY.replace("wants: {k: 2}", "wants: {k: 3}")), events=500)
    row = found.subscribers.set_index("subscriber").loc["c"]
    assert row["events"] == 0
    assert math.isnan(row["on_time"])
    assert [each.where for each in found.remarks if each.kind == "nothing wanted"] == [("c",)]


def test_tables_agree_with_each_other():
    found = simulate(loads(CITY), replications=3, events=5_000)
    pairs = found.pairs.groupby("subscriber", sort=False)
    subscribers = found.subscribers.set_index("subscriber")
    assert pairs["events"].sum().equals(subscribers["events"])
    arrived = found.pairs.assign(n=found.pairs["on_time"] * found.pairs["events"])
    on_time = arrived.groupby("subscriber", sort=False)["n"].sum() / subscribers["events"]
    assert on_time.to_numpy() == pytest.approx(subscribers["on_time"].to_numpy(), rel=1e-12)
    last = found.delays.groupby("subscriber", sort=False)["arrived"].last()
    assert last.to_numpy() == pytest.approx(subscribers["delivered"].to_numpy(), rel=1e-12)
    rises = found.delays.groupby("subscriber")["arrived"].apply(lambda s: s.is_monotonic_increasing)
    assert rises.all()


def test_pairs_know_their_losses_and_delays():
    outcome = simulate(loads(CITY), seed=4, events=2_000, replications=4)
    pairs, whole = outcome.pairs, outcome.subscribers.set_index("subscriber")
    losses = [name for name in pairs.columns if name.startswith("lost_")]
    np.testing.assert_allclose(pairs["delivered"] + pairs[losses].sum(axis=1), 1.0, rtol=1e-12)
    assert pairs["delay_mean_se_s"].gt(0).all()
    for name, mine in pairs.groupby("subscriber"):
        lost = (mine[losses].mul(mine["events"], axis=0)).sum() / mine["events"].sum()
        np.testing.assert_allclose(lost, whole.loc[name, losses].astype(float), atol=1e-12)
        known = mine["delay_p95_s"].notna()
        assert known.all() == (len(mine) == 1)
        if len(mine) == 1:
            assert mine["delay_p95_s"].item() == whole.loc[name, "delay_p95_s"]


def test_quantiles_of_a_constant_delay_are_that_delay():
    system = loads(
        """
        tidings: 1
        lifetime: 1s
        brokers: {hub: {}, east: {}}
        links: [{between: [hub, east], delay: 8ms}]
        publishers: {p: {at: hub, every: {exponential: 10ms}, content: {event: {x: 1}}}}
        subscribers:
          plain: {at: east, wants: {}}
          own: {at: east, wants: {}, link: {delay: 3ms}}
        """
    )
    outcome = simulate(system, seed=1, events=500, replications=2)
    rows = outcome.subscribers.set_index("subscriber")
    for quantile in ("delay_p50_s", "delay_p95_s", "delay_p99_s"):
        assert rows.loc["plain", quantile] == pytest.approx(0.008, rel=1e-9)
        assert rows.loc["own", quantile] == pytest.approx(0.011, rel=1e-9)
    law = outcome.delays[outcome.delays["subscriber"] == "plain"]
    assert law["delay_s"].iloc[-1] == pytest.approx(0.008, rel=1e-9)
