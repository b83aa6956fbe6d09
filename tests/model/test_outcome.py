import json
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
    waits = {"inf": math.inf, "-inf": math.nan, "y": 0.25}  # names, too
    rows = [{"broker": broker, "wait_mean_s": wait} for broker, wait in waits.items()]
    subscriber = {"subscriber": "s", "count": 1, "wanted_per_s": 0.0, "delay_mean_s": math.inf}
    outcome = Outcome(
        source="predicted",
        subscribers=table("subscribers", [subscriber]),
        brokers=table("brokers", rows),
    )
    written = [row["wait_mean_s"] for row in outcome_document(outcome)["brokers"]]
    assert written == ["inf", None, 0.25]
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


@pytest.mark.parametrize(
    ("table_name", "row", "column", "value", "says"),
    [
        (
            "subscribers",
            0,
            "on_time",
            1.2,
            "'subscribers', row 1 (a), on_time: got 1.2; wants a sh",
        ),
        ("subscribers", 1, "delivered", 0.9, "row 2 (b), delivered: got 0.9; wants on_time + late"),
        (
            "subscribers",
            0,
            "lost_link",
            0.3,
            "(a), delivered: got 0.6; wants a share that adds up to 1",
        ),
        ("subscribers", 0, "late", None, "wants on_time, late, delivered known or none"),
        ("subscribers", 0, "wanted_per_s", None, "wanted_per_s: got nan; wants a known number"),
        ("subscribers", 0, "wanted_per_s", "inf", "wants a finite number"),
        ("subscribers", 1, "subscriber", "a", "row 2 (a), subscriber: got 'a'; wants one row for"),
        ("subscribers", 1, "subscriber", "", "subscriber: got ''; wants a name"),
        ("subscribers", 1, "on_time_se", -0.1, "on_time_se: got -0.1; wants a number not below 0"),
        ("subscribers", 1, "on_time", "much", "on_time: got 'much'; wants a number"),
        ("subscribers", 1, "on_time", True, "on_time: got True; wants a number"),
        ("subscribers", 1, "on_time", 10**400, "(b), on_time: got 1000"),
        ("subscribers", 1, "delay_mean_s", -(10**400), "(b), delay_mean_s: got -1000"),
        ("subscribers", 0, "count", 10**400, "(a), count: got 1000"),
        ("brokers", 0, "wait_mean_s", math.inf, "wait_mean_s: got inf; wants a number, at most"),
        ("brokers", 0, "broker", 7, "table 'brokers', row 1 (7), broker: got 7; wants a text"),
    ],
)
def test_a_cell_that_cannot_be_is_named(table_name, row, column, value, says, tmp_path):
    document = outcome_document(sample())
    document[table_name][row][column] = value
    (tmp_path / "x.json").write_text(json.dumps(document))
    with pytest.raises(InvalidInputError) as found:
        load_outcome(tmp_path / "x.json")
    assert str(found.value).startswith(f"{tmp_path / 'x.json'}: not a valid outcome: ")
    assert says in str(found.value)


def test_a_cell_of_a_parquet_table_may_be_a_list(tmp_path):
    save_outcome(sample(), tmp_path / "x")
    file = tmp_path / "x" / "subscribers.parquet"
    frame = pd.read_parquet(file)
    frame.assign(on_time=[[1.0, 2.0]] * len(frame)).to_parquet(file, index=False)
    with pytest.raises(InvalidInputError, match=r"\(a\), on_time: got array.*; wants a number"):
        load_outcome(tmp_path / "x")


def test_the_size_of_a_remark_is_a_number(tmp_path):
    document = outcome_document(sample())
    texts = dict.fromkeys(("kind", "what", "unit", "do"), "x")
    document["remarks"] = [{**texts, "where": [], "size": 10**400}]
    (tmp_path / "x.json").write_text(json.dumps(document))
    with pytest.raises(InvalidInputError, match="its remarks are"):
        load_outcome(tmp_path / "x.json")


def test_a_cell_of_the_wrong_kind_hides_no_other_problem(tmp_path):
    document = outcome_document(sample())
    document["subscribers"][0] |= {"on_time": 1.7, "subscriber": 3, "wanted_per_s": "much"}
    document["subscribers"][1] |= {"subscriber": ["b"], "on_time_se": -0.1}
    (tmp_path / "x.json").write_text(json.dumps(document))
    with pytest.raises(InvalidInputError) as found:
        load_outcome(tmp_path / "x.json")
    assert {(p.at.split(", ", 1)[1], p.saw, p.want) for p in found.value.problems} == {
        ("row 1 (3), subscriber", "3 (and 1 more rows like it)", "a text"),
        ("row 1 (3), wanted_per_s", "'much'", "a number, at most 1.8e308"),
        ("row 1 (3), on_time", "1.7", "a share from 0 to 1"),
        ("row 2 (['b']), on_time_se", "-0.1", "a number not below 0"),
    }


def test_all_shares_unknown_is_fine_only_where_nothing_is_wanted(tmp_path):
    document = outcome_document(sample())
    document["subscribers"][2]["wanted_per_s"] = 0.5
    (tmp_path / "x.json").write_text(json.dumps(document))
    with pytest.raises(InvalidInputError, match="a known share, as events are wanted"):
        load_outcome(tmp_path / "x.json")


def test_columns_are_exactly_those_of_the_table(tmp_path):
    for change, says in (
        (lambda row: row.pop("late"), "lacks late"),
        (lambda row: row.update(colour="red"), "has besides colour"),
    ):
        document = outcome_document(sample())
        for row in document["subscribers"]:
            change(row)
        (tmp_path / "x.json").write_text(json.dumps(document))
        with pytest.raises(InvalidInputError, match=says):
            load_outcome(tmp_path / "x.json")
    document = outcome_document(sample())
    del document["subscribers"][1]["late"]
    (tmp_path / "x.json").write_text(json.dumps(document))
    with pytest.raises(InvalidInputError, match="row 2 differs from row 1 in having late"):
        load_outcome(tmp_path / "x.json")


def test_rows_wrong_in_the_same_way_are_one_problem_of_a_folder_too(tmp_path):
    save_outcome(sample(), tmp_path / "x")
    frame = pd.read_parquet(tmp_path / "x" / "subscribers.parquet")
    frame["on_time_se"] = -1.0
    frame.to_parquet(tmp_path / "x" / "subscribers.parquet", index=False)
    with pytest.raises(InvalidInputError) as found:
        load_outcome(tmp_path / "x")
    assert [str(each) for each in found.value.problems] == [
        "table 'subscribers', row 1 (a), on_time_se: got -1.0 (and 2 more rows like it); "
        "wants a number not below 0"
    ]
    (tmp_path / "x" / "brokers.parquet").write_bytes(b"no parquet")
    with pytest.raises(InvalidInputError, match="not a readable outcome"):
        load_outcome(tmp_path / "x")


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
    whole = delay_grid.Histogram.of(delays)
    for known in (whole, delay_grid.Histogram.between_edges(whole.counts)):
        found = known.quantiles([0.5, 0.95, 0.99])
        np.testing.assert_allclose(found, np.quantile(delays, [0.5, 0.95, 0.99]), rtol=5e-3)
    nothing = delay_grid.Histogram.of(np.zeros(0))
    assert all(math.isnan(q) for q in nothing.quantiles([0.5]))


def test_grid_quantiles_of_a_few_values_are_exact():
    delays = np.repeat([1e-7, 8e-3, 3.0], [10, 80, 10])
    found = delay_grid.Histogram.of(delays).quantiles([0.05, 0.5, 0.89, 0.95])
    assert found == pytest.approx([1e-7, 8e-3, 8e-3, 3.0], rel=1e-12)
