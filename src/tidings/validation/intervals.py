"""Intervals around predicted on-time shares: how sure parameters are, how good the engine is."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pandas as pd

from tidings.errors import InvalidInputError
from tidings.model.arrays import Floats
from tidings.model.outcome import Outcome

OF_95 = NormalDist().inv_cdf(0.975)  # standard deviations in half a 95 % interval
_MOST = 500.0  # change of log-odds, beyond which a share is 0 or 1


def intervals(
    outcome: Outcome, *, level: float = 0.9, model_error: float | None = None
) -> pd.DataFrame:
    """Give for each subscriber the shares between which the true one lies with this probability.

    The standard error in the row (parameters, replications) is taken as normal in the log-odds of
    the share, since few failures make misses uncertain by a factor; the error of the engine, as
    independent and normal, is added to either side in squares. The engine's is that of
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
    share = rows["on_time"].to_numpy()
    below, above = sides(share, np.nan_to_num(rows["on_time_se"].to_numpy(), posinf=np.inf), z)
    of_engine = z * np.nan_to_num(own) / OF_95
    return pd.DataFrame(
        {
            "subscriber": rows["subscriber"],
            "on_time": share,
            "low": np.maximum(share - np.hypot(below, of_engine), 0.0),
            "high": np.minimum(share + np.hypot(above, of_engine), 1.0),
            "model_error": own,
        }
    )


def sides(share: Floats, standard_error: Floats, z: float) -> tuple[Floats, Floats]:
    """Compute how far an interval of ± z standard errors in the log-odds of a share reaches.

    Below the share and above it. Where the error is larger than the misses (or the hits), so that
    log-odds say nothing, the long side is that of the share itself.

    >>> below, above = sides(np.array([0.5, 0.9]), np.array([0.01, 0.05]), 1.96)
    >>> below.round(3), above.round(3)
    (array([0.02 , 0.148]), array([0.02 , 0.064]))
    """
    hits, misses = share, 1.0 - share
    half, spread = z * standard_error, hits * misses
    wide = np.minimum(np.divide(half, spread, out=np.zeros_like(half), where=spread > 0.0), _MOST)
    factor = np.exp(np.minimum(wide, z))
    below = hits - hits / (hits + misses * np.where(misses <= hits, factor, np.exp(wide)))
    above = hits / (hits + misses / np.where(misses <= hits, np.exp(wide), factor)) - hits
    vague = wide > z
    below = np.where(vague & (misses <= hits), np.maximum(below, half), below)
    above = np.where(vague & (misses > hits), np.maximum(above, half), above)
    sure = spread <= 0.0
    return np.where(sure, half, below), np.where(sure, half, above)


def engine_errors(by: pd.Series, error: pd.Series) -> Floats:
    """Give half the 95 % interval of what the engine adds to the standard error of each row.

    That of simulated rows is in their standard error already; what nobody states is NaN.
    """
    beside: Floats = np.where(by == "simulation", 0.0, error)
    return beside
