"""Tidings: will it arrive in time?

Everything below is loaded when it is first used, so that ``import tidings`` costs nothing.

>>> import tidings as td
>>> system = td.market_and_weather()
>>> print(f"{td.predict(system).on_time:.3f}")
0.868
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import inspect

    from tidings.characterisation.fit.fitted import Characterisation as Characterisation
    from tidings.characterisation.job import characterise as characterise
    from tidings.characterisation.job import measure_workload as measure_workload
    from tidings.demonstration.run import demonstrate as demonstrate
    from tidings.demonstration.sample_system import market_and_weather as market_and_weather
    from tidings.errors import TidingsError as TidingsError
    from tidings.histories.checking import checked_history as checked_history
    from tidings.model.outcome import Outcome as Outcome
    from tidings.model.outcome_files import load_outcome as load_outcome
    from tidings.model.outcome_files import save_outcome as save_outcome
    from tidings.model.progress import show_progress as show_progress
    from tidings.model.reading import dumps as dumps
    from tidings.model.reading import load as load
    from tidings.model.reading import loads as loads
    from tidings.model.reading import save as save
    from tidings.model.system import System as System
    from tidings.model.system_summary import check as check
    from tidings.model.system_workload import workload_of as workload_of
    from tidings.operational.analysing import analyse as analyse
    from tidings.petri.generating import generate_net as generate_net
    from tidings.petri.reading import load_net as load_net
    from tidings.petri.reading import save_net as save_net
    from tidings.petri.simulating import simulate_net as simulate_net
    from tidings.planning.budget import explain as explain
    from tidings.planning.changes import changed as changed
    from tidings.planning.verbs import PlanOptions as PlanOptions
    from tidings.planning.verbs import gate as gate
    from tidings.planning.verbs import plan_admission as plan_admission
    from tidings.planning.verbs import plan_capacity as plan_capacity
    from tidings.planning.verbs import plan_consumers as plan_consumers
    from tidings.planning.verbs import plan_deadline as plan_deadline
    from tidings.planning.verbs import plan_homes as plan_homes
    from tidings.planning.verbs import plan_scheme as plan_scheme
    from tidings.planning.verbs import plan_targets as plan_targets
    from tidings.planning.verbs import whatif as whatif
    from tidings.prediction.predict import PredictOptions as PredictOptions
    from tidings.prediction.predict import predict as predict
    from tidings.reporting.drawing import mermaid as mermaid
    from tidings.reporting.drawing import svg as svg
    from tidings.reporting.page import Report as Report
    from tidings.reporting.page import write_page as write_page
    from tidings.reporting.queueing_networks import export as export
    from tidings.samples.loading import Sample as Sample
    from tidings.samples.loading import load_sample as load_sample
    from tidings.simulation.catching_up import CatchUpOptions as CatchUpOptions
    from tidings.simulation.catching_up import catch_up as catch_up
    from tidings.simulation.options import SimulationOptions as SimulationOptions
    from tidings.simulation.recording import record as record
    from tidings.simulation.recording import write_traces as write_traces
    from tidings.simulation.run import simulate as simulate
    from tidings.sweeps.generating import generate_traces as generate_traces
    from tidings.traces.importing import import_traces as import_traces
    from tidings.traces.reading import read_traces as read_traces
    from tidings.traces.session import spark_session as spark_session
    from tidings.validation.comparison import compare as compare
    from tidings.validation.comparison import validate as validate

_HOMES = {
    "CatchUpOptions": "simulation.catching_up",
    "Characterisation": "characterisation.fit.fitted",
    "Outcome": "model.outcome",
    "PlanOptions": "planning.verbs",
    "PredictOptions": "prediction.predict",
    "Report": "reporting.page",
    "Sample": "samples.loading",
    "SimulationOptions": "simulation.options",
    "System": "model.system",
    "TidingsError": "errors",
    "analyse": "operational.analysing",
    "catch_up": "simulation.catching_up",
    "changed": "planning.changes",
    "characterise": "characterisation.job",
    "check": "model.system_summary",
    "checked_history": "histories.checking",
    "compare": "validation.comparison",
    "demonstrate": "demonstration.run",
    "dumps": "model.reading",
    "explain": "planning.budget",
    "export": "reporting.queueing_networks",
    "gate": "planning.verbs",
    "generate_net": "petri.generating",
    "generate_traces": "sweeps.generating",
    "import_traces": "traces.importing",
    "load": "model.reading",
    "load_net": "petri.reading",
    "load_outcome": "model.outcome_files",
    "load_sample": "samples.loading",
    "loads": "model.reading",
    "market_and_weather": "demonstration.sample_system",
    "measure_workload": "characterisation.job",
    "mermaid": "reporting.drawing",
    "plan_admission": "planning.verbs",
    "plan_capacity": "planning.verbs",
    "plan_deadline": "planning.verbs",
    "plan_consumers": "planning.verbs",
    "plan_homes": "planning.verbs",
    "plan_scheme": "planning.verbs",
    "plan_targets": "planning.verbs",
    "predict": "prediction.predict",
    "read_traces": "traces.reading",
    "record": "simulation.recording",
    "save": "model.reading",
    "save_net": "petri.reading",
    "save_outcome": "model.outcome_files",
    "show_progress": "model.progress",
    "simulate": "simulation.run",
    "simulate_net": "petri.simulating",
    "spark_session": "traces.session",
    "svg": "reporting.drawing",
    "validate": "validation.comparison",
    "whatif": "planning.verbs",
    "workload_of": "model.system_workload",
    "write_page": "reporting.page",
    "write_traces": "simulation.recording",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("tidings")
    if name not in _HOMES:
        raise AttributeError(f"module 'tidings' has no attribute '{name}'")
    try:
        value = getattr(importlib.import_module(f"tidings.{_HOMES[name]}"), name)
    except ImportError as error:
        from tidings.errors import missing_extra

        raise missing_extra(error) or error from None
    first = next(iter(getattr(value, "__annotations__", {}).items()), None)
    is_verb = first == ("system", "System") and not isinstance(value, type)
    return _of_system(value) if is_verb else value


@functools.cache
def _of_system(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Let a verb say what it wants where it is given anything but a System, such as a path."""
    from tidings.errors import InvalidInputError
    from tidings.model.system import System

    @functools.wraps(verb)
    def checked(*values: Any, **named: Any) -> Any:
        given = values[0] if values else named.get("system")
        if not isinstance(given, System) and (values or "system" in named):
            saw = repr(given) if isinstance(given, str | os.PathLike) else type(given).__name__
            raise InvalidInputError(
                f"td.{verb.__name__}: got {saw}; wants a System (td.load(path) reads one)"
            )
        return verb(*values, **named)

    checked.__module__ = "tidings"  # where it is found, also by those who pickle it
    checked.__signature__ = _with_options(verb)  # type: ignore[attr-defined]
    return checked


def _with_options(verb: Callable[..., Any]) -> inspect.Signature:
    """Write out the options of a verb by name, for notebooks that complete them."""
    import dataclasses
    import inspect

    own = inspect.signature(verb)
    parameters = list(own.parameters.values())
    options = own.parameters.get("options")
    if options is None or parameters[-1].kind is not inspect.Parameter.VAR_KEYWORD:
        return own
    record = getattr(sys.modules[verb.__module__], options.annotation.removesuffix(" | None"))
    by_name = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type
        )
        for field in dataclasses.fields(record)
    ]
    return own.replace(parameters=[*parameters[:-1], *by_name])


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
