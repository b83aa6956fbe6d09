"""The place of a run: what is in it, what runs in it, and what is left of either.

A command finds its inputs in ``in`` and writes to ``out``. Temporary files are the run's own, too,
as is the state that Tidings keeps of a user. ``kept`` is what others keep: no disk is ever full
there.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import tidings
from torturing.stepping import COUNT, PLACE

PATIENCE_S = 900.0
GONE_WITHIN_S = 8.0  # Java, and a watchdog that tidies up after a kill, take moments
_OWN = ("out", "kept", "state")  # what a run changes
_TESTS = Path(__file__).resolve().parents[1]
_RANDOM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{6,}|_[0-9]{10,}")
_DATED = re.compile(r"\d{8}T\d{6}\.\d{9}")


@dataclass(slots=True)
class Running:
    """A command under way."""

    process: subprocess.Popen[bytes]
    said: Path
    begun: float = field(default_factory=time.monotonic)

    def wait(self) -> Ended:
        """Wait for its end; one that does not come is the end of all of it."""
        try:
            code = self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            code = None
        seconds = time.monotonic() - self.begun
        return Ended(code=code, said=self.said.read_text(errors="replace"), seconds=seconds)

    def kill(self) -> None:
        """Kill its process group, as ``kill -9`` does."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def sleep(self, seconds: float) -> bool:
        """Let it run for a while; tells whether it still does."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0.0, self.begun + seconds - time.monotonic()))
        return self.process.poll() is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended: its exit code (None: it did not end), and all that it said."""

    code: int | None
    said: str
    seconds: float

    @property
    def last(self) -> str:
        """Its last words."""
        lines = [line.strip() for line in self.said.splitlines() if line.strip()]
        return " | ".join(lines[-4:])[-600:]


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that one run has for itself."""

    root: Path

    @property
    def out(self) -> Path:
        """Where commands write."""
        return self.root / "out"

    @property
    def temporary(self) -> Path:
        """Where temporary files go."""
        return self.root / "tmp"

    def make(self, inputs: Path) -> None:
        """Make its folders, with some inputs."""
        for name in (*_OWN, "tmp"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        (self.root / "in").symlink_to(inputs.resolve())

    def start(
        self,
        words: Sequence[str],
        more: Mapping[str, str] | None = None,
        before: Callable[[], None] | None = None,
    ) -> Running:
        """Begin a command of Python's, in a session of its own."""
        number = len(list(self.root.glob("said-*")))
        said = self.root / f"said-{number}"
        with said.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, *words],
                cwd=self.root,
                env={**self._environment(), **(more or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                preexec_fn=before,
            )
        return Running(process, said)

    def run(self, words: Sequence[str]) -> Ended:
        """Run a command undisturbed."""
        return self.start(words).wait()

    def _environment(self) -> dict[str, str]:
        temporary = str(self.temporary)
        source = str(Path(tidings.__file__).parents[1])
        return {
            **os.environ,
            PLACE: str(self.root),
            COUNT: str(self.root / "steps"),
            "PYTHONPATH": os.pathsep.join((source, str(_TESTS))),
            "TMPDIR": temporary,
            "SPARK_LOCAL_DIRS": temporary,
            "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={temporary} -XX:-UsePerfData",
            "XDG_STATE_HOME": str(self.root / "state"),
        }

    # ---- what a run changes ----------------------------------------------------------------------

    def keep(self, to: Path) -> None:
        """Copy all that a run may change."""
        for name in _OWN:
            shutil.copytree(self.root / name, to / name, symlinks=True)

    def restore(self, kept: Path) -> None:
        """Put there what was kept; what is there stays."""
        for name in _OWN:
            shutil.copytree(kept / name, self.root / name, symlinks=True, dirs_exist_ok=True)

    def files(self) -> Counter[str]:
        """Count files and empty folders among results by their names, random parts left out."""
        found: Counter[str] = Counter()
        for folder, folders, names in os.walk(self.out):
            below = Path(folder).relative_to(self.out)
            empty = [] if folders or names else [""]
            for name in (*names, *empty):
                text = _DATED.sub("TIME", str(below / name))
                found[_RANDOM.sub("*", text)] += 1
        found.pop(".", None)
        return found

    def left_over(self) -> list[str]:
        """List what is in the temporary folder."""
        return sorted(each.name for each in self.temporary.iterdir())

    def steps(self) -> int:
        """Count the steps on files so far."""
        counted = self.root / "steps"
        return counted.stat().st_size if counted.exists() else 0

    # ---- what runs -------------------------------------------------------------------------------

    def processes(self) -> list[int]:
        """List the processes that were begun here, by whomever, and still run."""
        mark = f"{PLACE}={self.root}\0".encode()
        found = []
        for each in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                state = (each / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z" and mark in (each / "environ").read_bytes() + b"\0":
                    found.append(int(each.name))
        return found

    def outlived(self) -> list[str]:
        """Wait until nothing runs here any more; what still does is named, and killed."""
        until = time.monotonic() + GONE_WITHIN_S
        while (left := self.processes()) and time.monotonic() < until:
            time.sleep(0.02)
        named = []
        for each in left:
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{each}/cmdline").read_bytes().replace(b"\0", b" ")
                named.append(words.decode(errors="replace")[:200])
                os.kill(each, signal.SIGKILL)
        return named


def size_of(folder: Path) -> int:
    """Add up what files below a folder take of a disk, in bytes."""
    total = 0
    for parent, folders, names in os.walk(folder):
        for name in (*folders, *names):
            with contextlib.suppress(OSError):
                total += max(4096, 512 * os.lstat(os.path.join(parent, name)).st_blocks)
    return total
