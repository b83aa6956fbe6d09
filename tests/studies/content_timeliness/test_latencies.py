from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from studies.content_timeliness.latencies import WIDE_AREA, read_latencies, wide_area
from studies.content_timeliness.random_systems import random_system
from tidings.errors import InvalidInputError
from tidings.model.laws import Deterministic

# Pair 0-1 was measured three times (twice the same), pair 0-2 once, pair 1-2 in vain.
ROWS = {
    "slice": [1, 2, 3, 1, 1, 2],
    "src": [0, 0, 0, 0, 1, 1],
    "dst": [1, 1, 1, 2, 2, 2],
    "rtt_ms": [40.0, 60.0, 40.0, 200.0, 0.0, None],
}


@pytest.fixture
def path(tmp_path):
    parquet.write_table(pa.table(ROWS), tmp_path / "rtt.parquet")
    return tmp_path / "rtt.parquet"


def test_half_a_round_trip_of_a_random_pair(path):
    table = read_latencies(path)
    assert table.left_out == 2
    random = np.random.default_rng(1)
    laws = {table.draw(random) for _ in range(50)}
    constant = {law for law in laws if isinstance(law, Deterministic)}
    assert constant == {Deterministic(value_s=0.1)}
    (varying,) = laws - constant
    assert varying.cdf([0.0199, 0.02, 0.0299, 0.03]) == pytest.approx([0, 2 / 3, 2 / 3, 1])
    assert varying.mean_s == pytest.approx((2 * 0.02 + 0.03) / 3, rel=1e-12)


def test_the_same_seed_draws_the_same_links(path):
    table = read_latencies(path)
    first, second = ([table.draw(np.random.default_rng(5)) for _ in range(5)] for _ in range(2))
    assert first == second


def test_the_links_of_a_random_system_come_from_the_table(path):
    table = read_latencies(path)
    system = random_system(
        2, publishing="exponential", matching="exponential", rate_per_s=1.0, delays=table.draw
    )
    means_s = {round(link.there.delay.mean_s, 9) for link in system.links}
    assert means_s == {0.1, round((2 * 0.02 + 0.03) / 3, 9)}
    assert all(link.back == link.there for link in system.links)


def test_the_note_says_that_halving_is_assumed(path):
    text = read_latencies(path).describe("rtt.parquet")
    assert "rtt.parquet" in text
    assert "2 rows" in text
    assert "assumed" in text


def test_files_that_are_no_latencies_are_refused(tmp_path):
    parquet.write_table(pa.table({"src": [1], "dst": [2], "rtt_ms": [3.0]}), tmp_path / "short")
    with pytest.raises(InvalidInputError, match="no column slice; wants slice, src, dst, rtt_ms"):
        read_latencies(tmp_path / "short")
    parquet.write_table(
        pa.table({"slice": [1], "src": [1], "dst": [2], "rtt_ms": [-1.0]}), tmp_path / "none"
    )
    with pytest.raises(InvalidInputError, match="no round-trip time above 0"):
        read_latencies(tmp_path / "none")
    parquet.write_table(
        pa.table({"slice": [1], "src": ["a"], "dst": ["b"], "rtt_ms": [1.0]}), tmp_path / "words"
    )
    with pytest.raises(InvalidInputError, match="cannot be read"):
        read_latencies(tmp_path / "words")
    (tmp_path / "text").write_text("not Parquet")
    for name in ("text", "missing"):
        with pytest.raises(InvalidInputError, match="cannot be read"):
            read_latencies(tmp_path / name)


def test_built_in_links_follow_the_wide_area_law():
    random = np.random.default_rng(11)
    draws = [wide_area(random).value_s for _ in range(4000)]
    error = WIDE_AREA.mean_s * WIDE_AREA.scv**0.5 / len(draws) ** 0.5
    assert error < 0.02 * WIDE_AREA.mean_s
    assert np.mean(draws) == pytest.approx(WIDE_AREA.mean_s, abs=5 * error)
