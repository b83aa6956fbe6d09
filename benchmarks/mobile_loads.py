"""Mobile peers by load: mean delays and shares on time, predicted against simulated.

    python benchmarks/mobile_loads.py

First one subscriber that comes and goes with constant times, then a publisher and a subscriber that
both come and go with exponential times. Load is that of every ON/OFF centre.
"""

from __future__ import annotations

from tidings.model.reading import loads
from tidings.model.system import System
from tidings.simulation.run import simulate
from tidings.theory.predicting import predict

LOADS = (0.2, 0.5, 0.8)
CONSTANT = "connectivity: {on: ON, off: OFF, service: WORK}"
EXPONENTIAL = CONSTANT.replace("ON,", "{exponential: ON},").replace("OFF,", "{exponential: OFF},")
EXPONENTIAL = EXPONENTIAL.replace("WORK", "{exponential: WORK}")
CASES = {  # publisher, subscriber, ON, OFF and service in seconds, lifetimes in seconds
    "constant times, 10/10 s": ("", CONSTANT, (10.0, 10.0, 0.1), (2.0, 5.0, 9.0)),
    "constant times, 4/2 s": ("", CONSTANT, (4.0, 2.0, 1.0), (2.0, 5.0, 9.0)),
    "both peers, 10/10 s": (EXPONENTIAL, EXPONENTIAL, (10.0, 10.0, 0.1), (5.0, 10.0, 30.0)),
    "both peers, 60/30 s": (EXPONENTIAL, EXPONENTIAL, (60.0, 30.0, 0.1), (5.0, 10.0, 30.0)),
}


def system_of(name: str, load: float, lifetime_s: float) -> System:
    """One case at a load."""
    publisher, subscriber, (on_s, off_s, service_s), _ = CASES[name]
    every_s = service_s * (1.0 + off_s / on_s) / load
    text = f"""
tidings: 1
lifetime: {lifetime_s}s
brokers: {{hub: {{}}}}
publishers:
  p: {{at: hub, every: {{exponential: {every_s}s}}, content: {{event: {{topic: a}}}}, {publisher}}}
subscribers: {{s: {{at: hub, wants: {{topic: a}}, {subscriber}}}}}
"""
    for word, time_s in (("ON", on_s), ("OFF", off_s), ("WORK", service_s)):
        text = text.replace(f" {word},", f" {time_s}s,").replace(f" {word}}}", f" {time_s}s}}")
    return loads(text)


def main() -> None:
    print(
        "| peers | load | mean delay: predicted, simulated | on time within | predicted "
        "| simulated | difference |\n|---|---|---|---|---|---|---|"
    )
    for name, (*_, lifetimes_s) in CASES.items():
        for load in LOADS:
            for lifetime_s in lifetimes_s:
                system = system_of(name, load, lifetime_s)
                found = predict(system).subscribers.iloc[0]
                seen = simulate(system, seed=7, replications=16, duration_s=8e3, warmup_s=800.0)
                row = seen.subscribers.iloc[0]
                cells = (
                    f"{found['delay_mean_s']:.3g} s, {row['delay_mean_s']:.3g} s",
                    f"{lifetime_s:g} s",
                    f"{found['on_time']:.3f}",
                    f"{row['on_time']:.3f} ± {row['on_time_se']:.3f}",
                    f"{found['on_time'] - row['on_time']:+.3f}",
                )
                print(f"| {name} | {load} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
