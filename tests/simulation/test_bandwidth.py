"""Links with a bandwidth: events are sent one after the other, then take the link's delay."""

from __future__ import annotations

import pytest

from tidings.errors import InvalidInputError, UnstableError
from tidings.model.reading import loads
from tidings.simulation.run import simulate

# 1 kB over 100 kB/s: 10 ms each.
WIRE = "bandwidth: 100kB/s"


def chain(link="", publisher="", subscriber="", rates=(60,), head="size: 1kB"):
    publishers = "\n".join(
        f"  p{at}: {{at: a, every: {{rate: {rate}/s}}, content: {{event: {{k: 1}}}}, "
        f"link: {{{publisher}}}}}"
        for at, rate in enumerate(rates)
    )
    return loads(
        f"tidings: 1\n{head}\nlifetime: 50ms\nbrokers: {{a: {{}}, b: {{}}, c: {{}}}}\n"
        f"links:\n  - {{between: [a, b], delay: 5ms, {link}}}\n"
        "  - {between: [c, a], delay: 1ms}\n"
        f"publishers:\n{publishers}\n"
        f"subscribers: {{s: {{at: b, wants: {{k: 1}}, link: {{{subscriber}}}}}}}\n"
    )


def run(system, **options):
    return simulate(system, **({"seed": 5, "replications": 20, "events": 100_000} | options))


def agrees(found, exact, error, sharpness):
    assert 8.0 * error < sharpness * exact, "not sharp enough to tell"
    assert abs(found - exact) < 4.0 * error


def md1_sojourn_s(load, service_s=0.01):
    return service_s + load * service_s / (2 * (1 - load))


@pytest.mark.statistical
@pytest.mark.parametrize("where", ["link", "publisher", "subscriber"])
def test_a_wire_is_md1_before_the_delay(where):
    found = run(chain(**{where: WIRE}))
    row = found.subscribers.iloc[0]
    agrees(row["delay_mean_s"], md1_sojourn_s(0.6) + 0.005, row["delay_mean_se_s"], 0.02)
    if where == "link":
        link = found.links.iloc[0]
        agrees(link["delay_mean_s"], md1_sojourn_s(0.6) + 0.005, link["delay_mean_se_s"], 0.02)


@pytest.mark.statistical
def test_sizes_are_served_as_pollaczek_and_khinchine_have_it():
    contents = "[{p: 0.8, event: {k: 1}, size: 500B}, {p: 0.2, event: {k: 1, big: 1}, size: 3kB}]"
    text = f"""
        tidings: 1
        brokers: {{a: {{}}, b: {{}}}}
        links: [{{between: [a, b], {WIRE}}}]
        publishers: {{p: {{at: a, every: {{rate: 60/s}}, content: {contents}}}}}
        subscribers: {{s: {{at: b, wants: {{k: 1}}}}}}
        """
    row = run(loads(text)).subscribers.iloc[0]
    second = 0.8 * 0.005**2 + 0.2 * 0.03**2
    exact = 0.01 + 60 * second / (2 * (1 - 0.6))
    agrees(row["delay_mean_s"], exact, row["delay_mean_se_s"], 0.05)


@pytest.mark.statistical
def test_what_is_lost_has_used_the_wire():
    row = run(chain(link=f"{WIRE}, reliability: 0.5", rates=(70,))).subscribers.iloc[0]
    agrees(row["delay_mean_s"], md1_sojourn_s(0.7) + 0.005, row["delay_mean_se_s"], 0.03)


NETWORK = """
tidings: 1
size: 1kB
networks: {lan: {bandwidth: 100kB/s, duplex: DUPLEX}}
brokers: {a: {}, b: {}}
links: [{between: [a, b], network: lan}]
publishers:
  p: {at: a, every: {rate: 30/s}, content: {event: {k: 1}}}
  q: {at: b, every: {rate: 40/s}, content: {event: {k: 2}}}
subscribers:
  s: {at: b, wants: {k: 1}}
  t: {at: a, wants: {k: 2}}
"""


@pytest.mark.statistical
@pytest.mark.parametrize(("duplex", "loads_met"), [("full", (0.3, 0.4)), ("half", (0.7, 0.7))])
def test_a_shared_network_queues_both_ways_together_or_apart(duplex, loads_met):
    rows = run(loads(NETWORK.replace("DUPLEX", duplex))).subscribers
    for (_, row), load in zip(rows.iterrows(), loads_met, strict=True):
        agrees(row["delay_mean_s"], md1_sojourn_s(load), row["delay_mean_se_s"], 0.03)


def test_a_failing_link_loses_what_waits_for_it_and_begins_anew():
    failing = "failure: {mtbf: 2s, mttr: 200ms}"
    row = run(chain(link=f"{WIRE}, {failing}"), events=20_000).subscribers.iloc[0]
    assert row["delivered"] + row["lost_path_down"] == pytest.approx(1.0, abs=1e-12)
    # Down for 1/11 of the time; of what a failure meets under way, about one event is lost too.
    assert 1 / 11 < row["lost_path_down"] < 1 / 11 + 0.03


def test_what_cannot_be_sent_in_time_is_an_overload():
    with pytest.raises(UnstableError, match=r"link 'a--b' is overloaded, at 1\.2 times its"):
        simulate(chain(link=WIRE, rates=(120,)))
    with pytest.raises(UnstableError, match=r"link of publisher 'p0' is overloaded, at 1\.2"):
        simulate(chain(publisher=WIRE, rates=(120,)))
    with pytest.raises(UnstableError, match=r"link of subscriber 's' is overloaded, at 1\.2"):
        simulate(chain(subscriber=WIRE, rates=(60, 60)))
    half = NETWORK.replace("DUPLEX", "half").replace("40/s", "80/s")
    with pytest.raises(UnstableError, match=r"network 'lan' is overloaded, at 1\.1 times"):
        simulate(loads(half))


def test_a_bandwidth_needs_sizes():
    with pytest.raises(InvalidInputError, match=r"publishers\.p0 have no size"):
        simulate(chain(link=WIRE, head=""))


SHARING = """
tidings: 1
lifetime: 30ms
size: 1kB
networks: {lan: {bandwidth: 100kB/s}}
brokers: {a: {}}
publishers: {p: {at: a, every: {rate: 15/s}, content: {event: {k: 1}}}}
subscribers: {SUBSCRIBERS}
"""
SENT_TO = "{at: a, wants: {}, link: {network: lan, reliability: 0.9}COUNT}"


@pytest.mark.statistical
def test_subscribers_of_a_count_are_sent_to_one_after_the_other():
    """The wire is M/D/1 with four sendings each; one of four waits for 0 to 3 of them more."""
    one = SENT_TO.replace("COUNT", ", count: 4")
    row = run(loads(SHARING.replace("SUBSCRIBERS", f"s: {one}")), events=50_000).subscribers.iloc[0]
    exact = md1_sojourn_s(0.6, 0.04) - 0.04 + (1 + 2 + 3 + 4) / 4 * 0.01
    agrees(row["delay_mean_s"], exact, row["delay_mean_se_s"], 0.03)
    agrees(row["delivered"], 0.9, (0.9 * 0.1 / row["events"]) ** 0.5, 0.01)
    assert row["wanted_per_s"] == pytest.approx(15, rel=0.02)
    assert row["count"] == 4


@pytest.mark.statistical
def test_a_count_on_a_network_is_the_mean_of_subscribers_listed_one_by_one():
    one = SENT_TO.replace("COUNT", ", count: 3, processing: {exponential: 5ms}")
    each = SENT_TO.replace("COUNT", ", processing: {exponential: 5ms}")
    listed = ", ".join(f"s{number}: {each}" for number in range(3))
    counted = run(
        loads(SHARING.replace("SUBSCRIBERS", f"s: {one}")), seed=1, events=20_000
    ).subscribers.iloc[0]
    rows = run(loads(SHARING.replace("SUBSCRIBERS", listed)), seed=2, events=20_000).subscribers
    assert rows["on_time"].max() - rows["on_time"].min() > 0.2, "their order does not matter"
    error = (counted["on_time_se"] ** 2 + rows["on_time_se"].mean() ** 2) ** 0.5
    assert error < 0.003
    assert abs(counted["on_time"] - rows["on_time"].mean()) < 4 * error


def test_a_count_on_a_network_fills_it_as_often():
    one = SENT_TO.replace("COUNT", ", count: 7")
    with pytest.raises(UnstableError, match=r"network 'lan' is overloaded, at 1\.05 times"):
        simulate(loads(SHARING.replace("SUBSCRIBERS", f"s: {one}")))
