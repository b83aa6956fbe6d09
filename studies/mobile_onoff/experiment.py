"""The mobile-peers experiments: response against rate, antennas, traces, and end-to-end times.

Each by theory and, unless no runs are asked for (NaN then), by simulation with its standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from studies.mobile_onoff.antennas import (
    ANTENNAS,
    CENTRE,
    antenna_rows,
    synthetic_rates,
)
from studies.mobile_onoff.centre import (
    exponential_centre,
    published_response_s,
    response_quantiles_s,
)
from studies.mobile_onoff.connectivity import PathFindings, response_table
from studies.mobile_onoff.scenarios import (
    CENTRE_COUNTS,
    TABLE_3,
    Scenario,
    scenario_system,
)
from studies.mobile_onoff.scenarios import (
    SERVICE_S as PATH_SERVICE_S,
)
from studies.mobile_onoff.simulating import (
    Effort,
    Simulated,
    respond,
    respond_at_centre,
    respond_to_rates,
    trace_rows,
)
from studies.mobile_onoff.varying import VaryingResponse, varying_response
from tidings.model.behaviour import DailyRates
from tidings.model.system import System
from tidings.prediction.predict import predict

RATES_PER_S = tuple(float(rate) for rate in (0.05, *np.arange(0.25, 4.0, 0.25), 3.9))
PERIODS_S = (20.0, 40.0, 60.0)
SERVICE_S = 0.125
METRO_PERIODS_S = {"metro path 1": (146.38, 96.0), "metro path 2": (155.88, 72.15)}
METRO_SERVICES_S = (0.125, 0.0625)
SIMULATED_RATES_PER_S = (0.05, 1.0, 2.0, 3.0, 3.5, 3.9)
NOTHING_SIMULATED = Effort(runs=0)

Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Results:
    """What came out: response times by rate, and end to end."""

    by_rate: pd.DataFrame
    end_to_end: pd.DataFrame
    antennas: pd.DataFrame
    responses: Mapping[str, VaryingResponse]  # of the antennas, slot by slot
    paths: Sequence[PathFindings] = ()
    by_law: pd.DataFrame | None = None  # responses on the paths
    traced: pd.DataFrame | None = None  # a short trace drawn from, and gone through in turn
    effort: Effort = NOTHING_SIMULATED


def reproduce(
    progress: Progress = lambda _: None,
    *,
    effort: Effort = NOTHING_SIMULATED,
    paths: Sequence[PathFindings] = (),
    antennas: Mapping[str, DailyRates] | None = None,
) -> Results:
    """Work the experiments out; ``progress`` is told which scenario is under way.

    ``paths`` are real times connected and away, ``antennas`` real rates in place of synthetic ones.
    """
    progress("response against rate")
    by_rate = pd.DataFrame(
        [
            *(_at_rate(f"T_ON = T_OFF = {t:g} s", SERVICE_S, (t, t), effort) for t in PERIODS_S),
            *(
                _at_rate(f"{name}, D = {service_s:g} s", service_s, periods_s, effort)
                for name, periods_s in METRO_PERIODS_S.items()
                for service_s in METRO_SERVICES_S
            ),
        ],
    )
    end_to_end = _table(effort, progress)
    progress("antennas")
    rates = antennas or {each.name: synthetic_rates(each) for each in ANTENNAS}
    responses = {name: varying_response(CENTRE, each) for name, each in rates.items()}
    return Results(
        by_rate=by_rate.explode(list(_BY_RATE), ignore_index=True),
        end_to_end=end_to_end,
        antennas=_with_simulated(pd.DataFrame(antenna_rows(rates, responses)), rates, effort),
        responses=responses,
        paths=paths,
        by_law=response_table(paths, effort) if paths else None,
        traced=pd.DataFrame(trace_rows(effort)) if effort.runs else None,
        effort=effort,
    )


def _with_simulated(
    table: pd.DataFrame, rates: Mapping[str, DailyRates], effort: Effort
) -> pd.DataFrame:
    found = [respond_to_rates(CENTRE, each, effort) for each in rates.values()]
    return table.assign(
        simulated_s=[each.mean_s for each in found], simulated_se_s=[each.error_s for each in found]
    )


_BY_RATE = (
    "rate_per_s", "load", "response_s", "median_s", "p95_s", "simulated_s", "simulated_se_s",
)  # fmt: skip


def _at_rate(
    name: str, service_s: float, periods_s: tuple[float, float], effort: Effort
) -> dict[str, object]:
    centre = exponential_centre(service_s, *periods_s)
    rates = [rate for rate in RATES_PER_S if not centre.is_overloaded(rate)]
    halves_s, most_s = np.transpose(
        [response_quantiles_s(centre, rate, (0.5, 0.95)) for rate in rates]
    )
    on_s, off_s = periods_s
    nothing = replace(effort, runs=0)
    simulated = [
        respond_at_centre(centre, rate, effort if rate in SIMULATED_RATES_PER_S else nothing)
        for rate in rates
    ]
    return {
        "case": name,
        "rate_per_s": rates,
        "load": [centre.load(rate) for rate in rates],
        "response_s": [
            published_response_s(rate, service_s=service_s, on_s=on_s, off_s=off_s)
            for rate in rates
        ],
        "median_s": halves_s.tolist(),
        "p95_s": most_s.tolist(),
        "simulated_s": [each.mean_s for each in simulated],
        "simulated_se_s": [each.error_s for each in simulated],
    }


def _table(effort: Effort, progress: Progress) -> pd.DataFrame:
    rows = []
    for scenario in TABLE_3:
        for count in CENTRE_COUNTS:
            progress(f"{scenario.name}, {count} plain centres")
            system = scenario_system(scenario, count)
            published = predict(system, model="mm1", delays=False, by="theory")
            poisson_s = float(published.subscribers["delay_mean_s"][0])
            simulated = _simulated(scenario, system, effort)
            rows.append(
                {
                    "scenario": scenario.name,
                    "rate_per_s": scenario.rate_per_s,
                    "plain_centres": count,
                    "paper_simulated_s": scenario.paper_simulated_s,
                    "paper_analytic_s": scenario.paper_analytic_s,
                    "poisson_s": poisson_s,
                    "simulated_s": simulated.mean_s,
                    "simulated_se_s": simulated.error_s,
                    "deviation": poisson_s / scenario.paper_analytic_s - 1.0,
                    "note": scenario.note,
                    "stated": scenario.stated,
                }
            )
    return pd.DataFrame(rows)


def _simulated(scenario: Scenario, system: System, effort: Effort) -> Simulated:
    peers = [
        exponential_centre(PATH_SERVICE_S, *periods_s)
        for periods_s in (scenario.publisher, scenario.subscriber)
        if periods_s[1] > 0.0
    ]
    return respond(
        system,
        effort,
        cycle_s=max(each.on.mean_s + each.off.mean_s for each in peers),
        rate_per_s=scenario.rate_per_s,
        load=max(each.load(scenario.rate_per_s) for each in peers),
    )
