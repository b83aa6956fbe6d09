"""Compiled draws: their law in standard errors, and bit for bit against plain twins."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest

from example_laws import LAWS as EXAMPLES
from tidings.errors import UnsupportedError
from tidings.kernels import streams
from tidings.kernels.compile import IS_COMPILING
from tidings.kernels.records import encode
from tidings.kernels.sampling import DETERMINISTIC, EXPONENTIAL, UNIFORM, draw
from tidings.kernels.streams import next_bits, stream_states, uniform
from tidings.model.laws import (
    Deterministic,
    Exponential,
    Gamma,
    Shifted,
    Uniform,
    Weibull,
    residual,
)

COUNT = 1_000_000 if IS_COMPILING else 5_000  # plain Python takes a hundred times as long
LAWS = {name: law for name, law in EXAMPLES.items() if name != "zero"} | {
    "gamma of 1": Gamma(mean_s=5.0, shape=1),
    "residual": residual(Weibull(scale_s=0.2, shape=0.6)),
    "shifted gamma": Shifted(law=Gamma(mean_s=0.5, shape=2), by_s=0.3),
    "shifted uniform": Shifted(law=Uniform(low_s=1.0, high_s=2.0), by_s=0.3),
    "shifted constant": Shifted(law=Deterministic(value_s=1.0), by_s=0.3),
}


@numba.njit
def fill(kind, offset, params, states, out):
    for j in range(out.size):
        out[j] = draw(kind, offset, params, states, 1)


def drawn(law, seed, count=COUNT):
    # Another law before it, so that its offset is not 0; another stream, so that its row is not 0.
    kinds, offsets, params = encode([Exponential(mean_s=7.0), law])
    states = stream_states(seed, 0, [("other", "draws"), ("tested", "draws")])
    out = np.empty(count)
    fill(kinds[1], offsets[1], params, states, out)
    return out


def deviations(draws, law):
    """How many standard errors the draws' CDF (at seven points) and mean lie from the law's."""
    points = law.quantile([0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98]) * (1 + 1e-12)
    share = law.cdf(points)
    off = np.abs((draws[:, None] <= points).mean(axis=0) - share)
    error = np.sqrt(np.maximum(share * (1 - share), 1e-300) / len(draws))
    mean_error_s = law.mean_s * math.sqrt(law.scv / len(draws))
    mean_off_s = abs(draws.mean() - law.mean_s)
    floor_s = 1e-12 * law.mean_s  # constants have no error to measure by
    return np.array([*(off / error), mean_off_s / (mean_error_s + floor_s)])


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_draws_follow_the_law(law):
    assert deviations(drawn(law, seed=11), law).max() < 4.5


@pytest.mark.skipif(not IS_COMPILING, reason="needs many draws")
@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_two_percent_would_be_noticed(law):
    assert deviations(drawn(law, seed=11), law.scaled(1.02)).max() > 4.5


@pytest.mark.skipif(not IS_COMPILING, reason="needs many draws")
@pytest.mark.statistical
def test_exponential_draws_are_exact_in_the_tail_and_near_zero():
    draws = drawn(Exponential(mean_s=1.0), seed=5, count=20_000_000)
    for t_s in (1e-5, 1e-3, 0.03, 1.0, 5.0, 7.6, 7.7, 7.8, 9.0, 11.0):
        share = -math.expm1(-t_s)
        error = math.sqrt(share * (1 - share) / draws.size)
        assert abs((draws <= t_s).mean() - share) < 4.5 * error


def test_the_layers_of_the_ziggurat_have_one_area():
    widths, heights = streams._WIDTHS, streams._HEIGHTS
    areas = widths[1:-1] * np.diff(heights[1:])
    np.testing.assert_allclose(areas, streams._AREA, rtol=1e-11)
    tail_area = streams.TAIL * heights[1] + heights[1]
    assert tail_area == pytest.approx(streams._AREA, rel=1e-12)
    assert widths[0] * heights[1] == pytest.approx(streams._AREA, rel=1e-12)
    assert heights[-1] == 1.0


def exponential_twin(states, i):
    """The ziggurat in plain Python, from the same stream."""
    base = 0.0
    while True:
        bits = int(next_bits(states, i))
        layer = bits % 256
        x = (bits >> 11) * 2.0**-53 * float(streams._WIDTHS[layer])
        if x < streams._WIDTHS[layer + 1]:
            return base + x
        if layer == 0:
            base += streams.TAIL
            continue
        low, high = float(streams._HEIGHTS[layer]), float(streams._HEIGHTS[layer + 1])
        if low + uniform(states, i) * (high - low) < math.exp(-x):
            return base + x


HOT = {
    Deterministic(value_s=0.25): lambda states: 0.25,
    Exponential(mean_s=0.3): lambda states: 0.0 + 0.3 * exponential_twin(states, 1),
    Uniform(low_s=0.1, high_s=0.7): lambda states: 0.1 + (0.7 - 0.1) * uniform(states, 1),
    Shifted(law=Exponential(mean_s=0.3), by_s=2.0): lambda states: (
        2.0 + 0.3 * exponential_twin(states, 1)
    ),
}


@pytest.mark.parametrize("law", HOT, ids=str)
def test_hot_families_equal_their_twins_bit_for_bit(law):
    states = stream_states(8, 0, [("other", "draws"), ("tested", "draws")])
    expected = [HOT[law](states) for _ in range(3000)]
    assert drawn(law, seed=8, count=3000).tolist() == expected


def test_a_draw_moves_only_its_own_stream():
    kinds, offsets, params = encode(LAWS.values())
    states = stream_states(1, 0, [("a", "x"), ("b", "x"), ("c", "x")])
    before = states.copy()
    for kind, offset in zip(kinds, offsets, strict=True):
        assert draw(kind, offset, params, states, 1) >= 0.0
    assert np.array_equal(states[[0, 2]], before[[0, 2]])
    assert not np.array_equal(states[1], before[1])


def test_equal_laws_share_their_parameters():
    law = LAWS["residual"]
    kinds, offsets, params = encode([law, Exponential(mean_s=1.0), law])
    assert offsets[0] == offsets[2] != offsets[1]
    assert kinds[0] == kinds[2]
    assert params.size == encode([law]).params.size + 2


def test_shifts_come_first_and_constants_are_only_a_shift():
    table = encode([LAWS["shifted constant"], LAWS["shifted uniform"], LAWS["shifted gamma"]])
    assert table.kinds[:2].tolist() == [DETERMINISTIC, UNIFORM]
    assert table.params[table.offsets].tolist() == [1.3, 1.3, 0.3]
    assert encode([Exponential(mean_s=2.0)]).kinds.tolist() == [EXPONENTIAL]


def test_no_laws_make_an_empty_table():
    table = encode([])
    assert [array.size for array in table] == [0, 0, 0]
    assert [array.dtype for array in table] == [np.int64, np.int64, np.float64]


def test_a_foreign_law_is_refused():
    with pytest.raises(UnsupportedError, match="Foreign"):
        encode([type("Foreign", (), {})()])
