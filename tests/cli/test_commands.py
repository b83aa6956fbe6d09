"""The commands as people and programs use them: results, JSON, exit codes, readable errors."""

import contextlib
import io
import json
import math
import os
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest
import typer

from tidings.cli import console
from tidings.cli.commands import COMMANDS, name_in_python, run
from tidings.errors import EngineError, InvalidInputError, TidingsError
from tidings.model.outcome_files import load_outcome
from tidings.simulation.options import SimulationOptions

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
    modules = {name: import_module(f"tidings.cli.{name_in_python(name)}") for name in COMMANDS}
    groups = {name: module.app for name, module in modules.items() if hasattr(module, "app")}
    assert {"reproduce", "plan", "petri", "testbed"} <= groups.keys()
    inside = [
        f"{name} {each}"
        for name, app in groups.items()
        for each in typer.main.get_group(app).list_commands(None)
    ]
    assert "reproduce combined" in inside
    for command in [each for each in COMMANDS if each not in groups] + inside:
        code, out, _ = result(capsys, *command.split(), "--help")
        assert code == 0
        assert f"Example: tidings {command}" in " ".join(out.split())
        assert "--json" in out


@pytest.mark.parametrize(
    ("columns", "most"), [("80", 80), ("60", 60), ("20", 60), ("", 120), ("0", 120)]
)
def test_in_a_pipe_lines_are_as_wide_as_asked(system, capsys, monkeypatch, columns, most):
    monkeypatch.setenv("COLUMNS", columns)
    code, out, _ = result(capsys, "predict", system, "--by", "theory")
    assert code == 0
    assert most - 20 < max(map(len, out.splitlines())) <= most
    assert most == 120 or "left out for want of room:" in out


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_who_reads_only_the_first_lines_changes_neither_verdict_nor_warnings(system, form):
    reads, writes = os.pipe()
    os.close(reads)  # the reader has had enough before the first line
    text = Path(system).read_text().replace("{at: east,", "{at: east, target: 0.999,")
    Path(system).write_text(text)
    command = [str(Path(sys.executable).with_name("tidings")), "plan", "targets", system, *form]
    done = subprocess.run(command, stdout=writes, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writes)
    assert (done.returncode, done.stderr) == (1, "")


def test_the_help_lists_every_command(capsys):
    code, out, _ = result(capsys, "--help")
    assert code == 0
    assert all(command in out for command in COMMANDS)
    assert "Exit codes" in out


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


def test_an_invalid_system_is_an_answer_of_check_as_json(tmp_path, capsys):
    bad = tmp_path / "bad.yaml"
    bad.write_text(SYSTEM.replace("3ms", "-3ms").replace("at: east", "at: west"))
    code, out, err = result(capsys, "check", bad, "--json")
    answer = json.loads(out)
    assert code == answer["exit_code"] == 2
    assert answer["valid"] is False
    assert answer["problems"][1] == {
        "at": "subscribers.far.at",
        "line": 13,
        "saw": "'west'",
        "want": "one of the brokers hub, east",
        "fix": answer["problems"][1]["fix"],
    }
    assert len(answer["problems"]) == 2
    assert "line 13, subscribers.far.at" in err  # people still read it


@pytest.mark.parametrize(
    ("arguments", "kind", "code"),
    [
        (["predict", "BAD"], "invalid_system", 2),
        (["predict", "SHARING", "--by", "theory"], "unsupported", 3),
        (["simulate", "BUSY"], "unstable", 4),
        (["validate", "nowhere.json", "nowhere.json"], "invalid_input", 2),
        (["report", "BUSY", "nowhere.json"], "invalid_input", 2),
        (["characterise", "nowhere"], "invalid_traces", 2),
        (["demo", "--system", "BAD"], "invalid_system", 2),
        (["predict", "BUSY", "--model", "magic"], "usage", 2),
        (["frobnicate"], "usage", 2),
        (["check"], "usage", 2),
    ],
)
def test_an_error_is_a_document_with_json(arguments, kind, code, tmp_path, capsys):
    texts = {
        "BAD": SYSTEM.replace("3ms", "-3ms"),
        "BUSY": SYSTEM.replace("5ms", "50ms"),
        "SHARING": SYSTEM.replace("l: 3ms}", "l: 3ms}, discipline: processor-sharing"),
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    words = [str(tmp_path / f"{word}.yaml") if word in texts else word for word in arguments]
    found, out, err = result(capsys, *words, "--json")
    error = json.loads(out)["error"]
    assert found == error["exit_code"] == code
    assert error["kind"] == kind
    assert error["message"]
    assert ("problems" in error) == (kind == "invalid_system")
    assert err.strip()


def test_a_fault_is_a_document_too_and_never_a_traceback(system, capsys, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("oh [dear]")

    monkeypatch.setattr("tidings.prediction.predict.predict", fail)
    code, out, err = result(capsys, "predict", system, "--json")
    assert code == json.loads(out)["error"]["exit_code"] == 70
    assert "ZeroDivisionError: oh [dear]" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "problem",
    [
        MemoryError("Unable to allocate 3 GiB"),
        ImportError("_dot.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
        OSError(12, "Cannot allocate memory"),
    ],
)
def test_too_little_memory_is_no_bug(problem, system, capsys, monkeypatch):
    def fail(*_, **__):
        raise problem

    monkeypatch.setattr("tidings.prediction.predict.predict", fail)
    code, out, err = result(capsys, "predict", system, "--json")
    assert code == json.loads(out)["error"]["exit_code"] == 5
    assert "there is not enough memory" in " ".join(err.split())


FULL = """
import sys

class Full:
    def find_spec(name, *_):
        if name == "tidings.cli.commands":
            raise MemoryError

sys.meta_path.insert(0, Full)
from tidings.cli.main import main
main()
"""


def test_where_there_is_no_memory_to_begin_it_is_said_all_the_same():
    done = subprocess.run([sys.executable, "-c", FULL], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (5, "error: there is not enough memory to start\n")


def test_a_sample_that_finds_no_room_is_wrong_input(capsys, tmp_path, monkeypatch):
    def full(_, copy):
        raise OSError(28, "No space left on device", "a", None, str(copy))

    monkeypatch.setattr("tidings.cli.samples.shutil.copyfile", full)
    code, _, err = result(capsys, "samples", "nats-steady", "--to", tmp_path / "traces")
    assert code == 2
    assert "cannot be written: no space left" in " ".join(err.split())
    assert list(tmp_path.iterdir()) == []


def test_progress_is_told_after_two_seconds_also_within_one_step(capsys, monkeypatch):
    monkeypatch.setattr(console, "SHOW_AFTER_S", 0.15)
    with console.progress("counting") as step:
        step("sheep")
    assert capsys.readouterr().err == ""
    with console.progress("counting") as step:
        step("sheep")
        time.sleep(0.6)
    assert capsys.readouterr().err == "counting: sheep (0 s)\n"


def test_the_time_left_is_told_where_steps_are_counted(monkeypatch):
    now = iter([0.0, 0.0, 10.0, 40.0, 40.0, 40.0])
    monkeypatch.setattr(console.time, "monotonic", lambda: next(now))
    task = console._Task("simulating")
    task.begin("replication 1 of 10")  # at 0 s, where the count begins
    task.begin("replication 2 of 10")
    task.begin("replication 4 of 10")  # 40 s for three of them, six to go
    assert str(task) == "simulating: replication 4 of 10 (40 s, about 80 s for the rest of these)"


def test_the_time_left_is_of_all_that_is_needed_not_of_the_next_few(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    task = console._Task("predicting")
    for number in range(1, 11):
        now[0] = float(number)
        task.begin(f"replication {number} of at least 10")
        assert task.left_s == (None if number == 1 else 10 - number)
    for number, expected in [(11, 80), (12, 80), (20, 90)]:  # better known as work goes on
        now[0] = float(number)
        task.begin(f"replication {number} of about {expected}")
    assert task.left_s == 70.0
    assert ", about 70 s for the rest of these)" in str(task)
    task.begin("paths, 30 of 40")  # another count
    assert task.left_s is None


def test_steps_within_a_step_count_as_parts_of_it(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    task = console._Task("explaining")
    task.begin("change 1 of 3: replication 1 of 4")
    now[0] = 6.0
    task.begin("change 1 of 3: replication 4 of 4")  # three quarters of it
    assert task.left_s == pytest.approx(6.0 / 0.75 * (3 - 1.75))
    now[0] = 8.0
    task.begin("change 2 of 3: replication 1 of 4")
    assert task.left_s == pytest.approx(8.0)


def test_more_may_follow_what_is_at_least_needed(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    task = console._Task("predicting")
    for number in (1, 2):
        now[0] = 12.0 * number
        task.begin(f"replication {number} of at least 10")
    assert str(task).endswith("2 of at least 10 (24 s, at least 2 min for the rest of these)")


def test_a_spinner_leaves_no_codes_behind_but_those_of_the_terminal(monkeypatch):
    written = io.StringIO()
    written.isatty = lambda: True
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(console.sys, "stderr", written)
    with console.progress("counting") as step:
        step("sheep \x07")
        time.sleep(0.7)
    text = written.getvalue()
    assert "counting: sheep \\x07" in text
    assert "\\x1b" not in text  # the codes that move the cursor are sent, not shown


def test_what_an_engine_does_not_handle_is_refused_by_name(tmp_path, capsys):
    path = tmp_path / "system.yaml"
    path.write_text(
        SYSTEM.replace("{exponential: 3ms}", "{exponential: 3ms}, discipline: processor-sharing")
    )
    code, _, err = result(capsys, "predict", path, "--by", "theory")
    assert code == 3
    assert "other disciplines than fcfs: brokers.hub.discipline" in err


def test_an_unstable_simulation_names_the_broker(tmp_path, capsys):
    path = tmp_path / "system.yaml"
    path.write_text(SYSTEM.replace("5ms", "50ms"))
    code, _, err = result(capsys, "simulate", path)
    assert code == 4
    assert "east" in err


def test_prediction_and_simulation_say_the_same_of_overloaded_brokers(tmp_path, capsys):
    # The hub passes on half of 100 events a second, of which nine tenths reach the east.
    path = tmp_path / "system.yaml"
    path.write_text(SYSTEM.replace("3ms", "20ms").replace("5ms", "50ms"))
    answer = json.loads(result(capsys, "predict", path, "--json")[1])
    over = {
        each["where"][0]: each["size"] for each in answer["remarks"] if each["kind"] == "overload"
    }
    assert over == pytest.approx({"hub": 2.0, "east": 2.25})
    refused = result(capsys, "simulate", path)[2]
    for text in (
        "broker 'hub' is overloaded, at 2 times its capacity: 100 events/s arrive, 50 can leave",
        "broker 'east' is overloaded, at 2.25 times its capacity: 45 events/s arrive, 20 can leave",
    ):
        assert text in refused


def test_too_many_copies_name_the_option_that_allows_more(tmp_path, capsys):
    path = tmp_path / "system.yaml"
    # A bounded buffer hides the load from the check beforehand.
    path.write_text(SYSTEM.replace("5ms}", "50ms}").replace("l: 3ms}", "l: 3ms}, buffer: 9"))
    code, _, err = result(capsys, "simulate", path, "--max-copies", 200, "--events", 20_000)
    assert code == 4
    assert "the limit of 200 copies" in err
    assert "'east' is overloaded, at 4.5 times" in err
    assert "--max-copies" in err
    assert "--max-copies" in result(capsys, "simulate", "--help")[1]


def test_an_overloaded_broker_is_a_warning_of_the_prediction(tmp_path, capsys):
    path = tmp_path / "system.yaml"
    path.write_text(SYSTEM.replace("5ms", "50ms"))
    code, out, err = result(capsys, "predict", path, "--json")
    shares = {row["subscriber"]: row["on_time"] for row in json.loads(out)["subscribers"]}
    errors = {row["subscriber"]: row["error"] for row in json.loads(out)["subscribers"]}
    assert code == 0
    assert errors["far"] == 0.0  # nothing arrives, and that is sure
    assert shares["far"] == 0.0
    assert shares["near"] > 0.9
    assert "warning" in err
    assert "east" in err


def test_predict_turns_standard_errors_into_error_bars(tmp_path, capsys):
    path = tmp_path / "system.yaml"
    path.write_text(SYSTEM + "standard_errors: {brokers.hub.service: 0.0001}\n")
    asked = ("predict", path, "--by", "theory")
    code, out, _ = result(capsys, *asked, "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["provenance"]["error_bars"]["parameters"] == 1
    rows = answer["subscribers"]
    assert all(row["on_time_se"] > 0 and row["delay_mean_se_s"] > 0 for row in rows)
    bare = json.loads(result(capsys, *asked, "--no-error-bars", "--json")[1])["subscribers"]
    assert {row["on_time_se"] for row in bare} == {None}


def test_predict_says_between_which_shares_the_truth_lies(tmp_path, capsys):
    path = tmp_path / "fitted.yaml"
    path.write_text(SYSTEM + "standard_errors: {brokers.hub.service: 0.0001}\n")
    arguments = ("predict", path, "--interval", "0.9", "--model-error", "0")
    code, text, _ = result(capsys, *arguments)
    assert code == 0
    assert "90.0 % intervals" in " ".join(text.split())
    document = json.loads(result(capsys, *arguments, "--json")[1])
    wider = json.loads(result(capsys, *arguments[:-1], "0.02", "--json")[1])
    for row, own, wide in zip(
        document["subscribers"], document["intervals"], wider["intervals"], strict=True
    ):
        z, share = 1.6448536269514722, row["on_time"]
        spread = z * row["on_time_se"] / (share * (1.0 - share))  # in log-odds
        assert 0.0 < spread < z
        low, high = (
            1.0 / (1.0 + (1.0 - share) / share * math.exp(side)) for side in (spread, -spread)
        )
        assert own["low"] == pytest.approx(low, abs=1e-9)
        assert own["high"] == pytest.approx(high, abs=1e-9)
        half = math.hypot(high - share, z * 0.02)
        assert wide["high"] == pytest.approx(min(share + half, 1.0), abs=1e-9)
    assert result(capsys, "predict", path, "--interval", "1")[0] == 2


def test_intervals_cover_the_error_of_each_row(tmp_path, capsys):
    path = tmp_path / "plain.yaml"
    path.write_text(SYSTEM)
    asked = ("predict", path, "--interval", "0.9", "--json")
    code, text, told = result(capsys, *asked, "--model", "mm1")  # whose errors are not measured
    assert code == 0
    assert "less precise than asked" in " ".join(told.split())
    document = json.loads(text)
    for row, own in zip(document["subscribers"], document["intervals"], strict=True):
        assert own["model_error"] == row["error"] == max(row["on_time"], 1 - row["on_time"])
    document = json.loads(result(capsys, *asked, "--by", "simulation")[1])
    assert {row["model_error"] for row in document["intervals"]} == {0.0}
    assert all(row["low"] < row["on_time"] < row["high"] for row in document["intervals"])


def test_predict_says_how_sure_each_row_is_and_by_whom(system, capsys, tmp_path):
    asked = ("predict", system, "--seconds", 20)
    rows = json.loads(result(capsys, *asked, "--by", "simulation", "--json")[1])["subscribers"]
    assert all(row["by"] == "simulation" and 0 < row["error"] <= 0.005 for row in rows)
    code, out, _ = result(capsys, *asked, "--by", "simulation", "--within", "20% of misses")
    assert code == 0
    assert {"error", "by", "why"} <= set(out.split())
    finer = json.loads(
        result(capsys, *asked, "--by", "simulation", "--within", "20% of misses", "--json")[1]
    )
    assert finer["provenance"]["promise"]["within"] == "20% of misses"
    assert all(r["error"] <= 0.2 * (1 - r["on_time"]) for r in finer["subscribers"])
    code, text, err = result(capsys, *asked, "--within", 1e-5, "--seconds", 0.1, "--json")
    document = json.loads(text)
    assert code == 0
    assert all(
        row["why"].startswith("less precise than asked: ") for row in document["subscribers"]
    )
    (remark,) = [each for each in document["remarks"] if each["kind"] == "not held"]
    assert set(remark["where"]) == {"near", "far"}
    assert remark["sentence"] in " ".join(err.split())
    for wrong in (("--within", "some"), ("--by", "magic"), ("--within", "0")):
        assert result(capsys, "predict", system, *wrong)[0] == 2


def test_what_theory_lacks_is_simulated_and_exits_with_0(tmp_path, capsys):
    path = tmp_path / "bounded.yaml"
    path.write_text(SYSTEM.replace("l: 3ms}", "l: 3ms}, buffer: 9"))
    code, text, _ = result(capsys, "predict", path, "--json")
    assert code == 0
    whys = {row["why"] for row in json.loads(text)["subscribers"]}
    assert whys == {"theory does not handle bounded buffers"}
    assert result(capsys, "predict", path, "--by", "theory")[0] == 3
    assert result(capsys, "whatif", path, "rate all x0.5")[0] == 0
    assert result(capsys, "explain", path, "--no-remedies")[0] == 0
    assert result(capsys, "plan", "targets", path, "--target", "0.5")[0] == 0


def test_predict_from_contents_believed_to_be_skewed(tmp_path, capsys):
    """On-time shares are weighted by 0.2 and 0.8, or by their squares 1/17 and 16/17."""
    path = tmp_path / "system.yaml"
    content = "[{p: 0.2, event: {x: 1}, lifetime: 1ms}, {p: 0.8, event: {x: 1}}]"
    path.write_text(SYSTEM.replace("{event: {x: 1}}", content))

    def near(alpha):
        asked = ("predict", path, "--json", "--by", "theory")
        printed = result(capsys, *asked, "--contents-skew", alpha)[1]
        return json.loads(printed)["subscribers"][0]["on_time"]

    long_lived = near(60)
    short_lived = 2.0 * near(0) - long_lived
    assert short_lived < 0.5 < long_lived
    assert near(1) == pytest.approx(0.2 * short_lived + 0.8 * long_lived, abs=1e-9)
    assert near(2) == pytest.approx((short_lived + 16.0 * long_lived) / 17.0, abs=1e-9)
    code, _, err = result(capsys, "predict", path, "--contents-skew", -1)
    assert code == 2
    assert "alpha is -1" in err


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
        ["reproduce", "content-timeliness", "--where-it-holds", "--load", "high"],
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


def test_a_recorded_run_that_finds_no_room_can_be_repeated(system, capsys, tmp_path, monkeypatch):
    def full(*_):
        raise InvalidInputError("the outcome: cannot be written")

    asked = ("simulate", system, "--duration", "1s", "--traces", tmp_path / "traces")
    asked = (*asked, "-o", tmp_path / "outcome.json")
    with monkeypatch.context() as patch:
        patch.setattr("tidings.model.outcome_files.save_outcome", full)
        assert result(capsys, *asked)[0] == 2
    assert not (tmp_path / "traces").exists()
    assert result(capsys, *asked)[0] == 0


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
    assert "--traces records a single run; leave" in said
    assert all(option in said for option in options if str(option).startswith("--"))
    assert not (tmp_path / "traces").exists()


def test_a_cap_without_a_precision_is_refused(system, capsys):
    code, _, err = result(capsys, "simulate", system, "--max-replications", 20)
    assert code == 2
    assert "only limits --precision; give --precision too" in " ".join(
        err.replace("│", " ").split()
    )


def test_recording_tells_how_far_it_is(system, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("tidings.simulation.recording.ROWS_AT_ONCE", 500)
    told = []

    @contextlib.contextmanager
    def progress(_):
        yield told.append

    monkeypatch.setattr(console, "progress", progress)
    code, _, _ = result(capsys, "simulate", system, "--traces", tmp_path / "t", "--events", 5_000)
    assert code == 0
    shares = [int(text.split()[1].rstrip("%")) for text in told if text.startswith("recording,")]
    assert len(set(shares)) > 5
    assert shares == sorted(shares)
    assert shares[-1] == 100


def test_outcomes_of_different_systems_and_subscribers_are_told(system, capsys, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text(SYSTEM.replace("near:", "nigh:"))
    a, b, page = (tmp_path / name for name in ("a.json", "b.json", "page.html"))
    result(capsys, "predict", system, "-o", a)
    result(capsys, "simulate", other, "-o", b, "--events", 500, "--replications", 2)
    code, out, err = result(capsys, "validate", a, b, "--json")
    assert code == 1  # a subscriber is missing
    warnings = json.loads(out)["warnings"]
    assert "different systems" in warnings[0]
    assert warnings[1:] == [
        "subscribers of the predicted outcome that are missing from the simulated one: near",
        "subscribers of the simulated outcome that are missing from the predicted one: nigh",
    ]
    assert all(text.split(":")[0] in err for text in warnings)
    code, out, err = result(capsys, "report", system, a, b, "--to", page, "--json")
    assert code == 0
    assert json.loads(out)["page"] == str(page)
    assert "the system given" in err
    assert "different systems" in page.read_text()
    assert result(capsys, "validate", a, a, "--json")[0] == 0
    assert json.loads(result(capsys, "validate", a, a, "--json")[1])["warnings"] == []


def test_the_command_simulates_with_the_defaults_of_the_library(system, capsys, monkeypatch):
    asked = {}

    def stop(_, **options):
        asked.update(options)
        raise TidingsError("enough")

    monkeypatch.setattr("tidings.simulation.run.simulate", stop)
    result(capsys, "simulate", system)
    usual = SimulationOptions()
    assert asked["max_replications"] == usual.max_replications
    assert {key: getattr(usual, key) for key in asked if key != "progress"} == {
        key: value for key, value in asked.items() if key != "progress"
    }


@pytest.mark.parametrize(
    ("command", "work"),
    [
        (["simulate", "SYSTEM", "-o", "PLACE.json"], "simulation.run.simulate"),
        (["simulate", "SYSTEM", "-o", "PLACE"], "simulation.run.simulate"),
        (["simulate", "SYSTEM", "--traces", "PLACE"], "simulation.recording.record"),
        (
            ["report", "SYSTEM", "nowhere.json", "--to", "PLACE.html"],
            "model.outcome_files.load_outcome",
        ),
        (["demo", "--to", "PLACE"], "traces.session.spark_session"),
    ],
)
def test_a_place_that_cannot_be_written_is_told_before_the_work(
    command, work, system, capsys, tmp_path, monkeypatch
):
    (tmp_path / "file").touch()
    monkeypatch.setattr(f"tidings.{work}", lambda *_, **__: pytest.fail("the work began"))
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


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--to", "fitted.txt"], "a system goes to a .yaml file or a folder"),
        (["--to", "."], "exists already"),
        (["--measured", "measured.csv"], "an outcome goes to a .json file or a folder"),
        (["--settle", "-1s"], "'-1s' is not a time of 0 or more"),
        (["--settle", "soon"], "'soon' is not a time"),
    ],
)
def test_what_characterise_cannot_write_or_read_is_told_before_spark(
    options, says, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("tidings.cli.spark.started", lambda *_, **__: pytest.fail("Spark began"))
    (tmp_path / "traces").mkdir()
    words = [str(tmp_path / each) if "." in each[:9] else each for each in options]
    code, _, err = result(capsys, "characterise", tmp_path / "traces", *words)
    assert code == 2
    assert says in " ".join(err.replace("│", " ").split())
    assert {each.name for each in tmp_path.iterdir()} == {"traces"}


@pytest.mark.spark
def test_traces_recorded_and_characterised_give_the_system_back(
    system, spark, capsys, tmp_path, monkeypatch
):
    # The session is shared by all tests, so the command's own must not stop it.
    shared = contextlib.nullcontext(spark)
    monkeypatch.setattr("tidings.cli.spark.started", lambda *_, **__: shared)
    traces, fitted, measured = (tmp_path / n for n in ("traces", "fitted.yaml", "measured.json"))
    assert result(capsys, "simulate", system, "--traces", traces, "--events", 20_000)[0] == 0
    options = ("--to", fitted, "--measured", measured, "--settle", "20s", "--limit", 3, "--json")
    code, out, _ = result(capsys, "characterise", traces, *options)
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
    outcome = load_outcome(measured)
    assert outcome.provenance["settle_s"] == 20.0
    # Of about 200 s recorded, a tenth is left out; both subscribers want all the rest.
    at_ns = pd.read_parquet(traces / "publications")["published_ns"]
    until_ns = json.loads((traces / "traces.json").read_text())["until_ns"] - 20 * 10**9
    assert outcome.subscribers["events"].tolist() == [(at_ns < until_ns).sum()] * 2
    assert 0.88 < (at_ns < until_ns).mean() < 0.92


def test_names_are_shown_as_they_are_whatever_they_look_like(capsys, tmp_path):
    odd = SYSTEM.replace("far: {at: east", "far: {at: 'a:x:b [red]c[/] \\[d]'")
    (tmp_path / "system.yaml").write_text(odd)
    code, _, err = result(capsys, "check", tmp_path / "system.yaml")
    assert code == 2
    assert r"got 'a:x:b [red]c[/] \\[d]'" in err
    folder = tmp_path / "my :x: [bold]systems"
    folder.mkdir()
    described = SYSTEM + 'description: "[red]all[/] :x:"\n'
    (folder / "s.yaml").write_text(described)
    code, out, err = result(capsys, "check", folder / "s.yaml")
    assert code == 0
    assert "my :x: [bold]systems" in out.replace("\n", "")
    assert "[red]all[/] :x:" in out
    code, _, err = result(capsys, "predict", folder / "s.yaml", "--output", folder / "p.json")
    assert code == 0
    assert "my :x: [bold]systems/p.json" in err


def test_a_schema_is_of_no_single_system(capsys, system):
    code, _, err = result(capsys, "check", "--schema", system)
    assert code == 2
    assert "leave" in err


def test_the_cap_holds_for_the_first_replications_too(capsys, system):
    few = ("--events", 200, "--precision", 0.001, "--max-replications", 4)
    code, out, err = result(capsys, "simulate", system, *few, "--json")
    assert code == 0
    assert json.loads(out)["provenance"]["replications"] == 4
    assert "the allowed replications ran out" in " ".join(err.split())


def test_the_tables_of_a_result_include_links(capsys, system):
    code, out, _ = result(capsys, "predict", system)
    assert code == 0
    assert "Links, predicted" in out
    row = out.split("Links, predicted")[1]
    assert "10.0 %" in row  # what the one link loses


def test_all_missing_trace_tables_are_told_before_spark_starts(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("tidings.cli.spark.started", None)  # whoever starts it fails
    (tmp_path / "publications.csv").write_text("event\n")
    code, _, err = result(capsys, "characterise", tmp_path)
    assert code == 2
    assert "has no tables hops, deliveries, subscriptions;" in " ".join(err.split())


@pytest.mark.parametrize(
    ("words", "meant"), [(["predit", "x"], "'predict'"), (["plan", "targts", "x"], "'targets'")]
)
def test_a_misspelt_command_is_asked_after(capsys, words, meant):
    assert run(words) == 2
    assert f"Did you mean {meant}?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "after", "hint"),
    [
        ("lifetime: 30ms", "lifetime: 10m", "did you mean 10min or 10ms?"),
        ("reliability: 0.9", "reliability: 99.5%", "did you mean 0.995?"),
        ("every: {exponential: 10ms}", "rate: 80/s", "did you mean every: {rate: 80/s}?"),
    ],
)
def test_a_number_as_people_write_it_gets_the_hint_that_is_meant(
    tmp_path, capsys, before, after, hint
):
    path = tmp_path / "system.yaml"
    path.write_text(SYSTEM.replace(before, after))
    assert run(["check", str(path)]) == 2
    assert hint in capsys.readouterr().err


def test_a_reader_that_has_had_enough_is_no_failure(system):
    command = [str(Path(sys.executable).with_name("tidings")), "predict", str(system)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    _, said = process.communicate()
    assert process.returncode == 0, said


@pytest.mark.parametrize("arguments", [["check", "SYSTEM", "--json"], ["check", "SYSTEM"]])
def test_output_that_cannot_be_written_is_told_plainly(system, arguments):
    words = [str(system) if word == "SYSTEM" else word for word in arguments]
    command = [str(Path(sys.executable).with_name("tidings")), *words]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert ended.stderr == "error: the output: cannot be written: no space left on device\n"
    assert ended.returncode == 2


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("99.5%", "nowhere.yaml: got no such file"),
        ("0.995", "nowhere.yaml: got no such file"),
        ("99.5", "'--target': '99.5' is not a share from 0 to 1, such as 0.995 or 99.5%"),
    ],
)
def test_a_share_may_be_a_percentage(written, said, capsys):
    assert run(["gate", "nowhere.yaml", "--target", written]) == 2
    assert said in capsys.readouterr().err


def test_settings_of_spark_are_handed_to_it(monkeypatch, tmp_path, capsys):
    started = {}

    def none(master, **options):
        started.update(options)
        raise EngineError("no Spark here")

    monkeypatch.setattr("tidings.traces.session.spark_session", none)
    setting = "spark.sql.shuffle.partitions=9"
    (tmp_path / "traces").mkdir()
    for table in ("publications", "hops", "deliveries", "subscriptions"):
        (tmp_path / "traces" / f"{table}.csv").write_text("event\n")
    assert run(["--spark-conf", setting, "characterise", str(tmp_path / "traces")]) == 5
    assert started["settings"] == {"spark.sql.shuffle.partitions": "9"}
    assert run(["--spark-conf", "partitions=9", "characterise", str(tmp_path / "traces")]) == 2
    assert "wants KEY=VALUE with a key that begins with 'spark.'" in capsys.readouterr().err
