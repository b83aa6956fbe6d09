"""Learnt parameters against the truth, where it is known."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tidings.validation.comparison import Check


def parameter_z(parameters: pd.DataFrame) -> pd.Series:
    """Compute how many standard errors each estimate is off its truth; NaN where one is unknown."""
    difference = parameters["estimate"].astype(float) - parameters["truth"].astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return difference / parameters["standard_error"].astype(float)


def check_parameters(parameters: pd.DataFrame, *, max_z: float) -> Check:
    """Check that no parameter lies more than so many standard errors from its truth."""
    worst = float(parameter_z(parameters).abs().max())
    return Check(
        name="parameters",
        value=worst,
        limit=max_z,
        passed=worst <= max_z,
        text=f"parameters fitted to the traces: the worst of {len(parameters)} is {worst:.1f} "
        f"standard errors from the truth, wants at most {max_z:g}",
    )
