"""``tidings prepare``: do now what first runs of other commands would have to do."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from tidings.cli import console, options

_SECONDS = 20.0  # of traffic, to warm Spark up


def prepare(json: options.Json = False) -> None:
    """Compile the simulator and keep Spark's classes, so that no other command waits for that.

    Takes a few minutes, once after each installation, and some 200 MB in the user's cache folder.
    Without it, the first run of each kind compiles what it needs, and Spark starts more slowly.

    Example: tidings prepare
    """
    with console.progress("prepare") as step:
        step("compiling the simulator, step 1 of 3")
        _compile_simulator()
        step("compiling the simulator of Petri nets, step 2 of 3")
        _compile_petri_nets()
        archive = None
        if find_spec("pyspark") is not None:
            step("keeping Spark's classes, step 3 of 3")
            archive = _keep_classes()
    if json:
        console.show_json({"archive": None if archive is None else str(archive)})
        return
    kept = "Spark is not installed (pip install 'tidings[spark]')."
    if archive is not None:
        kept = f"Spark's classes are in {archive}."
    console.show(f"The simulators are compiled. {kept}")


def _compile_simulator() -> None:
    from tidings.demonstration.sample_system import market_and_weather
    from tidings.simulation.kernel_parts import EVERY_PART
    from tidings.simulation.run import simulate

    simulate(market_and_weather(), duration_s=1.0, warmup_s=0.0, replications=2)
    for part in EVERY_PART:
        _ = part.address


def _compile_petri_nets() -> None:
    from tidings.demonstration.sample_system import market_and_weather
    from tidings.model.system_workload import workload_of
    from tidings.petri.generating import generate_net
    from tidings.petri.simulating import simulate_net

    net = generate_net(workload_of(market_and_weather()))
    simulate_net(net, duration_s=1.0, warmup_s=0.0, replications=2)


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
