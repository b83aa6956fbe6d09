"""When publishers publish: the forms it takes, what is refused, and the rate that follows."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from tidings.errors import InvalidInputError, InvalidSystemError, TidingsError
from tidings.model.reading import load, loads, system_document
from tidings.model.recorded_times import recorded_times

FORMS = {
    "{period: 4s, offset: 1s, clock: beat}": 0.25,
    "{every: 2s, batch: {1: 0.25, 5: 0.75}}": 2.0,
    "{rate: 1/s, bursts: [{rate: 8/s, on: 1s, off: 3s}]}": 3.0,
}


def system(publishes):
    return loads(
        f"""
        tidings: 1
        brokers: {{hub: {{}}}}
        publishers: {{p: {{at: hub, content: {{event: {{k: 1}}}}, publishes: {publishes}}}}}
        subscribers: {{s: {{at: hub, wants: {{}}}}}}
        """
    )


@pytest.mark.parametrize("form", FORMS)
def test_a_form_has_its_rate_and_is_written_as_it_was_read(form):
    known = system(form)
    assert known.publishers[0].rate_per_s == pytest.approx(FORMS[form], rel=1e-12)
    again = system(system_document(known)["publishers"]["p"]["publishes"])
    assert again == known


@pytest.mark.parametrize("form", FORMS)
def test_twice_as_fast_is_twice_the_rate(form):
    publishing = system(form).publishers[0].publishes
    assert publishing.faster(2.0).mean_per_s("p") == pytest.approx(2.0 * FORMS[form], rel=1e-12)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("{}", "none of them"),
        ("{period: 4s, recorded: x.csv}", "recorded and period"),
        ("{period: 4s, block: 1s}", "nothing beside 'period'"),
        ("{batch: {2: 1}}", "'every' beside 'batch'"),
        ("{every: 1s, batch: {2: 0.5}}", "a sum of 0.5"),
        ("{every: 1s, batch: {0: 1}}", "a number of events, 1 or more"),
        ("{bursts: [{rate: 0/s, on: 1s, off: 1s}]}", "a rate above 0"),
    ],
)
def test_what_says_nothing_or_too_much_is_refused(form, said):
    with pytest.raises(TidingsError, match=said):
        system(form)


def test_a_publisher_has_one_way_to_publish():
    text = "{period: 4s}, every: 1s"
    with pytest.raises(TidingsError, match="every and publishes"):
        system(text)


def test_times_are_those_of_the_publisher_from_the_first_event_of_all(tmp_path):
    file = tmp_path / "times.csv"
    rows = {"publisher": ["a", "b", "a"], "published_ns": [5_000_000_000, 1_000_000_000, 0]}
    pd.DataFrame(rows).to_csv(file, index=False)
    record = recorded_times(str(file), "a", None)
    assert record.times_s.tolist() == [0.0, 5.0]
    assert record.length_s == pytest.approx(7.5)  # two intervals of 2.5 s, and one more
    assert recorded_times(str(file), "b", 60.0).times_s.tolist() == [1.0]
    with pytest.raises(InvalidInputError, match="none of them 'c'"):
        recorded_times(str(file), "c", None)
    with pytest.raises(InvalidInputError, match="a length of no less"):
        recorded_times(str(file), "a", 4.0)


def test_one_publisher_needs_no_name(tmp_path):
    file = tmp_path / "times.parquet"
    pd.DataFrame({"published_ns": np.arange(4) * 10**9}).to_parquet(file)
    assert recorded_times(str(file), "anybody", None).length_s == pytest.approx(4.0)
    assert system(f"{{recorded: {file}, speed: 3}}").publishers[0].rate_per_s == pytest.approx(3.0)


def test_times_are_whole_nanoseconds_in_every_row(tmp_path):
    file = tmp_path / "times.csv"
    file.write_text("published_ns\n1.5\n")
    with pytest.raises(InvalidInputError, match="whole nanoseconds"):
        recorded_times(str(file), "p", None)


def test_recorded_times_lie_below_the_folder_of_the_file_that_names_them(tmp_path):
    (tmp_path / "given").mkdir()
    (tmp_path / "mine.csv").write_text("published_ns\n0\n1000000000\n")
    path = tmp_path / "given" / "system.yaml"
    system_text = system_document(system(f"{{recorded: {tmp_path / 'mine.csv'}}}"))
    path.write_text(json.dumps(system_text))
    with pytest.raises(InvalidSystemError, match=r"publishes.recorded: .*a file below"):
        load(path)
