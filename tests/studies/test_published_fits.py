"""Laws of failures fitted again: planted periods, and what is wrong with a folder."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from studies.harness import silent
from studies.published_fits import Settings, fit_gamma, fit_weibull, refit, run
from tidings.errors import InvalidInputError


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Forty nodes, up and down by turns, with laws as if published: one of them is wrong."""
    folder = tmp_path_factory.mktemp("archive")
    rng = np.random.default_rng(4)
    rows = []
    for node in range(40):
        at = 0.0
        for up, length in zip([1, 0] * 25, rng.exponential(3600.0, 50), strict=True):
            rows.append((node, up, at, at + length))
            at += length
    rows.append((0, 1, 5.0, 5.0))  # without length
    names = ["node_id", "event_type", "event_start_time", "event_stop_time"]
    periods = pd.DataFrame(rows, columns=names)
    periods.to_parquet(folder / "planted_events.parquet")
    hours = (periods["event_stop_time"] - periods["event_start_time"]) / 3600.0
    down, up = hours[periods["event_type"] == 0], hours[(periods["event_type"] == 1) & (hours > 0)]
    logs = np.log(up)
    (folder / "published_fits.csv").write_text(
        "trace,state,dist,p1,p2,p1_name,p2_name\n"
        f"planted,unavailable,exponential,{down.sum() / down.size:.2f},,mean_h,\n"
        f"planted,available,lognormal,{logs.mean():.2f},{logs.mean() + 9:.2f},mu_log_h,sigma\n"
        "planted,available,zipf,1.0,,shape,\n"
        "elsewhere,available,exponential,1.0,,mean_h,\n"
    )
    return folder


def test_what_is_published_is_found_again_and_what_is_wrong_is_seen(archive):
    found = refit(archive)
    assert [(one.state, one.parameter, one.agrees) for one in found.itertuples()] == [
        ("unavailable", "mean_h", True),
        ("available", "mu_log_h", True),
        ("available", "sigma", False),
    ]
    shown = run(Settings(traces=archive), silent)
    assert [each.holds for each in shown.findings] == [True, False]
    assert shown.summary.startswith("3 published numbers, 2 of them ours")


def test_likelihood_is_greatest_at_the_fitted_laws():
    hours = np.random.default_rng(1).weibull(0.6, 4000) * 7.0
    # where the derivatives of the logarithm of the likelihood vanish
    shape, scale = fit_weibull(hours).values()
    assert scale**shape == pytest.approx(np.mean(hours**shape), rel=1e-3)
    shape, scale = fit_gamma(hours).values()
    assert shape * scale == pytest.approx(hours.mean(), rel=1e-3)


@pytest.mark.parametrize("text", [None, "trace,state\na,b\n"])
def test_a_folder_without_published_laws_is_told(archive, tmp_path, text):
    (tmp_path / "planted_events.parquet").write_bytes(
        (archive / "planted_events.parquet").read_bytes()
    )
    if text is not None:
        (tmp_path / "published_fits.csv").write_text(text)
    with pytest.raises(InvalidInputError, match="wants a CSV file with the columns trace, state"):
        refit(tmp_path)
