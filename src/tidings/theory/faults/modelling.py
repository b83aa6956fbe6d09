"""From a system to what fails in it, in the form in which ways are worked out."""

from __future__ import annotations

from tidings.errors import InvalidInputError, UnsupportedError
from tidings.model.behaviour import Failure
from tidings.model.system import Recovery, System
from tidings.theory.faults.components import components, ways_to_fail
from tidings.theory.faults.disjoint_products import network
from tidings.theory.faults.notes import FITTED, LAWS, Notes
from tidings.theory.faults.phase_fits import fit
from tidings.theory.faults.processes import Process, alternating, exponential
from tidings.theory.faults.reachability import Reachability
from tidings.theory.faults.refresh import Refresh
from tidings.theory.faults.schemes import BUFFERING, Faults
from tidings.theory.stages import Floats

FAULT_MODELS = {
    "exact": "whatever is nearest the truth: exact where that is feasible",
    "paper": "the published formulas: disjoint ways, exponential times, ideal refresh",
}


def failures_of(system: System, model: str, loads: Floats) -> Faults | None:
    """What fails in a system, by one of FAULT_MODELS, or None where nothing does.

    ``loads``: ρ of every broker, while it is up and nothing has been kept for it.
    """
    if model not in FAULT_MODELS:
        names = ", ".join(FAULT_MODELS)
        raise InvalidInputError(f"there is no fault model '{model}'; wants one of {names}")
    recovery = system.recovery or Recovery(scheme="none")
    if not ways_to_fail(system) and recovery.timeout_s is None:
        return None
    published = model == "paper"
    _refuse(system, recovery, published=published)
    refresh = None
    if recovery.refresh_s > 0.0 and not published:
        refresh = Refresh(every_s=recovery.refresh_s, timeout_s=recovery.timeout_s)
    notes = Notes()
    buffered = recovery.scheme in BUFFERING
    fitted = not published and (buffered or refresh is not None)
    processes = {
        failure: _process(failure, notes) if fitted else exponential(failure)
        for failure in ways_to_fail(system)
    }
    parts = components(system, processes)
    index = system.broker_index
    ends = [(index[link.between[0]], index[link.between[1]]) for link in system.links]
    return Faults(
        scheme=recovery.scheme,
        published=published,
        components=parts,
        loads=loads,
        reachability=Reachability(network=network(parts, ends)),
        refresh=refresh,
        notes=notes,
    )


def _refuse(system: System, recovery: Recovery, *, published: bool) -> None:
    """Name what the analysis cannot honour."""
    if recovery.detection_s > 0.0 and recovery.scheme != "periodic":
        raise UnsupportedError(
            f"prediction does not handle a time until failures are noticed (recovery.detection) "
            f"with the scheme '{recovery.scheme}'\n"
            "Take the field out to go on as if they were noticed at once, or simulate."
        )
    if published and system.failure_groups:
        raise UnsupportedError(
            "the published formulas know no components that fail together (failure_groups)\n"
            "Use the fault model 'exact', or take the groups out of the file."
        )


def _process(failure: Failure, notes: Notes) -> Process:
    # How long a repair takes is what events wait for; the time up need not be known as well.
    up, down = fit(failure.up, parts=3), fit(failure.down)
    for each in (up, down):
        if each.error > 0.0:
            notes.add(FITTED, each.error, LAWS)
    return alternating(up.chain, down.chain)
