"""What is said of traffic: its kinds by name, and what a fitted system does not have of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from tidings.characterisation.fit.dispersion import coarse_indices
from tidings.characterisation.fit.traffic import (
    MOVING,
    TRAFFIC_COLUMNS,
    Traffic,
)
from tidings.characterisation.statistics import BATCHES, sums_at
from tidings.model.naming import few

DISPERSION_COLUMNS = ("of", "scale_s", "dispersion", "dispersion_se", "expected")
KEEP = "keep the recorded times (characterise --replay)"


def traffic_table(traffic: Mapping[str, Traffic]) -> pd.DataFrame:
    """Give what kind of traffic each publisher is, and where it is furthest from a renewal."""
    rows = [each.row() for each in traffic.values()]
    return pd.DataFrame(rows, columns=list(TRAFFIC_COLUMNS))


def dispersion_table(
    traffic: Mapping[str, Traffic], hops: pd.DataFrame, window_s: float
) -> pd.DataFrame:
    """Give the index of dispersion of counts over lengths of time, in seconds.

    Of every publisher; and of what arrives at brokers, over 1/32 to 1/8 of the time.
    """
    rows = [
        (each.publisher, *map(float, numbers))
        for each in traffic.values()
        for numbers in np.transpose(
            [
                each.curve.scales_s,
                each.curve.dispersion,
                each.curve.standard_error,
                each.curve.expected,
            ]
        )
    ]
    for broker, part in hops.groupby("broker"):
        arrivals = sums_at(part, "rows", (BATCHES,), part["batch"])
        indices = np.transpose(coarse_indices(arrivals, window_s / BATCHES))
        rows += [(str(broker), *map(float, numbers), math.nan) for numbers in indices]
    return pd.DataFrame(rows, columns=list(DISPERSION_COLUMNS))


def traffic_notes(traffic: Mapping[str, Traffic]) -> list[str]:
    """Say which publishers are no renewal streams, kind by kind."""
    notes = []
    described = [each for each in traffic.values() if not each.is_renewal and each.is_kept]
    for kind in dict.fromkeys(each.kind for each in described):
        these = [each for each in described if each.kind == kind]
        notes.append(
            f"{_names(these)}: {kind} ({these[0].why}); the fitted system has it, and predictions "
            "simulate it"
        )
    return notes + doubts(traffic.values())


def doubts(traffic: Iterable[Traffic]) -> list[str]:
    """Say what a system fitted to such traffic does not have, with how much it may matter."""
    unkept = [each for each in traffic if not each.is_kept]
    said = []
    for kind in dict.fromkeys(each.kind for each in unkept):
        these = [each for each in unkept if each.kind == kind]
        worst = max(these, key=lambda each: float(each.curve.score[each.worst]))
        instead = "intervals stand for it" if worst.is_renewal else "the fitted system is near it"
        sure = ""
        if kind == MOVING:
            sure = ", and whether it goes on so is not known: take predictions with care"
        said.append(f"{_names(these)}: {kind} ({worst.why}); {instead}{sure}. To be nearer, {KEEP}")
    return said


def _names(traffic: Sequence[Traffic]) -> str:
    names = [each.publisher for each in traffic]
    return f"publisher{'s' if len(names) > 1 else ''} {few(names)}"
