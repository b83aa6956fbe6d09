"""Runs subjects undisturbed, then disturbed and once more, and holds the results together."""

from __future__ import annotations

import contextlib
import math
import random
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torturing.faults import FAULTS, Happening, Scene, Stage
from torturing.places import Place, Running, size_of
from torturing.subjects import UNFINISHED, Result, Subject

ROUNDING = 1e-9
_LOOK_S = 0.1
_SHOWN = 4  # differences, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A subject as it is undisturbed."""

    name: str
    subject: Subject
    inputs: Path
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One disturbed run: what was done, and what was wrong with how it went on."""

    subject: str
    fault: str
    number: int
    when: str
    struck: bool
    numbers: int  # that were compared
    problems: tuple[str, ...]


class Strange(Exception):  # noqa: N818 - no fault of this program
    """A command that does not do undisturbed what it should."""


@contextlib.contextmanager
def known(name: str, subject: Subject) -> Iterator[Known]:
    """Run a subject undisturbed, stage by stage, and keep what there was before each."""
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        whole = Path(folder).resolve()
        inputs = whole / "inputs"
        inputs.mkdir()
        subject.prepare(inputs)
        place = Place(whole / "undisturbed")
        place.make(inputs)
        stages = []
        for number, words in enumerate(subject.steps):
            kept = whole / f"before-{number}"
            place.keep(kept)
            stages.append(_stage(subject, place, words, kept))
        yield Known(name=name, subject=subject, inputs=inputs, stages=tuple(stages))


def _stage(subject: Subject, place: Place, words: tuple[str, ...], kept: Path) -> Stage:
    before, steps = _read(subject, place), place.steps()
    running = place.start(words)
    with _watched(running, place) as most:
        ended = running.wait()
    if ended.code != 0:
        raise Strange(f"{' '.join(words)} ended with {ended.code}: {ended.last}")
    if left := place.outlived():
        raise Strange(f"{' '.join(words)} left processes: {left}")
    if left := place.left_over():
        raise Strange(f"{' '.join(words)} left temporary files: {left}")
    return Stage(
        words=words,
        kept=kept,
        before=before,
        after=_read(subject, place),
        files=dict(place.files()),
        seconds=ended.seconds,
        steps=place.steps() - steps,
        most_bytes=most["out"],
        most_temporary=most["temporary"],
        address_bytes=most["addresses"],
    )


@contextlib.contextmanager
def _watched(running: Running, place: Place) -> Iterator[Counter[str]]:
    """Note how much a command needs at most, for as long as the block lasts."""
    most: Counter[str] = Counter()
    over = threading.Event()

    def look() -> None:
        while not over.wait(_LOOK_S):
            found = {"out": size_of(place.out), "temporary": size_of(place.temporary)}
            with contextlib.suppress(OSError):
                status = Path(f"/proc/{running.process.pid}/status").read_text().splitlines()
                peaks = [line.split()[1] for line in status if line.startswith("VmPeak")]
                found["addresses"] = 1024 * int((peaks or ["0"])[0])
            for name, size in found.items():
                most[name] = max(most[name], size)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield most
    finally:
        over.set()
        looking.join()
        most["out"] = max(most["out"], size_of(place.out))


def faults_of(subject: Subject) -> list[str]:
    """List the faults of a subject that can be made here."""
    return [name for name in subject.faults if FAULTS[name].possible()]


def trial(of: Known, fault: str, number: int) -> Trial:
    """Disturb a stage of a subject, look at what is left, run it again, and compare."""
    rng = random.Random(f"{of.name} {fault} {number}")
    with tempfile.TemporaryDirectory(prefix="torture-") as folder, contextlib.ExitStack() as heal:
        place = Place(Path(folder).resolve() / "run")
        place.make(of.inputs)
        # What takes longer is disturbed more often.
        weights = [each.seconds for each in of.stages]
        stage = rng.choices(range(len(of.stages)), weights)[0] if fault != "old rows" else 0
        scene = Scene(place=place, subject=of.subject, stages=of.stages, number=stage, heal=heal)
        problems: list[str] = []
        try:
            happening = FAULTS[fault].disturb(scene, rng)
            problems += _of_the_end(happening)
            problems += _of_what_is_left(scene, happening, fault)
            happening.mend()
            problems += _run_again(scene, happening)
            compared, wrong = _of_the_result(scene, happening, fault)
            problems += wrong
        finally:
            place.outlived()
        return Trial(
            subject=of.name,
            fault=fault,
            number=number,
            when=f"command {stage + 1}, {happening.when}",
            struck=happening.struck,
            numbers=compared,
            problems=tuple(problems),
        )


def _of_the_end(happening: Happening) -> Iterator[str]:
    """Tell where a command did not say in words, and by its exit code, how it fared."""
    for ended in happening.ends:
        if ended.code is None:
            yield f"it did not end: {ended.last}"
        elif ended.code not in happening.may_end_with:
            yield f"it ended with {ended.code}: {ended.last}"
        elif ended.code and not ended.said.strip():
            yield f"it ended with {ended.code}, and said nothing"
        if "Traceback" in ended.said:
            yield f"it showed a traceback: {ended.last}"
    if happening.ends and len(happening.ends) > 1 and all(each.code for each in happening.ends):
        yield "neither did its work"


def _of_what_is_left(scene: Scene, happening: Happening, fault: str) -> Iterator[str]:
    """Tell what is half done, and what is left that nobody needs."""
    place, subject = scene.place, scene.subject
    if left := place.outlived():
        yield f"{len(left)} processes were left: {left}"
    if (not happening.killed or subject.own_temporary) and (left := place.left_over()):
        yield f"temporary files were left: {left}"
    found = _read(subject, place)
    stages = [scene.stage.before, scene.stage.after]
    if fault in ("old rows", "two writers"):
        stages = [each for stage in scene.stages for each in (stage.before, stage.after)]
    whole = any(not _differing(found, each) for each in stages)
    growing = subject.varying or fault == "two writers"
    if (
        not whole
        and found != UNFINISHED
        and not (growing and "acknowledged, and lost" not in found)
    ):
        yield f"half done: {_differing(found, scene.stage.after)[:_SHOWN]}"


def _run_again(scene: Scene, happening: Happening) -> Iterator[str]:
    """Run what was disturbed again; it must do its work now."""
    if happening.over:
        return
    subject, place = scene.subject, scene.place
    _forget_temporary(place)
    if subject.only_new and _read(subject, place) == UNFINISHED:
        shutil.rmtree(place.out)  # kept for whoever wants it; what comes next wants room
        place.out.mkdir()
    words = [scene.stage.words]
    if subject.rivals and len(happening.ends) == 2:
        ends = zip(subject.rivals, happening.ends, strict=True)
        words = [scene.stages[number].words for number, ended in ends if ended.code]
    for each in words:
        was_done = subject.only_new and not _differing(_read(subject, place), scene.stage.after)
        ended = place.run(each)
        if ended.code != 0 and not (was_done and ended.code == 2):
            yield f"run again, it ended with {ended.code}: {ended.last}"
    if left := place.outlived():
        yield f"run again, {len(left)} processes were left: {left}"
    if left := place.left_over():
        yield f"run again, temporary files were left: {left}"


def _forget_temporary(place: Place) -> None:
    """Clear away what nobody clears away after a kill, so that what follows can be told apart."""
    for each in place.temporary.iterdir():
        shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()


def _of_the_result(scene: Scene, happening: Happening, fault: str) -> tuple[int, list[str]]:
    """Hold numbers and files against the undisturbed ones; gives how many numbers there are."""
    last = scene.stage
    if happening.over or (scene.subject.rivals and fault == "two writers"):
        last = scene.stages[-1]
    found = _read(scene.subject, scene.place)
    wrong = [f"differs: {each}" for each in _differing(found, last.after)[:_SHOWN]]
    files, wanted = scene.place.files(), Counter(last.files)
    if scene.subject.varying:
        files, wanted = Counter(set(files)), Counter(set(wanted))
    wrong += [f"there is also {each}" for each in list((files - wanted).elements())[:_SHOWN]]
    wrong += [f"there is no {each}" for each in list((wanted - files).elements())[:_SHOWN]]
    return len(last.after), wrong


def _read(subject: Subject, place: Place) -> Result:
    """Read the result; what cannot be read is one number that no other result has."""
    try:
        return subject.read(place.root)
    except Exception as problem:
        return {f"not readable: {type(problem).__name__}: {problem}": math.inf}


def _differing(found: Result, wanted: Result) -> list[str]:
    """List where two results differ: whole numbers are equal, others to rounding."""
    names = found.keys() ^ wanted.keys()
    differing = [f"{name} is {'not' if name in wanted else 'also'} there" for name in sorted(names)]
    for name in found.keys() & wanted.keys():
        a, b = found[name], wanted[name]
        whole = isinstance(a, int) and isinstance(b, int)
        if a != b and (whole or not math.isclose(a, b, rel_tol=ROUNDING, abs_tol=ROUNDING)):
            differing.append(f"{name} is {a!r}, undisturbed {b!r}")
    return differing
