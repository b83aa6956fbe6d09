"""What is known of a system, number by number, so that what is learnt can be held against it."""

from __future__ import annotations

import pandas as pd

from tidings.characterisation.fit.fitted import Characterisation
from tidings.model.parameter_values import parameter_values
from tidings.model.system import System
from tidings.watching.judging import Value


def known_values(system: System) -> dict[str, Value]:
    """Rates, services, delays and reliabilities by path, with the errors that the system states."""
    errors = dict(system.standard_errors)
    return {
        path: Value(value=value, error=errors.get(path, 0.0))
        for path, value in parameter_values(system)
    }


def learnt_values(found: Characterisation) -> dict[str, Value]:
    """The same of what was learnt from traces."""
    rows = found.parameters
    good = rows[rows["estimate"].notna()]
    return {
        str(row.path): Value(
            value=float(row.estimate),
            error=0.0 if pd.isna(row.standard_error) else float(row.standard_error),
            count=int(row.count_),
        )
        for row in good.rename(columns={"count": "count_"}).itertuples()
    }
