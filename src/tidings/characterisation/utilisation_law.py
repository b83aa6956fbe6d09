r"""Service times by the utilisation law, from how busy a resource was and what it completed.

One event type: :math:`S = U/X`. Several types share a resource: in every sampled interval

.. math:: U_i = \sum_t X_{it} S_t + \varepsilon_i,

so the S are the coefficients of a regression of utilisations on throughputs, through the origin.
It can tell types apart only as far as their throughputs did not rise and fall together; where they
did, the answer is refused and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_CONDITION = 1e6  # of throughputs scaled to length 1; above it nothing can be told apart
CONFIDENCE_SES = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceFit:
    """Service times at one resource, by event type, or why they cannot be told."""

    broker: str
    resource: str
    samples: int
    services_s: Mapping[str, float]
    services_se_s: Mapping[str, float]
    explained: float  # share of the variance of utilisation that the fit explains
    refusal: str = ""


def fit_services(usage: pd.DataFrame) -> list[ResourceFit]:
    """The service times of every resource, from the rows of the usage statistic."""
    return [
        _fitted(str(broker), str(resource), rows)
        for (broker, resource), rows in usage.groupby(["broker", "resource"], sort=True)
    ]


def _fitted(broker: str, resource: str, rows: pd.DataFrame) -> ResourceFit:
    samples = rows[["until_ns", "interval_ns", "busy"]].drop_duplicates()
    done = rows[rows["type"].notna()].pivot_table(
        index="until_ns", columns="type", values="completed", aggfunc="sum", fill_value=0
    )
    types = [str(name) for name in done.columns]
    table = samples.set_index("until_ns").join(done, how="left").fillna(0.0).sort_index()
    length_s = table["interval_ns"].to_numpy(dtype=np.float64) / 1e9
    rates = table[list(done.columns)].to_numpy(dtype=np.float64) / length_s[:, None]
    busy = table["busy"].to_numpy(dtype=np.float64)
    # Long intervals say more: their throughputs are surer.
    weight = np.sqrt(length_s / length_s.mean())
    refusal = _refused(types, rates * weight[:, None])
    if refusal:
        return ResourceFit(
            broker=broker,
            resource=resource,
            samples=len(busy),
            services_s={},
            services_se_s={},
            explained=float("nan"),
            refusal=_said(broker, resource, refusal),
        )
    services, errors, explained = regression(rates * weight[:, None], busy * weight)
    unsure = [
        name
        for name, service_s, error_s in zip(types, services, errors, strict=True)
        if service_s < CONFIDENCE_SES * error_s
    ]
    return ResourceFit(
        broker=broker,
        resource=resource,
        samples=len(busy),
        services_s={} if unsure else dict(zip(types, services.tolist(), strict=True)),
        services_se_s={} if unsure else dict(zip(types, errors.tolist(), strict=True)),
        explained=explained,
        refusal=_said(broker, resource, _unsure(unsure)) if unsure else "",
    )


def regression(rates: Floats, busy: Floats) -> tuple[Floats, Floats, float]:
    """Coefficients through the origin, standard errors, and the explained share of variance.

    Errors hold where some intervals scatter more than others (White's, with n/(n − k)).
    """
    inverse = np.linalg.inv(rates.T @ rates)
    found: Floats = inverse @ rates.T @ busy
    left = busy - rates @ found
    count, kinds = rates.shape
    spread = (rates * left[:, None]).T @ (rates * left[:, None]) * count / (count - kinds)
    errors: Floats = np.sqrt(np.diag(inverse @ spread @ inverse))
    total = float(((busy - busy.mean()) ** 2).sum())
    explained = 1.0 - float((left**2).sum()) / total if total > 0.0 else 1.0
    return found, errors, explained


def _refused(types: list[str], rates: Floats) -> str:
    if not types:
        return "no event was completed while it was sampled"
    if len(rates) < len(types) + 2:
        return f"{len(rates)} samples are too few for {len(types)} event types"
    lengths = np.sqrt((rates**2).sum(axis=0))
    condition = float(np.linalg.cond(rates / lengths))
    if condition > MOST_CONDITION:
        return (
            f"the throughputs of {', '.join(types)} rise and fall together (condition number "
            f"{condition:.1e}), so nothing tells their shares apart; measure with other mixes of "
            "types, or one type at a time"
        )
    return ""


def _unsure(types: list[str]) -> str:
    return (
        f"the 95 % interval of the service time of {', '.join(types)} reaches 0; take more "
        "samples, or measure with other mixes of types"
    )


def _said(broker: str, resource: str, reason: str) -> str:
    return f"{resource} of {broker}: {reason}"
