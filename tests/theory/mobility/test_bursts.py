"""Bursts of ON/OFF publishers before queues: predicted against simulated, and what is told."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from tidings.model.laws import Deterministic, Exponential
from tidings.model.reading import from_document
from tidings.simulation.run import simulate
from tidings.theory import predicting
from tidings.theory.mobility.bursts import BESIDE, JOINT, SEVERAL
from tidings.theory.predicting import predict

STATED = 0.02  # what docs/mobile-peers.md says that shares may be off by


def system_behind(services_s, *, hand_over_s=0.01, at="b0"):
    """A publisher before brokers in a line, subscribers at its end whose events live differently.

    Another one, always there, publishes what nobody of these wants.
    """
    names = [f"b{index}" for index in range(len(services_s))]
    times_s = {"on": 6.0, "off": 3.0, "service": hand_over_s}
    connectivity = {name: {"exponential": mean_s} for name, mean_s in times_s.items()}
    return from_document(
        {
            "tidings": 1,
            "brokers": {
                name: {"service": {"exponential": mean_s}}
                for name, mean_s in zip(names, services_s, strict=True)
            },
            "links": [{"between": list(pair)} for pair in itertools.pairwise(names)],
            "publishers": {
                "mobile": {
                    "at": at,
                    "every": {"exponential": 0.1},
                    "content": {"event": {"topic": "a"}},
                    "connectivity": connectivity,
                },
                "other": {
                    "at": "b0",
                    "every": {"exponential": 1.0},
                    "content": {"event": {"topic": "b"}},
                },
            },
            "subscribers": {
                f"within {lifetime_s:g} s": {
                    "at": names[-1],
                    "wants": {"topic": "a"},
                    "lifetime": lifetime_s,
                }
                for lifetime_s in (0.2, 1.0, 3.0)
            },
        },
        "bursts",
    )


def on_time(outcome):
    return outcome.subscribers.set_index("subscriber")["on_time"]


def without_bursts(monkeypatch):
    monkeypatch.setattr(predicting, "bursting", lambda _: frozenset())


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("services_s", [(0.03,), (0.03, 0.04)])
def test_shares_on_time_are_those_of_the_simulation(services_s, monkeypatch):
    system = system_behind(services_s)
    seen = simulate(system, seed=11, events=150_000)
    noise = seen.subscribers.set_index("subscriber")["on_time_se"]
    assert noise.max() < 0.004
    off = (on_time(predict(system, delays=False)) - on_time(seen)).abs()
    assert (off < STATED + 4.5 * noise).all(), off
    without_bursts(monkeypatch)  # sharp enough to notice that waits are not independent
    off = (on_time(predict(system, delays=False)) - on_time(seen)).abs()
    assert off.max() > 3 * STATED


def test_bursts_that_are_followed_are_told():
    story = predict(system_behind((0.03,)), delays=False).provenance
    assert JOINT in story["approximations"]
    assert not story["warnings"]


def test_bursts_that_cannot_be_followed_are_warned_of():
    system = system_behind((0.03,))
    mobile, other = system.publishers
    connectivity = dataclasses.replace(mobile.connectivity, off=Deterministic(value_s=3.0))
    regular = dataclasses.replace(mobile, connectivity=connectivity)
    changed = dataclasses.replace(system, publishers=(regular, other))
    story = predict(changed, delays=False).provenance
    assert JOINT not in story["approximations"]
    (warning,) = story["warnings"]
    assert "'mobile'" in warning
    assert "not both exponential" in warning


@pytest.mark.slow
def test_bursts_in_company_are_warned_of():
    """Of four publishers alike none outweighs the others; plain events beside bursts wait too."""
    system = system_behind((0.03,))
    mobile, other = system.publishers

    def warnings(*publishers):
        changed = dataclasses.replace(system, publishers=publishers)
        return predict(changed, delays=False).provenance["warnings"]

    def like(name, source, every_s):
        return dataclasses.replace(source, name=name, every=Exponential(mean_s=every_s))

    assert warnings(*(like(name, mobile, 0.4) for name in "wxyz")) == [f"broker 'b0' {SEVERAL}"]
    assert warnings(mobile, like("y", other, 0.2)) == [f"broker 'b0' {BESIDE}"]
    assert warnings(mobile, like("y", mobile, 0.1)) == []


def test_nothing_piles_up_where_handing_over_is_slower(monkeypatch):
    """There waits stay apart, and no warning is due."""
    system = system_behind((0.03,), hand_over_s=0.05)
    outcome = predict(system, delays=False)
    assert JOINT not in outcome.provenance["approximations"]
    without_bursts(monkeypatch)
    again = predict(system, delays=False)
    assert not again.provenance["warnings"]
    assert on_time(again).to_list() == pytest.approx(on_time(outcome).to_list(), abs=1e-12)


def test_the_slowest_broker_of_a_line_counts_wherever_it_stands():
    """The order of exponential servers does not matter to the whole time."""
    found = []
    for services_s in ((0.03, 0.04), (0.04, 0.03)):
        system = system_behind(services_s)
        alone = dataclasses.replace(system, publishers=system.publishers[:1])
        found.append(on_time(predict(alone, delays=False)).to_list())
    assert found[0] == pytest.approx(found[1], abs=1e-9)


@pytest.mark.slow
def test_what_others_send_in_bursts_adds_to_the_wait():
    """Two that share a broker wait for each other's bursts, not only for their rates."""
    system = system_behind((0.03,))
    mobile, other = system.publishers
    twin = dataclasses.replace(mobile, name="twin")
    traffic = {}
    for name, second in (
        ("bursts", twin),
        ("Poisson", dataclasses.replace(twin, connectivity=None)),
    ):
        both = dataclasses.replace(system, publishers=(mobile, second, other))
        found = predict(both, delays=False, pairs=True).pairs.set_index(["publisher", "subscriber"])
        traffic[name] = found["on_time"]["mobile"]
    assert (traffic["bursts"] < traffic["Poisson"] - 0.005).all()
