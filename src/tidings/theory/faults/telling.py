"""What the reader of a prediction must know of how failures came into it."""

from __future__ import annotations

from typing import Any

from tidings.model.loads import FULL_LOAD
from tidings.model.system import System
from tidings.theory.faults.notes import CAUSES, SHARES
from tidings.theory.faults.schemes import Faults
from tidings.theory.stated_errors import Stated

_EXACT = ("exact",)
# What benchmarks/backlogs.py prints, rounded up.
_MEASURED = (
    "shares behind one broker that is busy for .6, .8 and .9 of it were too high by up to .003, "
    ".009 and .02, and are more so where busy brokers follow"
)
_MEASURED_AT = ((0.6, 0.003), (0.8, 0.009), (0.9, 0.02))  # the same: how busy, too high by
_WIDE = 0.005  # error of a share from which on it is worth a warning


def with_faults(
    provenance: dict[str, Any],
    known: Faults | None,
    model: str,
    *,
    system: System,
) -> dict[str, Any]:
    """The provenance of a prediction with scheme, methods, approximations and warnings added."""
    if known is None:
        return provenance
    rows = known.notes.rows()
    return {
        **provenance,
        "faults": {"scheme": known.scheme, "model": model, "methods": rows},
        "approximations": [*provenance["approximations"], *_approximations(known, rows)],
        "numerical_error": max(
            [provenance["numerical_error"], *(row["error"] or 0.0 for row in rows if _bounds(row))]
        ),
        "warnings": [
            *provenance["warnings"],
            *_backlogs(system, known),
            *_warnings(known, rows),
        ],
    }


def _bounds(row: dict[str, Any]) -> bool:
    """Whether a method's error is a bound (neither a standard error nor that of a fitted law)."""
    return "bounds" in row["method"]


def _approximations(known: Faults, rows: list[dict[str, Any]]) -> list[str]:
    found = [
        "queues as busy as when nothing fails; what a repair sets free at once left out",
    ]
    if known.published:
        found.append("times up and down taken as exponential, subscriptions as never missing")
        found.append("brokers and links taken not to fail while they serve or carry an event")
    return found + [
        f"{row['method']}, {row['ways']} times{_off(row)}"
        for row in rows
        if not row["method"].endswith(_EXACT)
    ]


def _off(row: dict[str, Any]) -> str:
    if row["of"] == CAUSES:
        return ""
    if row["error"] is None:
        return " (by how much that is off is not known)"
    if row["error"] == 0.0:
        return ""
    kind = "standard error up to" if "sampled" in row["method"] else "off by up to"
    return f" ({kind} {row['error']:.2g})"


def _backlogs(system: System, known: Faults) -> list[str]:
    """Brokers that catch up late, or never, with what buffers keep while they are down."""
    if not known.buffering:
        return _relieved(system, known)
    found: list[str] = []
    busiest = max(range(len(system.brokers)), key=known.busy)
    if known.is_backlogged(busiest) and known.busy(busiest) < FULL_LOAD:
        said = (
            f"what buffers keep for a broker queues there once it is repaired, which is left out: "
            f"'{system.brokers[busiest].name}' is busy for {known.busy(busiest):.3g} of its time "
            f"up; {_MEASURED}"
        )
        found.append(Stated(said, _backlog_error(system, known)))
    for index, (broker, load) in enumerate(zip(system.brokers, known.loads, strict=True)):
        if known.up_share(index) < 1.0 and load < FULL_LOAD <= known.busy(index):
            said = (
                f"broker '{broker.name}' is up {known.up_share(index):.3g} of the time and would "
                f"have to be busy for {known.busy(index):.3g} of that: what buffers keep for it "
                "grows without end, which the shares predicted behind it leave out"
            )
            found.append(Stated(said, None))
    return found


def _backlog_error(system: System, known: Faults) -> float | None:
    """How far shares behind the busiest broker were off; not known if busier, or several are."""
    backlogged = [each for each in range(len(system.brokers)) if known.is_backlogged(each)]
    most = max(map(known.busy, backlogged))
    sizes = (error for busy, error in _MEASURED_AT if most <= busy)
    return next(sizes, None) if len(backlogged) == 1 else None


def _relieved(system: System, known: Faults) -> list[str]:
    """Where nothing is kept: the busiest broker whose queue is shorter than without failures."""
    busy = known.relieved(range(len(system.brokers)))
    if not busy:
        return []
    most = max(busy, key=lambda each: float(known.loads[each]))
    said = (
        "crashes empty queues and keep events from those behind, which is left out: "
        f"'{system.brokers[most].name}' is taken to be busy for {known.loads[most]:.3g} of its "
        "time up; shares behind it are too low (the busier it is the more), simulation counts "
        "that in"
    )
    return [Stated(said, None)]


def _warnings(known: Faults, rows: list[dict[str, Any]]) -> list[str]:
    found = []
    if known.scheme == "none" and any(known.components.of_broker):
        found.append(
            "without a recovery scheme a broker that has crashed never gets its subscriptions back:"
            " in the long run nothing passes it; say recovery: {scheme: periodic} or another"
        )
    found += [row["method"] for row in rows if row["of"] == CAUSES]
    for row in rows:
        if (row["error"] or 0.0) > _WIDE and row["of"] == SHARES:
            kind = "standard error" if "sampled" in row["method"] else "error"
            found.append(f"{row['method']}: {kind} of up to {row['error']:.2g}")
    return found
