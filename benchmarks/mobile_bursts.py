"""Bursts of ON/OFF publishers before queueing brokers: shares on time, predicted and simulated.

    python benchmarks/mobile_bursts.py

A publisher (10 events a second, ON 6 s, OFF 3 s on average) before one broker or several in a line;
three subscribers, whose events live .2, 1 and 3 s.
"""

from __future__ import annotations

import itertools
from typing import Any

from tidings.model.reading import from_document
from tidings.model.system import System
from tidings.simulation.run import simulate
from tidings.theory.predicting import predict

LIFETIMES_S = (0.2, 1.0, 3.0)
CASES: dict[str, dict[str, Any]] = {
    "one broker, .03 s": {"services_s": (0.03,)},
    "handing over takes .02 s": {"services_s": (0.03,), "hand_over_s": 0.02},
    "handing over takes .029 s": {"services_s": (0.03,), "hand_over_s": 0.029},
    "two brokers, .03 and .04 s": {"services_s": (0.03, 0.04)},
    "four brokers, .04 s": {"services_s": (0.04,) * 4},
    "a busy broker, .07 s": {"services_s": (0.07,)},
    "constant services, .05 s": {"services_s": (0.05,), "law": "deterministic"},
    "and 15 events/s of others": {"services_s": (0.03,), "others_per_s": 15.0},
    "two publishers of 5 events/s": {"services_s": (0.04,), "publishers": 2},
    "three publishers of 3.3 events/s": {"services_s": (0.04,), "publishers": 3},
    "six publishers of 1.7 events/s": {"services_s": (0.04,), "publishers": 6},
    "six publishers, two brokers": {"services_s": (0.03, 0.04), "publishers": 6},
}


def system_of(
    services_s: tuple[float, ...],
    *,
    hand_over_s: float = 0.01,
    law: str = "exponential",
    others_per_s: float = 0.0,
    publishers: int = 1,
) -> System:
    """A line of brokers with ON/OFF publishers at its beginning, subscribers at its end."""
    names = [f"b{index}" for index in range(len(services_s))]
    times_s = {"on": 6.0, "off": 3.0, "service": hand_over_s}
    connectivity = {name: {"exponential": mean_s} for name, mean_s in times_s.items()}
    sender = {"at": "b0", "every": {"exponential": 0.1 * publishers}, "connectivity": connectivity}
    everybody = {
        f"p{index}": {**sender, "content": {"event": {"topic": "a"}}} for index in range(publishers)
    }
    if others_per_s:
        content = {"event": {"topic": "b"}}
        every = {"exponential": 1.0 / others_per_s}
        everybody["others"] = {"at": "b0", "every": every, "content": content}
    document: dict[str, Any] = {
        "tidings": 1,
        "brokers": {
            name: {"service": {law: mean_s}} for name, mean_s in zip(names, services_s, strict=True)
        },
        "links": [{"between": list(pair)} for pair in itertools.pairwise(names)],
        "publishers": everybody,
        "subscribers": {
            f"s{lifetime_s:g}": {"at": names[-1], "wants": {"topic": "a"}, "lifetime": lifetime_s}
            for lifetime_s in LIFETIMES_S
        },
    }
    if others_per_s:
        for lifetime_s in LIFETIMES_S:
            other = {"at": names[-1], "wants": {"topic": "b"}, "lifetime": lifetime_s}
            document["subscribers"][f"o{lifetime_s:g}"] = other
    return from_document(document, "bursts")


def main() -> None:
    print("| behind the publisher | on time within | predicted | simulated | difference |")
    print("|---|---|---|---|---|")
    for name, case in CASES.items():
        system = system_of(**case)
        found = predict(system, delays=False).subscribers.set_index("subscriber")["on_time"]
        seen = simulate(system, seed=7, events=300_000).subscribers.set_index("subscriber")
        for who, predicted in found.items():
            row = seen.loc[who]
            cells = (
                f"{str(who)[1:]} s | {predicted:.3f}",
                f"{row['on_time']:.3f} ± {row['on_time_se']:.3f}",
                f"{predicted - row['on_time']:+.3f}",
            )
            whose = f"{name}: these" if str(who).startswith("o") else name
            print(f"| {whose} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
