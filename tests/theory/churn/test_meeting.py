"""Where events meet subscriptions: the time until they are matched, against quadrature, by hand."""

from __future__ import annotations

import itertools
import math
from functools import reduce

import numpy as np
import pytest
from scipy import integrate

from tidings.model.laws import Deterministic, Exponential, Gamma, Uniform
from tidings.model.reading import from_document
from tidings.simulation.run import simulate
from tidings.theory.churn.churning import Churn
from tidings.theory.churn.meeting import Meeting
from tidings.theory.path_laws import Workshop, path_law
from tidings.theory.predicting import predict
from tidings.theory.stages import Stage, in_series, law_stage

EXPONENTIAL, UNIFORM = Exponential(mean_s=1.0), Uniform(low_s=0.5, high_s=2.0)
LAWS = [  # of stays, and of E
    (Exponential(mean_s=3.0), Deterministic(value_s=0.5)),
    (Exponential(mean_s=3.0), UNIFORM),
    (Exponential(mean_s=0.5), EXPONENTIAL),  # most leave before they are known
    (Uniform(low_s=0.2, high_s=1.0), EXPONENTIAL),
    (Deterministic(value_s=3.0), EXPONENTIAL),
    (Uniform(low_s=1.5, high_s=5.0), Deterministic(value_s=0.5)),
    (Uniform(low_s=1.5, high_s=5.0), UNIFORM),
    (Gamma(mean_s=3.0, shape=2.0), EXPONENTIAL),
]


def exact(stays, spread, before, after):
    """E[(T − max(S, E) − R)⁺]/E[T] = ∫ P[T > t] P[max(S, E) + R ≤ t] dt, R of a density."""
    end = min(float(stays.quantile(1.0 - 1e-13)), 100.0)

    def arrived(t):
        def both(r):
            later = float(spread.cdf(t - r)) * float(before.cdf(t - r))
            return later * math.exp(-r / after.mean_s) / after.mean_s

        return integrate.quad(both, 0.0, t, points=corners(t), epsabs=1e-12, limit=200)[0]

    def corners(t):  # where E or S begins or ends
        return [t - each for each in (0.5, 1.5, 2.0) if t - each > 0.0] or None

    value, _ = integrate.quad(
        lambda t: (1.0 - float(stays.cdf(t))) * arrived(t),
        0.0, end, points=[each for each in (0.5, 1.0, 1.5, 2.0, 3.0, 5.0) if each < end],
        epsabs=1e-10, limit=200,
    )  # fmt: skip
    return value / stays.mean_s


@pytest.mark.parametrize(("stays", "before"), LAWS, ids=lambda law: type(law).__name__)
def test_what_is_notified_against_quadrature(stays, before):
    """S of 0 to 1.5 s, R exponential: delivered shares are exact whatever E is."""
    spread, after = Uniform(low_s=0.0, high_s=1.5), Exponential(mean_s=0.4)
    parts = Meeting(spreading=law_stage(spread), before=law_stage(before), after=law_stage(after))
    way = in_series(parts.before, parts.after)
    stage = Churn(workshop=Workshop()).stage(way, stays, [(1.0, parts)])
    simple = not isinstance(stays, Gamma)
    known = exact(stays, spread, before, after)
    assert stage.survives == pytest.approx(known, abs=1e-8 if simple else 1e-7)
    assert stage.survives + sum(stage.lost.values()) == pytest.approx(1.0, abs=1e-12)
    missed = exact_missed_s(stays, spread, before) / stays.mean_s
    assert stage.lost["not_known"] == pytest.approx(missed, abs=1e-7)


def exact_missed_s(stays, spread, before):
    """E[min(T, (S − E)⁺)]: the mean over E of ∫ P[T > t] P[S > t + E] dt, S within 1.5 s."""

    def given(e):
        ends = [each for each in (1.5 - e, 1.5, 3.0) if 0.0 < each < 1.5]
        return integrate.quad(
            lambda t: (1.0 - float(stays.cdf(t))) * (1.0 - float(spread.cdf(t + e))),
            0.0, 1.5, points=ends or None, epsabs=1e-11,
        )[0]  # fmt: skip

    if isinstance(before, Deterministic):
        return given(before.value_s)

    if isinstance(before, Uniform):
        return integrate.quad(given, before.low_s, 1.5)[0] / (before.high_s - before.low_s)
    return integrate.quad(lambda e: given(e) * math.exp(-e), 0.0, 1.5)[0]  # of mean 1 s


def test_uniform_stays_and_links_are_exact_at_their_corners():
    """X = S + D of two U(0, 2), stays U(0, 4): E[(T − X)⁺]/E[T] = 7/24."""
    link = law_stage(Uniform(low_s=0.0, high_s=2.0))
    stage = Churn().stage(link, Uniform(low_s=0.0, high_s=4.0), [(1.0, Meeting(spreading=link))])
    assert stage.survives == pytest.approx(7 / 24, abs=1e-12)


def two_brokers(**publisher_and_broker):
    document = {
        "tidings": 1,
        "brokers": {"a": publisher_and_broker.get("broker", {}), "b": {}},
        "links": [{"between": ["a", "b"], "delay": "1s"}],
        "publishers": {
            "p": {
                "at": "a",
                "every": {"exponential": "1s"},
                "content": {"event": {"x": 1}},
                "link": publisher_and_broker.get("link", {}),
            }
        },
        "subscribers": {"s": {"at": "b", "wants": {}, "stays": "5s", "away": "50s"}},
    }
    return from_document(document, "a test")


def only_row(outcome):
    (row,) = outcome.subscribers.to_dict("records")
    return row


def test_what_is_on_its_way_to_the_broker_need_not_be_published_later():
    """Links of 3 s and 1 s and a stay of 5 s: known after 1 s, and whatever took 4 s was before."""
    row = only_row(predict(two_brokers(link={"delay": "3s"})))
    assert row["delivered"] == pytest.approx(0.2, abs=1e-12)
    assert row["lost_not_known"] == 0.0
    partly = only_row(predict(two_brokers(link={"delay": "400ms"})))
    assert partly["lost_not_known"] == pytest.approx(0.6 / 5, abs=1e-12)
    assert partly["delivered"] == pytest.approx((5 - 0.6 - 1.4) / 5, abs=1e-12)


@pytest.mark.slow
@pytest.mark.statistical
def test_the_first_broker_s_queue_counts_and_is_so_simulated():
    """M/M/1 at load 0.8: E is exponential of mean 4 s, d = ∫ P[E ≤ t] dt from 1 to 4 s, over 5."""
    system = two_brokers(broker={"service": {"exponential": "800ms"}})
    row = only_row(predict(system))
    by_hand = (3.0 - 4.0 * (math.exp(-0.25) - math.exp(-1.0))) / 5.0
    assert row["delivered"] == pytest.approx(by_hand, abs=1e-9)
    missed = (1.0 - 4.0 * -math.expm1(-0.25)) / 5.0  # E[(1 − E)⁺] over 5
    assert row["lost_not_known"] == pytest.approx(missed, abs=1e-9)
    run = only_row(simulate(system, replications=12, duration_s=40_000.0, warmup_s=300.0))
    assert run["on_time_se"] < 0.006
    assert run["delivered"] == pytest.approx(by_hand, abs=3.5 * run["on_time_se"])
    assert run["lost_not_known"] == pytest.approx(missed, abs=0.005)


SPREAD = [Exponential(mean_s=1.0), Uniform(low_s=0.5, high_s=2.0), Deterministic(value_s=1.0)]
AFTER = {
    "exponential": (Exponential(mean_s=0.5),),
    "constant": (Deterministic(value_s=0.5),),
    "rough": (Uniform(low_s=0.1, high_s=0.9), Gamma(mean_s=0.3, shape=2.0)),
}
MATCHED = [(spread, after) for after in ("exponential", "constant") for spread in SPREAD]
MATCHED += [pytest.param(SPREAD[0], "rough", marks=pytest.mark.slow)]


@pytest.mark.parametrize(("spread", "after"), MATCHED)
def test_in_time_is_joint_where_the_time_until_matching_is_random(spread, after):
    """E[exp(−θ(max(S, E) + R)); E + R ≤ t], E and θ of mean 1 s and 5 s, against quadrature."""
    rest = reduce(in_series, map(law_stage, AFTER[after]))
    parts = Meeting(spreading=law_stage(spread), before=law_stage(EXPONENTIAL), after=rest)
    way, theta, workshop = in_series(parts.before, rest), 0.2, Workshop()
    stage = Churn(workshop=workshop).stage(way, Exponential(mean_s=5.0), [(1.0, parts)])
    law, arrived = path_law(stage, workshop), path_law(rest, workshop)

    def weight(e):  # E[exp(−θ max(S, e))] exp(−e)
        later, _ = integrate.quad(
            lambda u: theta * math.exp(-theta * u) * float(spread.cdf(u)),
            e, 60.0, points=[each for each in (0.5, 1.0, 2.0) if each > e] or None,
            limit=200, epsabs=1e-11,
        )  # fmt: skip
        return (later + math.exp(-theta * 60.0)) * math.exp(-e)

    nodes, weights = np.polynomial.legendre.leggauss(12)
    low = rest.shift_s

    def tilted(r):  # E[exp(−θR); R ≤ r] by parts, beside the corner at 0.9 s
        area = 0.0
        for begin, end in itertools.pairwise(sorted({low, min(0.9, r), r})):
            inner = 0.5 * (end - begin) * (1 + nodes) + begin
            below = np.exp(-theta * inner) * arrived.cdf(inner).value
            area += 0.5 * (end - begin) * weights @ below
        return theta * area + math.exp(-theta * r) * float(arrived.cdf(r).value)

    for t in (0.7, 2.0):
        edges = sorted({0.0, t - low, *(c for c in (0.5, 1.0, 2.0, t - 0.9) if 0 < c < t - low)})
        exact = 0.0
        for begin, end in itertools.pairwise(edges):
            at = 0.5 * (end - begin) * (1 + nodes) + begin
            exact += 0.5 * (end - begin) * weights @ [weight(e) * tilted(t - e) for e in at]
        found = law.cdf(t)
        assert float(found.value) == pytest.approx(exact, abs=float(found.error))
        assert float(found.error) < 5e-5


@pytest.mark.statistical
def test_in_time_is_near_the_truth_for_other_stays():
    """Which of the notified are in time is approximated, too high by no more than what is said."""
    laws = [Exponential(mean_s=mean_s) for mean_s in (1.0, 1.0, 0.5)]
    spread, before, after = map(law_stage, laws)
    parts = Meeting(spreading=spread, before=before, after=after)
    stays, workshop = Uniform(low_s=0.0, high_s=10.0), Workshop()
    stage = Churn(workshop=workshop).stage(in_series(before, after), stays, [(1.0, parts)])
    random, count = np.random.default_rng(4), 400_000
    s, e, r = (law.sample(random, count) for law in laws)
    needed = np.maximum(s, e) + r
    weight = np.maximum(10.0 - needed, 0.0) ** 2 / 20.0 / 5.0  # E[(T − x)⁺]/E[T]
    error = weight.std() / math.sqrt(count)
    assert stage.survives == pytest.approx(weight.mean(), abs=4 * error)
    law = path_law(stage, workshop)
    for lifetime_s in (0.5, 1.0, 2.0):
        true = (weight * (e + r <= lifetime_s)).mean()
        found = float(law.cdf(lifetime_s).value)
        assert true - 4 * error < found < true + stage.lost["not_known"] + 4 * error


def test_several_ways_to_meet_are_one_law():
    """Met at the first broker or, drawn by others, at the second: shares and laws are mixed."""
    spread, before, after = (law_stage(Exponential(mean_s=mean)) for mean in (1.0, 0.7, 0.5))
    first = Meeting(spreading=spread, before=before, after=after)
    second = Meeting(spreading=Stage(shift_s=0.5), before=in_series(before, after))
    way, stays, workshop = in_series(before, after), Exponential(mean_s=3.0), Workshop()
    churn = Churn(workshop=workshop)
    one, other = (churn.stage(way, stays, [(1.0, each)]) for each in (first, second))
    both = churn.stage(way, stays, [(0.25, first), (0.75, second)])
    assert both.survives == pytest.approx(0.25 * one.survives + 0.75 * other.survives, rel=1e-12)
    for t in (0.3, 1.0, 3.0):
        parts = [float(path_law(each, workshop).cdf(t).value) for each in (one, other, both)]
        assert parts[2] == pytest.approx(0.25 * parts[0] + 0.75 * parts[1], abs=1e-9)
    means = [each.survives * each.mean_s for each in (one, other, both)]
    assert means[2] == pytest.approx(0.25 * means[0] + 0.75 * means[1], rel=1e-7)
    (delay,) = both.delays
    squares = sum(
        chance * each.survives * (each.delays[0].variance_s2 + each.mean_s**2)
        for chance, each in ((0.25, one), (0.75, other))
    )
    exact = squares / both.survives - both.mean_s**2
    assert delay.variance_s2 == pytest.approx(exact, rel=1e-7)
