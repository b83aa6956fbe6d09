"""Ways to subscribers that come and go, against quadrature and, in whole systems, by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import integrate

from tidings.model.laws import Deterministic, Exponential, Gamma, LogNormal, Uniform
from tidings.model.reading import from_document
from tidings.theory.churn.churning import APPROXIMATIONS, Churn
from tidings.theory.churn.meeting import Meeting
from tidings.theory.churn.tilting import Tilted
from tidings.theory.lattice import Lattice, bracket
from tidings.theory.lifetimes import Lifetime, on_time
from tidings.theory.path_laws import Workshop, path_law
from tidings.theory.phase_type import chain_cdf
from tidings.theory.predicting import predict
from tidings.theory.stages import NOTHING, in_series, law_stage


def series(*laws):
    found = law_stage(laws[0])
    for law in laws[1:]:
        found = in_series(found, law_stage(law))
    return found


def exp(mean_s):
    return Exponential(mean_s=mean_s)


SMOOTH = (exp(0.3), exp(0.5), Gamma(mean_s=0.4, shape=2.0), Deterministic(value_s=0.1))
SPREADING = (exp(0.2), Deterministic(value_s=0.05))


def exact_pair(way, spreading, stays, lifetime_s):
    """E[(T − S − D)⁺; D ≤ L]/E[T] by two nested quadratures over CDFs, integrating by parts."""
    workshop = Workshop()
    travelled, spread = path_law(way, workshop), path_law(spreading, workshop)

    def rest(d):  # E[(T − S − d)⁺]
        def inner(u):
            return float(spread.cdf(u).value) * (1.0 - float(stays.cdf(u + d)))

        end = min(float(stays.quantile(1 - 1e-13)), 60.0)
        top = max(end - d, spreading.shift_s)
        return integrate.quad(inner, spreading.shift_s, top, epsabs=1e-12, limit=200)[0]

    def left(d):  # P[T − S > d]
        def inner(u):
            return float(spread.cdf(u).value)

        if isinstance(stays, Deterministic):
            return inner(stays.value_s - d)
        h = 1e-5
        return (rest(d - h) - rest(d + h)) / (2 * h)

    value, _ = integrate.quad(
        lambda d: left(d) * float(travelled.cdf(d).value),
        way.shift_s, lifetime_s, epsabs=1e-11, limit=200,
    )  # fmt: skip
    return (value + rest(lifetime_s) * float(travelled.cdf(lifetime_s).value)) / stays.mean_s


def test_exponential_stays_multiply_transforms():
    """E[(T − X)⁺]/E[T] = E[exp(−θX)], and each exponential delay only gets another rate."""
    theta = 0.5
    way = series(exp(0.3), exp(0.5), Deterministic(value_s=0.1))
    stage = Churn().stage(way, exp(1 / theta), [(1.0, Meeting(spreading=series(*SPREADING)))])
    rates = [1 / 0.3, 1 / 0.5]
    notified = math.prod(rate / (rate + theta) for rate in [*rates, 1 / 0.2])
    notified *= math.exp(-theta * 0.15)
    assert stage.survives == pytest.approx(notified, abs=1e-14)
    known = math.exp(-theta * 0.05) * (1 / 0.2) / (1 / 0.2 + theta)
    assert stage.lost == {
        "not_known": pytest.approx(1 - known, abs=1e-14),
        "unsubscribed": pytest.approx(known - notified, abs=1e-14),
    }
    faster = [rate + theta for rate in rates]
    assert stage.mean_s == pytest.approx(0.1 + sum(1 / rate for rate in faster), rel=1e-13)
    t = np.linspace(0.05, 4.0, 9)
    a, b = faster
    below = 1 - (b * np.exp(-a * t) - a * np.exp(-b * t)) / (b - a)
    law = path_law(stage, Workshop())
    assert law.cdf(0.1 + t).value == pytest.approx(notified * below, abs=1e-13)


def test_a_delay_s_phases_transform_and_moments_agree_when_tilted():
    erlang = law_stage(Gamma(mean_s=0.4, shape=3.0)).delays[0]
    tilted = Tilted(delay=erlang, per_s=2.0)
    rate = 3 / 0.4 + 2.0  # of each of three stages
    assert tilted.mean_s == pytest.approx(3 / rate, rel=1e-13)
    assert tilted.variance_s2 == pytest.approx(3 / rate**2, rel=1e-3)
    assert tilted.mass == pytest.approx((7.5 / 9.5) ** 3, rel=1e-14)
    chain = tilted.chain()
    t = np.array([0.1, 0.3, 1.0])
    poisson = sum((rate * t) ** k / math.factorial(k) for k in range(3))
    assert chain_cdf(chain, t)[0] == pytest.approx(1 - np.exp(-rate * t) * poisson, abs=1e-13)
    z = np.array([1.0 + 2.0j])
    assert tilted.transform(z) == pytest.approx((rate / (rate + z)) ** 3, abs=1e-13)


def test_a_tilted_delay_on_a_lattice_is_enclosed():
    """U(0, 1) weighted by exp(−2x): P[X ≤ t] = (1 − e^(−2t))/(1 − e^(−2))."""
    uniform = law_stage(Uniform(low_s=0.0, high_s=1.0)).delays[0]
    lattice = Lattice(step_s=1 / 512, points=1024)
    images = Tilted(delay=uniform, per_s=2.0).on_lattice(lattice)
    t = np.array([0.1, 0.5, 0.9])
    value, error = bracket(lattice, *images, t)
    assert np.all(np.abs(value - np.expm1(-2 * t) / math.expm1(-2.0)) <= error + 1e-12)
    assert np.all(error < 0.01)


def test_moments_of_a_way_that_is_weighed_as_a_whole():
    """U(0, 2) and a stay of 4 s weigh d by 4 − d: mean 8/9 s, variance 26/81 s²."""
    way = law_stage(Uniform(low_s=0.0, high_s=2.0))
    at_once = [(1.0, Meeting(spreading=NOTHING))]
    (delay,) = Churn().stage(way, Deterministic(value_s=4.0), at_once).delays
    assert delay.mean_s == pytest.approx(8 / 9, abs=1e-9)
    assert delay.variance_s2 == pytest.approx(26 / 81, abs=1e-9)


def test_what_failures_add_to_a_way_counts_beside_chance():
    """E of 1 s, S of 2 s, R of 0.5 s and 0.7 s more, all exponential, stays of rate θ.

    E[exp(−θ(max(S, E) + R + more))], with max(S, E) = S + E − min(S, E).
    """
    theta, workshop = 0.25, Workshop()
    parts = Meeting(spreading=series(exp(2.0)), before=series(exp(1.0)), after=series(exp(0.5)),
                    failing=True)  # fmt: skip
    way = in_series(in_series(parts.before, parts.after), series(exp(0.7)))
    stage = Churn(workshop=workshop).stage(way, exp(1 / theta), [(1.0, parts)])
    # ∫ θ exp(−θt) (1 − e^(−t)) (1 − e^(−t/2)) dt
    both = sum(
        sign * theta / (theta + rate) for sign, rate in ((1, 0), (-1, 1), (-1, 0.5), (1, 1.5))
    )
    exact = both / (1 + 0.5 * theta) / (1 + 0.7 * theta)
    assert stage.survives == pytest.approx(exact, abs=1e-9)


STAYS = [
    exp(2.0),
    Deterministic(value_s=2.0),
    Deterministic(value_s=0.3),
    Uniform(low_s=0.5, high_s=3.5),
    Gamma(mean_s=2.0, shape=2.0),
]


@pytest.mark.parametrize("stays", STAYS, ids=lambda law: f"{type(law).__name__}{law.mean_s:g}")
def test_any_stay_against_quadrature(stays):
    """d = ∫ P[T > t] P[S + D ≤ t] dt / E[T], to 1e-9 where stays are simple, else to 1e-7."""
    way, spreading, workshop = series(*SMOOTH), series(*SPREADING), Workshop()
    stage = Churn(workshop=workshop).stage(way, stays, [(1.0, Meeting(spreading=spreading))])
    both = path_law(in_series(way, spreading), workshop)
    end = min(float(stays.quantile(1 - 1e-13)), 60.0)
    corners = sorted({0.15, 0.5, *(each for each in (1.0, 2.0, 3.5) if each < end)})
    area, _ = integrate.quad(
        lambda t: (1 - float(stays.cdf(t))) * float(both.cdf(t).value),
        0.15, end, points=[c for c in corners if 0.15 < c < end] or None, epsabs=1e-12, limit=400,
    )  # fmt: skip
    simple = isinstance(stays, Exponential | Deterministic)
    assert stage.survives == pytest.approx(area / stays.mean_s, abs=1e-9 if simple else 1e-7)
    assert stage.survives + sum(stage.lost.values()) == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("stays", STAYS[:2], ids=lambda law: type(law).__name__)
@pytest.mark.parametrize("lifetime_s", [0.4, 1.2])
def test_notified_and_in_time_are_joint(stays, lifetime_s):
    """Not the product: those that stay long enough are those whose events were quick."""
    way, spreading, workshop = series(*SMOOTH), series(*SPREADING), Workshop()
    stage = Churn(workshop=workshop).stage(way, stays, [(1.0, Meeting(spreading=spreading))])
    found = on_time(stage, path_law(stage, workshop), Lifetime(certain_s=lifetime_s))
    if isinstance(stays, Exponential):  # the same by parts, in closed form but for one integral
        law, theta = path_law(way, workshop), 1 / stays.mean_s
        inner, _ = integrate.quad(
            lambda t: theta * math.exp(-theta * t) * float(law.cdf(t).value),
            0.1, lifetime_s, epsabs=1e-13,
        )  # fmt: skip
        tail = math.exp(-theta * lifetime_s) * float(law.cdf(lifetime_s).value)
        exact = (inner + tail) * math.exp(-theta * 0.05) / (1 + 0.2 * theta)
    else:
        exact = exact_pair(way, spreading, stays, lifetime_s)
    assert float(found.value) == pytest.approx(exact, abs=1e-9)
    alone = float(path_law(way, workshop).cdf(lifetime_s).value)
    assert float(found.value) > stage.survives * alone + 0.005


@pytest.mark.statistical
@pytest.mark.parametrize("stays", [exp(1.5), LogNormal(mean_s=1.5, scv=1.0)], ids=["exp", "log"])
def test_rough_ways_against_draws(stays):
    """Corners in the way: uniform links. What is notified, in time, and its mean delay."""
    laws = (Uniform(low_s=0.0, high_s=1.0), Uniform(low_s=0.1, high_s=0.6))
    way, spreading, workshop = series(*laws), series(*SPREADING), Workshop()
    stage = Churn(workshop=workshop).stage(way, stays, [(1.0, Meeting(spreading=spreading))])
    random, count = np.random.default_rng(11), 600_000
    delay = sum(law.sample(random, count) for law in laws)
    spread = 0.05 + random.exponential(0.2, count)
    weight = np.maximum(stays.sample(random, count) - spread - delay, 0.0) / stays.mean_s
    found = on_time(stage, path_law(stage, workshop), Lifetime(certain_s=0.7))
    for sample, value in (
        (weight, stage.survives),
        (weight * (delay <= 0.7), float(found.value)),
        (weight * delay, stage.survives * stage.mean_s),
    ):
        error = sample.std() / math.sqrt(count)
        assert error < 0.005 * value
        assert sample.mean() == pytest.approx(value, abs=4 * error)


SYSTEM = {
    "tidings": 1,
    "lifetime": "500ms",
    "brokers": {"west": {}, "hub": {}, "east": {}},
    "links": [
        {"between": ["west", "hub"], "delay": {"exponential": "100ms"}, "reliability": 0.9},
        {"between": ["hub", "east"], "delay": "40ms", "back": {"delay": "60ms"}},
    ],
    "publishers": {
        "far": {"at": "west", "every": {"exponential": "1s"}, "content": {"event": {"x": 1}}},
        "near": {"at": "east", "every": {"exponential": "1s"}, "content": {"event": {"x": 1}}},
    },
    "subscribers": {
        "comes": {
            "at": "east",
            "wants": {},
            "link": {"delay": "10ms"},
            "stays": {"exponential": "2s"},
            "away": "6s",
        },
        "fixed": {
            "at": "east",
            "wants": {},
            "link": {"delay": "10ms"},
            "stays": "1s",
            "away": "9s",
        },
    },
}
LASTS = {"at": "east", "wants": {}, "link": {"delay": "10ms"}}


@pytest.fixture(scope="module")
def alone():
    """The pairs of either of those who come and go, without the other."""
    found = [
        predict(from_document({**SYSTEM, "subscribers": {name: who}}, "a test"), pairs=True).pairs
        for name, who in SYSTEM["subscribers"].items()
    ]
    return pd.concat(found)


@pytest.fixture(scope="module")
def lasting():
    """The same with one that is always there: events are drawn to the subscribers' broker."""
    everybody = {**SYSTEM["subscribers"], "always": LASTS}
    return predict(from_document({**SYSTEM, "subscribers": everybody}, "a test"), pairs=True)


def test_a_line_of_brokers_by_hand(alone):
    """Events from west take 50 ms and an exponential 100 ms, subscriptions 70 ms and the same."""
    pairs = alone.set_index(["publisher", "subscriber"])
    theta, rate = 0.5, 10.0
    met = rate / (rate + theta)  # the exponential link, once there and once back
    far = pairs.loc["far", "comes"]
    assert far["delivered"] == pytest.approx(0.9 * met**2 * math.exp(-theta * 0.12), abs=1e-12)
    in_time = met * -math.expm1(-(rate + theta) * 0.45) * met * math.exp(-theta * 0.12)
    assert far["on_time"] == pytest.approx(0.9 * in_time, abs=1e-12)
    known = met * math.exp(-theta * 0.07)  # what nobody is known for is not sent on the link
    assert far["lost_link"] == pytest.approx(0.1 * known, abs=1e-12)
    assert far["delay_mean_s"] == pytest.approx(0.05 + 1 / (rate + theta), rel=1e-12)
    near = pairs.loc["near", "comes"]
    assert near["delivered"] == pytest.approx(math.exp(-theta * 0.02), abs=1e-12)
    assert pairs.loc["near", "fixed"]["delivered"] == pytest.approx(0.98, abs=1e-12)
    # E[(1 − X)⁺] with X = 0.12 + an Erlang sum of two stages of rate 10
    left = 0.88
    short = left - 0.2 + math.exp(-rate * left) * (0.2 + left)
    assert pairs.loc["far", "fixed"]["delivered"] == pytest.approx(0.9 * short, abs=1e-10)


def test_who_is_away_wants_nothing(lasting):
    rows = lasting.subscribers.set_index("subscriber")
    assert rows.loc["comes", "wanted_per_s"] == pytest.approx(2.0 * 2 / 8)
    assert rows.loc["fixed", "wanted_per_s"] == pytest.approx(2.0 / 10)
    missed = ["lost_not_known", "lost_unsubscribed"]
    assert (rows.loc["always", missed] == 0.0).all()
    total = rows[["delivered", "lost_link", *missed]].sum(axis=1)
    assert total.to_numpy() == pytest.approx(1.0, abs=1e-12)
    assert set(APPROXIMATIONS) <= set(lasting.provenance["approximations"])


def test_lasting_others_draw_events_to_where_they_are(lasting):
    """A subscription is known at east after 10 ms; what was published 40 ms before is there too."""
    pairs = lasting.pairs.set_index(["publisher", "subscriber"])
    theta, rate = 0.5, 10.0
    far = pairs.loc["far", "comes"]
    assert far["lost_not_known"] == 0.0
    met = rate / (rate + theta)
    assert far["delivered"] == pytest.approx(0.9 * met * math.exp(-theta * 0.05), abs=1e-12)
    assert far["lost_link"] == pytest.approx(0.1, abs=1e-12)
    near = pairs.loc["near", "comes"]
    assert near["delivered"] == pytest.approx(math.exp(-theta * 0.02), abs=1e-12)


def test_a_very_long_stay_is_no_churn(lasting):
    document = {**SYSTEM, "subscribers": {"s": {**SYSTEM["subscribers"]["fixed"], "stays": "1e9s"}}}
    (row,) = predict(from_document(document, "a test")).subscribers.to_dict("records")
    rows = lasting.subscribers.set_index("subscriber")
    for name in ("on_time", "delivered", "delay_mean_s", "delay_p50_s", "delay_p99_s"):
        assert row[name] == pytest.approx(rows.loc["always", name], rel=1e-6)
    tilted = Tilted(delay=law_stage(exp(0.3)).delays[0], per_s=1e-12)
    assert tilted.variance_s2 == pytest.approx(0.09, rel=1e-3)
