"""A fit to traces with what brokers report besides; or a fit to that alone."""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata

import pandas as pd

from tidings.characterisation.fit.clocks import CLOCK_COLUMNS
from tidings.characterisation.fit.counting import Observed
from tidings.characterisation.fit.fitted import Characterisation
from tidings.characterisation.fit.parameters import PARAMETER_COLUMNS, parameter_table
from tidings.characterisation.fit.quality import COVERAGE_COLUMNS, QUALITY_COLUMNS
from tidings.characterisation.fit.queue_systems import system_of_queues, with_queues
from tidings.characterisation.fit.reported import Reported, add_reported
from tidings.characterisation.fit.stationarity import STATIONARITY_COLUMNS
from tidings.characterisation.fit.traffic import TRAFFIC_COLUMNS
from tidings.characterisation.fit.traffic_notes import DISPERSION_COLUMNS
from tidings.errors import InvalidTracesError
from tidings.model.outcome import Outcome, table
from tidings.model.system import System


def fit_reported(reported: Reported, observed: Observed, base: System | None) -> Characterisation:
    """Fit a system to counters and histograms alone, and measure what these tell.

    Without a base system, every queue is one subscriber of a broker that takes no time.
    """
    if not reported.names:
        raise InvalidTracesError(
            f"{observed.source}: of no queue two polls can be compared, and no histogram has "
            "counts; wants either"
        )
    system = base or system_of_queues(reported)
    return with_reported(_unmeasured(system, observed), reported, system)


def with_reported(
    fitted: Characterisation, reported: Reported, base: System | None
) -> Characterisation:
    """Add to a fit whatever brokers report of what traces do not tell.

    Of whom traces have not one delivery, they tell nothing: what it is handed is not recorded.
    Queues that are in no trace are added, unless ``base`` says what the system is.
    """
    system, said = (fitted.system, ()) if base else with_queues(fitted.system, reported)
    seen = fitted.measured.subscribers
    traced = set(seen.loc[seen["delivered"] > 0, "subscriber"].astype(str))
    learnt = set(fitted.parameters["path"].astype(str))
    added = add_reported(system, reported, traced=traced, learnt=learnt)
    new = [row["subscriber"] for row in added.rows]
    notes = (*fitted.notes, *said, *added.notes)
    outcome = replace(
        fitted.measured,
        subscribers=_together(
            seen[~seen["subscriber"].isin(new)], table("subscribers", added.rows)
        ),
        delays=_together(
            fitted.measured.delays[~fitted.measured.delays["subscriber"].isin(new)],
            table("delays", added.delays.to_dict("list")) if len(added.delays) else added.delays,
        ),
        provenance={**fitted.measured.provenance, "warnings": notes},
    )
    return replace(
        fitted,
        system=added.system,
        measured=outcome,
        parameters=_together(fitted.parameters, parameter_table(added.parameters)),
        quality=_together(fitted.quality, reported.quality),
        notes=notes,
    )


def _together(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Put two tables one below the other."""
    filled = [each for each in (old, new) if len(each)]
    return pd.concat(filled, ignore_index=True) if filled else new


def _unmeasured(system: System, observed: Observed) -> Characterisation:
    """Make the characterisation of a system of which nothing has been measured yet."""
    provenance = {
        "version": metadata.version("tidings"),
        "engine": "characterisation",
        "traces": observed.source,
        "from_ns": observed.window.from_ns,
        "until_ns": observed.window.until_ns,
        "warnings": observed.notes,
    }
    return Characterisation(
        system=system,
        measured=Outcome(
            source="measured", subscribers=table("subscribers"), provenance=provenance
        ),
        parameters=pd.DataFrame(columns=list(PARAMETER_COLUMNS)),
        waits=pd.DataFrame(columns=list(PARAMETER_COLUMNS)),
        quality=pd.DataFrame(columns=list(QUALITY_COLUMNS)),
        coverage=pd.DataFrame(columns=list(COVERAGE_COLUMNS)),
        stationarity=pd.DataFrame(columns=list(STATIONARITY_COLUMNS)),
        clocks=pd.DataFrame(columns=list(CLOCK_COLUMNS)),
        kinds={},
        traffic=pd.DataFrame(columns=list(TRAFFIC_COLUMNS)),
        dispersion=pd.DataFrame(columns=list(DISPERSION_COLUMNS)),
        laws={},
        rates=pd.DataFrame(columns=["publisher", "at_s", "per_s"]),
        notes=observed.notes,
    )
