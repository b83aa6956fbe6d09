from __future__ import annotations

import pytest

from studies import combined
from studies.combined import Case, Settings, study
from studies.combined import table as tabulate
from studies.combined.systems import (
    BROKERS,
    PARTS,
    busiest_load,
    everything,
    only,
    without,
)
from tidings.model.features import used_features
from tidings.model.filters import EVERYTHING, as_filter
from tidings.model.outcome import Outcome, table


@pytest.fixture(scope="module")
def system():
    return everything()


def test_every_effect_bites(system):
    assert len(system.brokers) == BROKERS
    assert busiest_load(system) == pytest.approx(0.65)
    assert all(each.failure.availability <= 0.97 for each in system.brokers)
    mobile = [e.connectivity for e in (*system.publishers, *system.subscribers) if e.connectivity]
    shares = [each.on.mean_s / (each.on.mean_s + each.off.mean_s) for each in mobile]
    assert max(shares) <= 0.7
    assert {"failures", "connectivity", "subscription churn"} <= set(used_features(system))
    assert any(each.stays and each.connectivity for each in system.subscribers)
    assert len({each.wants for each in system.subscribers}) > 10


def test_every_publisher_has_a_subscriber_beside_it_that_follows_it_alone(system):
    """So that some are near what they want, and shares span what there can be."""
    beside = [
        (publisher.name, each.name)
        for publisher in system.publishers
        for each in system.subscribers
        if each.wants == as_filter({"source": publisher.name}) and each.at == publisher.at
    ]
    assert [name for name, _ in beside] == [each.name for each in system.publishers]


def test_parts_are_switched_off_one_by_one(system):
    nothing = only(system, ())
    assert set(used_features(nothing)) == set()
    assert {each.wants for each in nothing.subscribers} == {EVERYTHING}
    for effect in PARTS:
        assert only(system, (effect,)) != nothing
        assert without(only(system, (effect,)), effect) == nothing
    assert only(system, tuple(PARTS)) == system


def outcome(source, *shares):
    columns = {
        "subscriber": [f"s{i}" for i in range(len(shares))],
        "on_time": shares,
        "on_time_se": [0.001] * len(shares),
    }
    brokers = table("brokers", {"broker": ["b"], "utilisation": [0.5]})
    return Outcome(source=source, subscribers=table("subscribers", columns), brokers=brokers)


def case(effects, predicted, simulated):
    return Case(
        effects=effects,
        predicted=outcome("predicted", *predicted),
        simulated=outcome("simulated", *simulated),
    )


def test_errors_and_interactions_of_a_pair():
    cases = (
        case(("queues",), (0.5, 0.5), (0.5, 0.5)),
        case(("links",), (0.8, 0.8), (0.8, 0.8)),
        case(("queues", "links"), (0.44, 0.36), (0.45, 0.35)),
        Case(effects=("failures", "churn"), refused="not both"),
    )
    rows = tabulate(cases).set_index("effects")
    pair = rows.loc["queues + links"]
    assert pair["mean_absolute"] == pytest.approx(0.01)
    assert pair["bias"] == pytest.approx(0.0)
    assert pair["product_off"] == pytest.approx(0.05)  # .5 · .8 against .45 and .35
    assert rows.loc["failures + churn", "refused"] == "not both"
    page = study(Settings(), cases)
    assert "failures + churn: not both" in page.sections[1].words


def test_all_alone_has_no_product_of_singles():
    cases = (case(tuple(PARTS), (0.5, 0.4), (0.5, 0.5)),)
    (row,) = tabulate(cases).to_dict("records")
    assert row["effects"] == "all"
    assert row["mean_absolute"] == pytest.approx(0.05)
    assert "product_off" not in row
    assert study(Settings(pairs=False), cases).sections[1].exhibits[0].rows[0][-1] == ""


def test_progress_names_the_combination_and_how_much_of_it_is_done(monkeypatch):
    def play(system, options, *, progress):
        progress(f"replication 2 of {options.replications}")
        return outcome("simulated", 0.5)

    monkeypatch.setattr(combined, "foretell", lambda system: outcome("predicted", 0.5))
    monkeypatch.setattr(combined, "simulate", play)
    said = []
    combined.simulate_all(Settings(pairs=False), said.append)
    assert said == ["all (1 of 1), predicting", "all (1 of 1), replication 2 of 10"]
    combined.simulate_all(Settings(), said.append)
    assert "queues + links (9 of 37), replication 2 of 10" in said
