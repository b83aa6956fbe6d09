"""A believable system to begin with: market data and airport weather over ten brokers.

Exchanges publish quotes that are worth little after a few hundred milliseconds; airports publish
weather that stays useful longer, except warnings. A hundred subscribers, from trading desks to
airlines, hang on a tree of brokers whose root is busy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.model import reading
from tidings.model.system import System

# Mean time to match and forward one event, in milliseconds.
BROKERS = {
    "frankfurt": 16.0,
    "london": 18.0,
    "paris": 17.0,
    "zurich": 18.0,
    "vienna": 19.0,
    "stockholm": 20.0,
    "dublin": 22.0,
    "madrid": 21.0,
    "milan": 22.0,
    "warsaw": 22.0,
}
# The two ends, mean delay in milliseconds, share of events that get through.
LINKS = (
    ("frankfurt", "london", 8.0, 0.998),
    ("frankfurt", "paris", 6.0, 0.999),
    ("frankfurt", "zurich", 5.0, 0.999),
    ("frankfurt", "vienna", 7.0, 0.998),
    ("frankfurt", "stockholm", 12.0, 0.997),
    ("london", "dublin", 7.0, 0.995),
    ("paris", "madrid", 11.0, 0.99),
    ("zurich", "milan", 5.0, 0.997),
    ("vienna", "warsaw", 9.0, 0.985),
)
EXCHANGES = {"xetra": "frankfurt", "lse": "london", "euronext": "paris", "six": "zurich"}
AIRPORTS = {"EDDF": "frankfurt", "EGLL": "london", "LFPG": "paris", "LOWW": "vienna"}
SYMBOLS = {
    "xetra": ("SAP", "SIE", "BMW", "ALV"),
    "lse": ("HSBA", "BP", "VOD", "AZN"),
    "euronext": ("AIR", "MC", "OR", "TTE"),
    "six": ("NESN", "NOVN", "ROG", "UBSG"),
}
SYMBOL_SHARES = (0.4, 0.3, 0.2, 0.1)
MOVES = {"small": 0.7, "large": 0.3}
QUOTES_PER_S = {"xetra": 11.0, "lse": 9.0, "euronext": 8.0, "six": 6.0}
REPORTS_PER_S = {"EDDF": 3.0, "EGLL": 3.0, "LFPG": 2.5, "LOWW": 2.0}
WEATHER = {"observation": 0.6, "forecast": 0.3, "warning": 0.1}
QUOTE_LIFETIME = {"small": "250ms", "large": "150ms"}
WEATHER_LIFETIME = {"observation": "2s", "forecast": "5s", "warning": "400ms"}
SUBSCRIBERS = 100
# What people at a broker care for: nearby exchanges and airports, and those they trade with.
TASTES = {
    "frankfurt": (("xetra", "euronext"), ("EDDF", "LOWW")),
    "london": (("lse", "euronext"), ("EGLL", "EDDF")),
    "paris": (("euronext", "xetra"), ("LFPG", "EGLL")),
    "zurich": (("six", "xetra"), ("EDDF", "LFPG")),
    "vienna": (("xetra", "six"), ("LOWW", "EDDF")),
    "stockholm": (("xetra", "lse"), ("EGLL", "EDDF")),
    "dublin": (("lse", "xetra"), ("EGLL", "LFPG")),
    "madrid": (("euronext", "six"), ("LFPG", "EGLL")),
    "milan": (("six", "euronext"), ("LFPG", "LOWW")),
    "warsaw": (("xetra", "lse"), ("LOWW", "EDDF")),
}


def market_and_weather() -> System:
    """Make the sample system, always the same."""
    return reading.from_document(
        {
            "tidings": 1,
            "description": "market data and airport weather over ten brokers",
            "brokers": {
                name: {"service": {"exponential": f"{mean:g}ms"}} for name, mean in BROKERS.items()
            },
            "links": [
                {
                    "between": [first, second],
                    "delay": {"lognormal": {"mean": f"{delay:g}ms", "scv": 0.5}},
                    "reliability": reliability,
                }
                for first, second, delay, reliability in LINKS
            ],
            "publishers": {**_exchanges(), **_airports()},
            "subscribers": _subscribers(),
        },
        "the sample system",
    )


def _exchanges() -> dict[str, Any]:
    return {
        name: {
            "at": home,
            "every": {"rate": f"{QUOTES_PER_S[name]:g}/s"},
            "content": [
                {
                    "p": round(share * likely, 4),
                    "event": {"topic": "quote", "venue": name, "symbol": symbol, "move": move},
                    "lifetime": QUOTE_LIFETIME[move],
                }
                for symbol, share in zip(SYMBOLS[name], SYMBOL_SHARES, strict=True)
                for move, likely in MOVES.items()
            ],
        }
        for name, home in EXCHANGES.items()
    }


def _airports() -> dict[str, Any]:
    return {
        name: {
            "at": home,
            "every": {"rate": f"{REPORTS_PER_S[name]:g}/s"},
            "content": [
                {
                    "p": likely,
                    "event": {"topic": "weather", "airport": name, "kind": kind},
                    "lifetime": WEATHER_LIFETIME[kind],
                }
                for kind, likely in WEATHER.items()
            ],
        }
        for name, home in AIRPORTS.items()
    }


def _subscribers() -> dict[str, Any]:
    """Make desks, funds, airlines and screens, spread over the brokers, each with its own taste."""
    random = np.random.default_rng(2026)
    brokers = list(BROKERS)
    subscribers: dict[str, Any] = {}
    for index in range(SUBSCRIBERS):
        home = brokers[index % len(brokers)]
        role = ("desk", "fund", "airline", "screen", "desk")[int(random.integers(5))]
        name = f"{role}-{home[:3]}-{index:02d}"
        subscribers[name] = {"at": home, "wants": _taste(role, home, random), "group": role}
        if random.random() < 0.3:  # a branch office behind a line of its own
            delay = float(np.round(random.uniform(2, 12), 1))
            subscribers[name]["link"] = {
                "delay": {"exponential": f"{delay:g}ms"},
                "reliability": 0.995,
            }
    return subscribers


def _taste(role: str, home: str, random: np.random.Generator) -> Any:
    venues, airports = TASTES[home]
    venue = venues[int(random.random() < 0.35)]
    if role == "desk":
        symbols = [str(s) for s in random.choice(SYMBOLS[venue], size=2, replace=False)]
        return {"topic": "quote", "symbol": {"one_of": sorted(symbols)}}
    if role == "fund":
        return [
            {"topic": "quote", "venue": venue},
            {"venue": {"one_of": list(venues)}, "move": "large"},
        ]
    if role == "airline":
        return {"topic": "weather", "airport": {"one_of": list(airports)}}
    return [{"topic": "weather", "kind": "warning"}, {"topic": "quote", "venue": venue}]
