"""Every block of code in the documentation is what it says: systems load, Python runs."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
import typer
import yaml

from doc_pages import ROOT, Block, blocks
from docs.make_outputs import commands_of
from tidings.cli.commands import app
from tidings.model.reading import load, loads
from tidings.petri.reading import loads_net
from tidings.planning.objectives import read_objectives
from tidings.planning.scenarios import read_scenarios
from tidings.traces.readers.mapping import parse_mapping

CHECKED = {"console", "csv", "json", "python", "sh", "text", "yaml"}
SYSTEM = """
tidings: 1
brokers: {hub: {}, east: {}}
links: [{between: [hub, east]}]
publishers: {p: {at: hub, every: 1s, content: {event: {topic: stock}}}}
subscribers: {alice: {at: east, wants: {topic: stock}}}
"""


def _objectives(text: str, folder: Path) -> None:
    (folder / "objectives.yaml").write_text(text, encoding="utf-8")
    assert read_objectives(folder / "objectives.yaml")


def _scenarios(text: str, folder: Path) -> None:
    (folder / "scenarios.yaml").write_text(text, encoding="utf-8")
    assert read_scenarios(folder / "scenarios.yaml")


def _part_of_a_system(text: str, folder: Path) -> None:
    loads(yaml.safe_dump(yaml.safe_load(SYSTEM) | yaml.safe_load(text)))


def _workflow(text: str, folder: Path) -> None:
    """A GitHub workflow gives the action inputs that it has, and all that it needs."""
    inputs = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["inputs"]
    (job,) = yaml.safe_load(text)["jobs"].values()
    (step,) = [each for each in job["steps"] if "/tidings@" in each.get("uses", "")]
    needed = {name for name, each in inputs.items() if each.get("required")}
    assert needed <= set(step["with"]) <= set(inputs)


def _gitlab(text: str, folder: Path) -> None:
    assert text == (ROOT / "examples/pipelines/gitlab-ci.yml").read_text("utf-8")


def _hooks(text: str, folder: Path) -> None:
    offered = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    (repository,) = yaml.safe_load(text)["repos"]
    assert {each["id"] for each in repository["hooks"]} <= {each["id"] for each in offered}


# How a document is read, by the first key in it.
READERS = {
    "tidings": lambda text, _: loads(text),
    "tidings_net": lambda text, _: loads_net(text),
    "mapping": lambda text, _: parse_mapping(text),
    "apiVersion": _objectives,
    "rush hour": _scenarios,
    "subscribers": _part_of_a_system,
    "recovery": _part_of_a_system,
    "name": _workflow,
    "tidings-gate": _gitlab,
    "repos": _hooks,
}


def test_every_block_says_what_it_is():
    assert [str(block) for block in blocks("")] == []


def test_every_language_is_checked():
    text = "\n".join(page.read_text("utf-8") for page in (ROOT / "docs").rglob("*.md"))
    opened = re.findall(r"^```(\w+)", text, re.M)
    assert set(opened) <= CHECKED


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_yaml_is_read(block, tmp_path):
    first = next(iter(yaml.safe_load(block.text)))
    READERS[first](block.text, tmp_path)


@pytest.mark.parametrize("block", blocks("json"), ids=str)
def test_json_is_read_line_by_line(block):
    for line in block.text.splitlines():
        assert json.loads(line)


@pytest.mark.parametrize("block", [b for b in blocks("python") if b.page != "README.md"], ids=str)
def test_python_runs(block, tmp_path, monkeypatch):
    for example in (ROOT / "examples").glob("*.yaml"):
        shutil.copy(example, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [block.page])
    exec(compile(block.text, str(block), "exec"), {"__name__": "page"})
    for written in set(tmp_path.glob("*.yaml")):
        load(written)


def _calls(block: Block) -> list[list[str]]:
    """The commands of Tidings in a block, as words; comments and what is piped to are left out."""
    console = block.language == "console"
    text = "\n".join(commands_of(block.text)) if console else block.text
    lines = re.findall(r"(?:^|run: )tidings (.+)$", text.replace("\\\n", " "), re.M)
    return [shlex.split(re.split(r" [|>]", line)[0], comments=True) for line in lines]


CALLS = [
    pytest.param(words, id=f"{block} {' '.join(words)}"[:90])
    for block in blocks("sh", "console", "yaml")
    for words in _calls(block)
]


@pytest.mark.parametrize("words", CALLS)
def test_commands_and_their_options_exist(words):
    command, path = typer.main.get_command(app), []
    context = command.context_class(command)
    while hasattr(command, "get_command") and words[len(path)][0] != "-":
        path.append(words[len(path)])
        command = command.get_command(context, path[-1])
        assert command is not None, f"there is no command {' '.join(path)}"
    options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    asked = {word.split("=")[0] for word in words[len(path) :] if re.match(r"--?[a-z]", word)}
    assert asked <= options | {"--help", "-h"}


@pytest.mark.spark
def test_the_reader_that_the_how_to_shows_accounts_for_every_line(spark, tmp_path):
    names: dict = {}
    for page in ("how-to/add-a-reader.md", "reference/write-a-reader.md"):
        (block,) = [b for b in blocks("python") if b.page.endswith(page)]
        exec(compile(block.text, str(block), "exec"), names)
    (tmp_path / "contract").mkdir()
    names["test_the_reader_holds_the_contract"](spark, tmp_path / "contract")
    path = tmp_path / "pings.log"
    path.write_text("ping hub east 1700000000.5 0.012\nping hub\nping hub west soon 0.1\n")
    reading = names["READER"].read(spark, [str(path)], names["Asked"]())
    rows = {row.target: row for row in reading.tables["probes"].collect()}
    assert rows["east"].sent_ns == 1_700_000_000_500_000_000
    assert rows["east"].received_ns - rows["east"].sent_ns == 12_000_000
    assert (rows["east"].unreadable, rows["west"].unreadable) == (None, "no time")
    assert sorted(str(row.reason) for row in reading.records.collect()) == [
        "None",
        "None",
        "not five words",
    ]
