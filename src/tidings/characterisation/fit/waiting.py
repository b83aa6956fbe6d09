"""How long events wait at brokers: the share that waits at all, and the law of their waits.

Waits are not assumptions of a system but what comes of it, so that they are reported and not part
of the fitted system: predicted waits can be held against them.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd

from tidings.characterisation.fit.laws import fit_law
from tidings.characterisation.fit.parameters import Parameter, law_parameter
from tidings.characterisation.fit.samples import sample_from_rows
from tidings.characterisation.statistics import BATCHES, WAITING
from tidings.model.standard_errors import batch_share_se, ratio_se


def waiting_parameters(broker: str, hops: pd.DataFrame) -> list[Parameter]:
    """The share of events that wait at a broker, and the mean wait of these, in seconds.

    Waits of events that follow each other are alike: standard errors come from batches, and the law
    is judged by as many independent times as would tell the mean as well.
    """
    mine = hops[hops["broker"] == broker]
    batches = mine[mine["statistic"] == "batches"]
    sums = {name: np.zeros(BATCHES) for name in ("count", "waited", "wait_total_s")}
    for name, by_batch in sums.items():
        values = batches[name].fillna(0.0).to_numpy(dtype=np.float64)
        np.add.at(by_batch, batches["batch"].to_numpy(dtype=np.int64), values)
    served, waited = sums["count"], sums["waited"]
    if served.sum() == 0:
        return []
    share = Parameter(
        path=f"brokers.{broker}.waiting.share",
        estimate=float(waited.sum() / served.sum()),
        standard_error=float(batch_share_se(waited, served)),
        count=int(served.sum()),
        unit="share",
    )
    sample = sample_from_rows(mine[mine["statistic"] == WAITING])
    if sample.count == 0:
        return [share]
    error_s = float(ratio_se(sums["wait_total_s"], waited))
    fitted = fit_law(sample, as_good_as=_as_good_as(sample.variance_s2, error_s, sample.count))
    mean = law_parameter(f"brokers.{broker}.waiting", fitted)
    return [replace(mean, standard_error=error_s), share]


def _as_good_as(variance_s2: float, error_s: float, count: int) -> int:
    """How many independent times would tell the mean as well: variance over squared error.

    >>> _as_good_as(4.0, 0.2, 1000)
    100
    """
    if not (math.isfinite(error_s) and error_s > 0 and math.isfinite(variance_s2)):
        return count
    return max(2, min(count, round(variance_s2 / error_s**2)))
