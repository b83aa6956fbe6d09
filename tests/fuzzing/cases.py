"""Read spoilt documents one by one, and note what no reader may do."""

from __future__ import annotations

import faulthandler
import multiprocessing
import random
import resource
import signal
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from fuzzing.spoiling import spoilt, spoilt_bytes
from fuzzing.targets import REFUSALS, Target, targets, tree_of

LIMIT_S = 20.0  # for one document
MEMORY = 6 << 30  # bytes of addresses a process may use
CORPUS = Path(__file__).parent / "corpus"


class TookTooLong(BaseException):
    """A document is still being read after its time; no reader can catch this by mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A document that no reader should end on like this."""

    target: str
    number: int
    what: str  # one line
    trace: str
    data: bytes


@dataclass(slots=True)
class Tally:
    """How many documents were accepted and refused, and what went wrong."""

    fates: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)


def document(name: str, seed: int, number: int) -> bytes:
    """Make one spoilt document of a kind: the same for the same numbers, wherever it is made."""
    target = targets()[name]
    chance = random.Random(f"{seed}/{name}/{number}")
    text = chance.choice(target.texts)
    trees = [tree for tree in map(tree_of, target.texts) if tree is not None]
    tree, data = tree_of(text), text.encode() if isinstance(text, str) else text
    if name == "tables":  # the name of the spoilt table comes first
        table, _, rest = data.partition(b"\0")
        return table + b"\0" + spoilt_bytes(chance, rest)
    return spoilt(chance, data, tree, trees)


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    def stop(_signal: int, _frame: object) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def fate(target: Target, data: bytes, limit_s: float = LIMIT_S) -> tuple[str, str, str]:
    """Read one document: accepted, refused or a fault; of a fault what happened, and where."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            with _limited(limit_s), warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                target.read(data, Path(folder))
        except REFUSALS as refusal:
            if not str(refusal).strip():
                return "fault", f"{type(refusal).__name__} without words", traceback.format_exc()
            return "refused", "", ""
        except TookTooLong:
            return "fault", f"took longer than {limit_s:g} s", traceback.format_exc()
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(last.filename).name}:{last.lineno}"
            what = f"{type(error).__name__} at {place}: {str(error)[:100]}"
            return "fault", what, traceback.format_exc()
    return "accepted", "", ""


def read_all(name: str, seed: int, numbers: Sequence[int], limit_s: float = LIMIT_S) -> Tally:
    """Read spoilt documents of one kind in this process."""
    tally, target = Tally(), targets()[name]
    for number in numbers:
        data = document(name, seed, number)
        kind, what, trace = fate(target, data, limit_s)
        tally.fates[kind] += 1
        if kind == "fault":
            fault = Fault(target=name, number=number, what=what, trace=trace, data=data)
            tally.faults.append(fault)
    return tally


def kept() -> Iterator[tuple[str, Path]]:
    """Yield the documents that were a fault once, by their kind."""
    for path in sorted(CORPUS.glob("*/*")):
        yield path.parent.name, path


def keep(fault: Fault) -> Path:
    """Keep the document of a fault for good."""
    folder = CORPUS / fault.target
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{fault.number}"
    path.write_bytes(fault.data)
    return path


# ---- in a process that may die -----------------------------------------------------------------


def _work(name: str, seed: int, pipe: Connection, limit_s: float) -> None:
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    while (number := pipe.recv()) is not None:
        tally = read_all(name, seed, [number], limit_s)
        pipe.send(tally)


def read_apart(
    name: str, seed: int, numbers: Sequence[int], limit_s: float = LIMIT_S
) -> Iterator[Tally]:
    """Read spoilt documents in a process of their own, which is made anew where one kills it."""
    context = multiprocessing.get_context("fork")
    targets()
    worker = None
    for number in numbers:
        if worker is None or not worker.is_alive():
            here, there = context.Pipe()
            worker = context.Process(target=_work, args=(name, seed, there, limit_s), daemon=True)
            worker.start()
            there.close()
        here.send(number)
        try:
            # A reader in compiled code hears no alarm.
            if not here.poll(3 * limit_s):
                worker.kill()
                worker.join()
                raise EOFError
            yield here.recv()
        except EOFError:
            worker.join()
            what = f"its process ended with {worker.exitcode}"
            data = document(name, seed, number)
            fault = Fault(target=name, number=number, what=what, trace="", data=data)
            yield Tally(fates=Counter(fault=1), faults=[fault])
    if worker is not None and worker.is_alive():
        here.send(None)
        worker.join()
