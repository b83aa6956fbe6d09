from __future__ import annotations

import json

import pytest

from tidings.errors import InvalidInputError, InvalidTracesError
from tidings.model.filters import as_filter, matches
from tidings.traces.importing import import_traces
from tidings.traces.readers.flat import read_flat
from tidings.traces.readers.mapping import parse_mapping
from tidings.traces.readers.pseudonyms import NO_OBJECT, Pseudonyms, with_pseudonyms
from tidings.traces.reading import read_traces

NAMES = Pseudonyms(secret="sixteen letters!")
MAPPING = parse_mapping("""
mapping: 1
tables:
  publications:
    where: {kind: sent}
    event: id
    publisher: {constant: p}
    published_ns: at
    content: text
  subscriptions:
    where: {kind: wants}
    subscription: id
    subscriber: id
    broker: {constant: hub}
    action: {constant: subscribe}
    at_ns: at
    filter: text
""")


@pytest.fixture(scope="module", autouse=True)
def _quick(few_rows):
    """All rows of this module are a handful."""


def test_filters_still_want_what_they_wanted_and_no_text_is_left(spark, tmp_path):
    event = {"topic": "secret-stock", "price": 12, "open": True}
    wants = [{"topic": ["secret-stock", "b"], "price": {"below": 20}}, {"topic": {"not": "x"}}]
    rows = [
        {"kind": "sent", "id": "e1", "at": 1, "text": json.dumps(event)},
        {"kind": "sent", "id": "e2", "at": 2, "text": "secret-nonsense"},
        {"kind": "wants", "id": "s", "at": 0, "text": json.dumps(wants)},
    ]
    source = tmp_path / "log.jsonl"
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows) + "secret-torn\n")
    to = tmp_path / "traces"
    files = [str(source)]
    found = import_traces(
        spark, lambda _: with_pseudonyms(read_flat(spark, files, MAPPING), NAMES), files, to
    )
    assert NO_OBJECT in set(found.account["reason"])
    tables = read_traces(spark, to).tables
    (sent,) = tables["publications"].collect()
    content = json.loads(sent.content)
    assert content == {"topic": NAMES.of("secret-stock"), "price": 12, "open": True}
    (step,) = tables["subscriptions"].collect()
    hidden = json.loads(step.filter)
    assert matches(as_filter(hidden), content)
    assert not matches(as_filter(hidden[0]), {**content, "topic": NAMES.of("c")})
    written = b"".join(path.read_bytes() for path in to.rglob("*.parquet"))
    assert b"secret" not in written


def test_tests_that_look_into_texts_are_refused_by_name():
    with pytest.raises(InvalidTracesError, match="uses 'prefix' on a text"):
        NAMES.of_filter('{"topic":{"prefix":"st"}}')
    with pytest.raises(InvalidTracesError, match="uses 'nats' on a text"):
        NAMES.of_filter('{"topic":{"nats":"st.>"}}')
    # an attribute may have the name of a test
    assert json.loads(NAMES.of_filter('{"prefix":"st"}')) == {"prefix": NAMES.of("st")}
    assert NAMES.of_filter("nonsense") == "nonsense"


def test_a_secret_that_can_be_guessed_is_refused(tmp_path):
    (tmp_path / "secret").write_text("short")
    with pytest.raises(InvalidInputError, match="16 or more"):
        Pseudonyms.from_file(tmp_path / "secret")
    with pytest.raises(InvalidInputError, match="the secret cannot be read"):
        Pseudonyms.from_file(tmp_path / "absent")
