from __future__ import annotations

import itertools

import numpy as np
import pytest

from planning.small_systems import CROWD, two_brokers
from planning.truths import played_by
from tidings.cli.commands import run
from tidings.model import reading
from tidings.planning.changes import changed
from tidings.planning.evidence import Target, foretell
from tidings.planning.homes import assign_homes, search_for


def small_random_system(seed):
    rng = np.random.default_rng(seed)
    topics = ["a", "b"]
    return reading.from_document(
        {
            "tidings": 1,
            "lifetime": 0.4,
            "brokers": {
                f"b{i}": {"service": {"exponential": float(rng.uniform(0.03, 0.09))}}
                for i in range(3)
            },
            "links": [
                {
                    "between": ["b0", "b1"],
                    "delay": float(rng.uniform(0.0, 0.2)),
                    "reliability": 0.97,
                },
                {
                    "between": ["b1", "b2"],
                    "delay": float(rng.uniform(0.0, 0.2)),
                    "reliability": 0.99,
                },
            ],
            "publishers": {
                f"p{i}": {
                    "at": f"b{rng.integers(3)}",
                    "every": {"exponential": float(rng.uniform(0.15, 0.4))},
                    "content": {"event": {"topic": topics[i % 2]}},
                }
                for i in range(2)
            },
            "subscribers": {
                f"s{i}": {
                    "at": f"b{rng.integers(3)}",
                    "wants": {"topic": topics[i % 2]},
                    "count": int(rng.integers(1, 3)),
                }
                for i in range(3)
            },
        }
    )


def brute_force(search):
    """The worth of the best of all assignments that are allowed."""
    every = itertools.product(search.brokers, repeat=len(search.movers))
    return max(search.worth(homes) for homes in every if search.allows(homes))


@pytest.mark.parametrize(("seed", "most"), [(1, None), (2, 2), (3, 3)])
def test_homes_are_those_of_brute_force(seed, most):
    search = search_for(small_random_system(seed), Target(share=0.8), most=most)
    found = assign_homes(search)
    homes = tuple(found.best.homes.values())
    assert search.allows(homes)
    assert search.worth(homes) == brute_force(search)
    assert found.predictions < len(search.brokers) ** len(search.movers) or most is not None


def heads_at(system):
    found = dict.fromkeys(system.broker_index, 0)
    for each in system.subscribers:
        found[each.at] += each.count
    return found


def test_a_limit_that_cannot_be_kept_is_said_with_the_least_that_can():
    """Heads of 1, 1, 1 and 2 at two brokers: three at one of them, whatever is done."""
    found = assign_homes(search_for(two_brokers(), Target(share=0.5), most=2))
    assert (found.most, found.limit, found.verdict) == (2, 3, "misses")
    assert max(heads_at(found.plan).values()) == 3
    assert found.to_document()["least_possible"] == 3
    kept = assign_homes(search_for(two_brokers(), Target(share=0.5), most=3))
    assert kept.limit == 3
    assert max(heads_at(kept.plan).values()) == 3


def test_a_limit_counts_those_who_stay_and_heads_that_go_together():
    crowd = "subscriber {} {{at: edge, wants: {{topic: a}}, count: {}}}"
    changes = [crowd.format(f"c{heads}", heads) for heads in (5, 4, 3)]
    system = changed(reading.loads(CROWD), changes)
    # Fourteen at the edge; with the five that stay there, seven each is not possible.
    search = search_for(system, Target(share=0.5), who="c4", most=7)
    assert search.limit == 10
    best = max(heads_at(assign_homes(search_for(system, Target(share=0.5), most=7)).plan).values())
    assert best == 7
    alone = search_for(system, Target(share=0.5), brokers=["hub"], most=7)
    assert alone.limit == 14
    assert set(assign_homes(alone).best.homes.values()) == {"hub"}


def test_where_the_simulation_speaks_against_homes_the_next_best_are_taken(theory_off_by):
    """By prediction both are best at the hub; in truth what is at home there loses a half."""
    theory_off_by(1.0)
    system = changed(reading.loads(CROWD), ["service hub {exponential: 20ms}"])

    def crowded_hub(plan, precision):
        found = played_by()(plan, precision)
        rows = found.subscribers
        if (rows["broker"] == "hub").sum() > 1:
            rows.loc[rows["broker"] == "hub", "on_time"] *= 0.5
        return found

    search = search_for(system, Target(share=0.8))
    assert set(assign_homes(search, played_by()).best.homes.values()) == {"hub"}
    found = assign_homes(search, crowded_hub)
    assert sorted(found.best.homes.values()) == ["edge", "hub"]
    assert found.verdict == "meets"
    assert foretell(found.plan).on_time < 1.0
    nothing = assign_homes(search, played_by("rate all x8"))
    assert nothing.verdict == "misses"
    assert set(nothing.best.homes.values()) == {"hub"}


@pytest.mark.parametrize(
    ("arguments", "truth", "code", "said"),
    [
        (["--target", "0.6"], [], 0, "Subscribers to move"),
        (["--target", "0.6", "--most", "1"], [], 0, "Subscribers to move"),
        (["--target", "0.6", "--most", "1", "--broker", "hub"], [], 1, "is not possible"),
        (["--target", "0.8", "--broker", "edge"], [], 1, "below its target"),
        (["--target", "0.6", "--broker", "edge"], ["speed all x0.8"], 1, "below its target"),
    ],
)
def test_the_command_follows_its_evidence(
    arguments, truth, code, said, world, capsys, theory_off_by
):
    theory_off_by(1.0)
    assert run(["plan", "homes", world(CROWD, *truth), *arguments]) == code
    assert said in " ".join(capsys.readouterr().out.split())


def test_homes_of_fifteen_brokers_are_found_with_few_whole_predictions(monkeypatch):
    """Twelve may move to any of fifteen: 168 moves from the start alone, of which few are tried."""
    rng = np.random.default_rng(5)
    names = [f"b{i}" for i in range(15)]
    system = reading.from_document(
        {
            "tidings": 1,
            "lifetime": 0.2,
            "brokers": {name: {"service": {"exponential": 0.01}} for name in names},
            "links": [
                {"between": [names[(i - 1) // 2], names[i]], "delay": {"exponential": 0.02}}
                for i in range(1, 15)
            ],
            "publishers": {
                f"p{i}": {
                    "at": names[7 + i],
                    "every": {"exponential": 0.05},
                    "content": {"event": {"topic": str(i)}},
                }
                for i in range(4)
            },
            "subscribers": {
                f"s{i}": {"at": names[int(rng.integers(15))], "wants": {"topic": str(i % 4)}}
                for i in range(12)
            },
        }
    )
    predicted, said = [], []

    def counted(plan):
        predicted.append(plan)
        return foretell(plan)

    monkeypatch.setattr("tidings.planning.evidence.foretell", counted)
    found = assign_homes(search_for(system, Target(share=0.9), progress=said.append))
    # Each at the broker where what it wants is published: nothing can be better.
    assert set(found.best.homes.values()) == {f"b{7 + i}" for i in range(4)}
    assert found.best.standing.satisfied == 1.0
    assert len(predicted) < 20
    assert said[0].endswith("steps")
    assert " of at most " in said[0]
