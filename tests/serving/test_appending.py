"""A folder that lines are appended to: whole files only, nothing that was promised is lost."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading

import pytest

from tidings.serving.appending import Appending
from tidings.traces.readers.lines import expand

PATIENCE_S = 60.0


def lines_of(folder):
    """All lines that a reader of the folder sees."""
    return [line for path in sorted(folder.glob("*.jsonl")) for line in path.open()]


def test_a_file_is_seen_when_it_is_whole(tmp_path):
    appending = Appending(tmp_path, most_s=1000.0)
    appending.append(b'{"n":1}\n')
    appending.append(b'{"n":2}\n')
    appending.look()  # not old enough
    (draft,) = tmp_path.iterdir()
    assert draft.name.startswith(".")
    assert draft.read_bytes() == b'{"n":1}\n{"n":2}\n'
    appending.close()
    (place,) = tmp_path.iterdir()
    assert expand([str(tmp_path)]) == [str(place)]
    assert lines_of(tmp_path) == ['{"n":1}\n', '{"n":2}\n']
    assert appending.files == 1


def test_lines_are_on_the_disk_before_they_are_said_to_be(tmp_path, monkeypatch):
    appending = Appending(tmp_path, most_s=1000.0)
    appending.append(b"first\n")
    kept = []
    monkeypatch.setattr(os, "fsync", lambda handle: kept.append(os.fstat(handle).st_size))
    appending.append(b"second\n")
    assert kept == [len(b"first\nsecond\n")]


def test_files_are_turned_by_age_and_by_size(tmp_path):
    appending = Appending(tmp_path, most_s=0.0, most_bytes=20)
    appending.append(b"0123456789\n")
    appending.look()
    appending.append(b"0123456789\n")
    appending.append(b"0123456789\n")  # large enough
    assert [os.path.getsize(path) for path in sorted(tmp_path.glob("*.jsonl"))] == [11, 22]
    appending.close()
    assert appending.files == 2


def test_nothing_appended_leaves_nothing(tmp_path):
    Appending(tmp_path, most_s=1.0).close()
    assert list(tmp_path.iterdir()) == []


def test_threads_append_whole_lines(tmp_path):
    appending = Appending(tmp_path, most_s=1000.0, most_bytes=500)

    def work(name):
        for number in range(50):
            appending.append(f"{name} {number}\n".encode() * 2)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for each in threads:
        each.start()
    for each in threads:
        each.join(PATIENCE_S)
    appending.close()
    assert sorted(lines_of(tmp_path)) == sorted(
        f"{name} {number}\n" for name in "abcd" for number in range(50) for _ in range(2)
    )
    assert len(list(tmp_path.iterdir())) == appending.files > 1


def test_a_write_that_fails_halfway_leaves_no_half_line(tmp_path):
    appending = Appending(tmp_path, most_s=1000.0)
    appending.append(b"first\n")
    stream = appending._part._stream

    class Full:
        """A disk that takes nine more bytes."""

        def write(self, data):
            stream.write(bytes(data[:9]))
            raise OSError(errno.ENOSPC, "No space left on device")

        def __getattr__(self, name):
            return getattr(stream, name)

    appending._part._stream = Full()
    with pytest.raises(OSError, match="No space"):
        appending.append(b"second, and longer\n")
    appending._part._stream = stream
    appending.append(b"third\n")
    appending.close()
    assert lines_of(tmp_path) == ["first\n", "third\n"]


KILLED = """
import os, sys
from pathlib import Path
from tidings.serving.appending import Appending
appending = Appending(Path(sys.argv[1]), most_s=1000.0)
appending.append(b"kept\\n" * 20000)
appending._part._stream.write(b"half a li")
os.kill(os.getpid(), 9)
"""


def test_what_a_killed_process_left_is_completed_less_its_half_line(tmp_path):
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    subprocess.run(command, timeout=PATIENCE_S, check=False)
    assert lines_of(tmp_path) == []
    appending = Appending(tmp_path, most_s=1.0)
    assert appending.recovered == 1
    assert lines_of(tmp_path) == ["kept\n"] * 20000
    assert len(list(tmp_path.iterdir())) == 1


def test_what_another_process_is_writing_is_left_alone(tmp_path):
    first = Appending(tmp_path, most_s=1000.0)
    first.append(b"mine\n")
    second = Appending(tmp_path, most_s=1000.0)
    assert second.recovered == 0
    assert lines_of(tmp_path) == []
    first.close()
    assert lines_of(tmp_path) == ["mine\n"]
