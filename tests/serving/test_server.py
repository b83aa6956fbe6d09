"""The server as others meet it: what it answers, whom it refuses, and that it ends."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from starlette.applications import Starlette

from tidings.cli.commands import run
from tidings.errors import InvalidInputError
from tidings.model.writing import write_file
from tidings.serving.listening import listen
from tidings.serving.live import ServeSettings
from tidings.serving.monitoring import FILES
from tidings.serving.server import serve
from watched_folders import made_state, write_state, write_system

PATIENCE_S = 60.0
HOSTILE = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"'&lt;",
    "\ud800",
]
TOKEN = "a-token-of-its-own"


def events(asker, number):
    """The states that a server tells, up to so many; it may take PATIENCE_S to tell them."""
    end = time.monotonic() + PATIENCE_S
    connection = http.client.HTTPConnection("127.0.0.1", asker.served.port, timeout=PATIENCE_S)
    connection.request("GET", "/events")
    answer = connection.getresponse()
    assert answer.getheader("content-type").startswith("text/event-stream")
    try:
        while number:
            line = answer.readline()
            assert line, "the server has ended"
            assert time.monotonic() < end, "nothing but pings"
            if line.startswith(b"data: {"):
                number -= 1
                yield json.loads(line[6:])
    finally:
        connection.close()


def test_the_page_bears_its_script_and_a_policy_that_allows_no_other(asker):
    answer, text = asker("/")
    assert answer.status == 200
    policy = answer.getheader("content-security-policy")
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    for rule in ("default-src 'none'", "connect-src 'self'", "base-uri 'none'"):
        assert f"{rule};" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-eval" not in policy
    assert not re.search(r'(src|href)="?(https?:)?//', text)
    assert "3 of 5 subscribers get fewer events on time than promised." in text


@pytest.mark.parametrize("path", ["/", "/metrics", "/past", "/subscribers", "/save", "/nowhere"])
def test_every_answer_keeps_browsers_careful(asker, path):
    answer, _ = asker(path)
    assert answer.status == (404 if path == "/nowhere" else 200)
    assert answer.getheader("x-content-type-options") == "nosniff"
    assert answer.getheader("referrer-policy") == "no-referrer"
    assert answer.getheader("x-frame-options") == "DENY"
    assert answer.getheader("cache-control") == "no-store"
    assert "default-src 'none'" in answer.getheader("content-security-policy")
    assert answer.getheader("access-control-allow-origin") is None
    assert answer.getheader("server") is None


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_it_is_read_only(asker, method):
    answer, _ = asker("/", method)
    assert answer.status == 405
    assert answer.getheader("allow") == "GET, HEAD"


def test_a_look_at_the_head_of_the_events_ends(asker):
    answer, text = asker("/events", "HEAD")
    assert (answer.status, text) == (200, "")


def test_a_new_state_is_told_to_who_listens(served, folder):
    asker = served(folder)
    stream = events(asker, 2)
    assert next(stream)["total"] == 5
    write_state(folder, made_state(["only one"]))
    assert next(stream)["total"] == 1


def test_all_who_listen_are_told(served, folder):
    streams = [events(asker, 2) for asker in [served(folder)] for _ in range(5)]
    assert [next(each)["total"] for each in streams] == [5] * 5
    write_state(folder, made_state(["one", "two"]))
    assert [next(each)["total"] for each in streams] == [2] * 5


def test_the_server_ends_while_pages_are_open(folder):
    with serve(ServeSettings(folder=folder), port=0) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
        connection.request("GET", "/events")
        answer = connection.getresponse()
        answer.readline()
        threads = threading.active_count()
        ending = time.monotonic()
    assert answer.read().count(b"data: {") == 1  # to its end
    connection.close()
    assert threading.active_count() < threads
    assert time.monotonic() - ending < 15.0  # long before uvicorn would cut streams off


def test_without_a_state_the_page_says_so_and_waits_for_one(served, tmp_path):
    asker = served(tmp_path)
    assert "Nothing is known yet" in asker("/")[1]
    stream = events(asker, 2)
    assert next(stream)["known"] is False
    write_state(tmp_path, made_state(["a"]))
    assert next(stream)["known"] is True


def test_a_state_that_cannot_be_read_is_said(served, folder):
    asker = served(folder)
    stream = events(asker, 2)
    next(stream)
    (folder / "now.json").write_text("{")
    told = next(stream)
    assert told["warnings"][0].startswith("now.json cannot be read")
    assert told["total"] == 5


def test_a_state_that_is_none_does_not_end_the_pages(served, folder):
    stream = events(served(folder), 3)
    next(stream)
    strange = json.loads((folder / "now.json").read_text())
    strange["standings"][1]["measured"]["share"] = "much"
    write_file(folder / "now.json", json.dumps(strange).encode())  # whole, as states are
    told = next(stream)
    assert told["warnings"][0].startswith("now.json has what no state has")
    assert told["total"] == 5
    write_state(folder, made_state(["a"]))
    told = next(stream)
    assert (told["warnings"], told["total"]) == ([], 1)


# ---- many, and by what names ---------------------------------------------------------------


def test_of_thousands_the_worst_are_sent_and_others_are_found(served, tmp_path):
    names = [f"client {index}" for index in range(2_998)]
    write_state(tmp_path, made_state([*names, "Last of All", HOSTILE[0]]))
    asker = served(tmp_path)
    told = next(events(asker, 1))
    assert (told["total"], len(told["rows"])) == (3_000, 300)
    assert len(json.dumps(told)) < 200_000
    assert len(asker("/")[1]) < 500_000
    (found,) = json.loads(asker("/subscribers?find=last+all")[1])["rows"]
    assert (found["name"], found["rank"]) == ("Last of All", 2_999)
    assert len(json.loads(asker("/subscribers?find=client")[1])["rows"]) == 100
    row = json.loads(asker("/subscribers?name=%3C/script%3E%3Cscript%3Ealert(1)%3C/script%3E")[1])
    assert row["row"]["rank"] == 3_000
    assert json.loads(asker("/subscribers?name=nobody")[1]) == {"row": None}
    assert asker("/save")[1].count('"rank":') == 3_000 + 1  # and everybody


@pytest.mark.parametrize("path", ["/", "/save"])
def test_hostile_names_are_text(served, tmp_path, path):
    write_state(tmp_path, made_state(HOSTILE, system=HOSTILE[0]))
    text = served(tmp_path)(path)[1]
    assert "alert(1)" in text
    assert "<script>alert" not in text
    assert "<img" not in text


def test_the_map_is_of_the_system_that_the_state_names(served, tmp_path):
    names = [f"client {index}" for index in range(3)]
    path = write_system(tmp_path, names)
    write_state(tmp_path, made_state(names, system_file=path))
    drawn = next(events(served(tmp_path), 1))["map"]
    brokers = {each["name"]: each for each in drawn["brokers"]}
    assert brokers["south"]["on_time"] == pytest.approx((0.9 + 0.93 + 0.96) / 3)
    assert brokers["south"]["alarmed"]
    assert brokers["south"]["waiting"] == 120
    assert brokers["north"]["on_time"] is None
    assert not brokers["north"]["alarmed"]
    assert len(drawn["links"]) == 2


def test_subscribers_are_found_by_their_broker(served, tmp_path):
    path = write_system(tmp_path, ["a", "b"])
    write_state(tmp_path, made_state(["a", "b", "elsewhere"], system_file=path))
    rows = json.loads(served(tmp_path)("/subscribers?find=SOUTH")[1])["rows"]
    assert [(each["name"], each["broker"]) for each in rows[:2]] == [("a", "south"), ("b", "south")]
    assert [each["name"] for each in rows[2:]] == ["elsewhere"]  # by its cause


def test_without_a_system_to_draw_there_is_no_map_and_it_says_why(served, tmp_path):
    write_state(tmp_path, made_state(["a"], system_file="gone.yaml"))
    told = next(events(served(tmp_path), 1))
    assert told["map"] == {}
    assert "gone.yaml" in told["map_problem"]


def test_the_past_of_one_subscriber(asker):
    series = json.loads(asker("/past?name=client+1")[1])
    assert series["measured"] == [0.93]


# ---- who may ask ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:80", "localhost.evil", ""]
)
def test_a_name_that_only_resolves_to_loopback_is_refused(asker, host):
    answer, text = asker("/", Host=host)
    assert answer.status == 403
    assert "client" not in text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8765", "127.0.0.1:1", "[::1]:8765"])
def test_loopback_has_these_names(asker, host):
    assert asker("/", Host=host)[0].status == 200


@pytest.mark.parametrize("path", ["/", "/events", "/metrics", "/subscribers", "/past", "/save"])
def test_with_a_token_nothing_is_told_without_it(locked, path):
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": "tidings=wrong"}):
        answer, text = locked(path, **headers)
        assert answer.status == 401
        assert answer.getheader("www-authenticate") == "Bearer"
        assert "client" not in text
    for wrong in ("wrong", TOKEN[:-1], TOKEN + "x", "%FF"):
        assert locked(f"{path}?token={wrong}")[0].status == 401


def test_a_token_opens_the_door(locked):
    assert locked("/metrics", Authorization=f"Bearer {TOKEN}")[0].status == 200
    assert locked.served.door == f"{locked.url}?token={TOKEN}"
    answer, _ = locked(f"/?token={TOKEN}")
    assert (answer.status, answer.getheader("location")) == (303, "./")
    cookie = answer.getheader("set-cookie")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert locked("/", Cookie=cookie.partition(";")[0])[0].status == 200
    assert locked("/", Host="proxy.example", Cookie=cookie.partition(";")[0])[0].status == 200
    for others in ('theme={"dark":1}', "a[b]=1", "="):  # of whoever else serves this host
        both = f"{others}; {cookie.partition(';')[0]}"
        assert locked("/", Cookie=both)[0].status == 200


def test_anywhere_but_on_loopback_a_token_is_needed(folder):
    with (
        pytest.raises(InvalidInputError, match=r"0\.0\.0\.0 needs a token"),
        serve(ServeSettings(folder=folder), host="0.0.0.0", port=0),
    ):
        pass


@pytest.mark.parametrize("token", ["short", "with a space in its middle", "ünïcode-is-not-sent"])
def test_a_token_that_can_be_guessed_or_not_sent_is_refused(folder, token):
    with (
        pytest.raises(InvalidInputError, match="wants 16 or more"),
        serve(ServeSettings(folder=folder, token=token), port=0),
    ):
        pass


# ---- the command ---------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_says_where_it_listens_and_ends_at_ctrl_c(folder):
    process = subprocess.Popen(
        [sys.executable, "-c", "from tidings.cli.main import main; main()", "serve", str(folder),
         "--port", "0", "--host", "0.0.0.0", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": ""},
    )  # fmt: skip
    try:
        lines = iter(process.stdout.readline, "")
        told = json.loads("".join(_until(lines, "}\n")))
        assert len(told["token"]) >= 32  # made up
        connection = http.client.HTTPConnection("127.0.0.1", told["port"], timeout=PATIENCE_S)
        connection.request("GET", "/", headers={"Authorization": f"Bearer {told['token']}"})
        assert connection.getresponse().status == 200
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
        assert process.stderr.read() == "interrupted\n"
    finally:
        process.kill()
        process.communicate()


def _until(lines, last):
    for line in lines:
        yield line
        if line == last:
            return


def test_a_folder_that_is_not_there_and_a_port_that_is_taken_are_wrong_input(folder, capsys):
    assert run(["serve"]) == 2
    assert run(["serve", str(folder / "nowhere")]) == 2
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert run(["serve", str(folder), "--port", port]) == 2
    assert f"cannot listen on port {port} of 127.0.0.1" in capsys.readouterr().err


def test_dashboard_and_rules_are_written(tmp_path, capsys):
    assert run(["serve", "--write-dashboards", str(tmp_path / "new"), "--json"]) == 0
    written = json.loads(capsys.readouterr().out)["files"]
    assert written == [str(tmp_path / "new" / name) for name in FILES]
    assert all(os.path.getsize(each) > 1000 for each in written)


def test_a_wait_that_is_interrupted_still_waits_for_the_server():
    """To be interrupted while joining a thread makes Python take it for ended."""

    begun = []

    def interrupted():
        with listen(Starlette(), port=0, token="", ending=lambda: time.sleep(0.5)) as served:
            begun.append(served)
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            served.wait(PATIENCE_S)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert begun[0].ended.is_set()
