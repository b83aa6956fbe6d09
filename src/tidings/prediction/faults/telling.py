"""What the reader of a prediction must know of how failures came into it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.model.loads import FULL_LOAD
from tidings.model.system import System
from tidings.prediction.faults.notes import CAUSES, SHARES
from tidings.prediction.faults.schemes import Faults

_EXACT = ("exact",)
_WIDE = 0.005  # error of a share from which on it is worth a warning


def with_faults(
    provenance: dict[str, Any],
    known: Faults | None,
    model: str,
    *,
    system: System,
    loads: NDArray[np.float64],
) -> dict[str, Any]:
    """The provenance of a prediction with scheme, methods, approximations and warnings added.

    ``loads``: ρ of every broker, while it is up and nothing has been kept for it.
    """
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
            *_overwhelmed(system, known, loads),
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


def _overwhelmed(system: System, known: Faults, loads: NDArray[np.float64]) -> list[str]:
    """Brokers that have not the time to catch up with what buffers keep while they are down."""
    if not known.scheme.endswith("buffering"):
        return []
    found = []
    for broker, needed, load in zip(
        system.brokers, known.components.of_broker, loads.tolist(), strict=True
    ):
        up = known.components.all_up(needed)
        if load < FULL_LOAD <= load / max(up, 1e-300):
            found.append(
                f"broker '{broker.name}' is up {up:.3g} of the time and would have to be busy for "
                f"{load / up:.3g} of that: what buffers keep for it grows without end, which the "
                "shares predicted behind it leave out"
            )
    return found


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
