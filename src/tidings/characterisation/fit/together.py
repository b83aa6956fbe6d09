"""Publishers whose counts rise and fall together, where nothing describes it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from tidings.characterisation.fit.traffic import BATCHED, BURSTY, MOVING, Traffic

TOGETHER_COLUMNS = ("publisher", "other", "correlation", "standard_error")
SURE = 4.0  # standard errors of Fisher's z
MOST = 200  # publishers that are held against each other


def find_together(traffic: Mapping[str, Traffic]) -> pd.DataFrame:
    """Find pairs of publishers whose counts over 1/32 of the time are surely correlated.

    Who follows the hours, or a clock, does so together with others in the fitted system too.
    Standard errors are those of Fisher: of artanh r they are 1/√(n − 3) for n parts.
    """
    apart = [name for name, each in traffic.items() if each.kind in (BATCHED, BURSTY, MOVING)][
        :MOST
    ]
    if len(apart) < 2:
        return pd.DataFrame(columns=list(TOGETHER_COLUMNS))
    counts = np.array([traffic[name].counts for name in apart])
    correlation = np.corrcoef(counts)
    error = 1.0 / np.sqrt(counts.shape[1] - 3.0)
    rows = []
    for one, other in zip(*np.triu_indices(len(apart), 1), strict=True):
        value = float(np.clip(correlation[one, other], -1.0 + 1e-12, 1.0 - 1e-12))
        if np.arctanh(value) > SURE * error:
            rows.append((apart[one], apart[other], value, error * (1.0 - value**2)))
    return pd.DataFrame(rows, columns=list(TOGETHER_COLUMNS))


def together_notes(pairs: pd.DataFrame) -> list[str]:
    """Say who moves together, with how strongly the closest pair does."""
    if pairs.empty:
        return []
    closest = pairs.loc[pairs["correlation"].idxmax()]
    more = f" and {len(pairs) - 1} more pairs" if len(pairs) > 1 else ""
    return [
        f"publishers {closest['publisher']} and {closest['other']}{more} publish more at the same "
        f"times (correlation {closest['correlation']:.2f} of counts); the fitted system varies "
        "them independently, so it underestimates peaks. To keep the peaks, use 'characterise "
        "--replay'"
    ]
