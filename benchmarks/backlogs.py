"""What predictions with buffers leave out: backlogs that a repair sets free at once.

A broker behind a perfect one is up nine tenths of the time and serves Poisson events; what was kept
for it queues as it is repaired. Predicted and simulated shares on time, by how busy it is while it
is up and by how long events live beside a repair (100 s on average).

    python benchmarks/backlogs.py [--write]
"""

from __future__ import annotations

import argparse
from typing import Any

from recording import add_write_option, record

from tidings.model.reading import loads
from tidings.simulation.run import simulate
from tidings.theory.predicting import predict

AVAILABILITY = 0.9
BUSY = (0.1, 0.4, 0.6, 0.8, 0.9, 1.0)
LIFETIMES_S = (20, 60, 300)
RUNS, DURATION_S = 200, 60_000.0
SYSTEM = """
tidings: 1
lifetime: {lifetime_s}s
recovery: {{scheme: buffering}}
brokers:
  a: {{}}
  b: {{service: {{exponential: {service_s}s}}, failure: {{availability: 0.9, period: 1000s}}}}
links: [{{between: [a, b]}}]
publishers: {{p: {{at: a, every: {{rate: 1/s}}, content: {{event: {{topic: x}}}}}}}}
subscribers: {{s: {{at: b, wants: {{}}}}}}
"""


def measure(busy: float, lifetime_s: float, seed: int) -> dict[str, Any]:
    """Predicted and simulated share on time, and the standard error of the latter."""
    service_s = busy * AVAILABILITY
    system = loads(SYSTEM.format(service_s=service_s, lifetime_s=lifetime_s))
    predicted = predict(system, delays=False)
    simulated = simulate(system, seed=seed, replications=RUNS, duration_s=DURATION_S)
    return {
        "busy": busy,
        "lifetime_s": lifetime_s,
        "predicted": round(predicted.on_time, 4),
        "simulated": round(simulated.on_time, 4),
        "se": round(float(simulated.subscribers["on_time_se"].iloc[0]), 4),
        "too_high": round(predicted.on_time - simulated.on_time, 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    add_write_option(parser, "backlogs")
    args = parser.parse_args()
    rows = []
    print("lifetime s  busy while up  predicted  simulated      se  too high")
    for lifetime_s in LIFETIMES_S:
        for busy in BUSY:
            row = measure(busy, lifetime_s, args.seed)
            rows.append(row)
            print(
                f"{lifetime_s:10} {busy:14} {row['predicted']:10.4f} {row['simulated']:10.4f} "
                f"{row['se']:7.4f} {row['too_high']:9.4f}",
                flush=True,
            )
    if args.write:
        record("backlogs", {"rows": rows})


if __name__ == "__main__":
    main()
