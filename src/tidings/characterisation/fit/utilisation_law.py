r"""Service times by the utilisation law, from how busy a resource was and what it completed.

One event type: :math:`S = U/X`. Several types share a resource: in every sampled interval

.. math:: U_i = U_0 + \sum_t X_{it} S_t + \varepsilon_i,

so the S are the coefficients of a regression of utilisations on throughputs. The background load
:math:`U_0`, of what is no event, is there only where the samples show it; else the line goes
through the origin. Where they could not show it, as throughputs hardly changed, it is said how
large it may be for all they tell, and the errors of S are those of not knowing it. Types can be
told apart only as far as their throughputs did not rise and fall together; where they did, the
answer is refused and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tidings.model.arrays import Floats

MOST_CONDITION = 1e6  # of throughputs scaled to length 1; above it nothing can be told apart
CONFIDENCE_SES = 1.96
BACKGROUND_SES = 3.0  # a background load is believed in from here on
NEGLIGIBLE = 0.05  # a type that may account for at most this share of the load does not use it


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceFit:
    """Service times at one resource, by event type, or why they cannot be estimated.

    A service time of exactly 0 is that of a type that does not use the resource: its interval
    reaches 0, and what it may account for at most is negligible.
    """

    broker: str
    resource: str
    samples: int
    services_s: Mapping[str, float]
    services_se_s: Mapping[str, float]
    explained: float  # share of the variance of utilisation that the fit explains
    background: float = 0.0  # utilisation by what is no event
    background_se: float = 0.0
    hidden: float = 0.0  # utilisation that may be background for all the samples tell; 0 if little
    refusal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Samples:
    """The samples of one resource: how busy it was, and the throughput of each type."""

    types: tuple[str, ...]
    rates_per_s: Floats  # [sample, type]
    busy: Floats
    weights: Floats  # long intervals say more: their throughputs are surer

    def only(self, chosen: Sequence[bool]) -> _Samples:
        kept = tuple(name for name, keep in zip(self.types, chosen, strict=True) if keep)
        return _Samples(
            types=kept,
            rates_per_s=self.rates_per_s[:, np.array(chosen, dtype=bool)],
            busy=self.busy,
            weights=self.weights,
        )


def fit_services(usage: pd.DataFrame) -> list[ResourceFit]:
    """Fit the service times of every resource, in seconds, from the rows of the usage statistic."""
    return [
        _fitted(str(broker), str(resource), _samples(rows))
        for (broker, resource), rows in usage.groupby(["broker", "resource"], sort=True)
    ]


def _samples(rows: pd.DataFrame) -> _Samples:
    samples = rows[["until_ns", "interval_ns", "busy"]].drop_duplicates()
    done = rows[rows["type"].notna()].pivot_table(
        index="until_ns", columns="type", values="completed", aggfunc="sum", fill_value=0
    )
    table = samples.set_index("until_ns").join(done, how="left").fillna(0.0).sort_index()
    length_s = table["interval_ns"].to_numpy(dtype=np.float64) / 1e9
    return _Samples(
        types=tuple(str(name) for name in done.columns),
        rates_per_s=table[list(done.columns)].to_numpy(dtype=np.float64) / length_s[:, None],
        busy=table["busy"].to_numpy(dtype=np.float64),
        weights=np.sqrt(length_s / length_s.mean()),
    )


def _fitted(broker: str, resource: str, seen: _Samples) -> ResourceFit:
    refusal = _refused(seen)
    if not refusal:
        first = _line(seen)
        idle = [_is_idle(seen, first, at) for at in range(len(seen.types))]
        unsure = [
            name
            for name, unused, service_s, error_s in zip(
                seen.types, idle, first.services_s, first.services_se_s, strict=True
            )
            if not unused and service_s < CONFIDENCE_SES * error_s
        ]
        refusal = _unsure(unsure) if unsure else ""
    if refusal:
        return ResourceFit(
            broker=broker,
            resource=resource,
            samples=len(seen.busy),
            services_s={},
            services_se_s={},
            explained=float("nan"),
            refusal=f"{resource} of {broker}: {refusal}",
        )
    # What does not use the resource takes no part, and what does is the surer for it.
    used = seen.only([not unused for unused in idle])
    last = _line(used) if used.types else first
    services = dict.fromkeys(seen.types, 0.0) | dict(zip(used.types, last.services_s, strict=False))
    errors = dict(zip(seen.types, first.services_se_s, strict=True))
    hidden, errors_s = _hidden(used, last) if used.types else (0.0, ())
    errors |= dict(zip(used.types, errors_s, strict=True))
    return ResourceFit(
        broker=broker,
        resource=resource,
        samples=len(seen.busy),
        services_s=services,
        services_se_s=errors,
        explained=last.explained,
        background=last.background,
        background_se=last.background_se,
        hidden=hidden,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A regression line, through the origin or with a background load."""

    services_s: tuple[float, ...]
    services_se_s: tuple[float, ...]
    background: float
    background_se: float
    explained: float


def _line(seen: _Samples) -> _Line:
    """Fit the line of some samples, with a background load where it stands out."""
    busy = seen.busy * seen.weights
    if _tells_background(seen):
        coefficients, errors, explained = regression(_with_ones(seen), busy)
        if coefficients[-1] > BACKGROUND_SES * errors[-1] and coefficients[-1] > 1e-9:
            return _Line(
                services_s=tuple(coefficients[:-1].tolist()),
                services_se_s=tuple(errors[:-1].tolist()),
                background=float(coefficients[-1]),
                background_se=float(errors[-1]),
                explained=explained,
            )
    coefficients, errors, explained = regression(seen.rates_per_s * seen.weights[:, None], busy)
    return _Line(
        services_s=tuple(coefficients.tolist()),
        services_se_s=tuple(errors.tolist()),
        background=0.0,
        background_se=0.0,
        explained=explained,
    )


def _with_ones(seen: _Samples) -> Floats:
    """Put the throughputs beside a column for the background load, weighted."""
    ones = np.ones(len(seen.busy))
    rates: Floats = np.column_stack([seen.rates_per_s, ones]) * seen.weights[:, None]
    return rates


def _tells_background(seen: _Samples) -> bool:
    """Test whether a background load could be told apart from the events at all."""
    count, kinds = seen.rates_per_s.shape
    return count >= kinds + 3 and _condition(_with_ones(seen)) <= MOST_CONDITION


def _hidden(seen: _Samples, line: _Line) -> tuple[float, tuple[float, ...]]:
    """Bound the background load that a line through the origin may hide; widen errors of S by it.

    The line holds if there is none. What counts is its upper limit (95 %), where that is not
    negligible; no sample can be less busy than the background. Errors reach to the S it would give.
    """
    if line.background > 0.0:
        return 0.0, line.services_se_s
    most = max(float(seen.busy.min()), 0.0)
    if _tells_background(seen):
        coefficients, errors, _ = regression(_with_ones(seen), seen.busy * seen.weights)
        most = min(most, max(float(coefficients[-1]), 0.0) + CONFIDENCE_SES * float(errors[-1]))
    if most <= NEGLIGIBLE * float(seen.busy.mean()):
        return 0.0, line.services_se_s
    taken_s, _, _ = regression(seen.rates_per_s * seen.weights[:, None], most * seen.weights)
    widened: Floats = np.hypot(line.services_se_s, taken_s / CONFIDENCE_SES)
    return most, tuple(widened.tolist())


def _is_idle(seen: _Samples, line: _Line, at: int) -> bool:
    """Test whether a type may well take no time, and at most a negligible share of the load."""
    service_s, error_s = line.services_s[at], line.services_se_s[at]
    rate, busy = float(seen.rates_per_s[:, at].mean()), float(seen.busy.mean())
    rounding = abs(service_s) * rate <= 1e-9 * busy
    if service_s >= CONFIDENCE_SES * error_s and not rounding:
        return False
    most_s = max(service_s, 0.0) + CONFIDENCE_SES * error_s
    return most_s * rate <= NEGLIGIBLE * busy


def regression(rates: Floats, busy: Floats) -> tuple[Floats, Floats, float]:
    """Compute coefficients of all columns, standard errors, and the explained share of variance.

    Errors hold where some intervals scatter more than others (White's, with n/(n − k)).
    """
    inverse = np.linalg.inv(rates.T @ rates)
    coefficients: Floats = inverse @ rates.T @ busy
    left = busy - rates @ coefficients
    count, kinds = rates.shape
    spread = (rates * left[:, None]).T @ (rates * left[:, None]) * count / (count - kinds)
    errors: Floats = np.sqrt(np.diag(inverse @ spread @ inverse))
    total = float(((busy - busy.mean()) ** 2).sum())
    explained = 1.0 - float((left**2).sum()) / total if total > 0.0 else 1.0
    return coefficients, errors, explained


def _condition(columns: Floats) -> float:
    lengths = np.sqrt((columns**2).sum(axis=0))
    return float(np.linalg.cond(columns / lengths)) if (lengths > 0.0).all() else np.inf


def _refused(seen: _Samples) -> str:
    types, count = seen.types, len(seen.busy)
    if not types:
        return "no event was completed while it was sampled"
    if count < len(types) + 2:
        return f"{count} samples are too few for {len(types)} event types"
    condition = _condition(seen.rates_per_s * seen.weights[:, None])
    if condition > MOST_CONDITION:
        return (
            f"the throughputs of {', '.join(types)} change together (condition number "
            f"{condition:.1e}), so their shares cannot be separated; measure with other "
            "mixes of types, or one type at a time"
        )
    return ""


def _unsure(types: list[str]) -> str:
    return (
        f"the 95 % interval of the service time of {', '.join(types)} reaches 0, and "
        "their possible load is not negligible; take more samples, or measure with other "
        "mixes of types"
    )


def fit_rows(fits: Sequence[ResourceFit]) -> Iterator[dict[str, object]]:
    """Yield the fits as rows of a table, one for each resource and event type."""
    for fit in fits:
        for kind, service_s in fit.services_s.items():
            yield {
                "broker": fit.broker,
                "resource": fit.resource,
                "type": kind,
                "service_mean_s": service_s,
                "service_mean_se_s": fit.services_se_s[kind],
                "count": fit.samples,
                "explained": fit.explained,
                "background": fit.background,
                "hidden": fit.hidden,
            }
