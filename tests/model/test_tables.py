"""Systems as folders of tables: what they say, and what is wrong with them, by file and row."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.errors import InvalidSystemError
from tidings.model import reading
from tidings.model.laws import Exponential

HERE = Path(__file__).parent
TABLES = {
    "brokers.csv": 'name,service\nhub,"{""exponential"": ""3ms""}"\neast,2ms\n',
    "links.csv": 'between,delay,reliability\n"[""hub"", ""east""]",20ms,0.9\n',
    "publishers.csv": "name,at,every\np,hub,1s\n",
    "contents.csv": "publisher,p,event\np,0.5,{topic: a}\np,0.5,{topic: b}\n",
    "subscribers.csv": "name,at,wants,count\n007,east,{topic: a},3\nt,hub,{},\n",
}


@pytest.fixture
def folder(tmp_path):
    """A small system as CSV tables."""
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def told(folder):
    with pytest.raises(InvalidSystemError) as error:
        reading.load(folder)
    assert str(len(error.value.problems)) in error.value.headline
    return [str(problem) for problem in error.value.problems]


@pytest.mark.parametrize("name", ["small_system.yaml", "full_system.yaml"])
def test_a_folder_of_tables_reads_as_the_same_system(name, tmp_path):
    system = reading.load(HERE / name)
    reading.save(system, tmp_path / "folder")
    again = reading.load(tmp_path / "folder")
    assert again == system
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder"]
    canonical = reading.loads(reading.dumps(system))
    assert (
        reading.fingerprint(system) == reading.fingerprint(again) == reading.fingerprint(canonical)
    )


def test_tables_may_be_csv(folder):
    system = reading.load(folder)
    assert system.brokers[0].service.law == Exponential(mean_s=0.003)
    assert system.links[0].there.reliability == 0.9
    assert [s.name for s in system.subscribers] == ["007", "t"]
    assert [s.count for s in system.subscribers] == [3, 1]
    assert len(system.publishers[0].content.rows()) == 2


def test_a_csv_from_a_spreadsheet_is_read_too(folder):
    reference = reading.load(folder)
    for name, text in TABLES.items():
        (folder / name).write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert reading.load(folder) == reference


def test_bad_rows_are_named_by_file_and_line(folder):
    (folder / "subscribers.csv").write_text(
        'name,at,wants\nal,east,"{note:\n  {prefix: x}}"\nal,hub,{}\n'  # a cell over two lines
        "\nbo,nowhere,{}\n,hub,{}\nx,y\n"
    )
    (folder / "contents.csv").write_text("publisher,p,event\np,0.5,{topic: .nan}\nq,0.5,{a: 1}\n")
    (folder / "links.csv").write_text('between,delay\n"[hub, east]",soon\n')
    assert told(folder) == [
        "contents.csv line 2, publishers.p.content: got a sum of 0.5; "
        "wants probabilities that sum to 1",
        "contents.csv line 2, publishers.p.content[1].event.topic: got nan; "
        "wants a text, a finite number, or true or false",
        "contents.csv line 3, publisher: got 'q'; wants one of the publishers",
        "links.csv line 2, links[1].delay: got 'soon'; "
        "wants a time such as 250ms, or a distribution such as {exponential: 250ms}",
        "subscribers.csv line 4, subscribers.al: got it twice; wants each name once",
        "subscribers.csv line 6, subscribers.bo.at: got 'nowhere'; "
        "wants one of the brokers hub, east",
        "subscribers.csv line 7, the row: got none; wants a 'name'",
        "subscribers.csv line 8, the row: got 2 cells; wants 3, as there are columns "
        "(put cells that contain a comma in quotes)",
    ]


def test_rows_of_parquet_are_numbered(folder):
    (folder / "subscribers.csv").unlink()
    rows = {
        "name": ["a", "b"],
        "at": ["hub", "moon"],
        "wants": ["{}", "{}"],
        "target": [math.nan, 1],
    }
    pq.write_table(pa.table(rows), folder / "subscribers.parquet")
    assert told(folder) == [
        "subscribers.parquet row 1, subscribers.a.target: got nan; wants a share from 0 to 1",
        "subscribers.parquet row 2, subscribers.b.at: got 'moon'; "
        "wants one of the brokers hub, east",
    ]


def test_a_cell_that_is_no_json_is_shown(folder):
    (folder / "subscribers.csv").write_text('name,at,wants\nal,east,"{topic: [a, b}"\n')
    (folder / "contents.csv").write_text("publisher,p,event\np,1,{topic: \np,[,{topic: b}\n")
    found = told(folder)
    assert [line.split("; wants")[0] for line in found] == [
        "contents.csv line 2, column 'event': got '{topic: '",
        "contents.csv line 3, column 'p': got '['",
        "subscribers.csv line 2, column 'wants': got '{topic: [a, b}'",
    ]
    assert all("wants a value as in JSON" in line for line in found)


def test_one_section_in_two_tables_is_an_error_by_name(folder):
    pq.write_table(pa.table({"name": ["hub", "east"]}), folder / "brokers.parquet")
    (folder / "system.yaml").write_text("subscribers: {x: {at: hub, wants: {}}}\n")
    assert told(folder) == [
        "brokers: got brokers.parquet beside brokers.csv; wants each section in one place only",
        "subscribers: got subscribers.csv beside system.yaml; wants each section in one place only",
    ]


def test_contents_in_two_places_are_an_error(folder):
    (folder / "publishers.csv").write_text("name,at,every,content\np,hub,1s,{event: {a: 1}}\n")
    assert told(folder)[0] == (
        "contents.csv line 2, publisher: got contents of p also elsewhere; "
        "wants its contents in one place only"
    )


@pytest.mark.parametrize("section", ["brokers", "links", "publishers", "contents", "subscribers"])
@pytest.mark.parametrize("damage", ["truncated", "text", "empty", "not csv", "header"])
def test_a_table_that_cannot_be_read_is_one_line(section, damage, folder):
    (folder / f"{section}.csv").unlink()
    file = folder / f"{section}.parquet"
    if damage == "truncated":
        pq.write_table(pa.table({"name": ["a" * 1000]}), file)
        file.write_bytes(file.read_bytes()[:-20])
    elif damage in ("text", "empty"):
        file.write_text("name,at\n" if damage == "text" else "")
    else:
        file = folder / f"{section}.csv"
        file.write_bytes(b"\xff\xfe\x00" if damage == "not csv" else b"name,name\na,b\n")
    (line,) = told(folder)
    assert line.startswith(f"{file.name}, {section}: got ")
    assert line.endswith("; wants a readable table")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damaged_tables_are_read_or_refused_cleanly(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("tables")
    for name, text in TABLES.items():
        cells = list(text)
        for _ in range(data.draw(st.integers(0, 2))):
            at = data.draw(st.integers(0, len(cells) - 1))
            cells[at : at + data.draw(st.integers(0, 9))] = data.draw(st.text('{}[],"\n:0x\0é'))
        (folder / name).write_text("".join(cells))
    problems = ()
    try:
        system = reading.load(folder)
    except InvalidSystemError as error:
        problems = error.problems
    else:
        assert reading.loads(reading.dumps(system)) == system
    assert all(problem.at and problem.saw and problem.want for problem in problems)


def test_a_head_that_cannot_be_read_is_one_line(folder):
    (folder / "subscribers.csv").unlink()
    (folder / "system.yaml").write_text("lifetime: [1s\n")
    (line,) = told(folder)
    assert line.startswith("system.yaml line ")


def test_a_folder_without_tables_is_an_error(tmp_path):
    (tmp_path / "notes.txt").touch()
    assert "got notes.txt; wants system.yaml, or tables" in told(tmp_path)[0]


TWO_CELLS = "got 2 cells; wants 3, as there are columns"
ADVICE = " (put cells that contain a comma in quotes)"


@pytest.mark.parametrize(
    ("file", "header", "row"),
    [
        ("brokers.csv", "name,service,servers", "east,2ms"),
        ("publishers.csv", "name,at,every", "p,hub"),
        ("links.csv", "between,delay,network", '"[hub, east]",1ms'),
        ("contents.csv", "publisher,p,event", "p,1"),
    ],
)
def test_a_row_with_a_cell_too_few_is_the_only_thing_told(folder, file, header, row):
    others = {"brokers.csv": "hub,3ms,1\n", "contents.csv": "p,0.5,{a: 1}\n"}.get(file, "")
    (folder / file).write_text(f"{header}\n{others}{row}\n")
    line = 3 if others else 2
    assert told(folder) == [f"{file} line {line}, the row: {TWO_CELLS}{ADVICE}"]


def test_a_name_in_a_broken_row_is_still_told_to_be_there_twice(folder):
    (folder / "brokers.csv").write_text("name,service,servers\nhub,3ms,1\neast,2ms,1\nhub,2ms\n")
    assert told(folder) == [
        "brokers.csv line 4, brokers.hub: got it twice; wants each name once",
        f"brokers.csv line 4, the row: {TWO_CELLS}{ADVICE}",
    ]


def test_of_two_tables_side_by_side_both_have_their_problems_told(folder):
    rows = {"name": ["a"], "at": ["hub"], "wants": ["{}"]}
    pq.write_table(pa.table(rows), folder / "subscribers.parquet")
    (folder / "subscribers.csv").write_text("name,at,wants\nx,hub\n")
    assert told(folder) == [
        "subscribers: got subscribers.parquet beside subscribers.csv; "
        "wants each section in one place only",
        f"subscribers.csv line 2, the row: {TWO_CELLS}{ADVICE}",
    ]
