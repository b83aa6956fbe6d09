"""How things spread, on a terminal."""

from __future__ import annotations

from rich.console import Console

from tidings.reporting.diffusion import diffusion_tables

SPREAD = {
    "spreads": 1200, "partial": 77, "nowhere": 31, "cut_off": 9, "brokers": 3.0, "mean_s": 1.5,
    "mean_se_s": 0.01,
    "typical_s": 3.0, "typical_se_s": None, "worst_s": 3.5, "worst_se_s": 0.25,
    "curve": [{"time_s": 1.0, "reached": 0.5}, {"time_s": 3.5, "reached": 1.0}],
    "points": [{"time_s": 1.0, "reached": 0.5, "reached_se": 0.015}],
}  # fmt: skip
SHARE = {"events": 40.0, "notified": 0.25, "notified_se": 0.0685}


def test_what_is_known_is_shown_with_its_error_and_the_rest_as_unknown():
    fit = {"value": 1.25, "error": 0.02, "within_s": 7.0, "within_se_s": 0.35}
    document = {
        "subscriptions": SPREAD,
        "publications": SPREAD,
        "rapidity": {"worst": fit, "typical": fit, "notified": fit | {"value": None}},
        "curves": [{"curve": "f", "from_s": 0.0, "to_s": 3.5, **SHARE}],
        "shares": [
            {"stay_mean_s": 12.0, "lives": 4, "closed_form": 0.3, "by_couples": None, **SHARE}
        ],
        "couples": 1234,
    }
    console = Console(width=140)
    with console.capture() as shown:
        console.print(*diffusion_tables(document))
    text = shown.get()
    assert "1.5 ± 0.01 s" in text
    assert "0.5 ± 0.015" in text
    assert "3.5 ± 0.25 s" in text
    assert "7 ± 0.35 s" in text
    assert "77" in text
    assert "31" in text
    assert "1.25 ± 0.02" in text
    assert "– ± 0.02" in text
    assert "0 – 3.5 s" in text
    assert "0.25 ± 0.069" in text
    assert "g:" not in text  # nothing was published there
    assert "0.3000" in text
    assert "1,234" in text
