"""Intervals around predicted on-time shares: how sure parameters are, and how good the model is."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pandas as pd

from tidings.errors import InvalidInputError
from tidings.model.outcome import Outcome
from tidings.theory.stated_errors import MODEL_ERROR, PossibleError, possible_error


def intervals(
    outcome: Outcome, *, level: float = 0.9, model_error: float | None = None
) -> pd.DataFrame:
    """For each subscriber the shares between which the true one lies with probability ``level``.

    The standard error of parameters (none where the outcome has no error bars) and the error of the
    model are taken as independent and normal: share ± z √(se² + model_error²), within 0 and 1.
    With ``model_error=0`` it is the interval of what the model would say of the true parameters.
    Unless it is given, it is how far the prediction says that it may be off; what is above
    ``MODEL_ERROR`` is the most that was seen, no standard error: share ± √((z se)² + error²).
    Where that is not known ``model_error`` is NaN in the answer, and the interval too narrow.
    """
    if not 0.0 < level < 1.0 or not 0.0 <= (model_error or 0.0) < 1.0:
        raise InvalidInputError(
            f"level is {level}, model_error {model_error}; wants shares between 0 and 1"
        )
    rows = outcome.subscribers
    z = NormalDist().inv_cdf(0.5 + level / 2)
    if model_error is None:
        possible = possible_error(outcome)
        beside = max(z * min(possible.share, MODEL_ERROR), possible.share)
    else:
        possible, beside = PossibleError(share=model_error), z * model_error
    half = np.hypot(z * np.nan_to_num(rows["on_time_se"].to_numpy()), beside)
    share = rows["on_time"].to_numpy()
    return pd.DataFrame(
        {
            "subscriber": rows["subscriber"],
            "on_time": share,
            "low": np.maximum(share - half, 0.0),
            "high": np.minimum(share + half, 1.0),
            "model_error": np.nan if possible.whole is None else possible.whole,
        }
    )
