"""A state as metrics: read back by the library's own parser, bounded, and used by our files."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import socket
import subprocess
import time
from dataclasses import replace

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tidings.serving.metrics import metrics_text
from tidings.serving.monitoring import FILES, monitoring_file, write_files
from tidings.watching.state import EVERYBODY, Health
from watched_folders import ALARM, made_state

NAMES = [f"client {index}" for index in range(5)]
HOSTILE = ['"} 1\n# EOF\nevil 1', "back\\slash", "ünï\u202ecode", "\ud800", "\ud801", "x" * 5000]


def samples(state, most_labels=200):
    """The value of every sample, by its name and labels."""
    text = metrics_text(state, most_labels).decode("utf-8")
    families = list(text_string_to_metric_families(text))
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def named(values, name):
    return {key[1:]: value for key, value in values.items() if key[0] == name}


def test_shares_and_intervals_of_everybody_and_of_each():
    values = samples(made_state(NAMES))
    whole = [("source", "measured"), ("subscriber", EVERYBODY)]
    assert values["tidings_on_time_ratio", *whole] == 0.97
    assert values["tidings_on_time_low_ratio", *whole] == pytest.approx(0.96)
    assert values["tidings_on_time_high_ratio", *whole] == pytest.approx(0.98)
    first = ("subscriber", "client 0")
    assert values["tidings_on_time_ratio", ("source", "promised"), first] == 0.99
    assert values["tidings_on_time_ratio", ("source", "predicted"), first] == 0.993
    assert ("tidings_on_time_low_ratio", ("source", "promised"), first) not in values
    assert values["tidings_burn_rate", first, ("window", "5m")] == pytest.approx(10.0)
    assert values["tidings_delay_seconds", ("quantile", "0.99"), first] == 0.9


def test_backlogs_alarms_and_the_health_of_the_stream():
    ended = replace(ALARM, kind="changed", until_ns=5)
    health = Health(
        batch=7,
        batch_s=1.5,
        trigger_s=10.0,
        late_rows=3,
        set_aside_rows=4,
        refused_files=5,
        problem="broken",
    )
    values = samples(made_state(NAMES, alarms=(ALARM, ended), health=health))
    assert values["tidings_backlog_events", ("place", "south")] == 120
    assert values[("tidings_backlog_all_events",)] == 123
    assert named(values, "tidings_alarms") == {
        (("kind", "target"),): 1,
        (("kind", "changed"),): 0,
        (("kind", "backlog"),): 0,
    }
    assert values[("tidings_late_rows_total",)] == 3
    assert values[("tidings_set_aside_rows_total",)] == 4
    assert values[("tidings_refused_files_total",)] == 5
    assert values[("tidings_batch_failed",)] == 1
    assert values[("tidings_subscribers_below_promise",)] == 3


def test_the_number_of_labels_is_bounded():
    state = made_state([f"client {index}" for index in range(1000)])
    state = replace(state, backlogs={f"queue {index}": index for index in range(1000)})
    values = samples(state, most_labels=7)
    labelled = {dict(key[1:]).get("subscriber") for key in values} - {None}
    assert labelled == {EVERYBODY, *(f"client {index}" for index in range(7))}  # the worst
    longest = {dict(key)["place"] for key in named(values, "tidings_backlog_events")}
    assert longest == {f"queue {index}" for index in range(993, 1000)}
    assert values[("tidings_subscribers",)] == 1000


def test_hostile_names_stay_names():
    values = samples(made_state(HOSTILE))
    wanted = {dict(key)["subscriber"] for key in named(values, "tidings_wanted_events")}
    assert wanted == {EVERYBODY, *HOSTILE[:3], "?", "x" * 5000}
    assert not any(key[0] == "evil" for key in values)


def test_without_a_state_only_that_is_told():
    assert samples(None) == {("tidings_up",): 0.0}


def test_what_is_not_known_has_no_sample():
    nothing = replace(made_state(["a"]), backlogs={})
    bare = replace(
        nothing,
        standings=tuple(
            replace(each, measured=None, promised=None, burn_rates=None, p99_s=None)
            for each in nothing.standings
        ),
    )
    values = samples(bare)
    assert {dict(key)["source"] for key in named(values, "tidings_on_time_ratio")} == {"predicted"}
    assert {dict(key)["quantile"] for key in named(values, "tidings_delay_seconds")} == {"0.5"}


@pytest.mark.parametrize("name", FILES)
def test_dashboard_and_rules_use_metrics_that_are_there(name):
    text = monitoring_file(name)
    used = set(re.findall(r"\btidings_[a-z_]+\b", text))
    assert len(used) >= 9
    health = Health(fitted_ns=1)
    assert used <= {key[0] for key in samples(made_state(NAMES, health=health))}


def test_the_files_are_what_they_should_be():
    dashboard = json.loads(monitoring_file("tidings-dashboard.json"))
    places = [panel["id"] for panel in dashboard["panels"]]
    assert len(places) == len(set(places)) > 10
    (group,) = yaml.safe_load(monitoring_file("tidings-alerts.yaml"))["groups"]
    assert all(rule["annotations"]["summary"] for rule in group["rules"])


def test_prometheus_takes_the_rules(tmp_path):
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("NO PROMTOOL, so the alert rules were not checked by Prometheus itself")
    for name in FILES:
        (tmp_path / name).write_text(monitoring_file(name))
    done = subprocess.run(
        [program, "check", "rules", str(tmp_path / "tidings-alerts.yaml")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rules = monitoring_file("tidings-alerts.yaml").count("- alert: ")
    assert f"{rules} rules found" in done.stdout
    text = metrics_text(made_state(NAMES), 200)
    told = subprocess.run(
        [program, "check", "metrics"],
        input=text.replace(b"# EOF\n", b""),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert b"error while linting" not in told.stderr, told.stderr


@pytest.mark.slow
def test_a_real_prometheus_reads_the_metrics_and_raises_the_alerts(served, folder, tmp_path):
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("NO PROMETHEUS, so nothing but our own tests has read the metrics")
    asker = served(folder, token="a-token-of-its-own")
    place = tmp_path / "prometheus"
    place.mkdir()
    write_files(place)
    rules = (place / FILES[1]).read_text().replace("for: 5m", "for: 0s")
    (place / FILES[1]).write_text(rules)
    document = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [FILES[1]],
        "scrape_configs": [
            {
                "job_name": "tidings",
                "authorization": {"credentials": "a-token-of-its-own"},
                "static_configs": [{"targets": [f"127.0.0.1:{asker.served.port}"]}],
            }
        ],
    }
    (place / "prometheus.yml").write_text(yaml.safe_dump(document))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [program, "--config.file=prometheus.yml", "--storage.tsdb.path=data"]
    command.append(f"--web.listen-address=127.0.0.1:{port}")
    with subprocess.Popen(command, cwd=place, stderr=subprocess.DEVNULL) as process:
        try:
            wanted = {"TidingsBelowPromise", "TidingsTargetMissed"}
            alerts = _until(lambda: _firing(port), lambda firing: wanted <= {e[0] for e in firing})
        finally:
            process.kill()
    assert ("TidingsBelowPromise", "client 0") in alerts
    assert ("TidingsBelowPromise", "client 4") not in alerts
    assert {name for name, _ in alerts} == wanted


def _firing(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/api/v1/alerts")
        alerts = json.load(connection.getresponse())["data"]["alerts"]
    except (OSError, ValueError):  # not up yet
        return set()
    finally:
        connection.close()
    return {
        (each["labels"]["alertname"], each["labels"].get("subscriber"))
        for each in alerts
        if each["state"] == "firing"
    }


def _until(look, holds, patience_s=60.0):
    end = time.monotonic() + patience_s
    while not holds(seen := look()) and time.monotonic() < end:
        time.sleep(0.2)
    return seen
