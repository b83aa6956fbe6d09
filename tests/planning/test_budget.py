from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import pytest
import yaml

from planning.small_systems import INVERTED, QUEUE, TWO, two_brokers
from tidings.cli.commands import run
from tidings.model import reading
from tidings.model.causes import ARROW, KINDS, Cause, Cost
from tidings.planning.budget import explain
from tidings.planning.change_kinds import Change, times
from tidings.planning.change_search import ChangeSearch, Remedy
from tidings.planning.changes import changed, sentences
from tidings.planning.remedies import promising
from tidings.prediction.predict import predict
from tidings.simulation.run import simulate

# One of everything that a cause may be.
EVERYTHING = """
tidings: 1
lifetime: 1s
brokers: {hub: {service: {exponential: 1ms}, failure: {mtbf: 9h, mttr: 5min}}, far: {service: 1ms}}
links: [{between: [hub, far], delay: 5ms, reliability: 0.99, network: wifi}]
networks: {wifi: {bandwidth: 1MB/s}}
publishers:
  p:
    at: hub
    size: 100B
    every: {hyperexponential: [{p: 0.9, mean: 0.1s}, {p: 0.1, mean: 9s}]}
    connectivity: {on: {exponential: 9min}, off: {exponential: 1min}}
    batch: {size: 2, linger: 1ms}
    content: {event: {}}
subscribers:
  workers:
    at: far
    wants: {}
    consumers:
      members:
        quick: {processing: 1ms}
        slow: {processing: 5ms, failure: {mtbf: 9h, mttr: 5min}}
      partitions: {count: 2, shares: [0.9, 0.1]}
      prefetch: 5
      ack_wait: 20ms
  guest: {at: hub, wants: {}, stays: {exponential: 1h}, away: {exponential: 1h}}
"""

# A line of four brokers, nowhere crowded, with time to spare.
CALM = """
tidings: 1
lifetime: 200ms
brokers:
  a: {service: {exponential: 2ms}}
  b: {service: {exponential: 2ms}}
  c: {service: {exponential: 2ms}}
  d: {service: {exponential: 2ms}}
links:
  - {between: [a, b], delay: 5ms}
  - {between: [b, c], delay: 5ms}
  - {between: [c, d], delay: 5ms}
publishers:
  p: {at: a, every: {exponential: 20ms}, content: {event: {topic: x}}}
  q: {at: b, every: {exponential: 20ms}, content: {event: {topic: x}}}
subscribers:
  s: {at: d, wants: {}}
  t: {at: c, wants: {}}
  u: {at: a, wants: {}}
"""
EXPONENTIAL = {"exponential": "30s"}
BURSTS = {"hyperexponential": [{"p": 0.95, "mean": "1ms"}, {"p": 0.05, "mean": "381ms"}]}
# By the cause that is expected to be named first: what is planted, and what is to be done.
PLANTED = {
    "waiting at c": ({"brokers.c.service": {"exponential": "9.5ms"}}, "speed 'c' x2"),
    "travelling c → d": ({"links.2.delay": "190ms"}, "delay 'c--d' x0.5"),
    "a deadline shorter than the path without waiting": ({"lifetime": "14ms"}, "lifetime all x2"),
    "a deadline shorter than the path without waiting (q)": (
        {"publishers.q.content": {"event": {"topic": "x"}, "lifetime": "5ms"}},
        "lifetime 'q' x2",
    ),
    "overload of b": ({"brokers.b.service": {"exponential": "12ms"}}, "speed 'b' x1.7"),
    "outages of c": (
        {
            "brokers.c.failure": {"up": EXPONENTIAL, "down": {"exponential": "5s"}},
            "recovery": {"scheme": "periodic"},
        },
        "availability 'c' 1",
    ),
    "absences of s": (
        {"subscribers.s.connectivity": {"on": EXPONENTIAL, "off": EXPONENTIAL}},
        "off 's' x0.5",
    ),
    "bursts of p": (
        {"publishers.p.every": BURSTS, "brokers.a.service": {"exponential": "8ms"}},
        "bursts 'p' none",
    ),
    "the queue of s": (
        {"subscribers.s.processing": {"exponential": "9.7ms"}},
        "processing 's' x0.5",
    ),
    "loss on b → c": ({"links.1.reliability": 0.9}, "reliability 'b--c' 1"),
}


def planted(changes):
    document = yaml.safe_load(CALM)
    for path, value in changes.items():
        *parents, last = [int(key) if key.isdigit() else key for key in path.split(".")]
        place = document
        for key in parents:
            place = place[key]
        place[last] = value
    return reading.loads(yaml.safe_dump(document))


@pytest.mark.parametrize("cause", PLANTED)
def test_a_planted_cause_is_named_first_and_what_it_takes_is_the_best_change(cause):
    changes, remedy = PLANTED[cause]
    budget = explain(planted(changes))
    assert budget.totals[0][0].words == cause
    assert budget.remedies[0].change == remedy


SLOW_LINKS = {
    "one of two links": ("abc", {"a": "10ms", "b": "70ms"}, 0.15),
    "one of forty": ([f"b{number}" for number in range(41)], {"b20": "80ms"}, 0.25),
}


@pytest.mark.parametrize("case", SLOW_LINKS)
def test_a_link_that_is_slower_than_others_is_to_blame_and_not_the_deadline(case):
    brokers, means, lifetime_s = SLOW_LINKS[case]
    links = [
        {"between": ends, "delay": {"exponential": means.get(ends[0], "3ms")}}
        for ends in itertools.pairwise(brokers)
    ]
    system = reading.from_document(
        {
            "tidings": 1,
            "lifetime": lifetime_s,
            "brokers": {name: {"service": {"exponential": "1ms"}} for name in brokers},
            "links": links,
            "publishers": {"p": {"at": brokers[0], "every": "50ms", "content": {"event": {}}}},
            "subscribers": {f"s-{name}": {"at": name, "wants": {}} for name in brokers},
        }
    )
    slow = max(links, key=lambda each: float(each["delay"]["exponential"].removesuffix("ms")))
    budget = explain(system)
    assert budget.totals[0].cause == Cause("travel", ARROW.join(slow["between"]))
    assert budget.remedies[0].change == f"delay '{'--'.join(slow['between'])}' x0.5"


def test_a_link_that_is_slow_both_ways_is_one_thing_to_change():
    """Each way costs less than each of three brokers, and both together more."""
    costs = [Cost(Cause("waiting", name), 0.025) for name in "abc"]
    costs += [Cost(Cause("travel", f"{ends[0]}{ARROW}{ends[1]}"), 0.02) for ends in ("cd", "dc")]
    system = reading.loads(CALM)
    tried = promising(system, predict(system, causes=False), costs, 3)
    said = [sentences(each) for each in tried]
    assert said == ["delay 'c--d' x0.5", "speed 'a' x2", "speed 'b' x2"]


@pytest.mark.parametrize(("cost", "promised"), [(0.04, False), (0.06, True)])
def test_to_promise_less_is_advised_only_where_the_deadline_costs_most(cost, promised):
    """A deadline that costs at least half of the dearest cause tells more than that."""
    costs = [Cost(Cause("waiting", "a"), 0.1), Cost(Cause("deadline"), cost)]
    system = reading.loads(CALM)
    said = {sentences(each) for each in promising(system, predict(system, causes=False), costs)}
    assert said == {"speed 'a' x2", *(["lifetime all x2"] if promised else [])}


@pytest.mark.parametrize("cause", ["travelling c → d", "loss on b → c", "the queue of s"])
def test_the_gain_of_the_best_change_is_that_of_a_simulation(cause):
    changes, remedy = PLANTED[cause]
    system = planted(changes)
    best = explain(system).remedies[0]
    outcomes = [
        simulate(each, seed=7, replications=8, events=20_000)
        for each in (system, changed(system, [remedy]))
    ]
    gain = outcomes[1].on_time - outcomes[0].on_time
    noise = math.hypot(*(each.subscribers["on_time_se"].max() for each in outcomes))
    assert abs(best.gain - gain) <= best.error + 4 * noise


# What is gone without a cause, said as a change of the system.
GONE = {
    "travelling c → d": "delay 'c--d' 0s",
    "loss on b → c": "reliability 'b--c' 1",
    "outages of c": "availability 'c' 1",
    "absences of s": "connectivity 's' none",
    "the queue of s": "processing 's' none",
}


@pytest.mark.parametrize("cause", GONE)
def test_a_cost_is_what_a_second_prediction_gains_without_the_cause(cause):
    system = planted(PLANTED[cause][0])
    budget = explain(system, remedies=False)
    before, after = (
        explain(each, remedies=False).outcome.on_time
        for each in (system, changed(system, [GONE[cause]]))
    )
    assert budget.totals[0][1] == pytest.approx(after - before, abs=0.006)


def test_costs_of_a_queue_are_what_the_closed_forms_say():
    """M/M/1 with μ = 10, λ = 5, τ = .3 s: as it is, without waiting, without service."""
    budget = explain(changed(reading.loads(QUEUE), ["lifetime all 300ms"]))
    now, unwaited, unserved = (1 - math.exp(-0.3 * rate) for rate in (5, 10, math.inf))
    costs = {each.cause.kind: each.cost for each in budget.totals}
    assert costs["waiting"] == pytest.approx(unwaited - now, abs=1e-5)
    wait_alone = 1 - 0.5 * math.exp(-0.3 * 5)  # the wait is 0 half of the time
    assert costs["service"] == pytest.approx(wait_alone - now, abs=INVERTED)
    assert costs["deadline"] == pytest.approx(unserved - unwaited, abs=INVERTED)
    assert budget.bottleneck["broker"] == "hub"
    assert budget.bottleneck["utilisation"] == pytest.approx(0.5)
    best = budget.remedies[0]
    assert best.change == "lifetime all x2" or best.change == "speed 'hub' x2"


def test_what_theory_refuses_of_recovery_does_not_hide_the_cause():
    changes, _ = PLANTED["outages of c"]
    system = planted({**changes, "recovery": {"scheme": "periodic", "refresh": "1s"}})
    budget = explain(system, remedies=False)
    assert set(budget.outcome.subscribers["by"]) == {"simulation"}
    assert budget.totals[0][0].words == "outages of c"


def test_names_may_be_any_and_subscribers_alike():
    """Names with what separates changes in them, and two mobile subscribers that are alike."""
    mobile = "wants: {}, connectivity: {on: {exponential: 10s}, off: {exponential: 5s}}"
    text = CALM.replace("{at: d, wants: {}}", f'{{at: "d; e, f", {mobile}}}')
    text = text.replace("{at: c, wants: {}}", f'{{at: "d; e, f", {mobile}}}')
    text = text.replace("  p: {", """  "o'p": {link: {reliability: 0.9}, """)
    text = text.replace("  d: {", '  "d; e, f": {').replace("[c, d]", '[c, "d; e, f"]')
    budget = explain(reading.loads(text))
    assert budget.untried == {}
    assert budget.totals[0][0].words == "absences of subscribers like s"
    tried = {each.change for each in budget.remedies}
    assert tried >= {"off 'at:d; e, f' x0.5", """reliability "o'p" 1"""}


def test_changes_are_as_small_as_reaches_the_target():
    system = planted(PLANTED["waiting at c"][0])
    budget = explain(system, target=0.95)
    best = budget.remedies[0]
    assert best.change.startswith("speed 'c' x1.")
    assert best.on_time == pytest.approx(0.95, abs=0.02)
    assert best.on_time >= 0.95 - best.error


def test_remedies_are_of_what_matters():
    budget = explain(two_brokers())
    assert {each.change.split()[0] for each in budget.remedies} >= {"speed", "availability"}
    proven = [each.gain for each in budget.remedies if each.error is not None]
    assert proven == sorted(proven, reverse=True)


@pytest.mark.parametrize(("off", "proven"), [(0.0, ["best"]), (0.006, ["best", "next"])])
def test_changes_that_theory_cannot_tell_from_the_best_are_proven(off, proven, monkeypatch):
    monkeypatch.setattr(ChangeSearch, "_proof", lambda _, remedy: replace(remedy, error=0.0))
    outcome = predict(two_brokers())
    search = ChangeSearch(
        system=two_brokers(), everybody=outcome, target=None, progress=lambda _: None
    )
    search.__dict__["_before"] = outcome.on_time - off  # what theory says of the system as it is
    gains = {"best": 0.05, "next": 0.04, "far": 0.01}
    tried = tuple(
        Remedy(changes=(Change("remove", name),), on_time=0.9, gain=gain)
        for name, gain in gains.items()
    )
    answers = search.proven(tried)
    assert [each.changes[0].target for each in answers if each.error is not None] == proven
    shares = [each.on_time - each.gain for each in answers if each.error is None]
    assert shares == pytest.approx([outcome.on_time] * (3 - len(proven)))  # one baseline for all


def test_the_command(tmp_path, capsys):
    path = tmp_path / "city.yaml"
    path.write_text(TWO)
    assert run(["explain", str(path), "--json", "--no-remedies"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["causes"][0].keys() == {"cause", "place", "words", "cost", "error"}
    assert len(document["subscribers"]) == 4
    assert run(["explain", str(path), "--limit", "2", "--no-remedies"]) == 0
    said = capsys.readouterr().out
    assert "The busiest broker is hub" in said


def test_an_overloaded_broker_is_explained_too(tmp_path, capsys):
    path = tmp_path / "system.yaml"
    path.write_text(
        "tidings: 1\nlifetime: 1s\nbrokers: {b: {service: 20ms}}\n"
        "publishers: {p: {at: b, every: {rate: 60/s}, content: {event: {x: 1}}}}\n"
        "subscribers: {s: {at: b, wants: {}}}\n"
    )
    assert run(["explain", str(path)]) == 0
    assert "The busiest broker is b: busy 100 % of the time, events wait without limit there." in (
        " ".join(capsys.readouterr().out.split())
    )


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_something_to_do_against_every_kind_of_cause(kind):
    system = reading.loads(EVERYTHING)
    places = {"own queue": "workers", "slow member": "slow of workers", "hot partition": "workers",
              "redelivery": "workers", "crashes": "workers", "back-pressure": "hub",
              "travel": "hub → far", "loss": "hub → far", "network": "wifi", "bursts": "p",
              "batches": "p", "away": "p", "deadline": ""}  # fmt: skip
    totals = [Cost(Cause(kind, places.get(kind, "hub")), 0.1)]
    tried = list(promising(system, predict(system, seconds=0.2, causes=False), totals))
    assert tried
    for changes in tried:
        if kind != "overload":  # what nobody is offered too much of needs no relief
            assert changed(system, changes) != system


def test_names_with_of_and_colons_do_not_hide_a_slow_member():
    text = EVERYTHING.replace("  workers:", "  team of two:").replace("slow: {pro", '"s: 1": {pro')
    system = reading.loads(text)
    totals = [Cost(Cause("slow member", "s: 1 of team of two"), 0.1)]
    ((change,),) = promising(system, predict(system, seconds=0.2, causes=False), totals)
    group = next(each for each in changed(system, [change]).subscribers if each.consumers)
    times_s = {each.name: each.processing.mean_s for each in group.consumers.members}
    assert times_s == {"quick": 0.001, "s: 1": 0.001}


def test_against_back_pressure_whatever_is_full_gets_faster():
    system = reading.loads(QUEUE)
    (broker,) = (each.name for each in system.brokers)
    subscriber = system.subscribers[0].name
    totals = [Cost(Cause("back-pressure", place), 0.1) for place in (broker, subscriber)]
    found = list(promising(system, predict(system), totals))
    assert found == [(times("speed", broker, 2.0),), (times("processing", subscriber, 0.5),)]


def test_what_one_overloaded_broker_lets_through_once_relieved_the_next_can_handle():
    changes = {
        f"brokers.{name}.service": {"exponential": service}
        for name, service in (("b", "15ms"), ("c", "16ms"))
    }
    best = explain(planted(changes)).best
    assert best is not None
    assert [each.target for each in best.changes] == ["b", "c"]
    assert best.gain > 0.4  # each alone gains nothing
    assert best.on_time > 0.99


def test_against_a_group_that_is_offered_too_much_there_is_something_to_do():
    """The system as it is has no steady state to play changes in."""
    system = reading.loads(
        """
tidings: 1
lifetime: 1s
brokers: {hub: {service: {exponential: 1ms}}}
publishers: {p: {at: hub, every: {exponential: 10ms}, content: {event: {}}}}
subscribers:
  workers: {at: hub, wants: {}, processing: {exponential: 25ms}, consumers: 2}
"""
    )
    best = explain(system).best
    assert best is not None
    assert best.change in ("members 'workers' 4", "processing 'workers' x0.5")
    assert best.gain > 0.9
