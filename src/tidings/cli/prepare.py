"""``tidings prepare``: do now what first runs of other commands would have to do."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from tidings.cli import console, options

_SECONDS = 20.0  # of traffic, to warm Spark up


def prepare(json: options.Json = False) -> None:
    """Build the simulators' machine code and keep Spark's classes, so that nothing waits for them.

    Takes a few minutes, once after each installation, and some 200 MB in the user's cache folder.
    A wheel for this processor brings its machine code. Without that, and without this command, the
    first run of each kind compiles what it needs; and Spark starts more slowly.

    Example: tidings prepare
    """
    with console.progress("prepare") as step:
        step("building the simulators, step 1 of 2")
        _build_simulators()
        archive = None
        if find_spec("pyspark") is not None:
            step("keeping Spark's classes, step 2 of 2")
            archive = _keep_classes()
    if json:
        console.show_json({"archive": None if archive is None else str(archive)})
        return
    kept = "Spark is not installed (pip install 'tidings[spark]')."
    if archive is not None:
        kept = f"Spark's classes are in {archive}."
    console.show(f"The simulators are built. {kept}")


def _build_simulators() -> None:
    """Build one library of all kernels, or compile them one by one where there is no C compiler."""
    from tidings.kernels.building import build_library, can_build, every_part
    from tidings.kernels.compile import BUILT, HOW

    if HOW == BUILT:
        return
    if can_build() and os.environ.get("TIDINGS_KERNELS") != HOW:
        build_library()
        return
    for part in every_part():
        _ = part.address


def _keep_classes() -> Path:
    from tempfile import TemporaryDirectory

    from tidings.characterisation.job import characterise
    from tidings.demonstration.sample_system import market_and_weather
    from tidings.simulation.recording import record, write_traces
    from tidings.traces.class_archive import make_archive
    from tidings.traces.reading import read_traces
    from tidings.traces.session import spark_session

    def work(java_options: str) -> None:
        with (
            TemporaryDirectory(prefix="tidings-prepare-") as folder,
            spark_session("local[2]", small=True, java_options=java_options) as spark,
        ):
            traces = Path(folder) / "traces"
            write_traces(record(market_and_weather(), seed=1, duration_s=_SECONDS), traces)
            characterise(read_traces(spark, traces))

    return make_archive(work)
