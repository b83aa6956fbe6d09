"""The worked samples of the documentation, through the command."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import pytest

from tidings.cli.commands import run
from tidings.traces.readers.flat import read_flat
from tidings.traces.readers.mapping import parse_mapping

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "readers.md").read_text(encoding="utf-8")


def sample(name):
    """The file and the mapping that the page on a system shows."""
    page = (DOCS / "how-to" / f"collect-from-{name.lower()}.md").read_text(encoding="utf-8")
    shown = re.findall(r'```(csv|json|yaml) title="[\w.]+"\n(.*?)```', page, re.S)
    (kind, text), (_, mapping) = shown
    return kind, text, mapping


def test_the_mapping_that_the_page_explains_is_valid():
    mapping = parse_mapping(re.findall(r"```yaml\n(.*?)```", PAGE, re.S)[0])
    assert [table.name for table in mapping.tables] == [
        "publications",
        "deliveries",
        "probes",
        "states",
    ]


@pytest.mark.spark
def test_import_then_characterise_the_kafka_sample(spark, few_rows, tmp_path, capsys, monkeypatch):
    shared = contextlib.nullcontext(spark)
    monkeypatch.setattr("tidings.cli.spark.started", lambda *_, **__: shared)
    _, text, mapping = sample("Kafka")
    header, *rows = text.splitlines()
    more = [row.replace("-17", f"-{n}").replace("00000000", f"000{n:05d}") for n in range(30, 60)
            for row in rows]  # fmt: skip
    (tmp_path / "kafka.csv").write_text("\n".join([header, *rows, *more, "publish,x"]) + "\n")
    (tmp_path / "kafka.yaml").write_text(mapping)
    to = tmp_path / "traces"
    asked = ["import", "table", str(tmp_path / "kafka.csv"), "--mapping",
             str(tmp_path / "kafka.yaml"), "--broker", "kafka", "--to", str(to)]  # fmt: skip
    assert run([*asked, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    fates = {(row["table"], row["fate"]): row["rows"] for row in said["account"]}
    assert fates == {
        ("lines", "used"): 62,
        ("lines", "set aside"): 1,
        ("publications", "used"): 31,
        ("deliveries", "used"): 31,
        ("hops", "used"): 31,
        ("subscriptions", "used"): 1,
        ("subscriptions", "duplicate"): 30,
    }
    assert run(asked) == 2  # the tables are there
    assert "already has deliveries, hops, publications" in capsys.readouterr().err
    assert run(["characterise", str(to), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (row,) = found["measured"]["subscribers"]
    assert (row["subscriber"], row["events"], row["on_time"]) == ("billing", 31, 1.0)
    assert row["delay_mean_s"] == pytest.approx(0.0045, rel=1e-9)


@pytest.mark.spark
@pytest.mark.parametrize(("name", "publisher"), [("RabbitMQ", "shop"), ("MQTT", "thermometer")])
def test_the_other_samples_are_read(spark, tmp_path, name, publisher):
    kind, text, mapping = sample(name)
    path = tmp_path / f"log.{'jsonl' if kind == 'json' else kind}"
    path.write_text(text)
    reading = read_flat(spark, [str(path)], parse_mapping(mapping))
    (sent,), (got,) = (reading.tables[each].collect() for each in ("publications", "deliveries"))
    assert (sent.publisher, sent.unreadable, got.unreadable) == (publisher, None, None)
    assert 0 < got.received_ns - sent.published_ns < 5_000_000
    assert sent.event == got.event


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["table", "x.csv"], "--mapping is required for the format"),
        (["nats", "absent.jsonl"], "no such file"),
        (["probes", "x.csv", "--unit", "week"], "not a unit"),
        (["tea", "x.csv"], "no format 'tea'; wants one of burrow"),
        (["nats", "x.jsonl", "--lifetime", "5s"], "means nothing to the format 'nats'"),
        (["otlp", "x.jsonl", "--lifetime", "soon"], "the lifetime 'soon' is not a time"),
    ],
)
def test_what_is_wrong_with_the_call_is_told_before_spark(
    tmp_path, capsys, monkeypatch, arguments, says
):
    monkeypatch.setattr("tidings.cli.spark.started", lambda *_, **__: pytest.fail("Spark began"))
    assert run(["import", *arguments, "--to", str(tmp_path / "traces")]) == 2
    assert says in capsys.readouterr().err
