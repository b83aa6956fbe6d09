"""The mobile-peers experiments: response against rate, and the paper's table of end-to-end times.

Analytic so far: simulated columns of the same tables are missing (NaN) until they are run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tidings.prediction.mobility.centre import exponential_centre, published_response_s
from tidings.prediction.mobility.sojourn import sojourn_law
from tidings.prediction.predicting import predict
from tidings.reproduction.mobile_onoff.scenarios import CENTRE_COUNTS, TABLE_3, scenario_system

RATES_PER_S = tuple(float(rate) for rate in (0.05, *np.arange(0.25, 4.0, 0.25), 3.9))
PERIODS_S = (20.0, 40.0, 60.0)
SERVICE_S = 0.125
METRO_PERIODS_S = {"metro path 1": (146.38, 96.0), "metro path 2": (155.88, 72.15)}
METRO_SERVICES_S = (0.125, 0.0625)

Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Results:
    """What came out: response times by rate, and end to end."""

    by_rate: pd.DataFrame
    end_to_end: pd.DataFrame


def reproduce(progress: Progress = lambda _: None) -> Results:
    """Work the experiments out; ``progress`` is told which scenario is under way."""
    progress("response against rate")
    by_rate = pd.DataFrame(
        [
            *(_at_rate(f"T_ON = T_OFF = {t:g} s", SERVICE_S, (t, t)) for t in PERIODS_S),
            *(
                _at_rate(f"{name}, D = {service_s:g} s", service_s, periods_s)
                for name, periods_s in METRO_PERIODS_S.items()
                for service_s in METRO_SERVICES_S
            ),
        ],
    )
    return Results(
        by_rate=by_rate.explode(list(_BY_RATE), ignore_index=True), end_to_end=_table(progress)
    )


_BY_RATE = ("rate_per_s", "load", "response_s", "median_s", "p95_s", "simulated_s")


def _at_rate(name: str, service_s: float, periods_s: tuple[float, float]) -> dict[str, object]:
    centre = exponential_centre(service_s, *periods_s)
    rates = [rate for rate in RATES_PER_S if not centre.is_overloaded(rate)]
    laws = [sojourn_law(centre, rate) for rate in rates]
    on_s, off_s = periods_s
    return {
        "case": name,
        "rate_per_s": rates,
        "load": [centre.load(rate) for rate in rates],
        "response_s": [
            published_response_s(rate, service_s=service_s, on_s=on_s, off_s=off_s)
            for rate in rates
        ],
        "median_s": [float(law.quantile(0.5)) for law in laws],
        "p95_s": [float(law.quantile(0.95)) for law in laws],
        "simulated_s": [math.nan] * len(rates),
    }


def _table(progress: Progress) -> pd.DataFrame:
    rows = []
    for scenario in TABLE_3:
        for count in CENTRE_COUNTS:
            progress(f"{scenario.name}, {count} plain centres")
            system = scenario_system(scenario, count)
            found = {
                model: float(
                    predict(system, model=model, delays=False).subscribers["delay_mean_s"][0]
                )
                for model in ("mm1", "law")
            }
            rows.append(
                {
                    "scenario": scenario.name,
                    "rate_per_s": scenario.rate_per_s,
                    "plain_centres": count,
                    "paper_simulated_s": scenario.paper_simulated_s,
                    "paper_analytic_s": scenario.paper_analytic_s,
                    "poisson_s": found["mm1"],
                    "bursty_s": found["law"],
                    "simulated_s": math.nan,
                    "deviation": found["mm1"] / scenario.paper_analytic_s - 1.0,
                    "note": scenario.note,
                    "stated": scenario.stated,
                }
            )
    return pd.DataFrame(rows)
