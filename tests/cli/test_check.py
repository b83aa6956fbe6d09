"""A mistake in a system file: reported quickly, and missing files are mistakes too."""

import json
import subprocess
import sys

import pytest

from tidings.cli.commands import run

SYSTEM = """
tidings: 1
brokers: {hub: {service: 2ms}}
publishers: {p: {at: hub, every: 100ms, content: {event: {topic: stock}}}}
subscribers: {s: {at: hub, wants: {topic: stock}, connectivity: {trace: sessions.csv}}}
"""
SESSIONS = "state,at_ns\nconnected,0\ndisconnected,5\nconnected,9\ndisconnected,12\n"


def test_a_missing_file_is_a_problem_with_the_path_that_was_looked_at(
    tmp_path, capsys, monkeypatch
):
    (tmp_path / "s.yaml").write_text(SYSTEM)
    monkeypatch.chdir(tmp_path)
    assert run(["check", "s.yaml", "--json"]) == 2
    out, err = capsys.readouterr()
    assert str(tmp_path / "sessions.csv") in err
    [problem] = json.loads(out)["problems"]
    assert problem["at"] == "subscribers.s.connectivity.trace"
    (tmp_path / "sessions.csv").write_text(SESSIONS)
    assert run(["check", "s.yaml"]) == 0


@pytest.mark.parametrize("command", ["check", "predict", "simulate", "explain", "plan deadline"])
def test_a_mistake_is_reported_before_anything_slow_is_imported(command, tmp_path):
    (tmp_path / "bad.yaml").write_text(SYSTEM.replace("at: hub", "at: hob"))
    script = (
        "import sys; from tidings.cli.commands import run; "
        f"code = run([*'{command}'.split(), 'bad.yaml']); "
        "print(code, {'pandas', 'numba', 'networkx', 'scipy.special'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "2 set()"
    assert "got 'hob'" in done.stderr


def test_several_files_are_all_checked_whichever_is_wrong(tmp_path, capsys):
    good = SYSTEM.replace(", connectivity: {trace: sessions.csv}", "")
    texts = {"a.yaml": good.replace("at: hub", "at: hob"), "b.yaml": good, "c.yaml": SYSTEM}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    names = [str(tmp_path / name) for name in texts]
    assert run(["check", *names]) == 2
    out, err = capsys.readouterr()
    assert out == f"{names[1]}: a valid system\n"
    assert "got 'hob'" in err
    assert "sessions.csv" in err
    assert run(["check", names[1], names[1]]) == 0
    assert run(["check", *names, "--json"]) == 2


def test_the_schema_is_put_where_editors_look_for_it(tmp_path, monkeypatch, capsys):
    import jsonschema
    import yaml

    monkeypatch.chdir(tmp_path)
    old = "# yaml-language-server: $schema=../old.json\n"
    (tmp_path / "city.yaml").write_text(f"# a city\n{old}{SYSTEM}")
    (tmp_path / "other.yml").write_text("steps: []\n")
    assert run(["check", "--schema", "--install"]) == 0
    first, *rest = (tmp_path / "city.yaml").read_text().splitlines(keepends=True)
    assert "".join(rest) == f"# a city\n{SYSTEM}"
    assert (tmp_path / "other.yml").read_text() == "steps: []\n"
    # As the server reads it: a path relative to the file.
    path = first.removeprefix("# yaml-language-server: $schema=").strip()
    schema = json.loads((tmp_path / path).read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.Draft7Validator(schema).validate(yaml.safe_load(SYSTEM))
    assert path in capsys.readouterr().out
    before = (tmp_path / "city.yaml").read_text()
    assert run(["check", "--schema", "--install", "city.yaml"]) == 0
    assert (tmp_path / "city.yaml").read_text() == before


@pytest.mark.parametrize(
    "words", [["--install"], ["--schema", "--install", "s.json"]], ids=" ".join
)
def test_what_no_editor_would_read_is_not_installed(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.json").write_text("{}")
    assert run(["check", *words]) == 2
    assert list(tmp_path.iterdir()) == [tmp_path / "s.json"]
