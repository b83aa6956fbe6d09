"""How long a simulation measures: enough turns of what fails, and no longer than is allowed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tidings.errors import InvalidInputError
from tidings.model.reading import loads
from tidings.simulation import windows
from tidings.simulation.network import compile_system
from tidings.simulation.run import SimulationOptions, simulate
from tidings.simulation.windows import CYCLES, find_span, find_window

FAILING = """
tidings: 1
lifetime: 1s
recovery: {scheme: periodic}
brokers: {a: {}, b: {failure: {mtbf: MTBF, mttr: MTTR}}}
links: [{between: [a, b]}]
publishers: {p: {at: a, every: {rate: RATE}, content: {event: {x: 1}}}}
subscribers: {s: {at: b, wants: {}}}
"""


def failing(up="110s", down="10s", rate="10/s"):
    return loads(FAILING.replace("MTBF", up).replace("MTTR", down).replace("RATE", rate))


def window_of(system, **options):
    compiled, chosen = compile_system(system), SimulationOptions(**options)
    precision = chosen.precision if isinstance(chosen.precision, float) else None
    span = find_span(compiled, precision)
    return find_window(compiled, chosen, lambda _: None, span)[0], span


def test_by_default_all_replications_together_span_many_failures():
    window, span = window_of(failing(up="7100s", down="100s", rate="1/s"))
    assert span.cycle.name == "broker b"
    assert 10 * window.length_s == pytest.approx(CYCLES * 7_200.0)
    assert window.length_s > 50_000.0  # what 50,000 events would take
    plain, nothing = window_of(loads(FAILING.replace(", failure: {mtbf: MTBF, mttr: MTTR}", "")
                                     .replace("{failure: {mtbf: MTBF, mttr: MTTR}}", "{}")
                                     .replace("RATE", "1/s")))  # fmt: skip
    assert nothing is None
    assert plain.length_s == pytest.approx(50_000.0)


def test_what_turns_most_slowly_decides_whatever_it_is():
    text = FAILING.replace("MTBF", "50s").replace("MTTR", "10s").replace("RATE", "1/s")
    mobile = (
        "{s: {at: b, wants: {}, connectivity: {on: {exponential: 900s}, off: {exponential: 100s}}}}"
    )
    churning = "{s: {at: b, wants: {}, stays: {exponential: 300s}, away: {exponential: 1700s}}}"
    for subscribers, length_s in ((mobile, 1000.0), (churning, 2000.0)):
        system = loads(text.replace("{s: {at: b, wants: {}}}", subscribers))
        _, span = window_of(system)
        assert (span.cycle.name, span.cycle.length_s) == ("subscriber s", length_s)


def test_rare_and_short_failures_need_few_turns_for_a_coarse_answer():
    """Known to u √(2/n): of a share of time down of .0005 one turn is enough for .005."""
    for up, down, precision, turns in (
        ("1999s", "1s", 0.005, 20.0),  # at least so many
        ("990s", "10s", 0.005, 32.0 * (0.01 / 0.005) ** 2),
        ("990s", "10s", 0.001, CYCLES),  # at most so many
    ):
        _, span = window_of(failing(up=up, down=down), precision=precision)
        assert span.needed_s == pytest.approx(turns * span.cycle.length_s)


def test_what_cannot_be_afforded_is_said_with_how_many_turns_were_seen():
    """A month between failures at a thousand events a second: no minute of computing spans it."""
    system = failing(up="720h", down="1h", rate="1000/s")
    found = simulate(system, seconds=1.0, precision=0.001)
    (few,) = [each for each in found.remarks if each.kind == "few cycles"]
    measured_s = found.provenance["replications"] * found.provenance["duration_s"]
    assert few.where == ("broker b",)
    assert few.size == pytest.approx(measured_s / (721 * 3600.0))
    assert few.sentence() in found.warnings
    assert found.provenance["cpu_s"] < 10.0


def test_a_duration_that_is_asked_for_is_kept_and_spoken_of_if_short():
    found = simulate(failing(), duration_s=100.0, replications=4)
    assert found.provenance["duration_s"] == 100.0
    assert [each.kind for each in found.remarks] == ["few cycles"]
    assert found.remarks[0].size == pytest.approx(400.0 / 120.0)
    enough = simulate(failing(rate="1/s"), duration_s=120.0 * CYCLES / 4, replications=4)
    assert not enough.remarks


def test_no_miss_in_few_turns_proves_little():
    """A tenth of a turn without an outage of .01 of the time: 3 over .1/(2 × .01) trials."""
    system = failing(up="9900s", down="100s")
    runs = (simulate(system, duration_s=500.0, replications=2, seed=seed) for seed in range(20))
    rows = (each.subscribers.iloc[0] for each in runs)
    lucky = next(row for row in rows if row["on_time"] == 1.0)
    assert lucky["error"] == pytest.approx(3.0 / (0.1 / 0.02))
    many = simulate(system, duration_s=100_000.0, replications=10).subscribers.iloc[0]
    assert many["on_time"] < 1.0
    assert many["error"] > 1.96 * many["on_time_se"]


@pytest.mark.statistical
def test_a_default_simulation_of_what_fails_knows_its_availability():
    """Two hours between failures, a share of .9: within its own error, which is small."""
    up, down = 6480.0, 720.0
    found = simulate(failing(up=f"{up}s", down=f"{down}s", rate="2/s"), seed=3)
    row = found.subscribers.iloc[0]
    assert not found.remarks
    assert row["error"] < 0.03
    assert abs(row["on_time"] - 0.9) <= 4.0 * row["on_time_se"]


def test_only_rows_that_matter_are_waited_for():
    """One subscriber loses half by its link: nobody asks for its share, so ten runs are enough."""
    system = loads(
        """
        tidings: 1
        brokers: {a: {}}
        publishers: {p: {at: a, every: {rate: 10/s}, content: {event: {x: 1}}}}
        subscribers:
          sure: {at: a, wants: {}, link: {reliability: 0.999}}
          half: {at: a, wants: {}, link: {reliability: 0.5}}
        """
    )
    asked = []

    def wanted(shares):
        asked.append(shares)
        return np.array([0.002, math.inf])

    found = simulate(system, precision=wanted, events=1_000)
    sure, half = found.subscribers["error"]
    assert sure <= 0.002 < half
    assert np.isnan(asked[0]).all()
    assert np.nanmin(asked[-1]) > 0.4
    both = simulate(system, precision=0.002, events=1_000)
    assert both.provenance["replications"] > 4 * found.provenance["replications"]


def test_seconds_end_a_simulation_that_would_go_on():
    system = failing(rate="1000/s")
    found = simulate(system, precision=1e-5, seconds=0.5, max_replications=10**6)
    assert 0.25 < found.provenance["cpu_s"] < 20.0
    (remark,) = [each for each in found.remarks if each.kind == "not held"]
    assert "allowed seconds ran out" in remark.sentence()
    with pytest.raises(InvalidInputError, match="seconds is 0"):
        simulate(system, seconds=0.0)


BUSY = """
tidings: 1
brokers: {{hub: {{service: {{exponential: 1ms}}}}}}
publishers: {{p: {{at: hub, every: {{rate: 200/s}}, content: {{event: {{}}}}}}}}
subscribers:
  group: {{at: hub, wants: {{}}, processing: {{exponential: 20ms}}, consumers: {{{group}}}}}
"""


@pytest.mark.parametrize("seconds", [1.0, 7.0, 60.0])
@pytest.mark.parametrize(
    ("group", "event_s"),
    [
        ("count: 6", 1e-6),
        ("count: 6, prefetch: 12, ack_wait: 150ms", 2.5e-6),  # as measured where it has collapsed
        ("count: 6, partitions: {count: 1000}", 35e-6),
    ],
)
def test_all_pilot_runs_together_take_no_more_than_their_part_of_the_seconds(
    monkeypatch, group, event_s, seconds
):
    asked = []

    def detect(_, length_s, tell, doublings):
        asked.append(sum(windows.PILOTS * length_s * 2**n for n in range(doublings + 1)))
        return 0.0, []

    monkeypatch.setattr(windows, "detect_warmup", detect)
    compiled = compile_system(loads(BUSY.format(group=group)))
    find_window(compiled, SimulationOptions(seconds=seconds), lambda _: None)
    assert asked[0] * 200 * event_s <= windows.PILOTED * seconds
