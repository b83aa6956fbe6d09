from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from studies.fault_tolerance.fitted_components import component_fits, kolmogorov, summary
from studies.fault_tolerance.uptime_traces import Uptimes
from tidings.model.laws import Exponential


def probed(count, seed):
    """A trace of sites that are checked every five minutes, each from some state on."""
    rng = np.random.default_rng(seed)
    rows = []
    for site in range(count):
        lengths_s = 300.0 * np.ceil(np.tile([40.0, 4.0], 60) * rng.weibull(0.6, 120) / 5)
        begin_s = np.cumsum(lengths_s) - lengths_s
        up, number = np.arange(120) % 2 == 0, np.arange(120)
        rows.append(
            pd.DataFrame(
                {
                    "scope": "monitor",
                    "component": site,
                    "up": up,
                    "begin_s": begin_s,
                    "length_s": lengths_s,
                    "begun": number > 0,
                    "ended": number < 119,
                }
            )
        )
    return Uptimes(name="sites", periods=pd.concat(rows, ignore_index=True))


def test_components_are_up_as_much_as_they_were_seen():
    fits = component_fits(probed(4, seed=3))
    assert fits["component"].nunique() == 4
    assert fits["fitted"].to_numpy() == pytest.approx(fits["seen"].to_numpy(), rel=1e-9)
    assert (fits.loc[fits["verdict"] == "fits", "distance"] <= 0.05).all()
    assert "empirical" in set(fits["family"])
    assert "4 components; availability off by" in summary("sites", fits)


def test_the_distance_is_that_of_the_farther_side_of_a_step():
    law = Exponential(mean_s=1.0)
    share = 1.0 - np.exp(-1.0)
    assert kolmogorov(np.array([1.0]), law) == pytest.approx(max(share, 1.0 - share), rel=1e-12)
