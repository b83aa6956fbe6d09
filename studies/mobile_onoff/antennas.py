"""Events that come as often as an antenna is used: rates that change every ten minutes.

The paper takes two antennas of a data set that is not public. In their place stand synthetic ones
with its mean rates: busy by day, quiet by night, weekends quieter, and every slot more or less by
chance. Real counts can take their place, brought to the same means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from studies.mobile_onoff.centre import OnOff, exponential_centre, mean_response_s
from studies.mobile_onoff.varying import VaryingResponse
from tidings.model.arrays import Floats
from tidings.model.behaviour import DailyRates

SLOT_S = 600.0
DAY_SLOTS, DAYS = 144, 7
CENTRE = exponential_centre(1.0, 40.0, 40.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Antenna:
    """An antenna of the paper: its mean rate, and the response times the paper gives for it."""

    name: str
    mean_per_s: float
    paper_simulated_s: float
    paper_analytic_s: float


ANTENNAS = (
    Antenna(name="antenna 9", mean_per_s=0.04, paper_simulated_s=24.0, paper_analytic_s=23.0),
    Antenna(name="antenna 24", mean_per_s=0.075, paper_simulated_s=31.0, paper_analytic_s=30.0),
)
# How uneven the synthetic weeks are; by day the second one is far busier than by night.
_SWING = {"antenna 9": 0.5, "antenna 24": 0.95}
_SPREAD = {"antenna 9": 0.3, "antenna 24": 0.55}  # standard deviation over mean, within a slot
_WEEKEND = 0.7


def synthetic_rates(antenna: Antenna, seed: int = 1) -> DailyRates:
    """A week of ten-minute rates with the antenna's mean: 1 + swing · cosine, times gamma noise."""
    rng = np.random.default_rng([seed, ANTENNAS.index(antenna)])
    slots = np.arange(DAYS * DAY_SLOTS)
    hour = (slots % DAY_SLOTS) / 6.0
    by_day = 1.0 + _SWING[antenna.name] * np.cos(2.0 * np.pi * (hour - 15.0) / 24.0)
    by_week = np.where(slots // DAY_SLOTS >= 5, _WEEKEND, 1.0)
    shape = _SPREAD[antenna.name] ** -2
    noise = rng.gamma(shape, 1.0 / shape, slots.size)
    return with_mean(DailyRates(slot_s=SLOT_S, per_s=tuple(by_day * by_week * noise)), antenna)


def with_mean(rates: DailyRates, antenna: Antenna) -> DailyRates:
    """The same ups and downs with the antenna's mean rate."""
    per_s = np.array(rates.per_s)
    scaled = per_s * (antenna.mean_per_s / per_s.mean())
    return DailyRates(slot_s=rates.slot_s, per_s=tuple(scaled.tolist()))


def quietest_and_busiest(measured: Mapping[str, DailyRates]) -> dict[str, DailyRates]:
    """Of measured antennas the two to stand for the paper's, brought to its means."""
    by_mean = sorted(measured, key=lambda name: float(np.mean(measured[name].per_s)))
    chosen = (by_mean[0], by_mean[-1])
    return {
        f"{antenna.name} as {name}": with_mean(measured[name], antenna)
        for antenna, name in zip(ANTENNAS, chosen, strict=True)
    }


def slot_responses_s(centre: OnOff, rates: DailyRates) -> Floats:
    """Theorem 2 in every slot as if it lasted for ever, in seconds; infinite where overloaded."""
    return np.array([mean_response_s(centre, rate) for rate in rates.per_s])


def antenna_rows(
    rates: Mapping[str, DailyRates], responses: Mapping[str, VaryingResponse]
) -> Iterator[dict[str, object]]:
    """For each antenna: the paper's figures, Theorem 2 in three ways, and the exact mean."""
    for antenna, (name, each) in zip(ANTENNAS, rates.items(), strict=True):
        by_slot_s, per_s = slot_responses_s(CENTRE, each), np.array(each.per_s)
        calm = np.isfinite(by_slot_s)
        yield {
            "antenna": name,
            "mean_per_s": float(per_s.mean()),
            "most_per_s": float(per_s.max()),
            "overloaded_slots": float(1.0 - calm.mean()),
            "paper_simulated_s": antenna.paper_simulated_s,
            "paper_analytic_s": antenna.paper_analytic_s,
            "at_mean_s": mean_response_s(CENTRE, float(per_s.mean())),
            "by_slot_s": float(by_slot_s[calm].mean()),
            "by_event_s": float(per_s[calm] @ by_slot_s[calm] / per_s[calm].sum()),
            "exact_s": responses[name].response_s,
        }
