"""Links of clients that fail: what is sent meanwhile, and what is under way, is lost on them."""

from __future__ import annotations

import math

import pytest

from tidings.model.reading import loads
from tidings.simulation.run import simulate

FAILURE = "failure: {mtbf: 4s, mttr: 1s}"


def system(publisher="", subscriber="", head=""):
    return loads(
        f"""
        tidings: 1
        lifetime: 10s
        {head}
        brokers: {{a: {{}}, b: {{}}}}
        links: [{{between: [a, b], delay: 1ms}}]
        publishers:
          p: {{at: a, every: {{rate: 20/s}}, content: {{event: {{k: 1}}}}, link: {{{publisher}}}}}
        subscribers:
          s: {{at: b, wants: {{k: 1}}, link: {{{subscriber}}}}}
          t: {{at: b, wants: {{k: 1}}}}
        """
    )


def lost_agrees(row, exact):
    """Losses come in outages: the standard error is that over replications."""
    assert 8.0 * row["on_time_se"] < 0.2 * exact, "not sharp enough to tell"
    assert abs(row["lost_path_down"] - exact) < 4.0 * row["on_time_se"]
    assert row["delivered"] + row["lost_path_down"] == pytest.approx(1.0, abs=1e-12)


def run(described):
    return simulate(described, seed=7, replications=30, duration_s=4000.0).subscribers


@pytest.mark.statistical
@pytest.mark.parametrize("delay_s", [0.0, 0.5])
def test_what_is_sent_and_what_is_under_way_while_a_link_is_down_is_lost(delay_s):
    # Up when sent, with 4/5, and then for as long as it is under way: exp(−delay/4).
    exact = 1.0 - 0.8 * math.exp(-delay_s / 4.0)
    rows = run(system(subscriber=f"delay: {delay_s}s, {FAILURE}"))
    lost_agrees(rows.iloc[0], exact)
    assert rows.iloc[1]["on_time"] == 1.0
    for _, row in run(system(publisher=f"delay: {delay_s}s, {FAILURE}")).iterrows():
        lost_agrees(row, exact)


@pytest.mark.statistical
def test_brokers_that_buffer_do_not_keep_what_clients_links_lose():
    buffering = "recovery: {scheme: buffering}"
    lost_agrees(run(system(subscriber=FAILURE, head=buffering)).iloc[0], 0.2)


@pytest.mark.statistical
def test_a_mobile_subscriber_is_sent_to_over_a_failing_link():
    connected = "connectivity: {on: 3s, off: 1s}"
    mobile = loads(
        f"""
        tidings: 1
        brokers: {{b: {{}}}}
        publishers: {{p: {{at: b, every: {{rate: 20/s}}, content: {{event: {{k: 1}}}}}}}}
        subscribers: {{s: {{at: b, wants: {{k: 1}}, {connected}, link: {{{FAILURE}}}}}}}
        """
    )
    lost_agrees(run(mobile).iloc[0], 0.2)
