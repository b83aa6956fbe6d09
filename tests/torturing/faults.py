"""What goes wrong with a command: each fault runs one, disturbs it, and tells how it ended."""

from __future__ import annotations

import atexit
import contextlib
import functools
import mmap
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from torturing.places import Ended, Place, Running
from torturing.stepping import MEMORY, STEP
from torturing.subjects import LOCAL, Result, Subject, Words

DAY_S = 86_400.0
INPUT, ENGINE = 2, 5  # exit codes, as docs/reference/commands.md has them
_SPEECHLESS = ("OpenBLAS error: Memory", "SystemError: error return without exception set")
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One command of a subject, as it was run undisturbed."""

    words: Words
    kept: Path  # what there was before
    before: Result
    after: Result
    files: dict[str, int]  # afterwards
    seconds: float
    steps: int  # on files
    most_bytes: int  # that its results took of a disk
    most_temporary: int
    address_bytes: int  # of its first process


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A place in which one stage of a subject is about to be disturbed."""

    place: Place
    subject: Subject
    stages: tuple[Stage, ...]
    number: int  # of the stage
    heal: contextlib.ExitStack  # undoes at the end what the fault has set up

    @property
    def stage(self) -> Stage:
        """The stage that is disturbed."""
        return self.stages[self.number]

    def lay(self) -> None:
        """Put there what is there before the stage."""
        self.place.restore(self.stage.kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """What was done to a command, and how it took that."""

    when: str
    struck: bool = True  # it still ran
    ends: tuple[Ended, ...] = ()  # of commands that have to say for themselves how they fared
    may_end_with: tuple[int, ...] = (0,)
    killed: bool = False  # so that temporary files stay
    over: bool = False  # nothing has to be run again
    mend: Callable[[], None] = field(default=lambda: None)  # before it is run again


# ---- killed --------------------------------------------------------------------------------------


def killed(scene: Scene, rng: random.Random) -> Happening:
    """Kill all of its processes at a moment of its life, drawn evenly."""
    scene.lay()
    at_s = rng.uniform(0.0, 1.02 * scene.stage.seconds)
    running = scene.place.start(scene.stage.words)
    struck = running.sleep(at_s)
    running.kill()
    return Happening(when=f"after {at_s:.2f} s", struck=struck, killed=True)


def killed_at_a_file(scene: Scene, rng: random.Random) -> Happening:
    """Kill all of its processes before a step on files, drawn evenly."""
    scene.lay()
    step = rng.randint(1, max(1, scene.stage.steps))
    before = scene.place.steps()
    ended = scene.place.start(scene.stage.words, {STEP: str(step)}).wait()
    struck = scene.place.steps() - before == step and ended.code == -signal.SIGKILL
    return Happening(when=f"before step {step}", struck=struck, killed=True)


def part_killed(scene: Scene, rng: random.Random) -> Happening:
    """Kill one of the processes that a command started, from a moment on that is drawn evenly."""
    scene.lay()
    at_s = rng.uniform(0.0, 1.02 * scene.stage.seconds)
    running = scene.place.start(scene.stage.words)
    others: list[int] = []
    while running.sleep(at_s) and not others:  # from then on, as soon as there is one
        others = [each for each in scene.place.processes() if each != running.process.pid]
        at_s += 0.05
    what = "nothing"
    if others:
        victim = rng.choice(sorted(others))
        with contextlib.suppress(OSError):
            what = Path(f"/proc/{victim}/comm").read_text().strip()
            os.kill(victim, signal.SIGKILL)
    codes = (0, ENGINE)
    when = f"{what} killed after {at_s:.2f} s"
    ends = (running.wait(),)
    return Happening(when=when, struck=bool(others), ends=ends, may_end_with=codes, killed=True)


# ---- no room -------------------------------------------------------------------------------------


@functools.cache
def can_mount() -> bool:
    """Test whether a small disk can be made here: that takes rights that a user seldom has."""
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as folder:
        if not _mounted(Path(folder), 1 << 20):
            return False
        _unmount(Path(folder))
    return True


def _mounted(folder: Path, size: int) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "torture", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _unmount(folder: Path) -> None:
    subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


def _small_disk(scene: Scene, folder: Path, size: int) -> Callable[[], None]:
    """Make a folder a disk of so many bytes, until it is given room."""
    assert _mounted(folder, size)
    scene.heal.callback(_unmount, folder)
    roomy = ["mount", "-o", "remount,size=1g", str(folder)]
    return lambda: subprocess.run(roomy, check=True) and None


def disk_full(scene: Scene, rng: random.Random) -> Happening:
    """Let there be less room than its results need; without a disk to make, shorter files."""
    place, stage = scene.place, scene.stage
    share = rng.uniform(0.0, 1.0)
    if not can_mount():
        scene.lay()
        limit = max(1, round(share * stage.most_bytes / 4))
        when = f"files of {limit:,} bytes at most"
        running = place.start(stage.words, before=lambda: _limit(resource.RLIMIT_FSIZE, limit))
        return _told(scene, running, when, (0, INPUT, ENGINE))
    there = size_of_kept(stage.kept)
    size = there + max(8192, round(share * max(0, stage.most_bytes - there)))
    mend = _small_disk(scene, place.out, size)
    scene.lay()
    happening = _told(scene, place.start(stage.words), f"{size:,} bytes", (0, INPUT, ENGINE))
    return replace(happening, mend=mend)


def size_of_kept(kept: Path) -> int:
    """Find what is on a disk before a stage, in bytes."""
    from torturing.places import size_of

    return size_of(kept / "out")


def temporary_full(scene: Scene, rng: random.Random) -> Happening:
    """Let there be less room for temporary files than are needed."""
    size = max(8192, round(rng.uniform(0.0, 1.0) * scene.stage.most_temporary))
    mend = _small_disk(scene, scene.place.temporary, size)
    scene.lay()
    running = scene.place.start(scene.stage.words)
    happening = _told(scene, running, f"{size:,} bytes", (0, INPUT, ENGINE))
    return replace(happening, mend=mend)


def memory_short(scene: Scene, rng: random.Random) -> Happening:
    """Let there be less memory than is needed: of addresses, or for Java."""
    scene.lay()
    stage = scene.stage
    if scene.subject.spark:
        memory = f"{rng.randint(200, 560)}m"
        running = scene.place.start((*stage.words, "--memory", memory))
        return _told(scene, running, f"{memory} for Java", (0, ENGINE))
    room = round(0.5 * rng.random() ** 3 * stage.address_bytes)
    running = scene.place.start(stage.words, {MEMORY: str(room)})
    ended = running.wait()
    # Where there is not even room to say so, Python and compiled libraries end as they can.
    speechless = ended.code == 1 and any(each in ended.said for each in _SPEECHLESS)
    ends = () if speechless or (ended.code or 0) < 0 else (ended,)
    when = f"{room / 2**20:,.0f} MiB of addresses beside libraries"
    return Happening(when=when, struck=ended.code != 0, ends=ends, may_end_with=(0, ENGINE))


def _limit(which: int, most: int) -> None:
    resource.setrlimit(which, (most, most))


def _told(scene: Scene, running: Running, when: str, codes: tuple[int, ...]) -> Happening:
    ended = running.wait()
    return Happening(when=when, struck=ended.code != 0, ends=(ended,), may_end_with=codes)


# ---- others --------------------------------------------------------------------------------------


def two_writers(scene: Scene, rng: random.Random) -> Happening:
    """Begin two commands that write to one place, one shortly after the other."""
    numbers = scene.subject.rivals or (scene.number, scene.number)
    scene = replace(scene, number=numbers[0])
    scene.lay()
    apart_s = rng.uniform(0.0, 0.3 * scene.stage.seconds)
    first = scene.place.start(scene.stages[numbers[0]].words)
    time.sleep(apart_s)
    second = scene.place.start(scene.stages[numbers[1]].words)
    ends = (first.wait(), second.wait())
    when = f"{apart_s:.2f} s apart: {', '.join(str(each.code) for each in ends)}"
    if not any(each.code == 0 for each in ends):
        when += ", neither did its work"
    return Happening(when=when, ends=ends, may_end_with=(0, INPUT))


def old_rows(scene: Scene, rng: random.Random) -> Happening:
    """Bring rows again that were counted before."""
    again, code = rng.choice(scene.subject.again)
    scene.lay()
    for stage in scene.stages[scene.number :]:
        scene.place.run(stage.words)
    ended = scene.place.run(again)
    return Happening(when=" ".join(again[-2:]), ends=(ended,), may_end_with=(code,), over=True)


@functools.cache
def clock_library() -> Path | None:
    """Compile the clock that can be stepped; None where nothing compiles it."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    folder = tempfile.mkdtemp(prefix="torture-clock-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    library = Path(folder) / "clock.so"
    words = [
        compiler,
        "-O1",
        "-shared",
        "-fPIC",
        "-o",
        str(library),
        str(_HERE / "clock.c"),
        "-ldl",
    ]
    done = subprocess.run(words, capture_output=True, check=False)
    return library if done.returncode == 0 else None


def clock_stepped(scene: Scene, rng: random.Random) -> Happening:
    """Step the time of day of all of its processes by up to a day, at a moment drawn evenly."""
    scene.lay()
    library = clock_library()
    assert library is not None
    at_s = rng.uniform(0.0, 0.9 * scene.stage.seconds)
    step_s = rng.choice((-1, 1)) * rng.choice((1.0, 3600.0, DAY_S)) * rng.random()
    offset = scene.place.root / "clock"
    offset.write_bytes(bytes(8))
    more = {"LD_PRELOAD": str(library), "TORTURE_CLOCK": str(offset)}
    running = scene.place.start(scene.stage.words, more)
    struck = running.sleep(at_s)
    with offset.open("r+b") as file, mmap.mmap(file.fileno(), 8) as page:
        page[:] = struct.pack("q", round(step_s * 1e9))
    when = f"by {step_s:+,.1f} s after {at_s:.2f} s"
    return Happening(when=when, struck=struck, ends=(running.wait(),))


def worker_lost(scene: Scene, rng: random.Random) -> Happening:
    """Kill one of two workers of a Spark cluster, at a moment drawn evenly."""
    from spark_cluster import FEW_ROWS, cluster

    scene.lay()
    machines = scene.heal.enter_context(cluster(scene.place.root / "cluster"))
    words = list(scene.stage.words)
    begin = words.index(LOCAL[0])
    words[begin : begin + 2] = ["--master", machines.url]
    settings = [each for pair in FEW_ROWS.items() for each in ("--spark-conf", "=".join(pair))]
    words[2:2] = settings
    running = scene.place.start(words, machines.environment)
    at_s = rng.uniform(0.2, 1.5) * scene.stage.seconds
    struck = running.sleep(at_s)
    os.kill(machines.worker_pids[0], signal.SIGKILL)
    return Happening(when=f"after {at_s:.2f} s", struck=struck, ends=(running.wait(),), killed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A way to disturb a command."""

    what: str
    disturb: Callable[[Scene, random.Random], Happening]
    possible: Callable[[], bool] = lambda: True


FAULTS: dict[str, Fault] = {
    "killed": Fault(what="`kill -9` of all its processes, at any moment", disturb=killed),
    "killed at a file": Fault(
        what="`kill -9` of all its processes before one of its steps on files (a file opened for"
        " writing, renamed, removed, a folder made)",
        disturb=killed_at_a_file,
    ),
    "Java killed": Fault(
        what="`kill -9` of Java or another process of its own", disturb=part_killed
    ),
    "server killed": Fault(what="`kill -9` of one server or helper", disturb=part_killed),
    "disk full": Fault(what="a disk with less room than its results need", disturb=disk_full),
    "no room for temporary files": Fault(
        what="a disk with less room than its temporary files need",
        disturb=temporary_full,
        possible=can_mount,
    ),
    "memory short": Fault(
        what="a limit of its addresses, or of the memory of Java", disturb=memory_short
    ),
    "two writers": Fault(what="another one writes to the same place", disturb=two_writers),
    "old rows": Fault(what="rows that were counted come again", disturb=old_rows),
    "clock stepped": Fault(
        what="the time of day steps by up to a day, back or forth, for all its processes",
        disturb=clock_stepped,
        possible=lambda: clock_library() is not None,
    ),
    "worker lost": Fault(what="one of two Spark workers is killed", disturb=worker_lost),
}
