import math

import numpy as np
import pandas as pd
import pytest

from tidings.errors import InvalidInputError
from tidings.model import delay_grid
from tidings.model.outcome import TABLES, Outcome, table
from tidings.model.outcome_files import (
    check_outcome_place,
    load_outcome,
    outcome_document,
    save_outcome,
)


def sample():
    rows = [
        {"subscriber": "a", "broker": "x", "count": 2, "wanted_per_s": 1.0, "on_time": 0.5},
        {"subscriber": "b", "broker": "y", "count": 1, "wanted_per_s": 2.0, "on_time": 1.0},
        {"subscriber": "c", "broker": "y", "count": 1, "wanted_per_s": 0.0},
    ]
    rows[0] |= {"delivered": 0.6, "late": 0.1, "lost_link": 0.4}
    rows[1] |= {"delivered": 1.0, "late": 0.0}
    return Outcome(
        source="predicted",
        subscribers=table("subscribers", rows),
        brokers=table("brokers", [{"broker": "x", "utilisation": 0.7}]),
        provenance={"seed": np.int64(3), "warnings": ["careful"]},
    )


def test_overall_shares_weigh_by_what_is_wanted_and_by_how_many():
    assert sample().on_time == pytest.approx((2 * 0.5 + 2 * 1.0) / 4, rel=1e-15)
    assert sample().delivered == pytest.approx((2 * 0.6 + 2 * 1.0) / 4, rel=1e-15)
    assert list(sample().worst(1)["subscriber"]) == ["a"]


def test_an_outcome_in_which_nobody_wants_anything_has_no_share():
    assert math.isnan(Outcome(source="measured", subscribers=table("subscribers")).on_time)


@pytest.mark.parametrize("name", ["out.json", "out"])
def test_what_is_saved_loads_the_same(name, tmp_path):
    save_outcome(sample(), tmp_path / name)
    loaded = load_outcome(tmp_path / name)
    for each in TABLES:
        pd.testing.assert_frame_equal(getattr(loaded, each), getattr(sample(), each))
    assert loaded.source == "predicted"
    assert loaded.provenance == {"seed": 3, "warnings": ["careful"]}
    assert [path.name for path in tmp_path.iterdir()] == [name]  # no scratch left behind


@pytest.mark.parametrize("name", ["out.json", "out"])
def test_endless_and_unknown_numbers_are_told_apart_in_files(name, tmp_path):
    waits = {"inf": math.inf, "-inf": -math.inf, "x": math.nan, "y": 0.25}  # names, too
    rows = [{"broker": broker, "wait_mean_s": wait} for broker, wait in waits.items()]
    outcome = Outcome(
        source="predicted",
        subscribers=table("subscribers", [{"subscriber": "s", "delay_mean_s": math.inf}]),
        brokers=table("brokers", rows),
    )
    written = [row["wait_mean_s"] for row in outcome_document(outcome)["brokers"]]
    assert written == ["inf", "-inf", None, 0.25]
    save_outcome(outcome, tmp_path / name)
    loaded = load_outcome(tmp_path / name)
    for each in TABLES:
        pd.testing.assert_frame_equal(getattr(loaded, each), getattr(outcome, each))


def test_an_outcome_is_not_saved_where_it_cannot_be(tmp_path):
    (tmp_path / "taken").mkdir()
    for name in ("out.csv", "taken"):
        with pytest.raises(InvalidInputError, match=name):
            check_outcome_place(tmp_path / name)
        with pytest.raises(InvalidInputError, match=name):
            save_outcome(sample(), tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_unknown_numbers_are_null_in_json():
    row = outcome_document(sample())["subscribers"][2]
    assert row["on_time"] is None
    assert row["lost_link"] == 0.0


BAD_FILES = (
    "",
    "{}",
    "[]",
    "\x00",
    '{"tidings_outcome": 1}',
    '{"tidings_outcome": 9}',
    '{"tidings_outcome": 1, "source": "guessed"}',
    '{"tidings_outcome": 1, "source": "measured", "subscribers": [{"colour": 1}]}',
    '{"tidings_outcome": 1, "source": "measured", "subscribers": 7}',
)


@pytest.mark.parametrize("text", BAD_FILES)
def test_a_bad_outcome_file_is_an_error_of_input(text, tmp_path):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InvalidInputError):
        load_outcome(tmp_path / "x.json")


def test_a_missing_outcome_file_is_an_error_of_input(tmp_path):
    with pytest.raises(InvalidInputError, match="no such file"):
        load_outcome(tmp_path / "x.json")


def test_tables_refuse_columns_they_do_not_have():
    with pytest.raises(ValueError, match="colour"):
        table("links", [{"colour": 1}])
    with pytest.raises(ValueError, match="columns"):
        Outcome(source="measured", subscribers=table("links"))
    with pytest.raises(ValueError, match="guessed"):
        Outcome(source="guessed", subscribers=table("subscribers"))


def test_grid_bins_hold_what_lies_between_their_edges():
    edges = delay_grid.EDGES_S
    inside = np.sqrt(edges[:-1] * edges[1:])
    assert delay_grid.bin_of(inside).tolist() == list(range(1, delay_grid.BINS))
    assert delay_grid.bin_of(edges).tolist() == list(range(delay_grid.BINS))


def test_grid_quantiles_are_within_a_bin_of_the_true_ones():
    delays = np.random.default_rng(5).lognormal(-3, 1, 200_000)
    counts = np.bincount(delay_grid.bin_of(delays), minlength=delay_grid.BINS).astype(float)
    found = delay_grid.quantiles(counts, [0.5, 0.95, 0.99])
    np.testing.assert_allclose(found, np.quantile(delays, [0.5, 0.95, 0.99]), rtol=5e-3)
    assert all(math.isnan(q) for q in delay_grid.quantiles(np.zeros(delay_grid.BINS), [0.5]))
