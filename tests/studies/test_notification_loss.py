"""Overlays and couples: by hand, against the slow obvious way, against the predictor, sampled."""

from __future__ import annotations

import json

import networkx as nx
import numpy as np
import pytest

from studies.harness import silent
from studies.notification_loss import (
    NOBODY,
    STAYS,
    Settings,
    draw_couples,
    simulate_all,
    spreading,
)
from studies.notification_loss.overlays import (
    Overlay,
    Times,
    TransitStub,
    couples_system,
    drawn_after_s,
    node_delays_s,
    random_overlay,
)
from tidings.cli.commands import run
from tidings.errors import InvalidInputError
from tidings.prediction.predict import predict
from tidings.theory.peers.notification_loss import exact_share

SMALL = TransitStub(transit_nodes=2, stubs_per_transit_node=1, nodes_per_stub=4)
LINE = Overlay(parents=np.array([-1, 0, 1, 2]), hop_s=np.array([0.0, 1.0, 2.0, 4.0]))


@pytest.fixture(scope="module")
def results():
    return simulate_all(Settings(topologies=1, couples=250, publications=4, seed=3), silent)


def test_a_transit_stub_network_is_connected_and_its_stubs_are_near():
    shape = TransitStub()
    delays_s = node_delays_s(shape, np.random.default_rng(1))
    assert delays_s.shape == (100, 100) == (shape.nodes, shape.nodes)
    assert np.all(np.isfinite(delays_s))
    assert delays_s == pytest.approx(delays_s.T, abs=1e-12)
    inside = [delays_s[first : first + 8, first : first + 8] for first in range(4, 100, 8)]
    assert max(block.max() for block in inside) < delays_s[4:12, 36:44].min()
    with pytest.raises(InvalidInputError, match="nodes_per_stub is 0"):
        TransitStub(nodes_per_stub=0)


def test_several_transit_domains_are_far_apart_and_connected():
    """Three domains of two nodes, each with a stub of three: 24 nodes, domains 100 s apart."""
    shape = TransitStub(
        transit_domains=3, transit_nodes=2, stubs_per_transit_node=1, nodes_per_stub=3,
        domains_s=100.0,
    )  # fmt: skip
    delays_s = node_delays_s(shape, np.random.default_rng(2))
    assert delays_s.shape == (24, 24) == (shape.nodes, shape.nodes)
    assert np.all(np.isfinite(delays_s))
    domain = np.concatenate([np.repeat(range(3), 2), np.repeat(range(3), 6)])
    near = domain[:, None] == domain
    assert delays_s[near].max() < 5.0
    assert delays_s[~near].min() > 50.0


@pytest.mark.parametrize("name", ["further_links", "domains_s", "transit_s", "access_s", "stub_s"])
@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf])
def test_delays_that_cannot_be_are_an_error(name, value):
    with pytest.raises(InvalidInputError, match=f"{name} is {value}; wants a number of 0 or more"):
        TransitStub(**{name: value})


def test_a_line_of_brokers_by_hand():
    delays_s = LINE.delays_s()
    assert delays_s[0].tolist() == [0.0, 1.0, 3.0, 7.0]
    assert delays_s[2].tolist() == [3.0, 2.0, 0.0, 4.0]
    assert LINE.path(3, 1) == [3, 2, 1]
    assert LINE.path(0, 2) == [0, 1, 2]
    facts = spreading(delays_s)
    assert facts["spread_s"] == 14.0
    assert facts["mean_s"] == pytest.approx(2 * (1 + 3 + 7 + 2 + 6 + 4) / 6)
    assert facts["r"] == pytest.approx(14 / facts["mean_s"] - 1)


def test_delays_through_the_tree_are_those_of_its_paths():
    overlay = random_overlay(SMALL, np.random.default_rng(2))
    tree = nx.Graph()
    for broker in range(1, overlay.brokers):
        tree.add_edge(broker, int(overlay.parents[broker]), weight=overlay.hop_s[broker])
    for start, ends in nx.all_pairs_dijkstra_path_length(tree):
        assert [ends[end] for end in range(overlay.brokers)] == pytest.approx(
            overlay.delays_s()[start], abs=1e-12
        )
        for end in range(overlay.brokers):
            assert overlay.path(start, end) == nx.shortest_path(tree, start, end)


def test_a_covered_subscription_stops_where_events_come_already():
    """On the line 0–1–2–3, a subscriber at 0 and a publisher at 3.

    Known at 2 after 3 seconds, where events come 4 seconds after they were published: all of them.
    """
    couple = np.array([[0, 3]])
    for coverers, expected in (([], 7.0), ([3], 7.0), ([2], 0.0), ([1], 0.0), ([0], 0.0)):
        found = drawn_after_s(LINE, couple, np.array(coverers, dtype=np.int64))
        assert found.tolist() == [expected]
    # from below to above as well: the other way round
    back = drawn_after_s(LINE, np.array([[3, 0]]), np.array([1]))
    assert back.tolist() == [6.0 - 1.0]


@pytest.mark.parametrize("multiple", [0.3, 0.9, 2.0])
def test_the_predictor_gives_the_exact_share_of_a_couple(multiple):
    overlay = random_overlay(SMALL, np.random.default_rng(5))
    delays_s = overlay.delays_s()
    subscriber, publisher = np.unravel_index(delays_s.argmax(), delays_s.shape)
    one_s = delays_s[subscriber, publisher]
    stay_s = float(multiple * 2 * one_s)
    times = Times(stay_s=stay_s, away_s=100.0, every_s=1.0)
    couple = np.array([[subscriber, publisher]])
    system = couples_system(overlay, couple, times, NOBODY)
    (row,) = predict(system, by="theory").subscribers.to_dict("records")
    assert row["delivered"] == pytest.approx(max(1 - 2 * one_s / stay_s, 0.0), abs=1e-9)
    lost = row["lost_not_known"] + row["lost_unsubscribed"]
    assert row["delivered"] + lost == pytest.approx(1.0, abs=1e-12)
    assert row["lost_not_known"] == pytest.approx(min(one_s / stay_s, 1.0), abs=1e-9)


def test_the_predictor_knows_of_lasting_subscriptions_that_cover():
    """Ten couples among covering subscribers, each with its own exact share."""
    random = np.random.default_rng(6)
    overlay = random_overlay(SMALL, random)
    couples = draw_couples(overlay.brokers, 10, random)
    coverers = random.permutation(overlay.brokers)[:4]
    stay_s = 0.8 * spreading(overlay.delays_s())["spread_s"]
    system = couples_system(
        overlay, couples, Times(stay_s=stay_s, away_s=10 * stay_s, every_s=stay_s), coverers
    )
    found = predict(system, by="theory").subscribers["delivered"].to_numpy()[:10]
    back_s = overlay.delays_s()[couples[:, 0], couples[:, 1]]
    alone, covered = (
        np.maximum(stay_s - after_s - back_s, 0.0) / stay_s
        for after_s in (back_s, drawn_after_s(overlay, couples, coverers))
    )
    assert found == pytest.approx(covered, abs=1e-12)
    assert np.count_nonzero(covered > alone + 0.01) > 3


@pytest.mark.statistical
def test_simulated_couples_agree_with_the_exact_expectation(results):
    shares = results.shares
    assert shares["sampled_se"].max() < 0.017
    z = (shares["sampled"] - shares["exact"]) / shares["sampled_se"].clip(lower=1e-9)
    assert z.abs().max() < 3.5
    assert (z**2).mean() < 2.0


def test_the_closed_form_holds_from_the_sum_on_and_not_below(results):
    shares = results.shares
    off = (shares["closed"] - shares["exact_all"]).abs()
    assert off[shares["stay"] >= 1.0].max() < 1e-12  # the area is exact, so is the mean
    assert off[shares["stay"] < 0.5].max() > 0.02


def test_couples_are_never_at_one_broker_and_evenly_spread():
    couples = draw_couples(5, 20_000, np.random.default_rng(1))
    assert np.all(couples[:, 0] != couples[:, 1])
    counts = np.bincount(couples[:, 0] * 5 + couples[:, 1], minlength=25)
    counts = counts[counts > 0]
    assert counts.size == 20
    assert ((counts - 1000) ** 2 / 1000).sum() < 45  # chi squared, 19 degrees: one in a thousand


def test_more_covering_filters_never_hurt(results):
    rows = results.covering.pivot_table(index=["seed", "stay"], columns="coverers", values="exact")
    assert np.all(np.diff(rows.to_numpy(), axis=1) >= -1e-15)
    simulated = results.covering.dropna(subset=["sampled"])
    z = (simulated["sampled"] - simulated["exact"]) / simulated["sampled_se"]
    assert z.abs().max() < 3.5
    assert np.ptp(simulated["exact"]) > 0.1  # against which the errors are small
    assert np.all(np.diff(simulated["messages"]) < 0)
    alone = results.shares.set_index(["seed", "stay"])["exact"]
    assert rows[0].to_numpy() == pytest.approx(alone.loc[rows.index].to_numpy(), abs=1e-12)


def test_the_command_writes_a_study(tmp_path, capsys):
    arguments = ["--topologies", "1", "--couples", "20", "--to", str(tmp_path / "out"), "--json"]
    assert run(["reproduce", "notification-loss", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [claim["section"] for claim in found["claims"]] == ["3.3", "3.2", "3.3", "3.3", "3.1"]
    assert found["claims"][1]["holds"]
    assert (tmp_path / "out" / "points.csv").read_text().count("\n") == 1 + len(STAYS)
    page = (tmp_path / "out" / "reproduction.html").read_text(encoding="utf-8")
    assert "What covering filters of others change" in page


def test_exact_share_over_all_couples_is_what_is_shown(results):
    seed = int(results.topologies["seed"].iloc[0])
    overlay = random_overlay(TransitStub(), np.random.default_rng(seed))
    delays_s = overlay.delays_s()
    off = delays_s[~np.eye(len(delays_s), dtype=bool)]
    rows = results.shares
    row = rows[(rows["seed"] == seed) & (rows["stay"] == 1.5)].iloc[0]
    assert row["exact_all"] == pytest.approx(float(exact_share(row["stay_s"], 2 * off)), abs=1e-12)
