"""Intervals around predicted on-time shares: how sure parameters are, how good the engine is."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pandas as pd

from tidings.errors import InvalidInputError
from tidings.model.arrays import Floats
from tidings.model.outcome import Outcome

OF_95 = NormalDist().inv_cdf(0.975)  # standard deviations in half a 95 % interval


def intervals(
    outcome: Outcome, *, level: float = 0.9, model_error: float | None = None
) -> pd.DataFrame:
    """Give for each subscriber the shares between which the true one lies with this probability.

    The standard error in the row (parameters, replications) and the error of the engine are taken
    as independent and normal: share ± z √(se² + engine²), within 0 and 1. The engine's is that of
    the row, or ``model_error`` if given, as a standard error. With ``model_error=0`` it is the
    interval of what the model would say of the true parameters. ``model_error`` in the answer is
    half a 95 % interval; it is NaN, and the interval too narrow, where the outcome does not say it.
    """
    if not 0.0 < level < 1.0 or not 0.0 <= (model_error or 0.0) < 1.0:
        raise InvalidInputError(
            f"level is {level}, model_error {model_error}; wants shares between 0 and 1"
        )
    rows = outcome.subscribers
    z = NormalDist().inv_cdf(0.5 + level / 2)
    own = engine_errors(rows["by"], rows["error"])
    if model_error is not None:
        own = np.full(len(rows), OF_95 * model_error)
    half = z * np.hypot(np.nan_to_num(rows["on_time_se"].to_numpy()), np.nan_to_num(own) / OF_95)
    share = rows["on_time"].to_numpy()
    return pd.DataFrame(
        {
            "subscriber": rows["subscriber"],
            "on_time": share,
            "low": np.maximum(share - half, 0.0),
            "high": np.minimum(share + half, 1.0),
            "model_error": own,
        }
    )


def engine_errors(by: pd.Series, error: pd.Series) -> Floats:
    """Give half the 95 % interval of what the engine adds to the standard error of each row.

    That of simulated rows is in their standard error already; what nobody states is NaN.
    """
    beside: Floats = np.where(by == "simulation", 0.0, error)
    return beside
