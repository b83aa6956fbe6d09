"""The commands as people and programs use them: results, JSON, exit codes, readable errors."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tidings.cli.main import app, run
from tidings.errors import TidingsError
from tidings.model.outcome_files import load_outcome
from tidings.simulation.run import SimulationOptions

SYSTEM = """
tidings: 1
lifetime: 30ms
brokers:
  hub:  {service: {exponential: 3ms}}
  east: {service: {exponential: 5ms}}
links:
  - {between: [hub, east], delay: {exponential: 2ms}, reliability: 0.9}
publishers:
  p: {at: hub, every: {exponential: 10ms}, content: {event: {x: 1}}}
subscribers:
  near: {at: hub, wants: {}}
  far: {at: east, wants: {x: 1}}
"""
COMMANDS = (
    "check",
    "predict",
    "simulate",
    "characterise",
    "validate",
    "report",
    "demo",
    "reproduce content-timeliness",
)


@pytest.fixture
def system(tmp_path):
    path = tmp_path / "system.yaml"
    path.write_text(SYSTEM)
    return str(path)


def result(capsys, *arguments):
    code = run([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_every_command_has_help_with_an_example(capsys):
    for command in COMMANDS:
        code, out, _ = result(capsys, *command.split(), "--help")
        assert code == 0
        assert f"Example: tidings {command}" in " ".join(out.split())
        assert "--json" in out


def test_the_help_lists_every_command(capsys):
    code, out, _ = result(capsys, "--help")
    assert code == 0
    assert all(command.split()[0] in out for command in COMMANDS)
    known = {command.name for command in app.registered_commands}
    for group in app.registered_groups:
        known |= {f"{group.name} {each.name}" for each in group.typer_instance.registered_commands}
    assert known == set(COMMANDS)


def test_check_tells_what_is_in_a_valid_system(system, capsys):
    code, out, _ = result(capsys, "check", system, "--json")
    facts = json.loads(out)
    assert code == 0
    assert facts["valid"]
    assert (facts["brokers"], facts["subscribers"], facts["features_used"]) == (2, 2, [])
    assert "a valid system" in result(capsys, "check", system)[1]


def test_check_prints_the_canonical_form_and_the_schema(system, capsys, tmp_path):
    _, out, _ = result(capsys, "check", system, "--canonical")
    (tmp_path / "again.yaml").write_text(out)
    assert result(capsys, "check", tmp_path / "again.yaml", "--canonical")[1] == out
    assert "brokers" in json.loads(result(capsys, "check", "--schema")[1])["properties"]


def test_a_bad_system_lists_all_its_problems_and_exits_with_two(tmp_path, capsys):
    bad = tmp_path / "bad.yaml"
    bad.write_text(SYSTEM.replace("3ms", "-3ms").replace("at: east", "at: west"))
    for command in ("check", "predict", "simulate"):
        code, out, err = result(capsys, command, bad)
        assert (code, out) == (2, "")
        assert "2 problems" in err
        assert "line 5, brokers.hub.service" in err
        assert "line 13, subscribers.far.at: got 'west'; wants one of the brokers hub, east" in err
        assert "Traceback" not in err


def test_what_an_engine_does_not_handle_is_refused_by_name(tmp_path, capsys):
    path = tmp_path / "system.yaml"
    path.write_text(
        SYSTEM.replace("{exponential: 3ms}", "{exponential: 3ms}, failure: {mtbf: 1h, mttr: 1s}")
    )
    for command in ("predict", "simulate"):
        code, _, err = result(capsys, command, path)
        assert code == 3
        assert "failures: brokers.hub.failure" in err


def test_an_unstable_simulation_names_the_broker(tmp_path, capsys):
    path = tmp_path / "system.yaml"
    path.write_text(SYSTEM.replace("5ms", "50ms"))
    code, _, err = result(capsys, "simulate", path)
    assert code == 4
    assert "east" in err


def test_an_overloaded_broker_is_a_warning_of_the_prediction(tmp_path, capsys):
    path = tmp_path / "system.yaml"
    path.write_text(SYSTEM.replace("5ms", "50ms"))
    code, out, err = result(capsys, "predict", path, "--json")
    shares = {row["subscriber"]: row["on_time"] for row in json.loads(out)["subscribers"]}
    assert code == 0
    assert shares["far"] == 0.0
    assert shares["near"] > 0.9
    assert "warning" in err
    assert "east" in err


def test_predict_simulate_validate_report(system, capsys, tmp_path):
    predicted, simulated, page = (
        tmp_path / n for n in ("predicted.json", "simulated", "page.html")
    )
    assert result(capsys, "predict", system, "-o", predicted)[0] == 0
    code, out, _ = result(
        capsys, "simulate", system, "-o", simulated, "--events", 20_000, "--seed", 3
    )  # fmt: skip
    assert code == 0
    assert "far" in out
    assert load_outcome(simulated).source == "simulated"
    code, out, _ = result(capsys, "validate", predicted, simulated, "--json")
    assert code == 0
    assert json.loads(out)["verdict"]["passed"]
    assert result(capsys, "validate", predicted, simulated, "--max-mae", "1e-9")[0] == 1
    code, out, _ = result(capsys, "report", system, predicted, simulated, "--to", page)
    assert code == 0
    assert "<html" in page.read_text()


def test_json_of_a_prediction_is_the_saved_outcome(system, capsys, tmp_path):
    _, out, _ = result(capsys, "predict", system, "--json", "--pairs", "-o", tmp_path / "p.json")
    assert json.loads(out) == json.loads((tmp_path / "p.json").read_text())
    assert {row["subscriber"] for row in json.loads(out)["pairs"]} == {"near", "far"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict"],
        ["predict", "SYSTEM", "--model", "magic"],
        ["simulate", "SYSTEM", "--duration", "soon"],
        ["simulate", "SYSTEM", "--precision", "7"],
        ["validate", "nowhere.json", "nowhere.json"],
        ["report", "SYSTEM", "nowhere.json"],
        ["characterise", "nowhere"],
        ["reproduce", "another-paper"],
        ["reproduce", "content-timeliness", "--load", "some"],
        ["reproduce", "content-timeliness", "--duration", "soon"],
        ["reproduce", "content-timeliness", "--latencies", "nowhere.parquet"],
        ["frobnicate"],
    ],
)
def test_wrong_use_is_one_readable_message_and_exit_code_two(arguments, system, capsys):
    code, _, err = result(capsys, *[system if a == "SYSTEM" else a for a in arguments])
    assert code == 2
    assert err.strip()
    assert "Traceback" not in err


def test_two_outcomes_of_one_source_are_refused(system, capsys, tmp_path):
    result(capsys, "predict", system, "-o", tmp_path / "p.json")
    code, _, err = result(capsys, "report", system, tmp_path / "p.json", tmp_path / "p.json")
    assert code == 2
    assert "a second predicted outcome" in err


def test_traces_are_not_overwritten(system, capsys, tmp_path):
    (tmp_path / "traces").mkdir()
    code, _, err = result(capsys, "simulate", system, "--traces", tmp_path / "traces")
    assert code == 2
    assert "exists already" in err


@pytest.mark.parametrize(
    "options",
    [
        ["--replications", 10],  # also when it is what would be done anyway
        ["--precision", 0.01],
        ["--max-replications", 50, "--precision", 0.01],
    ],
)
def test_traces_are_of_one_run(options, system, capsys, tmp_path):
    code, _, err = result(capsys, "simulate", system, "--traces", tmp_path / "traces", *options)
    said = " ".join(err.replace("│", " ").split())
    assert code == 2
    assert "one run is recorded; leave" in said
    assert all(option in said for option in options if str(option).startswith("--"))
    assert not (tmp_path / "traces").exists()


def test_the_command_simulates_with_the_defaults_of_the_library(system, capsys, monkeypatch):
    asked = {}

    def stop(_, **options):
        asked.update(options)
        raise TidingsError("enough")

    monkeypatch.setattr("tidings.cli.simulate.simulate_outcome", stop)
    result(capsys, "simulate", system)
    usual = SimulationOptions()
    assert asked["max_replications"] == usual.max_replications
    assert {key: getattr(usual, key) for key in asked if key != "progress"} == {
        key: value for key, value in asked.items() if key != "progress"
    }


@pytest.mark.parametrize(
    ("command", "work"),
    [
        (["simulate", "SYSTEM", "-o", "PLACE.json"], "simulate.simulate_outcome"),
        (["simulate", "SYSTEM", "-o", "PLACE"], "simulate.simulate_outcome"),
        (["simulate", "SYSTEM", "--traces", "PLACE"], "simulate.record"),
        (["report", "SYSTEM", "nowhere.json", "--to", "PLACE.html"], "report.load_outcome"),
        (["demo", "--to", "PLACE"], "demo.spark_session"),
    ],
)
def test_a_place_that_cannot_be_written_is_told_before_the_work(
    command, work, system, capsys, tmp_path, monkeypatch
):
    (tmp_path / "file").touch()
    monkeypatch.setattr(f"tidings.cli.{work}", lambda *_, **__: pytest.fail("the work began"))
    place = str(tmp_path / "file" / "x")
    words = [system if each == "SYSTEM" else each.replace("PLACE", place) for each in command]
    code, _, err = result(capsys, *words)
    assert code == 2
    assert "cannot be written" in err
    assert len(err.strip().splitlines()) == 1


def test_importing_tidings_is_light_and_the_command_is_installed():
    heavy = "import sys, tidings; print({'numpy', 'pyspark', 'numba', 'pandas'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", heavy], text=True).strip() == "set()"
    tidings = Path(sys.executable).with_name("tidings")
    assert subprocess.check_output([tidings, "--version"], text=True).startswith("tidings 0")


@pytest.mark.spark
def test_traces_recorded_and_characterised_give_the_system_back(
    system, spark, capsys, tmp_path, monkeypatch
):
    # The session is shared by all tests, so the command's own must not stop it.
    shared = contextlib.nullcontext(spark)
    monkeypatch.setattr("tidings.cli.characterise.spark_session", lambda *_, **__: shared)
    traces, fitted, measured = (tmp_path / n for n in ("traces", "fitted.yaml", "measured.json"))
    assert result(capsys, "simulate", system, "--traces", traces, "--events", 20_000)[0] == 0
    code, out, _ = result(
        capsys, "characterise", traces, "--to", fitted, "--measured", measured, "--json"
    )
    learnt = {row["path"]: row for row in json.loads(out)["parameters"]}
    assert code == 0
    for path, true in {
        "brokers.hub.service": 3e-3,
        "brokers.east.service": 5e-3,
        "publishers.p.rate": 100.0,
    }.items():
        row = learnt[path]
        assert abs(row["estimate"] - true) < 5 * row["standard_error"] < 0.1 * true
    assert result(capsys, "predict", fitted, "-o", tmp_path / "predicted.json")[0] == 0
    assert result(capsys, "validate", tmp_path / "predicted.json", measured)[0] == 0
