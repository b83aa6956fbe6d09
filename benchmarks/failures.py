"""The simulator where brokers and links fail: component-years per second of CPU time.

The setting of the fault-tolerance paper: ten brokers, ten publishers with a topic and a tree each,
500 subscribers, one event a minute, components that fail and are repaired once in 60,000 s on
average, fourteen days, ten runs; on a random tree and on a random graph of average degree four,
under every scheme.

    python benchmarks/failures.py [--write]
"""

from __future__ import annotations

import argparse
import random
import time
from typing import Any

from recording import add_write_option, record

from tidings.model.outcome import Outcome
from tidings.model.reading import loads
from tidings.model.system import System
from tidings.simulation.run import simulate

SCHEMES = ("periodic", "buffering", "bypass", "bypass-buffering")
BROKERS, TOPICS, SUBSCRIBERS, DEGREE = 10, 10, 500, 4
PERIOD_S, DAYS, RUNS = 60_000, 14, 10
YEAR_S = 365.25 * 86_400


def random_links(rng: random.Random, brokers: int, *, tree: bool) -> list[tuple[int, int]]:
    """A random tree; for a graph, more links until the average degree is reached."""
    found = {(rng.randrange(i), i) for i in range(1, brokers)}
    while not tree and len(found) < brokers * min(DEGREE, brokers - 1) // 2:
        one, other = sorted(rng.sample(range(brokers), 2))
        found.add((one, other))
    return sorted(found)


def paper_system(
    scheme: str, *, tree: bool, seed: int, brokers: int = BROKERS, subscribers: int = SUBSCRIBERS
) -> System:
    rng = random.Random(seed)
    links = random_links(rng, brokers, tree=tree)
    shares = [rng.uniform(0.9, 0.95) for _ in range(brokers)]
    roots = [rng.randrange(brokers) for _ in range(TOPICS)]
    homes = [rng.randrange(brokers) for _ in range(TOPICS)]
    popular = [1.0 / (topic + 1) for topic in range(TOPICS)]
    lines = ["tidings: 1", "lifetime: 1h", f"recovery: {{scheme: {scheme}}}"]
    by = ", ".join(f"t{topic}: b{root}" for topic, root in enumerate(roots))
    lines += [f"routing: {{root: b0, by: topic, roots: {{{by}}}}}", "brokers:"]
    lines += [f"  b{i}: {{{_failure(share)}}}" for i, share in enumerate(shares)]
    lines += ["links:"] + [f"  - {{between: [b{a}, b{b}], {_failure(0.99)}}}" for a, b in links]
    lines += ["publishers:"]
    lines += [
        f"  p{topic}: {{at: b{home}, every: {{exponential: 1min}}, "
        f"content: {{event: {{topic: t{topic}}}}}}}"
        for topic, home in enumerate(homes)
    ]
    lines.append("subscribers:")
    for index in range(subscribers):
        topic = rng.choices(range(TOPICS), popular)[0]
        lines.append(f"  s{index}: {{at: b{rng.randrange(brokers)}, wants: {{topic: t{topic}}}}}")
    return loads("\n".join(lines))


def _failure(availability: float) -> str:
    return f"failure: {{availability: {availability}, period: {PERIOD_S}s}}"


def measure(system: System) -> tuple[float, Outcome]:
    """CPU seconds of fourteen days, ten times, and what came of them."""
    begun = time.process_time()
    found = simulate(system, duration_s=DAYS * 86_400.0, replications=RUNS)
    return time.process_time() - begun, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    add_write_option(parser, "failures")
    args = parser.parse_args()
    simulate(paper_system("periodic", tree=True, seed=1), duration_s=1e3)  # compiles, or loads
    rows: list[dict[str, Any]] = []
    print("network  scheme            CPU s  component-years/s   on time  messages  duplicates")
    for tree in (True, False):
        for scheme in SCHEMES:
            system = paper_system(scheme, tree=tree, seed=args.seed)
            cpu_s, found = measure(system)
            components = len(system.brokers) + len(system.links)
            simulated_s = RUNS * (found.provenance["warmup_s"] + found.provenance["duration_s"])
            speed = components * simulated_s / YEAR_S / cpu_s
            messages = found.provenance["messages"]
            each = messages["transmissions"] / messages["deliveries"]
            twice = messages["duplicates"] / messages["deliveries"]
            name = "tree" if tree else "graph"
            print(
                f"{name:8} {scheme:16} {cpu_s:6.2f} {speed:18.1f} {found.on_time:9.4f} "
                f"{each:9.4f} {twice:11.5f}"
            )
            rows.append(
                {
                    "network": name,
                    "scheme": scheme,
                    "cpu_s": round(cpu_s, 2),
                    "component_years_per_cpu_s": round(speed, 1),
                    "on_time": round(found.on_time, 4),
                    "transmissions_per_delivery": round(each, 4),
                    "duplicates_per_delivery": round(twice, 5),
                }
            )
    if args.write:
        record("failures", {"rows": rows})


if __name__ == "__main__":
    main()
