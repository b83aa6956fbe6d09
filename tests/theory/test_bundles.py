"""Ways followed together against ways followed one by one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from tidings.model.laws import Exponential, Gamma, LogNormal, Uniform
from tidings.model.reading import from_document
from tidings.model.routes import route
from tidings.theory import predicting
from tidings.theory.bundles import Bundles
from tidings.theory.flows import flows
from tidings.theory.inversion import series_rule
from tidings.theory.queue_models import QUEUE_MODELS, broker_stages
from tidings.theory.stage_columns import columns_in_series, stage_columns
from tidings.theory.stages import NOTHING, Stage, in_series, law_stage
from tidings.theory.traffic import Traffic
from tidings.theory.ways import Ends, ways

SHARES = ("on_time", "delivered", "late", "lost_link", "lost_overload", "wanted_per_s")


def random_tree(seed, *, brokers=12, overloaded=False, several_trees=False):
    """Lossy links, links of peers, three kinds of lifetimes."""
    random = np.random.default_rng(seed)
    links = [
        {
            "between": [f"b{random.integers(number)}", f"b{number}"],
            "delay": {
                "gamma": {"mean": float(random.uniform(2e-3, 9e-3)), "shape": 3},
                "shift": 1e-3,
            },
            "reliability": 0.99,
        }
        for number in range(1, brokers)
    ]
    document = {
        "tidings": 1,
        "lifetime": 0.05,
        "brokers": {
            f"b{i}": {"service": {"exponential": 1e-3 * (1 + i % 3)}} for i in range(brokers)
        },
        "links": links,
        "publishers": {
            f"p{i}": {
                "at": f"b{random.integers(brokers)}",
                "every": {"exponential": 0.2},
                "content": [
                    {"p": 0.5, "event": {"topic": "x", "of": i % 5}},
                    {"p": 0.5, "event": {"topic": "y", "of": i % 5}, "lifetime": "80ms"},
                ],
                **({"link": {"delay": {"exponential": 4e-3}}} if i % 3 == 0 else {}),
                **({"lifetime": {"exponential": 0.1}} if i % 7 == 0 else {}),
            }
            for i in range(10)
        },
        "subscribers": {
            f"s{i}": {
                "at": f"b{random.integers(brokers)}",
                "wants": {} if i % 4 == 0 else {"of": i % 5},
                **({"lifetime": "30ms"} if i % 5 == 0 else {}),
                **(
                    {"link": {"delay": {"gamma": {"mean": 5e-3, "shape": 2}}}} if i % 6 == 0 else {}
                ),
            }
            for i in range(16)
        },
    }
    if overloaded:
        document["brokers"]["b1"] = {"service": {"exponential": 0.1}}
    if several_trees:
        document["links"].append(
            {"between": ["b1", f"b{brokers - 1}"], "delay": {"exponential": 3e-3}}
        )
        document["routing"] = {"root": "b0", "by": "topic", "roots": {"y": f"b{brokers - 1}"}}
    return from_document(document)


@pytest.mark.parametrize("kind", [{}, {"overloaded": True}, {"several_trees": True}])
def test_ways_together_agree_with_ways_one_by_one(kind, monkeypatch):
    system = random_tree(3, **kind)
    singly = predicting.predict(system, delays=False)
    monkeypatch.setattr(predicting, "most_singly", lambda audiences: 0)
    together = predicting.predict(system, delays=False)
    bound = singly.provenance["numerical_error"] + together.provenance["numerical_error"]
    assert bound < 1e-4
    for name in SHARES:
        one, other = singly.subscribers[name], together.subscribers[name]
        allowed = bound if name in ("on_time", "late") else 1e-14
        assert np.abs(one - other).max() <= allowed, name
    assert np.median(np.abs(singly.subscribers["on_time"] - together.subscribers["on_time"])) < 1e-6
    times = {"delay_mean_s": 1e-12, "delay_p50_s": 2e-3, "delay_p95_s": 2e-3, "delay_p99_s": 2e-3}
    for name, allowed in times.items():
        np.testing.assert_allclose(
            together.subscribers[name], singly.subscribers[name], rtol=allowed
        )


def test_columns_of_bundles_are_those_of_stages():
    system = random_tree(5, overloaded=True)
    routes = route(system)
    queues = QUEUE_MODELS["law"].queues(
        Traffic(system=system, routes=routes, flows=flows(system, routes))
    )
    stages = ways(routes, broker_stages(queues))
    bundle = Bundles(ways=stages).bundle(7, 0)
    here = Ends(broker=7, channel=system.publishers[1].link)
    expected = stage_columns(
        [
            stages.way(Ends(broker=broker, channel=system.publishers[1].link), here, 0)
            for broker in range(len(system.brokers))
        ]
    )
    for name in ("survives", "shift_s", "random_s", "variance_s2", "atom", "order", "delays"):
        assert getattr(bundle.ways, name) == pytest.approx(getattr(expected, name), rel=1e-13)
    for cause, lost in expected.lost.items():
        assert bundle.ways.lost[cause] == pytest.approx(lost, rel=1e-13)


def test_columns_in_series_are_stages_in_series():
    first = Stage(
        survives=0.9,
        lost={"link": 0.1},
        shift_s=1.0,
        delays=law_stage(Exponential(mean_s=2.0)).delays,
    )
    second = Stage(survives=0.5, lost={"overload": 0.4, "link": 0.1}, shift_s=2.0)
    both = columns_in_series(stage_columns([first, NOTHING]), stage_columns([second, first]))
    expected = stage_columns([in_series(first, second), first])
    assert both.survives.tolist() == expected.survives.tolist()
    assert {cause: lost.tolist() for cause, lost in both.lost.items()} == {
        cause: lost.tolist() for cause, lost in expected.lost.items()
    }
    assert both.mean_s.tolist() == expected.mean_s.tolist()


@pytest.mark.parametrize("shape", [1.0, 4.0, 60.0, 400.0])
@pytest.mark.parametrize("at", [0.3, 0.9, 1.0, 1.2, 2.0])
def test_the_long_series_resolves_narrow_laws(shape, at):
    """A gamma law of mean 1: standard deviations down to a twentieth of it."""
    nodes, weights, fewer = series_rule()
    z = nodes / at
    values = ((1.0 + z / shape) ** -shape / z).real
    exact = special.gammainc(shape, shape * at)
    difference = abs(values @ weights - values @ fewer) / at
    assert abs(values @ weights / at - exact) <= 4.0 * difference + 2e-9
    assert values @ weights / at == pytest.approx(exact, abs=1e-8 if shape <= 60.0 else 1e-5)


@pytest.mark.parametrize(
    "law",
    [Gamma(mean_s=2.0, shape=9.0), LogNormal(mean_s=0.5, scv=0.3), Uniform(low_s=0.0, high_s=1.0)],
)
def test_transforms_at_the_long_series(law):
    nodes, weights, _ = series_rule()
    for at in (0.4, 1.0, 1.7):
        z = nodes / at
        found = (law.transform(z) / z).real @ weights / at
        assert found == pytest.approx(law.cdf(at), abs=2e-3 if isinstance(law, Uniform) else 1e-8)
